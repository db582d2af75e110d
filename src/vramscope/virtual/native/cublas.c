/* libcublas.  Products are not computed, and their work space is torch's own (it
 * allocates it and hands it over), so there is little to do: handles must differ,
 * because torch keeps a work space for each pair of handle and stream, and each
 * thread (so the autograd thread) has a handle of its own.
 *
 * The routines themselves are stubs that succeed (virtual/symbols.py). */
#include <cublas_api.h>
#include <stdlib.h>
#include "vs.h"

struct cublas { cudaStream_t stream; cublasPointerMode_t pointer_mode; cublasMath_t math_mode; cublasAtomicsMode_t atomics; int sm_target; };
static struct cublas *of(cublasHandle_t handle) { return (struct cublas *)handle; }

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    if (!vs_open_context(vs_device())) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof(struct cublas));
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) { free(handle); return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) { of(handle)->stream = stream; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) { *stream = of(handle)->stream; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) { of(handle)->pointer_mode = mode; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) { *mode = of(handle)->pointer_mode; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) { of(handle)->math_mode = mode; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode) { *mode = of(handle)->math_mode; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) { of(handle)->atomics = mode; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode) { *mode = of(handle)->atomics; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int target) { of(handle)->sm_target = target; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int *target) { *target = of(handle)->sm_target; return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    VS_UNUSED(handle);
    vs_used_as(VS_WORKSPACE, workspace, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) { VS_UNUSED(handle); *version = CUBLAS_VERSION; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION ? CUBLAS_VER_MAJOR : type == MINOR_VERSION ? CUBLAS_VER_MINOR : CUBLAS_VER_PATCH;
    return CUBLAS_STATUS_SUCCESS;
}
size_t cublasGetCudartVersion(void) { return CUDART_VERSION; }

#define A_STATUS(code) case code: return #code
const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
    A_STATUS(CUBLAS_STATUS_SUCCESS); A_STATUS(CUBLAS_STATUS_NOT_INITIALIZED); A_STATUS(CUBLAS_STATUS_ALLOC_FAILED);
    A_STATUS(CUBLAS_STATUS_INVALID_VALUE); A_STATUS(CUBLAS_STATUS_ARCH_MISMATCH); A_STATUS(CUBLAS_STATUS_MAPPING_ERROR);
    A_STATUS(CUBLAS_STATUS_EXECUTION_FAILED); A_STATUS(CUBLAS_STATUS_INTERNAL_ERROR); A_STATUS(CUBLAS_STATUS_NOT_SUPPORTED);
    default: return "CUBLAS_STATUS_UNKNOWN";
    }
}
const char *cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }
