/* The graph API.  Every descriptor of the caller's stands for one of the installed
 * library's, which checks it, keeps it and answers for it.  Ours adds three things:
 * the described card goes in, handles stay out (there is no device behind them), and
 * how much work a graph is, for the virtual clock, is noted as its parts are set. */
#include "cudnn_planning.h"
#include <stdlib.h>
#include <string.h>

/* ---- lifetime -------------------------------------------------------------------- */
static struct real_descriptor *real_create(cudnnBackendDescriptorType_t type, cudnnStatus_t *status)
{
    const struct real_cudnn *real = real_cudnn();
    struct real_descriptor *made = real ? calloc(1, sizeof *made) : NULL;
    *status = made ? real->create(type, &made->handle) : CUDNN_STATUS_NOT_INITIALIZED;
    if (!*status) atomic_init(&made->users, 1);
    else { free(made); made = NULL; }
    return made;
}

struct real_descriptor *real_retain(struct real_descriptor *real)
{
    if (real) atomic_fetch_add_explicit(&real->users, 1, memory_order_relaxed);
    return real;
}

void real_release(struct real_descriptor *real)
{
    if (!real || atomic_fetch_sub_explicit(&real->users, 1, memory_order_acq_rel) > 1) return;
    if (!real_cudnn_is_closing()) real_cudnn()->destroy(real->handle);
    free(real);
}

static int device_attribute(cudnnBackendDescriptorType_t type)
{
    switch (type) {
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: return CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR: return CUDNN_ATTR_ENGINE_DEVICEPROP;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP;
    default: return -1;
    }
}

static cudnnStatus_t attach_real(struct descriptor *made)
{
    cudnnStatus_t status;
    int attribute = device_attribute(made->type);
    made->real = real_create(made->type, &status);
    if (status || attribute < 0) return status;
    const struct real_cudnn *real = real_cudnn();
    return real->set(made->real->handle, (cudnnBackendAttributeName_t)attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                     &real->device);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor)
{
    struct descriptor *made = calloc(1, sizeof *made);
    if (!made) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    made->type = type;
    made->rank = UNLISTED;
    cudnnStatus_t status = type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR ? CUDNN_STATUS_SUCCESS : attach_real(made);
    *descriptor = status ? NULL : made;
    if (status) cudnnBackendDestroyDescriptor(made);
    return status;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle)
{
    struct descriptor *descriptor = handle;
    if (!descriptor) return CUDNN_STATUS_SUCCESS;
    listing_leave(descriptor);
    real_release(descriptor->real);
    real_release(descriptor->config);
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor)
{
    VS_UNUSED(descriptor);             /* deprecated: only for descriptors in the caller's own memory */
    return cudnn_failure(CUDNN_STATUS_NOT_SUPPORTED, "cudnnBackendInitialize is not simulated");
}

/* ---- how much work ---------------------------------------------------------------- */
static int64_t product(const int64_t *numbers, int64_t count)
{
    int64_t result = 1;
    for (int64_t i = 0; i < count; i++) result *= numbers[i];
    return result;
}

static void note_tensor(struct descriptor *tensor, int name, int64_t count, const void *value)
{
    if (name == CUDNN_ATTR_TENSOR_DIMENSIONS && count > 0) {
        tensor->elements = product(value, count);
        tensor->leading = *(const int64_t *)value;
    } else if (name == CUDNN_ATTR_TENSOR_DATA_TYPE) {
        tensor->work.type = *(const int *)value;
    } else if (name == CUDNN_ATTR_TENSOR_IS_VIRTUAL) {
        tensor->is_virtual = *(const bool *)value;
    }
}

static bool is_filter(int name)
{
    return name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W || name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W
        || name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW;
}

static bool is_output_side(int name)
{
    return name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y || name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY
        || name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY;
}

/* All three convolutions do two operations for each output element and each weight that
 * reaches it; a filter has the dimensions K, C / groups, R, S. */
static void note_operand(struct descriptor *operation, int name, const struct descriptor *tensor)
{
    struct work *work = &operation->work;
    if (!tensor->is_virtual) work->bytes += (double)tensor->elements * element_bytes(tensor->work.type);
    if (is_filter(name)) {
        work->type = tensor->work.type;
        work->filter = tensor->leading ? tensor->elements / tensor->leading : 0;
    }
    if (is_output_side(name)) work->outputs = tensor->elements;
    work->flops = 2.0 * (double)work->outputs * (double)work->filter;
}

static void note_operation(struct descriptor *graph, const struct descriptor *operation)
{
    static _Atomic uint64_t graphs;
    if (!graph->work.graph) graph->work.graph = ++graphs;
    graph->work.flops += operation->work.flops;
    graph->work.bytes += operation->work.bytes;
    if (!operation->work.filter) return;
    graph->work.type = operation->work.type;
    graph->work.filter = operation->work.filter;
}

