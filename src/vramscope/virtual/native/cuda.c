/* libcuda: the driver, as far as torch, Triton and cuDNN reach it.
 *
 * cuGetProcAddress is left out on purpose: through it a CUDA runtime that is linked into
 * another library (cuDNN's own) would find a driver without its private tables; without
 * it that runtime reports that there is none, and cuDNN plans without a device. */
#define _GNU_SOURCE
#include "cudart.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUresult result_of(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return CUDA_SUCCESS;
    case cudaErrorMemoryAllocation: return CUDA_ERROR_OUT_OF_MEMORY;
    case cudaErrorInvalidDevice: return CUDA_ERROR_INVALID_DEVICE;
    case cudaErrorNoDevice: return CUDA_ERROR_NO_DEVICE;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- start, versions, errors ------------------------------------------------------------ */
CUresult cuInit(unsigned flags)
{
    VS_UNUSED(flags);
    return vs_device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
/* The driver's private tables: not here.  libnvrtc looks this up and calls it unchecked. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    VS_UNUSED(id);
    *table = NULL;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuDriverGetVersion(int *version) { *version = CUDA_VERSION; return CUDA_SUCCESS; }

struct error_text { CUresult code; const char *name, *text; };
#define AN_ERROR(code, text) {code, #code, text}
static const struct error_text ERRORS[] = {
    AN_ERROR(CUDA_SUCCESS, "no error"),
    AN_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    AN_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    AN_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    AN_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    AN_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    AN_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
};

static const struct error_text *text_of(CUresult code)
{
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].code == code) return &ERRORS[i];
    return NULL;
}

CUresult cuGetErrorString(CUresult code, const char **text)
{
    const struct error_text *found = text_of(code);
    *text = found ? found->text : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorName(CUresult code, const char **name)
{
    const struct error_text *found = text_of(code);
    *name = found ? found->name : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- devices and contexts ------------------------------------------------------------------ */
CUresult cuDeviceGetCount(int *count) { *count = vs_device_count(); return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < vs_device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    return result_of(vs_attribute(value, (int)attribute, device));
}
CUresult cuDeviceGetName(char *text, int room, CUdevice device)
{
    VS_UNUSED(device);
    snprintf(text, (size_t)room, "%s", vs_card()->name);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) 
{
    memset(uuid->bytes, VS_FIRST_UUID_BYTE + vs_physical_device(device), sizeof uuid->bytes);
    return CUDA_SUCCESS;
}
#if CUDA_VERSION < 13000
#undef cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }
#endif
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) { VS_UNUSED(device); *bytes = vs_card()->memory_bytes; return CUDA_SUCCESS; }
CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes) { return result_of(cudaMemGetInfo(free_bytes, total_bytes)); }

/* One primary context a device; its handle is never looked into. */
static char contexts[VS_MAX_DEVICES];
static CUcontext context_of(int device) { return (CUcontext)&contexts[device]; }
static int device_of_context(CUcontext context) { return (int)((char *)context - contexts); }

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = context_of(device);
    return vs_open_context(device) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { VS_UNUSED(device); return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    if (flags) *flags = 0;
    *active = vs_used_bytes(device) > 0;
    return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *context) { *context = context_of(vs_device()); return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context)
{
    return !context || vs_set_device(device_of_context(context)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxSetCurrent(context); }
CUresult cuCtxPopCurrent(CUcontext *context) { return context ? cuCtxGetCurrent(context) : CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) { *device = vs_device(); return CUDA_SUCCESS; }
CUresult cuCtxSynchronize(void) { return CUDA_SUCCESS; }

/* ---- memory --------------------------------------------------------------------------------- */
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) { return result_of(cudaMalloc((void **)address, bytes)); }
CUresult cuMemFree(CUdeviceptr address) { return result_of(cudaFree((void *)address)); }
CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t bytes) { return result_of(vs_copy((void *)dst, src, bytes)); }
CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t bytes) { return result_of(vs_copy(dst, (const void *)src, bytes)); }
CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) { VS_UNUSED(stream); return cuMemcpyHtoD(dst, src, bytes); }
CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) { VS_UNUSED(stream); return cuMemcpyDtoH(dst, src, bytes); }
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream)
{
    return result_of(cudaMemsetAsync((void *)address, value, count, stream));
}
CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream)
{
    VS_UNUSED(value);
    return result_of(cudaMemsetAsync((void *)address, 0, count * 4, stream));
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    void *found;
    uint64_t size;
    if (!vs_address_range((const void *)address, &found, &size)) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = (CUdeviceptr)found;
    if (bytes) *bytes = size;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    struct cudaPointerAttributes known;
    cudaPointerGetAttributes(&known, (const void *)address);
    bool on_device = known.type == cudaMemoryTypeDevice;
    if (!on_device && known.type != cudaMemoryTypeHost) return CUDA_ERROR_INVALID_VALUE;
    static int seen;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)value = on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = known.device; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = address; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(void **)value = known.hostPointer; break;
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = context_of(known.device); break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned char *)value = 0; break;
    default: return (CUresult)vs_unsimulated("cuda", "cuPointerGetAttribute", &seen, CUDA_ERROR_NOT_SUPPORTED);
    }
    return CUDA_SUCCESS;
}

