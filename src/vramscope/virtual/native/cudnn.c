/* cuDNN: versions, errors and handles.  The other parts:
 *   cudnn_real.c        the installed library, which plans for the described card
 *   cudnn_graph.c       the graph API: descriptors, which pass through to it
 *   cudnn_plan.c        plans and their execution
 *   cudnn_listing.c     forgetting what the installed library holds for plans that have run
 *   cudnn_time.c        how long a plan would take: what cudnn.benchmark sees
 *   cudnn_descriptor.c  the older calls' descriptors
 *   cudnn_rnn.c         recurrent layers
 *   cudnn_layers.c      batch norm, dropout, CTC, samplers, pooling */
#include "cudnn_parts.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* torch keeps a pool of handles per thread and device, so each is an address of its own. */
struct cudnnContext { cudaStream_t stream; };

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (!handle) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    *stream = cudnn_stream(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudaStream_t cudnn_stream(cudnnHandle_t handle) { return handle ? handle->stream : NULL; }

/* ---- versions ------------------------------------------------------------------- */
size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
size_t cudnnGetCudartVersion(void) { return CUDART_VERSION; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType which, int *value)
{
    *value = which == MAJOR_VERSION ? CUDNN_MAJOR : which == MINOR_VERSION ? CUDNN_MINOR : CUDNN_PATCHLEVEL;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGraphVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }

/* ---- errors ---------------------------------------------------------------------- */
static _Thread_local char last_error[1024];

cudnnStatus_t cudnn_failure(cudnnStatus_t status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

/* Reading clears it, as in the installed library; its own message comes if we have none. */
void cudnnGetLastErrorString(char *message, size_t room)
{
    if (!room) return;
    *message = 0;
    if (*last_error) {
        snprintf(message, room, "vramscope: %s", last_error);
        *last_error = 0;
    } else if (real_cudnn()) {
        real_cudnn()->last_error(message, room);
    }
    *last_error = 0;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    static const char *(*real)(cudnnStatus_t);
    switch (status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    default: break;
    }
    if (!real) *(void **)&real = real_cudnn_symbol("cudnnGetErrorString");
    return real ? real(status) : "CUDNN_STATUS (unknown)";
}
