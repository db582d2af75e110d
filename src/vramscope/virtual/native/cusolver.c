/* libcusolver: handles, and how much memory each factorization asks for.
 *
 * Factorizations do nothing and leave `info` as torch cleared it (0: success); they are
 * stubs that the build writes, as they have nothing to answer.  What is answered here are
 * the sizes.  The real library needs a device for most of them, so:
 *
 * - gesvdj (torch's default for singular values): the real library's own rule, which needs
 *   no device; found by asking libcusolver 12.0.4 for sizes from 1 to 10000 with a blank
 *   handle.  A test holds it to the installed library; whether a real card would change
 *   the answer has not been tried.
 * - syevjBatched (and syevj as a batch of one, which torch up to 2.9 or so asks for):
 *   batch * (n^2 + 2 n + 1025) + 1028 elements, fitted to cupy/cupy issue 7261:
 *   exact for its sizes of n = 4 (batches of 1 to 2047171), and 2^31 is passed at n = 2 just
 *   beyond the largest batch that worked there (2078879).
 * - syevd: 3 n^2 + 128 n, from NVIDIA/CUDALibrarySamples issue 246, where the query fails
 *   beyond n of about 25000 for want of bits (3 n^2 = 2^31 at 26755).
 * - all others: LAPACK's blocked sizes with panels of PANEL columns, a guess from above.
 *
 * Every size but the first kind is reported as one that had to be invented. */
#include <cusolverDn.h>
#include <limits.h>
#include <stdlib.h>
#include "mathlib.h"

/* Columns that a blocked factorization takes at a time. LAPACK's ILAENV says 32 or 64
 * on a processor; libraries for GPUs take more. */
#define PANEL 128
#define GESVDJ_TILE 32

typedef uint64_t u64;

/* ---- handles ---------------------------------------------------------------------------- */
struct handle { cudaStream_t stream; };

#define CREATE(name, type, bytes) \
    cusolverStatus_t CUSOLVERAPI name(type *made) \
    { *made = calloc(1, bytes); return *made ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED; }
#define DESTROY(name, type) \
    cusolverStatus_t CUSOLVERAPI name(type gone) { free(gone); return CUSOLVER_STATUS_SUCCESS; }

