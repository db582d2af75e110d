/* The CUDA wheels ship their headers without crt/.  Only the markers that the
 * type declarations use are needed, and for a host compiler they mean nothing. */
#ifndef VRAMSCOPE_HOST_DEFINES_H
#define VRAMSCOPE_HOST_DEFINES_H
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDA_CB
#define __host__
#define __device__
#define __forceinline__ inline
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __CUDA_ARCH_HAS_FEATURE__(feature) 0
#endif
