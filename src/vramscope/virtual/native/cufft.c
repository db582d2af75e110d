/* libcufft: plans that know how much memory they would work in; transforms do nothing.
 *
 * The real library plans only where a device is, and NVIDIA publishes no rule for the
 * work area, so its size is modelled, and every plan that needs one is reported:
 *
 * - Lengths without a prime factor above 127: one copy of the complex data.  The cuFFT
 *   guide (docs.nvidia.com/cuda/cufft, "Fourier Transform Setup") names batch * n[0] * ...
 *   complex elements as the least and eight times that as the most, and plans that people
 *   have measured sit at the least: complex 512x512 takes 2 MiB and 32 of them 64 MiB
 *   (JuliaGPU/CUDA.jl issue 894), complex 100x(100 i) takes 80000 i bytes for i = 1..15
 *   (arrayfire/arrayfire issue 1443).
 * - Real data of an even last length: one copy of the half spectrum, as a real transform
 *   is then a complex one of half the length; of an odd one: of the whole spectrum.
 * - A prime factor above 127: Bluestein's algorithm, which convolves over the next power of
 *   two that holds 2 n - 1 points; two such buffers for each line, which is where the
 *   guide's factor of eight comes from.
 *
 * Not modelled: the few KiB of twiddle factors that a plan itself keeps. */
#include <cufftXt.h>
#include <pthread.h>
#include <stdlib.h>
#include "mathlib.h"

/* The guide's "Accuracy and Performance"; PaddlePaddle/Paddle pull request 42799. */
#define LARGEST_DIRECT_PRIME 127
#define MOST_DIMENSIONS 3                 /* ranks that cuFFT plans */

struct shape { int rank; uint64_t lengths[MOST_DIMENSIONS]; uint64_t batch; };
struct plan { bool alive, allocates; uint64_t work_bytes; void *own_work; };

static struct plan *plans;
static int plan_count;
static pthread_mutex_t plans_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- sizes ----------------------------------------------------------------------------- */
static uint64_t largest_prime_factor(uint64_t n)
{
    uint64_t largest = 1;
    for (uint64_t p = 2; p * p <= n; p++)
        while (n % p == 0) { largest = p; n /= p; }
    return n > 1 ? n : largest;
}

static uint64_t bluestein_length(uint64_t n)
{
    uint64_t length = 1;
    while (length < 2 * n - 1) length *= 2;
    return length;
}

/* Complex points of the spectrum that is worked on. */
static uint64_t spectrum_points(const struct shape *shape, bool real)
{
    uint64_t points = shape->batch;
    for (int i = 0; i < shape->rank; i++) {
        uint64_t n = shape->lengths[i];
        bool halved = real && i == shape->rank - 1 && n % 2 == 0;
        points *= halved ? n / 2 + 1 : n;
    }
    return points;
}

static uint64_t work_bytes(const struct shape *shape, bool real, uint64_t complex_bytes)
{
    uint64_t points = spectrum_points(shape, real), whole = spectrum_points(shape, false), most = points;
    for (int i = 0; i < shape->rank; i++) {
        uint64_t n = shape->lengths[i];
        if (largest_prime_factor(n) > LARGEST_DIRECT_PRIME)
            most = vs_most(most, whole / n * 2 * bluestein_length(n));
    }
    return most * complex_bytes;
}

static void report(const struct shape *shape, uint64_t bytes)
{
    bool direct = true;
    for (int i = 0; i < shape->rank; i++)
        direct &= largest_prime_factor(shape->lengths[i]) <= LARGEST_DIRECT_PRIME;
    if (direct) vs_uncounted("cuFFT work area", bytes, "modelled: one copy of the complex data");
    else vs_uncounted("cuFFT work area, Bluestein", bytes, "modelled: two buffers of the padded convolution for each line");
}

static bool valid(int rank, const long long *lengths, long long batch)
{
    if (rank < 1 || rank > MOST_DIMENSIONS || !lengths || batch < 1) return false;
    for (int i = 0; i < rank; i++)
        if (lengths[i] < 1) return false;
    return true;
}

