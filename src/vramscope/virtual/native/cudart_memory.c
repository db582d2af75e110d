/* libcudart: memory and copies. */
#define _GNU_SOURCE
#include "cudart.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- device memory -------------------------------------------------------------------- */
cudaError_t cudaMalloc(void **address, size_t bytes)
{
    VS_CONTEXT();
    *address = vs_take(vs_device(), bytes);
    return vs_error(*address ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *address)
{
    VS_CONTEXT();
    return vs_error(!address || vs_give(address) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    *pitch = VS_UP(width, 512);               /* cudaDeviceProp::texturePitchAlignment and textureAlignment */
    return cudaMalloc(address, *pitch * height);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    VS_CONTEXT();
    *total_bytes = vs_card()->memory_bytes;
    *free_bytes = *total_bytes - vs_used_by_all_bytes(vs_device());
    return cudaSuccess;
}

/* Managed memory is ordinary host memory: it lies on the card only while it is used
 * there, and how much of it that is, is the driver's choice. */
cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned flags)
{
    VS_UNUSED(flags);
    VS_CONTEXT();
    *address = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (*address == MAP_FAILED) return vs_error(cudaErrorMemoryAllocation);
    vs_uncounted("managed memory", bytes, "what of it lies on the card at a time is up to the driver");
    return cudaSuccess;
}

/* ---- pinned host memory: ordinary memory that is remembered ----------------------------- */
struct pinned { char *at; size_t bytes; };
static struct pinned *pinned;
static size_t pinned_count, pinned_room;
static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;

static bool pin(void *at, size_t bytes)
{
    bool kept = true;
    pthread_mutex_lock(&pinned_lock);
    if (pinned_count == pinned_room) {
        struct pinned *more = realloc(pinned, (pinned_room * 2 + 64) * sizeof *more);
        kept = more != NULL;
        if (kept) { pinned = more; pinned_room = pinned_room * 2 + 64; }
    }
    if (kept) pinned[pinned_count++] = (struct pinned){at, bytes};
    pthread_mutex_unlock(&pinned_lock);
    return kept;
}

static bool unpin(const void *at)
{
    bool found = false;
    pthread_mutex_lock(&pinned_lock);
    for (size_t i = 0; i < pinned_count && !found; i++) {
        if (pinned[i].at != at) continue;
        pinned[i] = pinned[--pinned_count];
        found = true;
    }
    pthread_mutex_unlock(&pinned_lock);
    return found;
}

static bool is_pinned(const char *at)
{
    bool found = false;
    pthread_mutex_lock(&pinned_lock);
    for (size_t i = 0; i < pinned_count && !found; i++) found = at >= pinned[i].at && at < pinned[i].at + pinned[i].bytes;
    pthread_mutex_unlock(&pinned_lock);
    return found;
}

cudaError_t cudaHostAlloc(void **address, size_t bytes, unsigned flags)
{
    VS_UNUSED(flags);
    VS_CONTEXT();
    *address = NULL;
    if (posix_memalign(address, 4096, bytes ? bytes : 1) || !pin(*address, bytes)) return vs_error(cudaErrorMemoryAllocation);
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **address, size_t bytes) { return cudaHostAlloc(address, bytes, 0); }

cudaError_t cudaFreeHost(void *address)
{
    if (address && !unpin(address)) return vs_error(cudaErrorInvalidValue);
    free(address);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
    VS_UNUSED(flags);
    VS_CONTEXT();
    if (is_pinned(address)) return vs_error(cudaErrorHostMemoryAlreadyRegistered);
    return vs_error(pin(address, bytes) ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaHostUnregister(void *address)
{
    return vs_error(unpin(address) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    VS_UNUSED(flags);
    *device = host;                           /* unified addressing */
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *p)
{
    memset(attributes, 0, sizeof *attributes);
    int device = vs_device_of(p);
    attributes->device = device >= 0 ? device : -2;   /* cudaInvalidDeviceId */
    if (device >= 0) {
        attributes->type = cudaMemoryTypeDevice;
        attributes->devicePointer = (void *)p;
    } else if (is_pinned(p)) {
        attributes->type = cudaMemoryTypeHost;
        attributes->device = vs_device();
        attributes->devicePointer = attributes->hostPointer = (void *)p;
    }
    return cudaSuccess;
}

/* ---- copies ------------------------------------------------------------------------------ */
cudaError_t vs_copy(void *dst, const void *src, size_t bytes)
{
    if (!bytes) return cudaSuccess;
    VS_CONTEXT();
    bool to_device = vs_is_device_pointer(dst), from_device = vs_is_device_pointer(src);
    if (to_device && from_device) vs_copied_across(dst, src, bytes);
    else if (to_device) {
        vs_used_as(VS_INPUT, dst, bytes);
        vs_copied_in(dst, src, bytes);
    }
    else if (from_device) vs_read_back(dst, src, bytes);
    else memmove(dst, src, bytes);
    return cudaSuccess;
}

static cudaError_t copy_rows(char *dst, size_t dst_pitch, const char *src, size_t src_pitch, size_t width, size_t height)
{
    for (size_t i = 0; i < height; i++) {
        cudaError_t error = vs_copy(dst + i * dst_pitch, src + i * src_pitch, width);
        if (error) return error;
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    VS_UNUSED(kind);
    return vs_copy(dst, src, bytes);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    VS_UNUSED(kind);
    vs_count_node(stream);
    return vs_copy(dst, src, bytes);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    VS_UNUSED(kind);
    return copy_rows(dst, dst_pitch, src, src_pitch, width, height);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    VS_UNUSED(kind);
    vs_count_node(stream);
    return copy_rows(dst, dst_pitch, src, src_pitch, width, height);
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes)
{
    VS_UNUSED(dst_device); VS_UNUSED(src_device);
    return vs_copy(dst, src, bytes);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t bytes, cudaStream_t stream)
{
    VS_UNUSED(stream);
    return cudaMemcpyPeer(dst, dst_device, src, src_device, bytes);
}

/* A variable of a kernel's module has no address here, and nobody reads it. */
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    VS_UNUSED(symbol); VS_UNUSED(src); VS_UNUSED(bytes); VS_UNUSED(offset); VS_UNUSED(kind);
    VS_CONTEXT();
    return cudaSuccess;
}
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
                                    cudaStream_t stream)
{
    VS_UNUSED(stream);
    return cudaMemcpyToSymbol(symbol, src, bytes, offset, kind);
}

/* Some address of the card's, of which one granule is kept for all such variables: they
 * are part of what is loaded into the context (outside_bytes). */
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    static void *variables;
    VS_UNUSED(symbol);
    VS_CONTEXT();
    if (!variables) variables = vs_reserve(VS_GRANULE, NULL);
    *address = variables;
    return vs_error(variables ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaMemset(void *address, int value, size_t bytes)
{
    VS_CONTEXT();
    if (vs_is_device_pointer(address)) vs_overwritten(address, bytes);
    else memset(address, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t bytes, cudaStream_t stream)
{
    vs_count_node(stream);
    return cudaMemset(address, value, bytes);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, struct cudaMemLocation location, unsigned flags, cudaStream_t stream)
{
    VS_UNUSED(address); VS_UNUSED(bytes); VS_UNUSED(location); VS_UNUSED(flags); VS_UNUSED(stream);
    return cudaSuccess;
}
cudaError_t cudaMemAdvise(const void *address, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation location)
{
    VS_UNUSED(address); VS_UNUSED(bytes); VS_UNUSED(advice); VS_UNUSED(location);
    return cudaSuccess;
}
#else
cudaError_t cudaMemPrefetchAsync(const void *address, size_t bytes, int device, cudaStream_t stream)
{
    VS_UNUSED(address); VS_UNUSED(bytes); VS_UNUSED(device); VS_UNUSED(stream);
    return cudaSuccess;
}
cudaError_t cudaMemAdvise(const void *address, size_t bytes, enum cudaMemoryAdvise advice, int device)
{
    VS_UNUSED(address); VS_UNUSED(bytes); VS_UNUSED(advice); VS_UNUSED(device);
    return cudaSuccess;
}
#endif
