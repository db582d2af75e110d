/* libcudart: streams, events, and capture into graphs.
 *
 * Everything is complete at once, so queries say so.  A capture follows CUDA's
 * rules: it begins on one stream, joins every stream that waits for an event
 * recorded within it, and ends for all of them together. */
#define _GNU_SOURCE
#include "cudart.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct stream {
    struct vs_stream head;                    /* first: the clock is found through the handle */
    int priority;
    unsigned flags;
    unsigned long long id, capture;
    struct stream *next;
};
struct event { double time; unsigned long long capture; };
struct user_object { void *pointer; cudaHostFn_t destroy; unsigned references; };
struct held { struct user_object *object; unsigned references; struct held *next; };
struct graph { size_t nodes; struct held *held; };

static struct stream default_stream;
static struct stream *streams;
static struct graph *capturing;               /* torch captures one graph at a time in a process */
static unsigned long long last_stream_id, last_capture_id;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Handles up to cudaStreamPerThread (2) name default streams. */
static struct stream *stream_of(cudaStream_t handle)
{
    return (uintptr_t)handle < 16 ? &default_stream : (struct stream *)handle;
}

/* ---- streams ----------------------------------------------------------------------------- */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned flags, int priority)
{
    VS_CONTEXT();
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream) return vs_error(cudaErrorMemoryAllocation);
    stream->priority = priority;
    stream->flags = flags;
    pthread_mutex_lock(&lock);
    stream->id = ++last_stream_id;
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    *handle = (cudaStream_t)stream;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned flags) { return cudaStreamCreateWithPriority(handle, flags, 0); }
cudaError_t cudaStreamCreate(cudaStream_t *handle) { return cudaStreamCreateWithPriority(handle, 0, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    struct stream *gone = stream_of(handle);
    if (gone == &default_stream) return vs_error(cudaErrorInvalidResourceHandle);
    pthread_mutex_lock(&lock);
    for (struct stream **at = &streams; *at; at = &(*at)->next)
        if (*at == gone) { *at = gone->next; break; }
    pthread_mutex_unlock(&lock);
    free(gone);
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) { *priority = stream_of(handle)->priority; return cudaSuccess; }
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags) { *flags = stream_of(handle)->flags; return cudaSuccess; }
cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *id) { *id = stream_of(handle)->id; return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t handle) { VS_UNUSED(handle); return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t handle) { VS_UNUSED(handle); VS_CONTEXT(); return cudaSuccess; }

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void *data, unsigned flags)
{
    VS_UNUSED(flags);
    callback(handle, cudaSuccess, data);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data)
{
    vs_count_node(handle);
    if (!stream_of(handle)->capture) function(data);
    return cudaSuccess;
}