/* The size of a transform of `rank` lengths; real ones are those with a real side. */
static cufftResult size_of(int rank, const long long *lengths, long long batch, bool real, uint64_t complex_bytes,
                           size_t *bytes)
{
    if (!valid(rank, lengths, batch)) return CUFFT_INVALID_SIZE;
    if (!complex_bytes) return CUFFT_INVALID_TYPE;
    struct shape shape = {.rank = rank, .batch = (uint64_t)batch};
    for (int i = 0; i < rank; i++) shape.lengths[i] = (uint64_t)lengths[i];
    *bytes = work_bytes(&shape, real, complex_bytes);
    report(&shape, *bytes);
    return CUFFT_SUCCESS;
}

static bool type_is_real(cufftType type) { return type != CUFFT_C2C && type != CUFFT_Z2Z; }

static uint64_t type_complex_bytes(cufftType type)
{
    switch (type) {
    case CUFFT_C2C: case CUFFT_R2C: case CUFFT_C2R: return 8;
    case CUFFT_Z2Z: case CUFFT_D2Z: case CUFFT_Z2D: return 16;
    default: return 0;
    }
}

static cufftResult size_typed(int rank, const long long *lengths, long long batch, cufftType type, size_t *bytes)
{
    return size_of(rank, lengths, batch, type_is_real(type), type_complex_bytes(type), bytes);
}

/* The calls from before 64 bits. */
static cufftResult size_short(int rank, const int *lengths, int batch, cufftType type, size_t *bytes)
{
    long long wide[MOST_DIMENSIONS] = {0};
    for (int i = 0; i < rank && i < MOST_DIMENSIONS && lengths; i++) wide[i] = lengths[i];
    return size_typed(rank, lengths ? wide : NULL, batch, type, bytes);
}

/* One side is complex in every transform: its type is the one that is worked in. */
static cufftResult size_mixed(int rank, const long long *lengths, long long batch, cudaDataType in, cudaDataType out,
                              size_t *bytes)
{
    return size_of(rank, lengths, batch, vs_is_real(in) || vs_is_real(out),
                   vs_element_bytes(vs_is_real(in) ? out : in), bytes);
}

/* ---- plans ----------------------------------------------------------------------------- */
static int new_plan(void)
{
    for (int i = 0; i < plan_count; i++)
        if (!plans[i].alive) return i;
    struct plan *more = realloc(plans, (size_t)(plan_count * 2 + 16) * sizeof *more);
    if (!more) return -1;
    plans = more;
    int first = plan_count;
    plan_count = plan_count * 2 + 16;
    for (int i = first; i < plan_count; i++) plans[i] = (struct plan){0};
    return first;
}

cufftResult CUFFTAPI cufftCreate(cufftHandle *handle)
{
    if (vs_device_count() < 1) return CUFFT_INTERNAL_ERROR;
    pthread_mutex_lock(&plans_lock);
    int at = new_plan();
    if (at >= 0) plans[at] = (struct plan){.alive = true, .allocates = true};
    pthread_mutex_unlock(&plans_lock);
    if (at < 0) return CUFFT_ALLOC_FAILED;
    *handle = at + 1;
    return CUFFT_SUCCESS;
}

/* Runs a statement on the plan of a handle, under the lock. */
#define WITH_PLAN(handle, plan, statement) do { \
        pthread_mutex_lock(&plans_lock); \
        struct plan *plan = (handle) > 0 && (handle) <= plan_count ? &plans[(handle) - 1] : NULL; \
        cufftResult found = plan && plan->alive ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN; \
        if (!found) { statement; } \
        pthread_mutex_unlock(&plans_lock); \
        return found; \
    } while (0)

static void drop(struct plan *plan)
{
    if (plan->own_work) vs_give(plan->own_work);
    *plan = (struct plan){0};
}

