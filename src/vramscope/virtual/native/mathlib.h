/* What the stand-ins of the math libraries share. */
#ifndef VRAMSCOPE_MATHLIB_H
#define VRAMSCOPE_MATHLIB_H
#include <library_types.h>
#include "vs.h"

/* A size depends on three or four of a call's twenty arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Bytes of one element; 0 for a type that none of these libraries computes with. */
static inline uint64_t vs_element_bytes(cudaDataType type)
{
    switch (type) {
    case CUDA_R_8I: case CUDA_R_8U: case CUDA_R_8F_E4M3: case CUDA_R_8F_E5M2: return 1;
    case CUDA_R_16F: case CUDA_R_16BF: return 2;
    case CUDA_R_32F: case CUDA_R_32I: case CUDA_C_16F: case CUDA_C_16BF: return 4;
    case CUDA_R_64F: case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
    default: return 0;
    }
}

static inline bool vs_is_real(cudaDataType type)
{
    return type == CUDA_R_16F || type == CUDA_R_16BF || type == CUDA_R_32F || type == CUDA_R_64F;
}

static inline uint64_t vs_least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t vs_most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* One of the three numbers of a library's version, from its header. */
static inline bool vs_property(libraryPropertyType which, int major, int minor, int patch, int *value)
{
    const int numbers[] = {major, minor, patch};
    if ((unsigned)which > PATCH_LEVEL) return false;
    *value = numbers[which];
    return true;
}
#endif
