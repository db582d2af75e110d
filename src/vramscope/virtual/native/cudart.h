/* Shared by the files of the runtime (cudart*.c) and the driver (cuda.c). */
#ifndef VRAMSCOPE_CUDART_H
#define VRAMSCOPE_CUDART_H
#include <cuda.h>
#include <cuda_runtime_api.h>
#include "vs.h"

/* Remembers an error for cudaGetLastError and hands it on. */
cudaError_t vs_error(cudaError_t error);

/* Every call that would create the primary context begins with this. */
#define VS_CONTEXT() \
    do { if (!vs_open_context(vs_device())) return vs_error(vs_device_count() ? cudaErrorMemoryAllocation : cudaErrorNoDevice); } while (0)

void vs_fill_properties(struct cudaDeviceProp *properties, int device);
cudaError_t vs_attribute(int *value, int attribute, int device);
cudaError_t vs_copy(void *dst, const void *src, size_t bytes);

/* Whether a launch of this shape would be refused by a card. */
cudaError_t vs_check_launch(dim3 grid, dim3 block, size_t shared_bytes);
int vs_blocks_per_sm(int threads, size_t shared_bytes);

/* Counts a node of the graph that a stream is being captured into, if it is. */
void vs_count_node(cudaStream_t stream);
#endif
