/* libcudart: devices, properties, errors.  The rest of the runtime is in cudart_*.c. */
#define _GNU_SOURCE
#include "cudart.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static __thread cudaError_t last_error;

/* ---- errors ------------------------------------------------------------------------- */
cudaError_t vs_error(cudaError_t error)
{
    if (error) last_error = error;
    return error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

/* What programs and their logs look for; texts as the CUDA documentation gives them. */
struct error_text { cudaError_t code; const char *name, *text; };
#define AN_ERROR(code, text) {code, #code, text}
static const struct error_text ERRORS[] = {
    AN_ERROR(cudaSuccess, "no error"),
    AN_ERROR(cudaErrorInvalidValue, "invalid argument"),
    AN_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    AN_ERROR(cudaErrorInitializationError, "initialization error"),
    AN_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    AN_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    AN_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    AN_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    AN_ERROR(cudaErrorNotReady, "device not ready"),
    AN_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    AN_ERROR(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    AN_ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    AN_ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    AN_ERROR(cudaErrorNotSupported, "operation not supported"),
};

static const struct error_text *text_of(cudaError_t error)
{
    static const struct error_text unknown = {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].code == error) return &ERRORS[i];
    return &unknown;
}

const char *cudaGetErrorName(cudaError_t error) { return text_of(error)->name; }
const char *cudaGetErrorString(cudaError_t error) { return text_of(error)->text; }

/* ---- versions ------------------------------------------------------------------------- */
cudaError_t cudaDriverGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }

/* ---- devices ------------------------------------------------------------------------- */
cudaError_t cudaGetDeviceCount(int *count)
{
    *count = vs_device_count();
    return vs_error(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = vs_device();
    return vs_error(vs_device_count() ? cudaSuccess : cudaErrorNoDevice);
}

/* Since CUDA 12 this creates the device's context. */
cudaError_t cudaSetDevice(int device)
{
    if (!vs_set_device(device)) return vs_error(cudaErrorInvalidDevice);
    VS_CONTEXT();
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) { VS_CONTEXT(); return cudaSuccess; }
cudaError_t cudaDeviceReset(void) { return cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned flags) { VS_UNUSED(flags); return cudaSuccess; }

void vs_fill_properties(struct cudaDeviceProp *p, int device)
{
    const struct vs_card *card = vs_card();
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", card->name);
    memset(p->uuid.bytes, VS_FIRST_UUID_BYTE + vs_physical_device(device), sizeof p->uuid.bytes);
    p->totalGlobalMem = card->memory_bytes;
    p->major = card->major;
    p->minor = card->minor;
    p->multiProcessorCount = card->sms;
    p->l2CacheSize = card->l2_bytes;
    p->memoryBusWidth = card->bus_bits;
    p->sharedMemPerMultiprocessor = (size_t)card->shared_per_sm_bytes;
    p->sharedMemPerBlockOptin = (size_t)card->shared_per_block_optin_bytes;
    p->reservedSharedMemPerBlock = (size_t)card->shared_reserved_bytes;
    p->regsPerMultiprocessor = card->registers_per_sm;
    p->maxThreadsPerMultiProcessor = card->threads_per_sm;
    p->maxBlocksPerMultiProcessor = card->blocks_per_sm;
    /* The same for every card since compute capability 3.0: CUDA C Programming Guide,
     * table "Technical Specifications per Compute Capability". */
    p->sharedMemPerBlock = 48 << 10;
    p->regsPerBlock = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 64 << 10;
    p->memPitch = 2147483647;
    p->textureAlignment = 512;
    p->texturePitchAlignment = 32;
    p->surfaceAlignment = 512;
    p->pciBusID = vs_physical_device(device) + 1;
    p->asyncEngineCount = 2;
    p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = 1;
    p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    p->managedMemory = p->concurrentManagedAccess = p->computePreemptionSupported = 1;
    p->canUseHostPointerForRegisteredMem = p->cooperativeLaunch = p->hostRegisterSupported = 1;
    p->memoryPoolsSupported = p->ipcEventSupported = p->unifiedFunctionPointers = 1;
    p->clusterLaunch = card->major >= 9;
#if CUDART_VERSION < 13000
    p->clockRate = card->sm_khz;
    p->memoryClockRate = card->memory_khz;
#endif
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    if (device < 0 || device >= vs_device_count()) return vs_error(cudaErrorInvalidDevice);
    vs_fill_properties(properties, device);
    return cudaSuccess;
}

/* The attributes whose value stands in the properties, then those that only this call gives.
 * cudaDeviceAttr and CUdevice_attribute have the same numbers (driver_types.h, cuda.h). */
cudaError_t vs_attribute(int *value, int attribute, int device)
{
    static int seen[256];
    struct cudaDeviceProp p;
    if (device < 0 || device >= vs_device_count()) return cudaErrorInvalidDevice;
    vs_fill_properties(&p, device);
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: *value = p.maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: *value = p.maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: *value = p.maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: *value = p.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = p.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = p.maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p.sharedMemPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = (int)p.reservedSharedMemPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)p.sharedMemPerMultiprocessor; break;
    case cudaDevAttrTotalConstantMemory: *value = (int)p.totalConstMem; break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMaxPitch: *value = (int)p.memPitch; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = p.regsPerMultiprocessor; break;
    case cudaDevAttrTextureAlignment: *value = (int)p.textureAlignment; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = p.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrClockRate: *value = vs_card()->sm_khz; break;
    case cudaDevAttrMemoryClockRate: *value = vs_card()->memory_khz; break;
    case cudaDevAttrPciBusId: *value = p.pciBusID; break;
    case cudaDevAttrAsyncEngineCount: *value = p.asyncEngineCount; break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: *value = p.clusterLaunch; break;
    case cudaDevAttrConcurrentKernels: case cudaDevAttrUnifiedAddressing: case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrStreamPrioritiesSupported: case cudaDevAttrManagedMemory: case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrComputePreemptionSupported: case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCooperativeLaunch: case cudaDevAttrMemoryPoolsSupported: case cudaDevAttrHostRegisterSupported:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: *value = 1; break;
    case cudaDevAttrComputeMode: case cudaDevAttrIntegrated: case cudaDevAttrEccEnabled: case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrPciDeviceId: case cudaDevAttrPciDomainId: case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrIsMultiGpuBoard: case cudaDevAttrTccDriver: case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED: case cudaDevAttrGPUDirectRDMASupported: *value = 0; break;
    default: {
        char name[48];
        snprintf(name, sizeof name, "cudaDeviceGetAttribute(%d)", attribute);
        *value = 0;
        vs_unsimulated("cudart", name, &seen[attribute & 255], 0);
    } }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    return vs_error(vs_attribute(value, (int)attribute, device));
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int device)
{
    snprintf(text, (size_t)room, "00000000:%02X:00.0", vs_physical_device(device) + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    unsigned domain, bus = 0;
    if (sscanf(text, "%x:%x", &domain, &bus) != 2) return vs_error(cudaErrorInvalidValue);
    for (*device = 0; *device < vs_device_count(); ++*device)
        if (vs_physical_device(*device) + 1 == (int)bus) return cudaSuccess;
    return vs_error(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least) *least = 0;
    if (greatest) *greatest = -5;             /* every card since 7.0 has these six levels */
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer && device < vs_device_count() && peer < vs_device_count();
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    static __thread char enabled[VS_MAX_DEVICES][VS_MAX_DEVICES];
    VS_UNUSED(flags);
    if (peer < 0 || peer >= vs_device_count()) return vs_error(cudaErrorInvalidDevice);
    if (enabled[vs_device()][peer]++) return vs_error(cudaErrorPeerAccessAlreadyEnabled);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    /* Defaults of the CUDA documentation, cudaDeviceSetLimit. */
    *value = limit == cudaLimitStackSize ? 1024 : limit == cudaLimitPrintfFifoSize ? 1 << 20
           : limit == cudaLimitMallocHeapSize ? 8 << 20 : 0;
    return cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) { VS_UNUSED(limit); VS_UNUSED(value); return cudaSuccess; }
cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

/* ---- the driver's functions by name --------------------------------------------------- */
/* The newest variant first, as a caller of this CUDA version would get it. */
static void *driver_function(const char *name)
{
    static const char *const variants[] = {"_v4", "_v3", "_v2", ""};
    static void *driver;
    char full[160];
    if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; driver && i < sizeof variants / sizeof *variants; i++) {
        snprintf(full, sizeof full, "%s%s", name, variants[i]);
        void *found = dlsym(driver, full);
        if (found) return found;
    }
    return NULL;
}

static cudaError_t driver_entry(const char *name, void **function, enum cudaDriverEntryPointQueryResult *result)
{
    *function = driver_function(name);
    if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    if (!*function) vs_journal("unsimulated", "\"library\": \"cuda\", \"symbol\": \"%s\", \"answer\": 500", name);
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *result)
{
    VS_UNUSED(version); VS_UNUSED(flags);
    return driver_entry(name, function, result);
}
#if CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    VS_UNUSED(flags);
    return driver_entry(name, function, result);
}
#endif