/* ---- events -------------------------------------------------------------------------------- */
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned flags)
{
    VS_UNUSED(flags);
    struct event *event = calloc(1, sizeof *event);
    *handle = (cudaEvent_t)event;
    return vs_error(event ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaEventCreate(cudaEvent_t *handle) { return cudaEventCreateWithFlags(handle, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t handle) { free(handle); return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t handle) { VS_UNUSED(handle); return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t handle) { VS_UNUSED(handle); return cudaSuccess; }

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream)
{
    struct event *event = (struct event *)handle;
    VS_CONTEXT();
    event->time = vs_clock(stream);
    event->capture = stream_of(stream)->capture;
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream, unsigned flags)
{
    VS_UNUSED(flags);
    return cudaEventRecord(handle, stream);
}

/* Never 0: programs divide by it.  Half a microsecond is the resolution that the
 * documentation of cudaEventElapsedTime gives. */
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    double seconds = ((struct event *)end)->time - ((struct event *)start)->time;
    *milliseconds = (float)(seconds > 0.5e-6 ? seconds * 1e3 : 0.5e-3);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t waited, unsigned flags)
{
    struct stream *stream = stream_of(handle);
    const struct event *event = (const struct event *)waited;
    VS_UNUSED(flags);
    if (event->time > vs_clock(handle)) vs_elapse(handle, event->time - vs_clock(handle));
    if (event->capture && event->capture == last_capture_id && capturing && !stream->capture) stream->capture = event->capture;
    return cudaSuccess;
}

/* ---- capture --------------------------------------------------------------------------------- */
static unsigned long long capture_of(cudaStream_t handle) { return stream_of(handle)->capture; }

void vs_count_node(cudaStream_t handle)
{
    if (stream_of(handle)->capture && capturing) capturing->nodes++;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    *status = capture_of(handle) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

static cudaError_t begin_capture(cudaStream_t handle, struct graph *graph)
{
    pthread_mutex_lock(&lock);
    bool free_to_begin = graph && !capturing;
    if (free_to_begin) {
        capturing = graph;
        stream_of(handle)->capture = ++last_capture_id;
    }
    pthread_mutex_unlock(&lock);
    return vs_error(free_to_begin ? cudaSuccess : cudaErrorIllegalState);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    VS_UNUSED(mode);
    struct graph *graph = calloc(1, sizeof *graph);
    cudaError_t error = begin_capture(handle, graph);
    if (error) free(graph);
    return error;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out)
{
    unsigned long long capture = stream_of(handle)->capture;
    if (!capture) return vs_error(cudaErrorIllegalState);
    pthread_mutex_lock(&lock);
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->capture == capture) stream->capture = 0;
    default_stream.capture = 0;
    *out = (cudaGraph_t)capturing;
    capturing = NULL;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

static cudaError_t capture_info(cudaStream_t handle, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
                                const cudaGraphNode_t **dependencies, size_t *count)
{
    cudaStreamIsCapturing(handle, status);
    if (id) *id = capture_of(handle);
    if (graph) *graph = (cudaGraph_t)capturing;
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count)
{
    if (edges) *edges = NULL;
    return capture_info(handle, status, id, graph, dependencies, count);
}
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t handle, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                        cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count)
{
    return capture_info(handle, status, id, graph, dependencies, count);
}
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    static __thread enum cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    enum cudaStreamCaptureMode previous = current;
    current = *mode;
    *mode = previous;
    return cudaSuccess;
}

/* ---- graphs: a count of what was captured, and what must live as long ------------------------- */
cudaError_t cudaGraphCreate(cudaGraph_t *out, unsigned flags)
{
    VS_UNUSED(flags);
    *out = (cudaGraph_t)calloc(1, sizeof(struct graph));
    return vs_error(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count)
{
    size_t have = ((struct graph *)handle)->nodes;
    for (size_t i = 0; nodes && i < *count && i < have; i++) nodes[i] = (cudaGraphNode_t)(handle);
    if (!nodes || *count > have) *count = have;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    VS_UNUSED(graph); VS_UNUSED(flags);
    *out = (cudaGraphExec_t)calloc(1, 16);
    vs_uncounted("CUDA graph", VS_UNKNOWN, "what an instantiated graph itself takes on the card is not known");
    return vs_error(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

#if CUDART_VERSION >= 12000
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(out, graph, flags);
}
#endif

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    VS_UNUSED(graph); VS_UNUSED(stream);
    VS_CONTEXT();
    vs_kernel_launched();
    return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) { VS_UNUSED(graph); VS_UNUSED(stream); return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { free(graph); return cudaSuccess; }

static void release(struct user_object *object, unsigned count)
{
    if (object->references > count) { object->references -= count; return; }
    object->destroy(object->pointer);
    free(object);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *out, void *pointer, cudaHostFn_t destroy, unsigned references, unsigned flags)
{
    VS_UNUSED(flags);
    struct user_object *object = malloc(sizeof *object);
    if (!object) return vs_error(cudaErrorMemoryAllocation);
    *object = (struct user_object){pointer, destroy, references};
    *out = (cudaUserObject_t)object;
    return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
    release((struct user_object *)object, count);
    return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t handle, cudaUserObject_t object, unsigned count, unsigned flags)
{
    struct graph *graph = (struct graph *)handle;
    struct held *held = malloc(sizeof *held);
    if (!graph || !held) { free(held); return vs_error(cudaErrorInvalidValue); }
    *held = (struct held){(struct user_object *)object, count, graph->held};
    if (!(flags & cudaGraphUserObjectMove)) held->object->references += count;
    graph->held = held;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle)
{
    struct graph *graph = (struct graph *)handle;
    for (struct held *held = graph ? graph->held : NULL, *next; held; held = next) {
        next = held->next;
        release(held->object, held->references);
        free(held);
    }
    free(graph);
    return cudaSuccess;
}
