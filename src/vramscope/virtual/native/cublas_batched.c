/* libcublas: the batched factorizations that report their arguments' validity to the host.
 *
 * Beside the outcome of each matrix, which stays on the card as torch cleared it, these
 * write one number of the host's: 0, no argument was wrong.  torch checks it. */
#include <cublas_api.h>
#include "vs.h"

static cublasStatus_t valid(int *info)
{
    vs_kernel_launched();
    if (!vs_is_device_pointer(info)) *info = 0;
    return CUBLAS_STATUS_SUCCESS;
}

#define UNUSED(a, b, c) VS_UNUSED(a); VS_UNUSED(b); VS_UNUSED(c)
#define BATCHED(T, type) \
    cublasStatus_t CUBLASWINAPI cublas##T##geqrfBatched(cublasHandle_t h, int m, int n, type *const a[], int lda, type *const tau[], int *info, int batch) \
    { UNUSED(h, m, n); UNUSED(a, lda, tau); VS_UNUSED(batch); return valid(info); } \
    cublasStatus_t CUBLASWINAPI cublas##T##getrsBatched(cublasHandle_t h, cublasOperation_t op, int n, int rhs, const type *const a[], int lda, \
                                                        const int *pivots, type *const b[], int ldb, int *info, int batch) \
    { UNUSED(h, op, n); UNUSED(rhs, a, lda); UNUSED(pivots, b, ldb); VS_UNUSED(batch); return valid(info); } \
    cublasStatus_t CUBLASWINAPI cublas##T##gelsBatched(cublasHandle_t h, cublasOperation_t op, int m, int n, int rhs, type *const a[], int lda, \
                                                       type *const c[], int ldc, int *info, int *outcomes, int batch) \
    { UNUSED(h, op, m); UNUSED(n, rhs, a); UNUSED(lda, c, ldc); UNUSED(outcomes, batch, batch); return valid(info); }
BATCHED(S, float)
BATCHED(D, double)
BATCHED(C, cuComplex)
BATCHED(Z, cuDoubleComplex)

/* ---- transfers (MAGMA's) ------------------------------------------------------------------- */
static cublasStatus_t read_matrix(int rows, int columns, int element, const void *from, int from_ld, void *to, int to_ld)
{
    for (int j = 0; j < columns; j++)
        vs_read_back((char *)to + (size_t)j * (size_t)to_ld * (size_t)element,
                     (const char *)from + (size_t)j * (size_t)from_ld * (size_t)element, (size_t)rows * (size_t)element);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasGetMatrix(int rows, int columns, int element, const void *a, int lda, void *b, int ldb)
{
    return read_matrix(rows, columns, element, a, lda, b, ldb);
}

cublasStatus_t CUBLASWINAPI cublasGetMatrixAsync(int rows, int columns, int element, const void *a, int lda, void *b, int ldb, cudaStream_t stream)
{
    VS_UNUSED(stream);
    return read_matrix(rows, columns, element, a, lda, b, ldb);
}

cublasStatus_t CUBLASWINAPI cublasGetVector(int n, int element, const void *x, int incx, void *y, int incy)
{
    return read_matrix(1, n, element, x, incx, y, incy);
}

cublasStatus_t CUBLASWINAPI cublasGetVectorAsync(int n, int element, const void *x, int incx, void *y, int incy, cudaStream_t stream)
{
    VS_UNUSED(stream);
    return read_matrix(1, n, element, x, incx, y, incy);
}
