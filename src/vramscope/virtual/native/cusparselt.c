/* libcusparseLt: products with matrices of which two in four are zero.
 *
 * The library's objects are blocks that the caller owns; a matrix keeps its shape in its
 * own, the others nothing (what sets them up are stubs that succeed).
 *
 * torch sizes the compressed matrix itself (9/16 of two-byte elements, 10/16 of one-byte
 * ones: half of the values and two bits for the place of each); what it asks here are the
 * buffers of the compression and of the product, which the real library works out on a
 * device only.  They are reported as unknown. */
#include <stdalign.h>
#include <stdint.h>
#define DISABLE_CUSPARSE_DEPRECATED                /* cusparse.h comes with it */
#include <cusparseLt.h>
#include <string.h>
#include "mathlib.h"

#define LEAST_MAJOR 8                              /* sparse tensor cores came with Ampere */

typedef cusparseStatus_t status;
struct matrix { int64_t rows, columns; cudaDataType type; };

static const struct matrix *matrix_of(const cusparseLtMatDescriptor_t *block)
{
    return (const struct matrix *)(const void *)block->data;
}

static status describe(cusparseLtMatDescriptor_t *block, int64_t rows, int64_t columns, cudaDataType type)
{
    const struct matrix as = {rows, columns, type};
    if (rows < 1 || columns < 1 || !vs_element_bytes(type)) return CUSPARSE_STATUS_INVALID_VALUE;
    memset(block, 0, sizeof *block);
    memcpy(block->data, &as, sizeof as);
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- objects ----------------------------------------------------------------------------------- */
status CUSPARSELT_API cusparseLtInit(cusparseLtHandle_t *handle)
{
    if (!vs_open_context(vs_device())) return CUSPARSE_STATUS_NOT_INITIALIZED;
    if (vs_card()->major < LEAST_MAJOR) return CUSPARSE_STATUS_ARCH_MISMATCH;
    memset(handle, 0, sizeof *handle);
    return CUSPARSE_STATUS_SUCCESS;
}

status CUSPARSELT_API cusparseLtDenseDescriptorInit(const cusparseLtHandle_t *handle, cusparseLtMatDescriptor_t *block,
    int64_t rows, int64_t columns, int64_t ld, uint32_t alignment, cudaDataType type, cusparseOrder_t order)
{
    return describe(block, rows, columns, type);
}

status CUSPARSELT_API cusparseLtStructuredDescriptorInit(const cusparseLtHandle_t *handle, cusparseLtMatDescriptor_t *block,
    int64_t rows, int64_t columns, int64_t ld, uint32_t alignment, cudaDataType type, cusparseOrder_t order, cusparseLtSparsity_t sparsity)
{
    return describe(block, rows, columns, type);
}

/* The first of one algorithm, in one piece: what a search over nothing comes to. */
status CUSPARSELT_API cusparseLtMatmulAlgGetAttribute(const cusparseLtHandle_t *handle,
    const cusparseLtMatmulAlgSelection_t *choice, cusparseLtMatmulAlgAttribute_t attribute, void *data, size_t bytes)
{
    bool counts = attribute == CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID || attribute == CUSPARSELT_MATMUL_SPLIT_K
                  || attribute == CUSPARSELT_MATMUL_SEARCH_ITERATIONS || attribute == CUSPARSELT_MATMUL_SPLIT_K_MODE;
    int value = counts ? 1 : 0;
    if (bytes != sizeof value) return CUSPARSE_STATUS_INVALID_VALUE;
    memcpy(data, &value, sizeof value);
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- sizes --------------------------------------------------------------------------------------- */
status CUSPARSELT_API cusparseLtSpMMACompressedSize2(const cusparseLtHandle_t *handle, const cusparseLtMatDescriptor_t *block,
    size_t *compressed, size_t *buffer)
{
    const struct matrix *matrix = matrix_of(block);
    uint64_t kept = (uint64_t)matrix->rows * (uint64_t)matrix->columns / 2;
    *compressed = kept * vs_element_bytes(matrix->type) + kept / 4;
    *buffer = 0;
    vs_uncounted("cuSPARSELt compression buffer", VS_UNKNOWN, "taken as none");
    return CUSPARSE_STATUS_SUCCESS;
}

status CUSPARSELT_API cusparseLtMatmulGetWorkspace(const cusparseLtHandle_t *handle, const cusparseLtMatmulPlan_t *plan,
    size_t *bytes)
{
    *bytes = 0;
    vs_uncounted("cuSPARSELt work space", VS_UNKNOWN, "taken as none, as for a product in one piece");
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- version --------------------------------------------------------------------------------------- */
status CUSPARSELT_API cusparseLtGetVersion(const cusparseLtHandle_t *handle, int *version)
{
    *version = CUSPARSELT_VERSION;
    return CUSPARSE_STATUS_SUCCESS;
}

status CUSPARSELT_API cusparseLtGetProperty(libraryPropertyType which, int *value)
{
    bool known = vs_property(which, CUSPARSELT_VER_MAJOR, CUSPARSELT_VER_MINOR, CUSPARSELT_VER_PATCH, value);
    return known ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}
