/* libcudart: stream-ordered memory (cudaMallocAsync), which torch uses with
 * PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync.
 *
 * The driver's pool is not documented beyond its attributes.  Modelled: it grows by
 * chunks of 32 MiB (or the request, if larger), hands out the lowest fitting place in
 * units of 512 bytes, and keeps what is freed until it is trimmed. */
#define _GNU_SOURCE
#include "cudart.h"
#include "core/internal.h"
#include <string.h>

#define CHUNK_BYTES ((uint64_t)32 << 20)
#define UNIT_BYTES ((uint64_t)512)

struct pool { struct vs_ranges chunks, live; uint64_t reserved, reserved_high, used, used_high, threshold; };
static struct pool pools[VS_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct pool *pool_of(cudaMemPool_t handle)
{
    struct pool *pool = (struct pool *)handle;
    return pool >= pools && pool < pools + VS_MAX_DEVICES ? pool : &pools[vs_device()];
}

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The lowest place in a chunk for `bytes`, and its index in `live` (sorted by address). */
static uint64_t place_in(const struct pool *pool, struct vs_range chunk, uint64_t bytes, size_t *where)
{
    uint64_t from = chunk.at;
    size_t i = 0;
    while (i < pool->live.count && pool->live.items[i].at < chunk.at) i++;
    for (; i < pool->live.count && pool->live.items[i].at < chunk.at + chunk.bytes; i++) {
        if (pool->live.items[i].at - from >= bytes) break;
        from = pool->live.items[i].at + pool->live.items[i].bytes;
    }
    *where = i;
    return from + bytes <= chunk.at + chunk.bytes ? from : 0;
}

static uint64_t find_place(const struct pool *pool, uint64_t bytes, size_t *where)
{
    for (size_t i = 0; i < pool->chunks.count; i++) {
        uint64_t at = place_in(pool, pool->chunks.items[i], bytes, where);
        if (at) return at;
    }
    return 0;
}

static bool grow(struct pool *pool, uint64_t bytes)
{
    uint64_t chunk = most(CHUNK_BYTES, VS_UP(bytes, VS_GRANULE));
    void *at = vs_take((int)(pool - pools), chunk);
    if (!at) return false;
    vs_ranges_insert(&pool->chunks, pool->chunks.count, (struct vs_range){(uint64_t)at, chunk});
    pool->reserved += chunk;
    pool->reserved_high = most(pool->reserved_high, pool->reserved);
    return true;
}

static void trim(struct pool *pool, uint64_t keep)
{
    for (size_t i = pool->chunks.count; i-- > 0 && pool->reserved > keep;) {
        struct vs_range chunk = pool->chunks.items[i];
        size_t where;
        if (place_in(pool, chunk, chunk.bytes, &where) != chunk.at) continue;
        pool->reserved -= chunk.bytes;
        vs_give((void *)chunk.at);
        vs_ranges_remove(&pool->chunks, i);
    }
}

static uint64_t pool_take(struct pool *pool, uint64_t bytes)
{
    size_t where = 0;
    uint64_t at = find_place(pool, bytes, &where);
    if (!at && grow(pool, bytes)) at = find_place(pool, bytes, &where);
    if (!at) return 0;
    vs_ranges_insert(&pool->live, where, (struct vs_range){at, bytes});
    pool->used += bytes;
    pool->used_high = most(pool->used_high, pool->used);
    return at;
}

cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t handle, cudaStream_t stream)
{
    VS_UNUSED(stream);
    VS_CONTEXT();
    vs_modelled("cudaMallocAsync", VS_UNKNOWN, "the driver's pool is modelled: chunks of 32 MiB, lowest fit");
    pthread_mutex_lock(&lock);
    *address = (void *)pool_take(pool_of(handle), VS_UP(bytes ? bytes : 1, UNIT_BYTES));
    pthread_mutex_unlock(&lock);
    return vs_error(*address ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream)
{
    return cudaMallocFromPoolAsync(address, bytes, (cudaMemPool_t)&pools[vs_device()], stream);
}

static bool pool_give(struct pool *pool, uint64_t at)
{
    for (size_t i = 0; i < pool->live.count; i++) {
        if (pool->live.items[i].at != at) continue;
        pool->used -= pool->live.items[i].bytes;
        vs_ranges_remove(&pool->live, i);
        if (pool->reserved > pool->threshold) trim(pool, pool->threshold);
        return true;
    }
    return false;
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
    int device = vs_device_of(address);
    VS_UNUSED(stream);
    if (device < 0) return vs_error(cudaErrorInvalidValue);
    pthread_mutex_lock(&lock);
    bool found = pool_give(&pools[device], (uint64_t)address);
    pthread_mutex_unlock(&lock);
    return found ? cudaSuccess : cudaFree(address);
}

/* ---- the pool's attributes ----------------------------------------------------------------- */
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *handle, int device)
{
    if (device < 0 || device >= vs_device_count()) return vs_error(cudaErrorInvalidDevice);
    *handle = (cudaMemPool_t)&pools[device];
    return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *handle, int device) { return cudaDeviceGetDefaultMemPool(handle, device); }

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, enum cudaMemPoolAttr attribute, void *value)
{
    const struct pool *pool = pool_of(handle);
    switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold: *(uint64_t *)value = pool->threshold; break;
    case cudaMemPoolAttrReservedMemCurrent: *(uint64_t *)value = pool->reserved; break;
    case cudaMemPoolAttrReservedMemHigh: *(uint64_t *)value = pool->reserved_high; break;
    case cudaMemPoolAttrUsedMemCurrent: *(uint64_t *)value = pool->used; break;
    case cudaMemPoolAttrUsedMemHigh: *(uint64_t *)value = pool->used_high; break;
    default: *(int *)value = 1;               /* the three reuse policies: on by default */
    }
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, enum cudaMemPoolAttr attribute, void *value)
{
    struct pool *pool = pool_of(handle);
    if (attribute == cudaMemPoolAttrReleaseThreshold) pool->threshold = *(uint64_t *)value;
    if (attribute == cudaMemPoolAttrReservedMemHigh) pool->reserved_high = pool->reserved;
    if (attribute == cudaMemPoolAttrUsedMemHigh) pool->used_high = pool->used;
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t keep)
{
    pthread_mutex_lock(&lock);
    trim(pool_of(handle), keep);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const struct cudaMemAccessDesc *access, size_t count)
{
    VS_UNUSED(handle); VS_UNUSED(access); VS_UNUSED(count);
    return cudaSuccess;
}

/* Memory nodes of captured graphs: there are none (captured kernels leave no trace). */
cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value)
{
    VS_UNUSED(device); VS_UNUSED(attribute);
    *(uint64_t *)value = 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value)
{
    VS_UNUSED(device); VS_UNUSED(attribute); VS_UNUSED(value);
    return cudaSuccess;
}
