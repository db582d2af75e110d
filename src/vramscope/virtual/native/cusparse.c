/* libcusparse: descriptors that remember their shape, and the buffers that calls ask for.
 *
 * Products, sorts and conversions do nothing; they are stubs that the build writes.  What
 * is answered here are sizes, of three kinds:
 *
 * - coosort, csrsort, csrgeam2, bsrsv2, bsrsm2: the real library's own rules, which need no
 *   device; found by asking libcusparse 12.6.3 with a blank handle.  They agree to within
 *   two units of 128 bytes, and a test holds them to the installed library; whether a real
 *   card would change the answers has not been tried.
 * - SpMV, SpMM, SDDMM, SpSV, SpSM, SpGEMM: the real library asks the device, and NVIDIA
 *   publishes no rule.  Modelled, each as said beside it, and reported as invented.
 * - The entries of a sparse result (SpGEMM, csrgeam2), which depend on the values: as many
 *   as if no two terms met, and no more than the matrix holds.  Reported too. */
#define DISABLE_CUSPARSE_DEPRECATED                /* torch still calls what is deprecated */
#include <cusparse.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "mathlib.h"

#define UNIT 128                                  /* what the library rounds its buffers up to */
#define ENTRIES_PER_BLOCK 128                     /* of a schedule that shares the entries out evenly */

typedef uint64_t u64;
typedef cusparseStatus_t status;

struct cusparseContext { cudaStream_t stream; cusparsePointerMode_t pointers; };
struct cusparseMatDescr {
    cusparseMatrixType_t type;
    cusparseFillMode_t fill;
    cusparseDiagType_t diagonal;
    cusparseIndexBase_t base;
};
struct cusparseSpMatDescr {
    cusparseFormat_t format;
    int64_t rows, columns, entries;
    cudaDataType type;
    cusparseFillMode_t fill;
    cusparseDiagType_t diagonal;
};
struct cusparseDnMatDescr { int64_t rows, columns; cudaDataType type; cusparseOrder_t order; };
struct cusparseDnVecDescr { int64_t length; cudaDataType type; };

/* ---- making and dropping -------------------------------------------------------------------- */
static void *fresh(size_t bytes, const void *as)
{
    void *made = calloc(1, bytes);
    if (made && as) memcpy(made, as, bytes);
    return made;
}

static status drop(const void *gone) { free((void *)(uintptr_t)gone); return CUSPARSE_STATUS_SUCCESS; }
static status made(const void *what) { return what ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_ALLOC_FAILED; }

status CUSPARSEAPI cusparseCreate(cusparseHandle_t *handle)
{
    if (!vs_open_context(vs_device())) return CUSPARSE_STATUS_NOT_INITIALIZED;
    return made(*handle = fresh(sizeof **handle, NULL));
}

status CUSPARSEAPI cusparseDestroy(cusparseHandle_t handle) { return drop(handle); }

/* Objects that only need to be somebody. */
#define TOKEN(create, destroy, type) \
    status CUSPARSEAPI create(type *token) { return made(*token = fresh(1, NULL)); } \
    status CUSPARSEAPI destroy(type token) { return drop(token); }
TOKEN(cusparseSpGEMM_createDescr, cusparseSpGEMM_destroyDescr, cusparseSpGEMMDescr_t)
TOKEN(cusparseSpSM_createDescr, cusparseSpSM_destroyDescr, cusparseSpSMDescr_t)
TOKEN(cusparseSpSV_createDescr, cusparseSpSV_destroyDescr, cusparseSpSVDescr_t)
TOKEN(cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info, bsrsv2Info_t)
TOKEN(cusparseCreateBsrsm2Info, cusparseDestroyBsrsm2Info, bsrsm2Info_t)

status CUSPARSEAPI cusparseCreateMatDescr(cusparseMatDescr_t *matrix) { return made(*matrix = fresh(sizeof **matrix, NULL)); }
status CUSPARSEAPI cusparseDestroyMatDescr(cusparseMatDescr_t matrix) { return drop(matrix); }
status CUSPARSEAPI cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) { return drop(matrix); }
status CUSPARSEAPI cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) { return drop(matrix); }
status CUSPARSEAPI cusparseDestroyDnVec(cusparseConstDnVecDescr_t vector) { return drop(vector); }

