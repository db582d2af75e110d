/* libnvidia-ml: what torch's out-of-memory message, torch.cuda and the monitors
 * (nvidia-ml-py, nvitop) ask.  NVML's header is not in the wheels; the structures are
 * those of nvidia-ml-py (pynvml.py, names beside each).
 *
 * It depends on the core alone, so that a monitor which loads no CUDA can use it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "vs.h"

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };  /* NVML_ERROR_* */
static const unsigned NO_INSTANCE = 0xFFFFFFFFu;      /* no MIG: NVML_VALUE_NOT_AVAILABLE as unsigned */

/* A device's handle: the address of its place here.  NVML counts all devices of the
 * machine, whatever CUDA_VISIBLE_DEVICES says. */
static char handles[VS_MAX_DEVICES];
static int device_of(void *handle) { return (int)((char *)handle - handles); }
static int text(char *out, unsigned room, const char *value)
{
    return snprintf(out, room, "%s", value) < (int)room ? SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlInit(void) { return SUCCESS; }
int nvmlInit_v2(void) { return SUCCESS; }
int nvmlInitWithFlags(unsigned flags) { VS_UNUSED(flags); return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code)
{
    switch (code) {
    case SUCCESS: return "Success";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    default: return "Unknown Error";
    }
}

/* ---- the system.  The driver that a CUDA of this version asks for at least ------------------ */
int nvmlSystemGetDriverVersion(char *out, unsigned room) { return text(out, room, VS_DRIVER_VERSION); }
int nvmlSystemGetNVMLVersion(char *out, unsigned room)
{
    char full[64];
    snprintf(full, sizeof full, "%d.%s", VS_CUDA_VERSION / 1000, VS_DRIVER_VERSION);
    return text(out, room, full);
}
int nvmlSystemGetCudaDriverVersion(int *version) { *version = VS_CUDA_VERSION; return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = VS_CUDA_VERSION; return SUCCESS; }
int nvmlSystemGetProcessName(unsigned pid, char *out, unsigned room)
{
    char path[64], name[1024];
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t length = readlink(path, name, sizeof name - 1);
    if (length < 0) return NOT_FOUND;
    name[length] = 0;
    return text(out, room, name);
}

/* ---- devices --------------------------------------------------------------------------------- */
int nvmlDeviceGetCount(unsigned *count) { *count = (unsigned)vs_machine_device_count(); return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { return nvmlDeviceGetCount(count); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    if ((int)index >= vs_machine_device_count()) return INVALID_ARGUMENT;
    *handle = &handles[index];
    return SUCCESS;
}
int nvmlDeviceGetHandleByIndex(unsigned index, void **handle) { return nvmlDeviceGetHandleByIndex_v2(index, handle); }

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **handle)
{
    unsigned domain = 0, bus = 0;
    if (sscanf(id, "%x:%x", &domain, &bus) != 2 || !bus) return NOT_FOUND;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, handle);
}

/* The same UUID as cudaDeviceProp::uuid (cudart.c). */
static void uuid_of(int device, char *out, size_t room)
{
    unsigned b = VS_FIRST_UUID_BYTE + (unsigned)device;
    snprintf(out, room, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b);
}
int nvmlDeviceGetUUID(void *handle, char *out, unsigned room)
{
    char uuid[64];
    uuid_of(device_of(handle), uuid, sizeof uuid);
    return text(out, room, uuid);
}
int nvmlDeviceGetHandleByUUID(const char *wanted, void **handle)
{
    char uuid[64];
    for (int device = 0; device < vs_machine_device_count(); device++) {
        uuid_of(device, uuid, sizeof uuid);
        if (!strcmp(uuid, wanted)) return nvmlDeviceGetHandleByIndex_v2((unsigned)device, handle);
    }
    return NOT_FOUND;
}

int nvmlDeviceGetIndex(void *handle, unsigned *index) { *index = (unsigned)device_of(handle); return SUCCESS; }
int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor) { return nvmlDeviceGetIndex(handle, minor); }
int nvmlDeviceGetName(void *handle, char *out, unsigned room) { VS_UNUSED(handle); return text(out, room, vs_card()->name); }
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor)
{
    VS_UNUSED(handle);
    *major = vs_card()->major;
    *minor = vs_card()->minor;
    return SUCCESS;
}

struct pci { char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char bus_id[32]; };   /* nvmlPciInfo_t */
int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *pci)
{
    int bus = device_of(handle) + 1;
    memset(pci, 0, sizeof *pci);
    pci->bus = (unsigned)bus;
    snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", bus);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", bus);
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v2(void *handle, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(handle, pci); }