cufftResult CUFFTAPI cufftDestroy(cufftHandle handle) { WITH_PLAN(handle, plan, drop(plan)); }
cufftResult CUFFTAPI cufftGetSize(cufftHandle handle, size_t *bytes) { WITH_PLAN(handle, plan, *bytes = plan->work_bytes); }
cufftResult CUFFTAPI cufftSetAutoAllocation(cufftHandle handle, int on) { WITH_PLAN(handle, plan, plan->allocates = on); }
cufftResult CUFFTAPI cufftSetStream(cufftHandle handle, cudaStream_t stream) { WITH_PLAN(handle, plan, (void)plan); }

static void use_work_area(struct plan *plan)
{
    if (plan->own_work) vs_give(plan->own_work);
    plan->own_work = NULL;
}

cufftResult CUFFTAPI cufftSetWorkArea(cufftHandle handle, void *area) 
{
    WITH_PLAN(handle, plan, use_work_area(plan));
}

/* A plan takes its work area itself unless told not to (torch tells it). */
static cufftResult settle(cufftHandle handle, cufftResult sized, const size_t *bytes)
{
    bool taken = true;
    if (sized) return sized;
    pthread_mutex_lock(&plans_lock);
    struct plan *plan = handle > 0 && handle <= plan_count ? &plans[handle - 1] : NULL;
    bool known = plan && plan->alive;
    if (known) {
        use_work_area(plan);
        plan->work_bytes = *bytes;
        if (plan->allocates && *bytes) taken = (plan->own_work = vs_take(vs_device(), *bytes)) != NULL;
    }
    pthread_mutex_unlock(&plans_lock);
    return !known ? CUFFT_INVALID_PLAN : taken ? CUFFT_SUCCESS : CUFFT_ALLOC_FAILED;
}

/* Strides and gaps between the data don't change what a plan works in. */
#define LAYOUT(integer) integer *inembed, integer istride, integer idist
#define OUT_LAYOUT(integer) integer *onembed, integer ostride, integer odist

cufftResult CUFFTAPI cufftXtMakePlanMany(cufftHandle handle, int rank, long long *n, LAYOUT(long long), cudaDataType in,
                                         OUT_LAYOUT(long long), cudaDataType out, long long batch, size_t *bytes,
                                             cudaDataType execution)
{
    return settle(handle, size_mixed(rank, n, batch, in, out, bytes), bytes);
}

cufftResult CUFFTAPI cufftXtGetSizeMany(cufftHandle handle, int rank, long long *n, LAYOUT(long long), cudaDataType in,
                                        OUT_LAYOUT(long long), cudaDataType out, long long batch, size_t *bytes,
                                            cudaDataType execution)
{
    return size_mixed(rank, n, batch, in, out, bytes);
}

cufftResult CUFFTAPI cufftMakePlanMany64(cufftHandle handle, int rank, long long *n, LAYOUT(long long), OUT_LAYOUT(long long),
                                         cufftType type, long long batch, size_t *bytes)
{
    return settle(handle, size_typed(rank, n, batch, type, bytes), bytes);
}

cufftResult CUFFTAPI cufftGetSizeMany64(cufftHandle handle, int rank, long long *n, LAYOUT(long long), OUT_LAYOUT(long long),
                                        cufftType type, long long batch, size_t *bytes)
{
    return size_typed(rank, n, batch, type, bytes);
}

cufftResult CUFFTAPI cufftMakePlanMany(cufftHandle handle, int rank, int *n, LAYOUT(int), OUT_LAYOUT(int), cufftType type,
    int batch, size_t *bytes)
{
    return settle(handle, size_short(rank, n, batch, type, bytes), bytes);
}

cufftResult CUFFTAPI cufftGetSizeMany(cufftHandle handle, int rank, int *n, LAYOUT(int), OUT_LAYOUT(int), cufftType type,
    int batch, size_t *bytes)
{
    return size_short(rank, n, batch, type, bytes);
}