static struct cusparseSpMatDescr *sparse(cusparseFormat_t format, int64_t rows, int64_t columns, int64_t entries, cudaDataType type)
{
    const struct cusparseSpMatDescr as = {.format = format, .rows = rows, .columns = columns, .entries = entries, .type = type};
    return fresh(sizeof as, &as);
}

/* Each maker comes twice: for data that is written and for data that is only read. */
#define MAKE(CONST, what, ...) status CUSPARSEAPI cusparseCreate##CONST##what(cusparse##CONST##__VA_ARGS__)
#define COMPRESSED(CONST, qualifier, Name, FORMAT) \
    MAKE(CONST, Name, SpMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t entries, qualifier void *offsets, \
         qualifier void *indices, qualifier void *values, cusparseIndexType_t offset_type, cusparseIndexType_t index_type, \
         cusparseIndexBase_t base, cudaDataType type) \
    { return made(*matrix = sparse(FORMAT, rows, columns, entries, type)); }
#define MAKERS(CONST, qualifier) \
    COMPRESSED(CONST, qualifier, Csr, CUSPARSE_FORMAT_CSR) \
    COMPRESSED(CONST, qualifier, Csc, CUSPARSE_FORMAT_CSC) \
    MAKE(CONST, Coo, SpMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t entries, qualifier void *row_indices, \
         qualifier void *column_indices, qualifier void *values, cusparseIndexType_t index_type, cusparseIndexBase_t base, \
         cudaDataType type) \
    { return made(*matrix = sparse(CUSPARSE_FORMAT_COO, rows, columns, entries, type)); } \
    MAKE(CONST, DnMat, DnMatDescr_t *matrix, int64_t rows, int64_t columns, int64_t ld, qualifier void *values, \
         cudaDataType type, cusparseOrder_t order) \
    { \
        const struct cusparseDnMatDescr as = {rows, columns, type, order}; \
        return made(*matrix = fresh(sizeof as, &as)); \
    } \
    MAKE(CONST, DnVec, DnVecDescr_t *vector, int64_t length, qualifier void *values, cudaDataType type) \
    { \
        const struct cusparseDnVecDescr as = {length, type}; \
        return made(*vector = fresh(sizeof as, &as)); \
    }
MAKERS(, )
MAKERS(Const, const)

/* ---- attributes ------------------------------------------------------------------------------- */
#define HANDLE_PROPERTY(Name, type, field) \
    status CUSPARSEAPI cusparseSet##Name(cusparseHandle_t h, type value) { h->field = value; return CUSPARSE_STATUS_SUCCESS; } \
    status CUSPARSEAPI cusparseGet##Name(cusparseHandle_t h, type *value) { *value = h->field; return CUSPARSE_STATUS_SUCCESS; }
HANDLE_PROPERTY(Stream, cudaStream_t, stream)
HANDLE_PROPERTY(PointerMode, cusparsePointerMode_t, pointers)

#define MATRIX_PROPERTY(Name, type, field) \
    status CUSPARSEAPI cusparseSetMat##Name(cusparseMatDescr_t matrix, type value) \
    { matrix->field = value; return CUSPARSE_STATUS_SUCCESS; } \
    type CUSPARSEAPI cusparseGetMat##Name(const cusparseMatDescr_t matrix) { return matrix->field; }
MATRIX_PROPERTY(Type, cusparseMatrixType_t, type)
MATRIX_PROPERTY(FillMode, cusparseFillMode_t, fill)
MATRIX_PROPERTY(DiagType, cusparseDiagType_t, diagonal)
MATRIX_PROPERTY(IndexBase, cusparseIndexBase_t, base)

status CUSPARSEAPI cusparseSpMatGetSize(cusparseConstSpMatDescr_t matrix, int64_t *rows, int64_t *columns, int64_t *entries)
{
    *rows = matrix->rows;
    *columns = matrix->columns;
    *entries = matrix->entries;
    return CUSPARSE_STATUS_SUCCESS;
}

status CUSPARSEAPI cusparseSpMatGetFormat(cusparseConstSpMatDescr_t matrix, cusparseFormat_t *format)
{
    *format = matrix->format;
    return CUSPARSE_STATUS_SUCCESS;
}

