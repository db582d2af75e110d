/* libcurand's calls from the host: generators that generate nothing.
 *
 * torch has its own generators and links to this library without a call; it is here for
 * other people's extensions.  A generator keeps its states on the card: how many is not
 * published, and reported as unknown. */
#include <curand.h>
#include <stdlib.h>
#include "mathlib.h"

typedef curandStatus_t status;
struct curandGenerator_st { curandRngType_t type; };

static status create(curandGenerator_t *generator, curandRngType_t type)
{
    *generator = calloc(1, sizeof **generator);
    if (!*generator) return CURAND_STATUS_ALLOCATION_FAILED;
    (*generator)->type = type;
    return CURAND_STATUS_SUCCESS;
}

status CURANDAPI curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type)
{
    if (!vs_open_context(vs_device())) return CURAND_STATUS_INITIALIZATION_FAILED;
    vs_uncounted("cuRAND generator states", VS_UNKNOWN, "taken as none");
    return create(generator, type);
}

status CURANDAPI curandDestroyGenerator(curandGenerator_t generator) { free(generator); return CURAND_STATUS_SUCCESS; }

/* The numbers are not there to be read; who reads them gets what the card's memory gives. */
static status generated(curandGenerator_t generator)
{
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    vs_kernel_launched();
    return CURAND_STATUS_SUCCESS;
}

#define GENERATE(name, type) \
    status CURANDAPI curandGenerate##name(curandGenerator_t generator, type *out, size_t count) \
    { return generated(generator); }
#define GENERATE_AROUND(name, type) \
    status CURANDAPI curandGenerate##name(curandGenerator_t generator, type *out, size_t count, type mean, type deviation) \
    { return generated(generator); }
GENERATE(, unsigned)
GENERATE(LongLong, unsigned long long)
GENERATE(Uniform, float)
GENERATE(UniformDouble, double)
GENERATE_AROUND(Normal, float)
GENERATE_AROUND(NormalDouble, double)
GENERATE_AROUND(LogNormal, float)
GENERATE_AROUND(LogNormalDouble, double)

status CURANDAPI curandGeneratePoisson(curandGenerator_t generator, unsigned *out, size_t count, double lambda)
{
    return generated(generator);
}

status CURANDAPI curandGenerateSeeds(curandGenerator_t generator) { return generated(generator); }

status CURANDAPI curandGetVersion(int *version) { *version = CURAND_VERSION; return CURAND_STATUS_SUCCESS; }

status CURANDAPI curandGetProperty(libraryPropertyType which, int *value)
{
    bool known = vs_property(which, CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH, value);
    return known ? CURAND_STATUS_SUCCESS : CURAND_STATUS_OUT_OF_RANGE;
}