/* ---- virtual memory management, as expandable segments use it --------------------------------
 * A handle is physical memory; it lives until it is released and unmapped everywhere. */
struct physical { uint64_t bytes; int device; int references; CUmemAllocationProp properties; };
struct mapping { CUdeviceptr at; size_t bytes; struct physical *memory; };
static struct mapping *mappings;
static size_t mapping_count, mapping_room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void let_go(struct physical *memory)
{
    if (--memory->references) return;
    vs_discharge(memory->device, memory->bytes);
    free(memory);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties, CUmemAllocationGranularity_flags option)
{
    VS_UNUSED(properties); VS_UNUSED(option);
    *bytes = VS_GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags)
{
    VS_UNUSED(alignment); VS_UNUSED(flags);
    *address = (CUdeviceptr)vs_reserve(bytes, (void *)wanted);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) { VS_UNUSED(bytes); vs_unreserve((void *)address); return CUDA_SUCCESS; }

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags)
{
    VS_UNUSED(flags);
    int device = properties->location.id;
    if (device < 0 || device >= vs_device_count()) return CUDA_ERROR_INVALID_DEVICE;
    struct physical *memory = malloc(sizeof *memory);
    if (!memory || !vs_charge(device, bytes)) { free(memory); return CUDA_ERROR_OUT_OF_MEMORY; }
    *memory = (struct physical){bytes, device, 1, *properties};
    *handle = (CUmemGenericAllocationHandle)memory;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    pthread_mutex_lock(&lock);
    let_go((struct physical *)handle);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    VS_UNUSED(offset); VS_UNUSED(flags);
    struct physical *memory = (struct physical *)handle;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (mapping_count == mapping_room) {
        struct mapping *more = realloc(mappings, (mapping_room * 2 + 256) * sizeof *more);
        if (more) { mappings = more; mapping_room = mapping_room * 2 + 256; }
        else result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!result) {
        mappings[mapping_count++] = (struct mapping){address, bytes, memory};
        memory->references++;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    pthread_mutex_lock(&lock);
    for (size_t i = mapping_count; i-- > 0;) {
        if (mappings[i].at < address || mappings[i].at >= address + bytes) continue;
        let_go(mappings[i].memory);
        mappings[i] = mappings[--mapping_count];
    }
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    VS_UNUSED(address); VS_UNUSED(bytes); VS_UNUSED(access); VS_UNUSED(count);
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < mapping_count && result; i++) {
        if ((CUdeviceptr)address - mappings[i].at >= mappings[i].bytes) continue;
        mappings[i].memory->references++;
        *handle = (CUmemGenericAllocationHandle)mappings[i].memory;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
    *properties = ((struct physical *)handle)->properties;
    return CUDA_SUCCESS;
}

/* ---- modules and kernels (Triton, NVRTC) --------------------------------------------------------- */
static char module, function;                 /* what a module or a function is, nobody asks */
CUresult cuModuleLoadData(CUmodule *out, const void *image) { VS_UNUSED(image); *out = (CUmodule)&module; return CUDA_SUCCESS; }
CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, CUjit_option *options, void **values)
{
    VS_UNUSED(count); VS_UNUSED(options); VS_UNUSED(values);
    return cuModuleLoadData(out, image);
}
CUresult cuModuleLoad(CUmodule *out, const char *path) { VS_UNUSED(path); *out = (CUmodule)&module; return CUDA_SUCCESS; }
CUresult cuModuleUnload(CUmodule handle) { VS_UNUSED(handle); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    VS_UNUSED(handle); VS_UNUSED(name);
    *out = (CUfunction)&function;
    return CUDA_SUCCESS;
}
CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name)
{
    VS_UNUSED(handle); VS_UNUSED(name);
    if (bytes) *bytes = 0;
    return result_of(cudaGetSymbolAddress((void **)address, NULL));
}
CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values, unsigned jit_count,
                           CUlibraryOption *options, void **option_values, unsigned option_count)
{
    VS_UNUSED(code); VS_UNUSED(jit); VS_UNUSED(jit_values); VS_UNUSED(jit_count);
    VS_UNUSED(options); VS_UNUSED(option_values); VS_UNUSED(option_count);
    *out = (CUlibrary)&module;
    return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary library) { VS_UNUSED(library); return CUDA_SUCCESS; }
CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
    VS_UNUSED(library); VS_UNUSED(name);
    *out = (CUkernel)&function;
    return CUDA_SUCCESS;
}
CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library) { VS_UNUSED(library); *out = (CUmodule)&module; return CUDA_SUCCESS; }
CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel) { VS_UNUSED(kernel); *out = (CUfunction)&function; return CUDA_SUCCESS; }

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle)
{
    VS_UNUSED(handle);
    int card = vs_card()->major * 10 + vs_card()->minor;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;     /* as in cudaFuncGetAttributes */
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = card; break;
    default: *value = 0;
    }
    return CUDA_SUCCESS;
}
CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    VS_UNUSED(kernel); VS_UNUSED(device);
    return cuFuncGetAttribute(value, attribute, NULL);
}
CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
    VS_UNUSED(handle);
    bool too_much = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value > vs_card()->shared_per_block_optin_bytes;
    return too_much ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    VS_UNUSED(kernel); VS_UNUSED(device);
    return cuFuncSetAttribute(NULL, attribute, value);
}
CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) { VS_UNUSED(handle); VS_UNUSED(config); return CUDA_SUCCESS; }

static CUresult launched(dim3 grid, dim3 block, unsigned shared_bytes, CUstream stream)
{
    if (!vs_open_context(vs_device())) return CUDA_ERROR_OUT_OF_MEMORY;
    if (vs_check_launch(grid, block, shared_bytes)) return CUDA_ERROR_INVALID_VALUE;
    vs_kernel_launched();
    vs_count_node(stream);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra)
{
    VS_UNUSED(handle); VS_UNUSED(parameters); VS_UNUSED(extra);
    return launched((dim3){grid_x, grid_y, grid_z}, (dim3){block_x, block_y, block_z}, shared_bytes, stream);
}
CUresult cuLaunchCooperativeKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters)
{
    return cuLaunchKernel(handle, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, NULL);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction handle, void **parameters, void **extra)
{
    return cuLaunchKernel(handle, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes,
                          c->hStream, parameters, extra);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads, size_t shared_bytes)
{
    VS_UNUSED(handle);
    *blocks = vs_blocks_per_sm(threads, shared_bytes);
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
    VS_UNUSED(handle); VS_UNUSED(config);
    *clusters = vs_card()->sms;
    return CUDA_SUCCESS;
}

/* A descriptor of a tile: filled by the driver from its arguments alone, read by kernels alone. */
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *sizes,
                                const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill)
{
    VS_UNUSED(type); VS_UNUSED(rank); VS_UNUSED(address); VS_UNUSED(sizes); VS_UNUSED(strides); VS_UNUSED(box);
    VS_UNUSED(element_strides); VS_UNUSED(interleave); VS_UNUSED(swizzle); VS_UNUSED(promotion); VS_UNUSED(fill);
    memset(map, 0, sizeof *map);
    return CUDA_SUCCESS;
}

/* ---- streams and events: the runtime's ---------------------------------------------------------- */
CUresult cuStreamCreate(CUstream *stream, unsigned flags) { return result_of(cudaStreamCreateWithFlags(stream, flags)); }
CUresult cuStreamDestroy(CUstream stream) { return result_of(cudaStreamDestroy(stream)); }
CUresult cuStreamSynchronize(CUstream stream) { VS_UNUSED(stream); return CUDA_SUCCESS; }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) { return result_of(cudaStreamWaitEvent(stream, event, flags)); }
CUresult cuEventCreate(CUevent *event, unsigned flags) { return result_of(cudaEventCreateWithFlags(event, flags)); }
CUresult cuEventRecord(CUevent event, CUstream stream) { return result_of(cudaEventRecord(event, stream)); }
CUresult cuEventDestroy(CUevent event) { return result_of(cudaEventDestroy(event)); }
CUresult cuEventSynchronize(CUevent event) { VS_UNUSED(event); return CUDA_SUCCESS; }
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    VS_UNUSED(stream); VS_UNUSED(value); VS_UNUSED(flags);
    vs_overwritten((const void *)address, sizeof value);
    return CUDA_SUCCESS;
}
#if CUDA_VERSION >= 12090                     /* the first cuda.h that has them */
CUresult cuLogsRegisterCallback(CUlogsCallback callback, void *data, CUlogsCallbackHandle *out)
{
    VS_UNUSED(callback); VS_UNUSED(data);
    *out = (CUlogsCallbackHandle)&module;     /* nothing is ever logged */
    return CUDA_SUCCESS;
}
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) { VS_UNUSED(handle); return CUDA_SUCCESS; }
#endif