static void *attribute_of(cusparseConstSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute, size_t bytes)
{
    struct cusparseSpMatDescr *own = (struct cusparseSpMatDescr *)(uintptr_t)matrix;
    if (attribute == CUSPARSE_SPMAT_FILL_MODE && bytes == sizeof own->fill) return &own->fill;
    if (attribute == CUSPARSE_SPMAT_DIAG_TYPE && bytes == sizeof own->diagonal) return &own->diagonal;
    return NULL;
}

status CUSPARSEAPI cusparseSpMatSetAttribute(cusparseSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute, void *data,
    size_t bytes)
{
    void *at = attribute_of(matrix, attribute, bytes);
    if (!at) return CUSPARSE_STATUS_INVALID_VALUE;
    memcpy(at, data, bytes);
    return CUSPARSE_STATUS_SUCCESS;
}

status CUSPARSEAPI cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t matrix, cusparseSpMatAttribute_t attribute, void *data,
    size_t bytes)
{
    const void *at = attribute_of(matrix, attribute, bytes);
    if (!at) return CUSPARSE_STATUS_INVALID_VALUE;
    memcpy(data, at, bytes);
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- buffers of the generic calls: modelled ------------------------------------------------------ */
static status answer(const char *routine, u64 bytes, size_t *size)
{
    *size = VS_UP(bytes, UNIT);
    if (bytes) vs_uncounted(routine, *size, "modelled, see native/cusparse.c");
    return CUSPARSE_STATUS_SUCCESS;
}

/* Where each block of a schedule begins that gives every block as many entries and rows. */
static u64 schedule_bytes(cusparseConstSpMatDescr_t matrix)
{
    return ((u64)matrix->entries + (u64)matrix->rows) / ENTRIES_PER_BLOCK * sizeof(int64_t) + sizeof(int64_t);
}

/* A triangular solve keeps, for each row, its place in the order of dependences. */
static u64 solve_bytes(cusparseConstSpMatDescr_t matrix) { return (u64)matrix->rows * 2 * sizeof(int64_t); }

/* What most of the generic calls begin with. */
#define PRODUCT cusparseHandle_t h, cusparseOperation_t op_a, cusparseOperation_t op_b, const void *alpha
#define PRODUCT_WITH_VECTOR cusparseHandle_t h, cusparseOperation_t op, const void *alpha
typedef cusparseConstSpMatDescr_t sparse_in;
typedef cusparseConstDnMatDescr_t dense_in;
typedef cusparseConstDnVecDescr_t vector_in;

status CUSPARSEAPI cusparseSpMV_bufferSize(PRODUCT_WITH_VECTOR, sparse_in a, vector_in x, const void *beta, cusparseDnVecDescr_t y,
                                           cudaDataType compute, cusparseSpMVAlg_t algorithm, size_t *size)
{
    return answer("cuSPARSE SpMV buffer", schedule_bytes(a), size);
}

status CUSPARSEAPI cusparseSpMM_bufferSize(PRODUCT, sparse_in a, dense_in b, const void *beta, cusparseDnMatDescr_t c,
                                           cudaDataType compute, cusparseSpMMAlg_t algorithm, size_t *size)
{
    return answer("cuSPARSE SpMM buffer", schedule_bytes(a), size);
}

status CUSPARSEAPI cusparseSDDMM_bufferSize(PRODUCT, dense_in a, dense_in b, const void *beta, cusparseSpMatDescr_t c,
                                            cudaDataType compute, cusparseSDDMMAlg_t algorithm, size_t *size)
{
    return answer("cuSPARSE SDDMM buffer", schedule_bytes(c), size);
}

status CUSPARSEAPI cusparseSpSV_bufferSize(PRODUCT_WITH_VECTOR, sparse_in a, vector_in x, cusparseDnVecDescr_t y,
                                           cudaDataType compute, cusparseSpSVAlg_t algorithm, cusparseSpSVDescr_t plan, size_t *size)
{
    return answer("cuSPARSE SpSV buffer", solve_bytes(a), size);
}

/* ... and a transposed copy of the right-hand sides (ROCm/rocSPARSE issue 369 describes
 * the same split of its own). */
status CUSPARSEAPI cusparseSpSM_bufferSize(PRODUCT, sparse_in a, dense_in b, cusparseDnMatDescr_t c, cudaDataType compute,
                                           cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t plan, size_t *size)
{
    u64 copy = (u64)b->rows * (u64)b->columns * vs_element_bytes(b->type);
    return answer("cuSPARSE SpSM buffer", solve_bytes(a) + copy, size);
}

/* ---- products of two sparse matrices -------------------------------------------------------------- */
/* Terms that are multiplied, if the entries are spread evenly over the rows. */
static u64 term_count(sparse_in a, sparse_in b)
{
    return b->rows ? (u64)((double)a->entries * (double)b->entries / (double)b->rows) : 0;
}

status CUSPARSEAPI cusparseSpGEMM_workEstimation(PRODUCT, sparse_in a, sparse_in b, const void *beta, cusparseSpMatDescr_t c,
                                                 cudaDataType compute, cusparseSpGEMMAlg_t algorithm, cusparseSpGEMMDescr_t plan,
                                                 size_t *size, void *buffer)
{
    if (buffer) return CUSPARSE_STATUS_SUCCESS;
    return answer("cuSPARSE SpGEMM estimation buffer", ((u64)a->entries + (u64)a->rows + 1) * sizeof(int64_t), size);
}

/* Every term with its place, before those of the same place are summed.  The call that
 * brings the buffer also settles how many entries the result has. */
status CUSPARSEAPI cusparseSpGEMM_compute(PRODUCT, sparse_in a, sparse_in b, const void *beta, cusparseSpMatDescr_t c,
                                          cudaDataType compute, cusparseSpGEMMAlg_t algorithm, cusparseSpGEMMDescr_t plan,
                                          size_t *size, void *buffer)
{
    u64 terms = term_count(a, b), element = sizeof(int32_t) + vs_element_bytes(a->type);
    if (!buffer) return answer("cuSPARSE SpGEMM buffer", terms * element, size);
    vs_kernel_launched();
    c->entries = (int64_t)vs_least(terms, (u64)c->rows * (u64)c->columns);
    vs_uncounted("cuSPARSE SpGEMM result", (u64)c->entries * element, "depends on the values: taken as if no two terms met");
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- the older calls: the library's own rules ------------------------------------------------------- */
/* Two pairs of keys and values that a radix sort moves between, and its counters. */
status CUSPARSEAPI cusparseXcoosort_bufferSizeExt(cusparseHandle_t h, int m, int n, int entries, const int *rows,
                                                  const int *columns, size_t *size)
{
    if (entries < 0) return CUSPARSE_STATUS_INVALID_VALUE;
    *size = VS_UP(16 * (u64)entries, UNIT) + VS_UP((u64)entries / UNIT, UNIT) + 7 * UNIT;
    return CUSPARSE_STATUS_SUCCESS;
}

/* One number more for the row of each entry. */
status CUSPARSEAPI cusparseXcsrsort_bufferSizeExt(cusparseHandle_t h, int m, int n, int entries, const int *offsets,
                                                  const int *columns, size_t *size)
{
    status sorted = cusparseXcoosort_bufferSizeExt(h, m, n, entries, offsets, columns, size);
    if (!sorted) *size += VS_UP(4 * (u64)entries, UNIT);
    return sorted;
}

static status own_rule(u64 bytes, int *size)
{
    if (bytes > INT_MAX) return CUSPARSE_STATUS_INVALID_VALUE;
    *size = (int)VS_UP(bytes, UNIT);
    return CUSPARSE_STATUS_SUCCESS;
}

/* One of the two matrices of a sum. */
#define TERM(type, a) const type *a##_factor, const cusparseMatDescr_t a, int a##_entries, const type *a##_values, \
    const int *a##_offsets, const int *a##_columns
#define BLOCKS(type) const cusparseMatDescr_t a, type *values, const int *offsets, const int *columns, int block
#define TYPED(T, type) \
    status CUSPARSEAPI cusparse##T##csrgeam2_bufferSizeExt(cusparseHandle_t h, int m, int n, TERM(type, a), TERM(type, b), \
        const cusparseMatDescr_t c, const type *c_values, const int *c_offsets, const int *c_columns, size_t *size) \
    { \
        *size = VS_UP((u64)m / 256 + 440, UNIT);          /* a scan over the rows */ \
        return CUSPARSE_STATUS_SUCCESS; \
    } \
    status CUSPARSEAPI cusparse##T##bsrsv2_bufferSize(cusparseHandle_t h, cusparseDirection_t direction, cusparseOperation_t op, \
        int rows, int blocks, BLOCKS(type), bsrsv2Info_t info, int *size) \
    { return own_rule(12 * (u64)rows + 1440, size); } \
    status CUSPARSEAPI cusparse##T##bsrsm2_bufferSize(cusparseHandle_t h, cusparseDirection_t direction, cusparseOperation_t op, \
        cusparseOperation_t op_x, int rows, int n, int blocks, BLOCKS(type), bsrsm2Info_t info, int *size) \
    { return own_rule(32 * (u64)rows + 896 + 32 * sizeof(type), size); }