/* The fallback list holds what works, in no order of speed. */
static void note_heuristic(struct descriptor *heuristic, int name, const void *value)
{
    if (name == CUDNN_ATTR_ENGINEHEUR_MODE && *(const cudnnBackendHeurMode_t *)value == CUDNN_HEUR_MODE_FALLBACK)
        heuristic->unordered = true;
}

static void note_part(struct descriptor *whole, int name, const struct descriptor *part)
{
    if (part->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) note_operand(whole, name, part);
    else if (name == CUDNN_ATTR_OPERATIONGRAPH_OPS) note_operation(whole, part);
    else if (name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH || name == CUDNN_ATTR_ENGINE_OPERATION_GRAPH
             || name == CUDNN_ATTR_ENGINECFG_ENGINE || name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) {
        whole->work = part->work;
        whole->rank = part->rank;
    }
    if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) {
        real_release(whole->config);
        whole->config = real_retain(part->real);
        listing_share(whole, part);
    }
}

/* ---- attributes ------------------------------------------------------------------- */
#define MOST_PARTS 512                 /* more descriptors in one call than any graph has */

/* The caller's descriptors as the installed library's; false: one is missing or there are too many. */
static bool translate(struct descriptor *const *ours, int64_t count, cudnnBackendDescriptor_t *theirs)
{
    if (count < 0 || count > MOST_PARTS) return false;
    for (int64_t i = 0; i < count; i++) {
        if (!ours[i] || !ours[i]->real) return false;   /* forgotten: see cudnn_listing.c */
        theirs[i] = ours[i]->real->handle;
    }
    return true;
}

static cudnnStatus_t set_parts(struct descriptor *whole, cudnnBackendAttributeName_t name, int64_t count,
                               const void *value)
{
    cudnnBackendDescriptor_t theirs[MOST_PARTS];
    struct descriptor *const *ours = value;
    if (!translate(ours, count, theirs)) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    cudnnStatus_t status = real_cudnn()->set(whole->real->handle, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, theirs);
    for (int64_t i = 0; !status && i < count; i++) note_part(whole, (int)name, ours[i]);
    return status;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *value)
{
    struct descriptor *descriptor = handle;
    if (!descriptor) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE && count > 0 && value) descriptor->workspace = *(void *const *)value;
    if (!descriptor->real || type == CUDNN_TYPE_HANDLE) return CUDNN_STATUS_SUCCESS;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR && value) return set_parts(descriptor, name, count, value);
    cudnnStatus_t status = real_cudnn()->set(descriptor->real->handle, name, type, count, value);
    if (!status && descriptor->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) note_tensor(descriptor, (int)name, count, value);
    if (!status && descriptor->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) note_heuristic(descriptor, (int)name, value);
    return status;
}

/* A configuration that a heuristic lists as its i-th. */
static void note_result(struct descriptor *heuristic, struct descriptor *config, int i)
{
    config->rank = heuristic->unordered ? UNLISTED + i : i;
    listing_join(heuristic, config);
}

cudnnStatus_t not_kept(const struct descriptor *descriptor, cudnnBackendAttributeName_t name)
{
    return cudnn_failure(CUDNN_STATUS_NOT_SUPPORTED, "attribute %d of a descriptor of type %d is not kept%s", (int)name,
                         (int)descriptor->type, descriptor->listing ? " once a plan has run" : "");
}

static cudnnStatus_t get_parts(struct descriptor *whole, cudnnBackendAttributeName_t name, int64_t room,
                               int64_t *count, void *value)
{
    cudnnBackendDescriptor_t theirs[MOST_PARTS];
    struct descriptor **ours = value;
    int64_t found = 0;
    if (!translate(ours, room, theirs)) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    cudnnStatus_t status = real_cudnn()->get(whole->real->handle, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, &found,
                                             theirs);
    if (count) *count = found;
    for (int64_t i = 0; !status && i < found && i < room; i++) {
        ours[i]->work = whole->work;
        ours[i]->rank = whole->rank;
        if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) note_result(whole, ours[i], (int)i);
    }
    return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *value)
{
    struct descriptor *descriptor = handle;
    if (!descriptor) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        return plan_get(descriptor, name, type, room, count, value);
    if (!descriptor->real || type == CUDNN_TYPE_HANDLE) return not_kept(descriptor, name);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR && value && room > 0)
        return get_parts(descriptor, name, room, count, value);
    return real_cudnn()->get(descriptor->real->handle, name, type, room, count, value);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle)
{
    struct descriptor *descriptor = handle;
    if (!descriptor) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!descriptor->real) return CUDNN_STATUS_SUCCESS;
    if (descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return plan_finalize(descriptor);
    return real_cudnn()->finalize(descriptor->real->handle);
}
