/* A virtual clock for each stream.  Kernels do nothing, so time passes only where
 * somebody says how long the work would take; libraries that choose by timing see it. */
#include "../vs.h"
#include <stdlib.h>

/* Handles below this are CUDA's names for the default streams (cudaStreamLegacy = 1,
 * cudaStreamPerThread = 2: driver_types.h); the others are struct vs_stream. */
#define FIRST_REAL_HANDLE 16
static double default_clock;

static double *clock_of(void *stream)
{
    return (uintptr_t)stream < FIRST_REAL_HANDLE ? &default_clock : (double *)stream;
}

void vs_elapse(void *stream, double seconds) { *clock_of(stream) += seconds; }
double vs_clock(void *stream) { return *clock_of(stream); }
