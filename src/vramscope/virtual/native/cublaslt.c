/* libcublasLt: one algorithm for everything, without a work space of its own.
 * What torch allocates for it does not depend on the algorithm's answer: it offers
 * the work space that it has (CUBLASLT_WORKSPACE_SIZE, or cuBLAS's). */
#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>
#include "vs.h"

static cublasStatus_t create(void **out, size_t bytes)
{
    *out = calloc(1, bytes);
    return *out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
static cublasStatus_t destroy(void *made) { free(made); return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) { return create((void **)handle, 64); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }
size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
    VS_UNUSED(compute); VS_UNUSED(scale);
    return create((void **)desc, sizeof **desc);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return destroy(desc); }
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
    VS_UNUSED(type); VS_UNUSED(rows); VS_UNUSED(cols); VS_UNUSED(ld);
    return create((void **)layout, sizeof **layout);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) { return create((void **)preference, sizeof **preference); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found)
{
    VS_UNUSED(handle); VS_UNUSED(desc); VS_UNUSED(a); VS_UNUSED(b); VS_UNUSED(c); VS_UNUSED(d); VS_UNUSED(preference);
    memset(results, 0, (size_t)wanted * sizeof *results);
    *found = wanted > 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result)
{
    VS_UNUSED(handle); VS_UNUSED(desc); VS_UNUSED(a); VS_UNUSED(b); VS_UNUSED(c); VS_UNUSED(d); VS_UNUSED(algorithm);
    memset(result, 0, sizeof *result);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *value, size_t bytes, size_t *written)
{
    VS_UNUSED(algorithm); VS_UNUSED(attribute);
    memset(value, 0, bytes);
    if (written) *written = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a_data,
                              cublasLtMatrixLayout_t a, const void *b_data, cublasLtMatrixLayout_t b, const void *beta,
                              const void *c_data, cublasLtMatrixLayout_t c, void *d_data, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes, cudaStream_t stream)
{
    VS_UNUSED(handle); VS_UNUSED(desc); VS_UNUSED(alpha); VS_UNUSED(a_data); VS_UNUSED(a); VS_UNUSED(b_data);
    VS_UNUSED(b); VS_UNUSED(beta); VS_UNUSED(c_data); VS_UNUSED(c); VS_UNUSED(d_data); VS_UNUSED(d);
    VS_UNUSED(algorithm); VS_UNUSED(stream);
    vs_used_as(VS_WORKSPACE, workspace, bytes);
    vs_kernel_launched();
    return CUBLAS_STATUS_SUCCESS;
}