TYPED(S, float)
TYPED(D, double)
TYPED(C, cuComplex)
TYPED(Z, cuDoubleComplex)

/* The sum of two sparse matrices: the count comes back, to the host unless asked otherwise. */
status CUSPARSEAPI cusparseXcsrgeam2Nnz(cusparseHandle_t h, int m, int n, const cusparseMatDescr_t a, int a_entries,
    const int *a_offsets, const int *a_columns, const cusparseMatDescr_t b, int b_entries, const int *b_offsets,
    const int *b_columns, const cusparseMatDescr_t c, int *c_offsets, int *count, void *work)
{
    u64 entries = vs_least((u64)a_entries + (u64)b_entries, (u64)m * (u64)n);
    vs_kernel_launched();
    if (h->pointers == CUSPARSE_POINTER_MODE_HOST && !vs_is_device_pointer(count)) *count = (int)entries;
    vs_uncounted("cuSPARSE csrgeam2 result", entries * 2 * sizeof(int32_t),
                 "depends on the values: taken as if no two entries met; for values of 4 bytes");
    return CUSPARSE_STATUS_SUCCESS;
}

/* No pivot is zero: the factorization of numbers that nobody computed went well. */
#define NO_ZERO_PIVOT(name, type) \
    status CUSPARSEAPI name(cusparseHandle_t h, type info, int *position) \
    { if (!vs_is_device_pointer(position)) *position = -1; return CUSPARSE_STATUS_SUCCESS; }