/* ---- memory and who holds it --------------------------------------------------------------------- */
struct memory { unsigned long long total, free, used; };                                     /* c_nvmlMemory_t */
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };      /* c_nvmlMemory_v2_t */
int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory)
{
    unsigned long long total = vs_card()->memory_bytes, used = vs_machine_used_bytes(device_of(handle));
    *memory = (struct memory){total, total - used, used};
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *memory)
{
    struct memory plain;
    nvmlDeviceGetMemoryInfo(handle, &plain);
    memory->total = plain.total;
    memory->reserved = 0;                     /* the card's memory is already what CUDA reports, without the reserve */
    memory->free = plain.free;
    memory->used = plain.used;
    return SUCCESS;
}

struct process { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };   /* c_nvmlProcessInfo_v2_t */
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, struct process *out)
{
    static __thread struct vs_process all[256];
    int device = device_of(handle), have = vs_processes(all, 256);
    unsigned found = 0, room = *count;
    for (int i = 0; i < have && i < 256; i++) {
        if (!all[i].used_bytes[device]) continue;
        if (found < room) out[found] = (struct process){(unsigned)all[i].pid, all[i].used_bytes[device], NO_INSTANCE, NO_INSTANCE};
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v2(void *handle, unsigned *count, struct process *out) { return nvmlDeviceGetComputeRunningProcesses_v3(handle, count, out); }

struct process_v1 { unsigned pid; unsigned long long used; };                                 /* of the first version of the call */
int nvmlDeviceGetComputeRunningProcesses(void *handle, unsigned *count, struct process_v1 *out)
{
    struct process full[256];
    unsigned found = 256, room = *count;
    nvmlDeviceGetComputeRunningProcesses_v3(handle, &found, full);
    for (unsigned i = 0; i < found && i < room; i++) out[i] = (struct process_v1){full[i].pid, full[i].used};
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *count, struct process *out) { VS_UNUSED(handle); VS_UNUSED(out); *count = 0; return SUCCESS; }
int nvmlDeviceGetGraphicsRunningProcesses_v2(void *handle, unsigned *count, struct process *out) { return nvmlDeviceGetGraphicsRunningProcesses_v3(handle, count, out); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *handle, unsigned *count, struct process *out) { return nvmlDeviceGetGraphicsRunningProcesses_v3(handle, count, out); }

/* ---- states that a virtual card has: it is idle, cool, and draws nothing ------------------------- */
struct utilization { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *handle, struct utilization *rates) { VS_UNUSED(handle); *rates = (struct utilization){0, 0}; return SUCCESS; }
int nvmlDeviceGetComputeMode(void *handle, int *mode) { VS_UNUSED(handle); *mode = 0; return SUCCESS; }
int nvmlDeviceGetPersistenceMode(void *handle, int *mode) { VS_UNUSED(handle); *mode = 1; return SUCCESS; }
int nvmlDeviceGetDisplayActive(void *handle, int *active) { VS_UNUSED(handle); *active = 0; return SUCCESS; }
int nvmlDeviceGetDisplayMode(void *handle, int *mode) { VS_UNUSED(handle); *mode = 0; return SUCCESS; }
int nvmlDeviceGetProcessUtilization(void *handle, void *samples, unsigned *count, unsigned long long since)
{
    VS_UNUSED(handle); VS_UNUSED(samples); VS_UNUSED(since);
    *count = 0;
    return SUCCESS;
}
/* clock kinds: 0 graphics, 1 SM, 2 memory, 3 video (nvmlClockType_t) */
int nvmlDeviceGetMaxClockInfo(void *handle, int kind, unsigned *mhz)
{
    VS_UNUSED(handle);
    *mhz = (unsigned)((kind == 2 ? vs_card()->memory_khz : vs_card()->sm_khz) / 1000);
    return SUCCESS;
}
int nvmlDeviceGetP2PStatus(void *handle, void *peer, int index, int *status)
{
    VS_UNUSED(handle); VS_UNUSED(peer); VS_UNUSED(index);
    *status = 0;                              /* NVML_P2P_STATUS_OK, as cudaDeviceCanAccessPeer says */
    return SUCCESS;
}
int nvmlDeviceGetGpuFabricInfoV(void *handle, void *info) { VS_UNUSED(handle); VS_UNUSED(info); return NOT_SUPPORTED; }
