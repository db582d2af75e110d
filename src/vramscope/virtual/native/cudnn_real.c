/* The installed cuDNN, opened to plan for a card that is described to it.
 *
 * Since 9.8 cuDNN chooses engines and states their workspaces for a described device
 * without having one ("Deviceless Ahead-of-time Compilation" in its documentation):
 * CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR takes the description as JSON. */
#define _GNU_SOURCE
#include "cudnn_parts.h"
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VS_REAL_CUDNN
#define VS_REAL_CUDNN "libcudnn.so.9"
#endif
#define OLDEST_VERSION 90800

static struct real_cudnn real;
static void *library;
static bool usable;
static char reason[768];
static pthread_once_t library_once = PTHREAD_ONCE_INIT, planner_once = PTHREAD_ONCE_INIT;

/* The reason is kept because every later call fails with it; it is said once. */
static void refuse(const char *what)
{
    static int seen;
    snprintf(reason, sizeof reason, "%s", what);
    fprintf(stderr, "vramscope: cuDNN cannot plan for %s: %s\n", vs_card()->name, what);
    vs_unsimulated("cudnn", reason, &seen, CUDNN_STATUS_NOT_INITIALIZED);
}

/* The library was opened after torch, so at exit it goes before torch's caches, which then
 * still destroy descriptors.  Registered after the library's own, this runs before them. */
static atomic_bool closing;
static void note_exit(void) { closing = true; }

static void open_library(void)
{
    const char *path = vs_setting("VRAMSCOPE_CUDNN");
    /* DEEPBIND: its own calls of cudnn* must reach itself and not this stand-in. */
    library = dlopen(path ? path : VS_REAL_CUDNN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (!library) refuse(dlerror());
    else atexit(note_exit);
}

bool real_cudnn_is_closing(void) { return closing; }

void *real_cudnn_symbol(const char *name)
{
    pthread_once(&library_once, open_library);
    return library ? dlsym(library, name) : NULL;
}

static bool find_functions(void)
{
    *(void **)&real.create = real_cudnn_symbol("cudnnBackendCreateDescriptor");
    *(void **)&real.destroy = real_cudnn_symbol("cudnnBackendDestroyDescriptor");
    *(void **)&real.finalize = real_cudnn_symbol("cudnnBackendFinalize");
    *(void **)&real.set = real_cudnn_symbol("cudnnBackendSetAttribute");
    *(void **)&real.get = real_cudnn_symbol("cudnnBackendGetAttribute");
    *(void **)&real.last_error = real_cudnn_symbol("cudnnGetLastErrorString");
    return real.create && real.destroy && real.finalize && real.set && real.get && real.last_error;
}

/* The stand-in answers in the name of the version that it was compiled for. */
static bool version_fits(void)
{
    size_t (*version)(void);
    *(void **)&version = real_cudnn_symbol("cudnnGetVersion");
    size_t found = version ? version() : 0;
    char text[256];
    if (found >= OLDEST_VERSION && found == CUDNN_VERSION) return true;
    if (found < OLDEST_VERSION)
        snprintf(text, sizeof text, "the installed cuDNN is %zu; planning without a device needs %d or later"
                 " (install a newer torch or nvidia-cudnn)", found, OLDEST_VERSION);
    else
        snprintf(text, sizeof text, "the installed cuDNN is %zu, the stand-in was built for %d;"
                 " rebuild it for this torch", found, CUDNN_VERSION);
    refuse(text);
    return false;
}

/* Field names and order as cuDNN writes CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION itself.
 * Grid and block limits are those of every capability since 5.0 (CUDA C++ Programming
 * Guide, "Technical Specifications per Compute Capability"). */
static void describe_card(char *json, size_t room)
{
    const struct vs_card *card = vs_card();
    snprintf(json, room,
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
        "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
        "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":%d,\"maxRegistersPerSM\":%d,"
        "\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,\"isTccDriver\":0,"
        "\"supportCoopLaunch\":1,\"totalGlobalMem\":%llu,\"smClockRateKHz\":%d,\"memClockRateKHz\":%d,"
        "\"l2CacheSize\":%d,\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":%d,\"deviceName\":\"%s\"}",
        card->sms, card->shared_per_block_optin_bytes, card->shared_reserved_bytes, card->registers_per_sm,
        card->blocks_per_sm, card->threads_per_sm, (unsigned long long)card->memory_bytes, card->sm_khz,
        card->memory_khz, card->l2_bytes, card->major * 100 + card->minor * 10, CUDART_VERSION, card->name);
}

static bool describe_device(void)
{
    char json[2048], error[512] = "", text[640];
    describe_card(json, sizeof json);
    if (!real.create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &real.device)
        && !real.set(real.device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json), json)
        && !real.finalize(real.device))
        return true;
    real.last_error(error, sizeof error);
    snprintf(text, sizeof text, "its description was refused (%s)", *error ? error : "no reason given");
    refuse(text);
    return false;
}

static void open_planner(void)
{
    usable = real_cudnn_symbol("cudnnGetVersion") && version_fits() && find_functions() && describe_device();
    if (!usable && !*reason) refuse("the library lacks its backend functions");
}

const struct real_cudnn *real_cudnn(void)
{
    pthread_once(&planner_once, open_planner);
    if (usable) return &real;
    cudnn_failure(CUDNN_STATUS_NOT_INITIALIZED, "%s", reason);
    return NULL;
}