NO_ZERO_PIVOT(cusparseXbsrsv2_zeroPivot, bsrsv2Info_t)
NO_ZERO_PIVOT(cusparseXbsrsm2_zeroPivot, bsrsm2Info_t)

/* ---- version and names ---------------------------------------------------------------------------- */
status CUSPARSEAPI cusparseGetVersion(cusparseHandle_t h, int *version)
{
    *version = CUSPARSE_VERSION;
    return CUSPARSE_STATUS_SUCCESS;
}

status CUSPARSEAPI cusparseGetProperty(libraryPropertyType which, int *value)
{
    bool known = vs_property(which, CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR, CUSPARSE_VER_PATCH, value);
    return known ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

/* By code; torch shows the text. */
#define CODE(name, text) [CUSPARSE_STATUS_##name] = {"CUSPARSE_STATUS_" #name, text}
static const struct { const char *name, *text; } CODES[] = {
    CODE(SUCCESS, "success"),
    CODE(NOT_INITIALIZED, "initialization error"),
    CODE(ALLOC_FAILED, "out of memory"),
    CODE(INVALID_VALUE, "invalid value"),
    CODE(ARCH_MISMATCH, "architecture mismatch"),
    CODE(MAPPING_ERROR, "texture memory mapping error"),
    CODE(EXECUTION_FAILED, "kernel launch failure"),
    CODE(INTERNAL_ERROR, "internal error"),
    CODE(MATRIX_TYPE_NOT_SUPPORTED, "matrix type not supported"),
    CODE(ZERO_PIVOT, "zero pivot"),
    CODE(NOT_SUPPORTED, "operation not supported, or not simulated on the virtual card"),
    CODE(INSUFFICIENT_RESOURCES, "insufficient resources"),
};
#define KNOWN(code) ((size_t)(code) < sizeof CODES / sizeof *CODES)

const char *CUSPARSEAPI cusparseGetErrorName(status code) { return KNOWN(code) ? CODES[code].name : "unrecognized error code"; }
const char *CUSPARSEAPI cusparseGetErrorString(status code) { return KNOWN(code) ? CODES[code].text : "unrecognized error code"; }