cusolverStatus_t CUSOLVERAPI cusolverDnCreate(cusolverDnHandle_t *handle)
{
    if (!vs_open_context(vs_device())) return CUSOLVER_STATUS_ALLOC_FAILED;
    *handle = calloc(1, sizeof(struct handle));
    return *handle ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
DESTROY(cusolverDnDestroy, cusolverDnHandle_t)
CREATE(cusolverDnCreateParams, cusolverDnParams_t, 1)
DESTROY(cusolverDnDestroyParams, cusolverDnParams_t)
CREATE(cusolverDnCreateGesvdjInfo, gesvdjInfo_t, 1)
DESTROY(cusolverDnDestroyGesvdjInfo, gesvdjInfo_t)
CREATE(cusolverDnCreateSyevjInfo, syevjInfo_t, 1)
DESTROY(cusolverDnDestroySyevjInfo, syevjInfo_t)

cusolverStatus_t CUSOLVERAPI cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
    ((struct handle *)handle)->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t CUSOLVERAPI cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream)
{
    *stream = ((struct handle *)handle)->stream;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t CUSOLVERAPI cusolverGetVersion(int *version)
{
    *version = CUSOLVER_VERSION;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t CUSOLVERAPI cusolverGetProperty(libraryPropertyType which, int *value)
{
    bool known = vs_property(which, CUSOLVER_VER_MAJOR, CUSOLVER_VER_MINOR, CUSOLVER_VER_PATCH, value);
    return known ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

/* ---- sizes, in elements ------------------------------------------------------------------ */
/* A panel of `rows` and the triangle that its reflectors or pivots are folded into. */
static u64 panel_elements(u64 rows, u64 columns)
{
    u64 width = vs_least(columns, PANEL);
    return rows * width + width * width;
}

static u64 syevd_elements(u64 n, bool vectors) { return vectors ? 3 * n * n + PANEL * n : panel_elements(n, n) + 2 * n; }
/* LAPACK's least for syevd with vectors: 1 + 6 n + 2 n^2. */
static u64 syev_batched_elements(u64 n, bool vectors, u64 batch) { return batch * ((vectors ? 2 * n * n : 0) + 6 * n + 1); }
static u64 syevj_batched_elements(u64 n, u64 batch) { return batch * (n * n + 2 * n + 1025) + 1028; }
/* LAPACK's gesvd, blocked, after a QR factorization of the longer side. */
static u64 gesvd_elements(u64 rows, u64 columns)
{
    u64 k = vs_least(rows, columns);
    return k * k + (rows + columns) * vs_least(k, PANEL);
}

/* See the top; within one part in a hundred of the library's answers. */
static u64 gesvdj_elements(u64 rows, u64 columns)
{
    u64 k = vs_least(rows, columns), longer = vs_most(rows, columns), tiles = (k + GESVDJ_TILE - 1) / GESVDJ_TILE;
    u64 sweeps = 4 * tiles * tiles + 2080 * tiles + 1056;
    u64 jacobi = (rows == columns ? 2 : 3) * k * k + sweeps;
    return VS_UP(vs_most(jacobi, longer * k + k * k), 32);
}

/* U, V and a copy of A for each matrix, beside what a Jacobi sweep of that size needs. */
static u64 gesvdj_batched_elements(u64 rows, u64 columns, u64 batch)
{
    return batch * rows * columns + syevj_batched_elements(vs_most(rows, columns), batch);
}

/* The approximate one forms the small Gram matrix and its eigenvectors. */
static u64 gesvda_elements(u64 rows, u64 columns, u64 batch)
{
    return batch * (rows * columns + 3 * columns * columns + PANEL * columns);
}

/* The answers that fit an int; the real library fails the same way beyond it. */
static cusolverStatus_t answer(u64 elements, int *size)
{
    if (elements > INT_MAX) return CUSOLVER_STATUS_INVALID_VALUE;
    *size = (int)elements;
    return CUSOLVER_STATUS_SUCCESS;
}

static void report(const char *what, u64 bytes)
{
    if (bytes) vs_uncounted(what, bytes, "modelled: LAPACK-like work space, see native/cusolver.c");
}

static cusolverStatus_t invent(const char *what, u64 elements, u64 element_bytes, int *size)
{
    cusolverStatus_t status = answer(elements, size);
    if (!status) report(what, elements * element_bytes);
    return status;
}

static cusolverStatus_t invent_bytes(const char *what, u64 elements, cudaDataType type, size_t *device, size_t *host)
{
    if (!vs_element_bytes(type)) return CUSOLVER_STATUS_NOT_SUPPORTED;
    *device = elements * vs_element_bytes(type);
    *host = 0;
    report(what, *device);
    return CUSOLVER_STATUS_SUCCESS;
}

#define NEED(a, b) if ((a) < 0 || (b) < 0) return CUSOLVER_STATUS_INVALID_VALUE

/* ---- the calls of 32 bits, for each type --------------------------------------------------- */
#define SIZE_OF(call, ...) cusolverStatus_t CUSOLVERAPI cusolverDn##call##_bufferSize(cusolverDnHandle_t handle, __VA_ARGS__)
#define INVENT(routine, elements) return invent("cuSOLVER " routine " work space", elements, sizeof *a, size)

#define FACTORIZATIONS(T, type) \
    SIZE_OF(T##potrf, cublasFillMode_t triangle, int n, type *a, int lda, int *size) \
    { NEED(n, lda); INVENT("potrf", panel_elements((u64)n, (u64)n)); } \
    SIZE_OF(T##getrf, int m, int n, type *a, int lda, int *size) \
    { NEED(m, n); INVENT("getrf", panel_elements((u64)m, (u64)n)); } \
    SIZE_OF(T##geqrf, int m, int n, type *a, int lda, int *size) \
    { NEED(m, n); INVENT("geqrf", panel_elements((u64)n, vs_least((u64)m, (u64)n))); } \
    SIZE_OF(T##sytrf, int n, type *a, int lda, int *size) \
    { NEED(n, lda); INVENT("sytrf", panel_elements((u64)n, (u64)n)); } \
    SIZE_OF(T##gesvd, int m, int n, int *size) \
    { const type *a = NULL; NEED(m, n); INVENT("gesvd", gesvd_elements((u64)m, (u64)n)); }
FACTORIZATIONS(S, float)
FACTORIZATIONS(D, double)
FACTORIZATIONS(C, cuComplex)
FACTORIZATIONS(Z, cuDoubleComplex)

/* The orthogonal factor of geqrf; its calls are "or" for real types, "un" for complex ones. */
#define ORTHOGONAL(T, type) \
    SIZE_OF(T##gqr, int m, int n, int k, const type *a, int lda, const type *tau, int *size) \
    { NEED(n, k); INVENT("orgqr", panel_elements((u64)n, (u64)k)); } \
    SIZE_OF(T##mqr, cublasSideMode_t side, cublasOperation_t op, int m, int n, int k, const type *a, int lda, \
            const type *tau, const type *c, int ldc, int *size) \
    { NEED(m, n); NEED(k, lda); INVENT("ormqr", panel_elements((u64)(side == CUBLAS_SIDE_LEFT ? n : m), (u64)k)); }
ORTHOGONAL(Sor, float)
ORTHOGONAL(Dor, double)
ORTHOGONAL(Cun, cuComplex)
ORTHOGONAL(Zun, cuDoubleComplex)

/* Eigenvalues; "sy" for real types, "he" for complex ones, whose eigenvalues are real. */
#define EIGENVALUES(T, type, real) \
    SIZE_OF(T##evd, cusolverEigMode_t job, cublasFillMode_t triangle, int n, const type *a, int lda, const real *w, int *size) \
    { NEED(n, lda); INVENT("syevd", syevd_elements((u64)n, job == CUSOLVER_EIG_MODE_VECTOR)); } \
    SIZE_OF(T##evj, cusolverEigMode_t job, cublasFillMode_t triangle, int n, const type *a, int lda, const real *w, \
            int *size, syevjInfo_t info) \
    { NEED(n, lda); INVENT("syevj", syevj_batched_elements((u64)n, 1)); } \
    SIZE_OF(T##evjBatched, cusolverEigMode_t job, cublasFillMode_t triangle, int n, const type *a, int lda, const real *w, \
            int *size, syevjInfo_t info, int batch) \
    { NEED(n, batch); INVENT("syevjBatched", syevj_batched_elements((u64)n, (u64)batch)); }
EIGENVALUES(Ssy, float, float)
EIGENVALUES(Dsy, double, double)
EIGENVALUES(Che, cuComplex, float)
EIGENVALUES(Zhe, cuDoubleComplex, double)

#define SINGULAR_VALUES(T, type, real) \
    SIZE_OF(T##gesvdj, cusolverEigMode_t job, int econ, int m, int n, const type *a, int lda, const real *s, \
            const type *u, int ldu, const type *v, int ldv, int *size, gesvdjInfo_t info) \
    { NEED(m, n); return answer(gesvdj_elements((u64)m, (u64)n), size); } \
    SIZE_OF(T##gesvdjBatched, cusolverEigMode_t job, int m, int n, const type *a, int lda, const real *s, \
            const type *u, int ldu, const type *v, int ldv, int *size, gesvdjInfo_t info, int batch) \
    { NEED(m, n); NEED(batch, lda); INVENT("gesvdjBatched", gesvdj_batched_elements((u64)m, (u64)n, (u64)batch)); } \
    SIZE_OF(T##gesvdaStridedBatched, cusolverEigMode_t job, int rank, int m, int n, const type *a, int lda, long long stride_a, \
            const real *s, long long stride_s, const type *u, int ldu, long long stride_u, const type *v, int ldv, \
            long long stride_v, int *size, int batch) \
    { NEED(m, n); NEED(batch, lda); INVENT("gesvda", gesvda_elements((u64)m, (u64)n, (u64)batch)); }
SINGULAR_VALUES(S, float, float)
SINGULAR_VALUES(D, double, double)
SINGULAR_VALUES(C, cuComplex, float)
SINGULAR_VALUES(Z, cuDoubleComplex, double)

/* ---- the calls of 64 bits: one for all types, sizes in bytes -------------------------------- */
#define INVENT_BYTES(routine, elements) \
    return invent_bytes("cuSOLVER " routine " work space", elements, type, device, host)

SIZE_OF(Xpotrf, cusolverDnParams_t params, cublasFillMode_t triangle, int64_t n, cudaDataType type, const void *a, int64_t lda,
        cudaDataType compute, size_t *device, size_t *host)
{
    NEED(n, lda);
    INVENT_BYTES("potrf", panel_elements((u64)n, (u64)n));
}

SIZE_OF(Xgeqrf, cusolverDnParams_t params, int64_t m, int64_t n, cudaDataType type, const void *a, int64_t lda,
        cudaDataType tau_type, const void *tau, cudaDataType compute, size_t *device, size_t *host)
{
    NEED(m, n);
    INVENT_BYTES("geqrf", panel_elements((u64)n, vs_least((u64)m, (u64)n)));
}

SIZE_OF(Xsyevd, cusolverDnParams_t params, cusolverEigMode_t job, cublasFillMode_t triangle, int64_t n, cudaDataType type,
        const void *a, int64_t lda, cudaDataType w_type, const void *w, cudaDataType compute, size_t *device, size_t *host)
{
    NEED(n, lda);
    INVENT_BYTES("syevd", syevd_elements((u64)n, job == CUSOLVER_EIG_MODE_VECTOR));
}

SIZE_OF(XsyevBatched, cusolverDnParams_t params, cusolverEigMode_t job, cublasFillMode_t triangle, int64_t n, cudaDataType type,
        const void *a, int64_t lda, cudaDataType w_type, const void *w, cudaDataType compute, size_t *device, size_t *host,
        int64_t batch)
{
    NEED(n, batch);
    INVENT_BYTES("syevBatched", syev_batched_elements((u64)n, job == CUSOLVER_EIG_MODE_VECTOR, (u64)batch));
}

/* The real library asks for nothing. */
SIZE_OF(Xsytrs, cublasFillMode_t triangle, int64_t n, int64_t rhs, cudaDataType type, const void *a, int64_t lda,
        const int64_t *pivots, cudaDataType b_type, void *b, int64_t ldb, size_t *device, size_t *host)
{
    NEED(n, rhs);
    INVENT_BYTES("sytrs", 0);
}

/* A copy that becomes the Hessenberg form, with its panel; partly done on the host. */
SIZE_OF(Xgeev, cusolverDnParams_t params, cusolverEigMode_t left, cusolverEigMode_t right, int64_t n, cudaDataType type,
        const void *a, int64_t lda, cudaDataType w_type, const void *w, cudaDataType vl_type, const void *vl, int64_t ldvl,
        cudaDataType vr_type, const void *vr, int64_t ldvr, cudaDataType compute, size_t *device, size_t *host)
{
    u64 elements = (u64)n * (u64)n + panel_elements((u64)n, (u64)n);
    NEED(n, lda);
    *host = elements * vs_element_bytes(type);
    size_t none;
    return invent_bytes("cuSOLVER geev work space", elements, type, device, &none);
}