cufftResult CUFFTAPI cufftEstimateMany(int rank, int *n, LAYOUT(int), OUT_LAYOUT(int), cufftType type, int batch, size_t *bytes)
{
    return size_short(rank, n, batch, type, bytes);
}

cufftResult CUFFTAPI cufftPlanMany(cufftHandle *handle, int rank, int *n, LAYOUT(int), OUT_LAYOUT(int), cufftType type, int batch)
{
    size_t bytes;
    cufftResult made = cufftCreate(handle);
    return made ? made : cufftMakePlanMany(*handle, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, &bytes);
}

/* The four ways to name a size, for one, two and three dimensions. */
#define FIXED_RANK(RANK, BATCH, LENGTHS, ...) \
    cufftResult CUFFTAPI cufftMakePlan##RANK##d(cufftHandle handle, __VA_ARGS__, size_t *bytes) \
    { const int n[] = LENGTHS; return settle(handle, size_short(RANK, n, BATCH, type, bytes), bytes); } \
    cufftResult CUFFTAPI cufftGetSize##RANK##d(cufftHandle handle, __VA_ARGS__, size_t *bytes) \
    { const int n[] = LENGTHS; return size_short(RANK, n, BATCH, type, bytes); } \
    cufftResult CUFFTAPI cufftEstimate##RANK##d(__VA_ARGS__, size_t *bytes) \
    { const int n[] = LENGTHS; return size_short(RANK, n, BATCH, type, bytes); } \
    cufftResult CUFFTAPI cufftPlan##RANK##d(cufftHandle *handle, __VA_ARGS__) \
    { \
        const int n[] = LENGTHS; \
        size_t bytes; \
        cufftResult made = cufftCreate(handle); \
        return made ? made : settle(*handle, size_short(RANK, n, BATCH, type, &bytes), &bytes); \
    }
#define ONE {nx}
#define TWO {nx, ny}
#define THREE {nx, ny, nz}
FIXED_RANK(1, batch, ONE, int nx, cufftType type, int batch)
FIXED_RANK(2, 1, TWO, int nx, int ny, cufftType type)
FIXED_RANK(3, 1, THREE, int nx, int ny, int nz, cufftType type)

/* ---- transforms ------------------------------------------------------------------------- */
static cufftResult transform(cufftHandle handle) { vs_kernel_launched(); WITH_PLAN(handle, plan, (void)plan); }

cufftResult CUFFTAPI cufftXtExec(cufftHandle handle, void *in, void *out, int direction)
{
    return transform(handle);
}

#define COMPLEX_TRANSFORM(name, type) \
    cufftResult CUFFTAPI name(cufftHandle handle, type *in, type *out, int direction) \
    { return cufftXtExec(handle, in, out, direction); }
#define REAL_TRANSFORM(name, from, to) \
    cufftResult CUFFTAPI name(cufftHandle handle, from *in, to *out) { return cufftXtExec(handle, in, out, 0); }
COMPLEX_TRANSFORM(cufftExecC2C, cufftComplex)
COMPLEX_TRANSFORM(cufftExecZ2Z, cufftDoubleComplex)
REAL_TRANSFORM(cufftExecR2C, cufftReal, cufftComplex)
REAL_TRANSFORM(cufftExecC2R, cufftComplex, cufftReal)
REAL_TRANSFORM(cufftExecD2Z, cufftDoubleReal, cufftDoubleComplex)
REAL_TRANSFORM(cufftExecZ2D, cufftDoubleComplex, cufftDoubleReal)

/* ---- version ---------------------------------------------------------------------------- */
cufftResult CUFFTAPI cufftGetVersion(int *version) { *version = CUFFT_VERSION; return CUFFT_SUCCESS; }

cufftResult CUFFTAPI cufftGetProperty(libraryPropertyType which, int *value)
{
    return vs_property(which, CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH, value) ? CUFFT_SUCCESS : CUFFT_INVALID_VALUE;
}
