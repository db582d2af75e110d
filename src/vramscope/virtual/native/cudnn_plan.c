/* Plans.  Building one means compiling kernels for many engines: 0.2 to 1.2 s for
 * attention, each new key length again.  The kernels would never run here, and the only
 * thing that is wanted of them, the workspace, is known to the engine configuration:
 * CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE (since 9.2) equals
 * CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE.  So a plan is built only if its configuration
 * does not say, if the caller asks for something else of it, or if
 * VRAMSCOPE_CUDNN_BUILD_PLANS is set, which the tests do to hold the two side by side. */
#include "cudnn_planning.h"
#include <stdio.h>

static bool builds_all_plans(void)
{
    static atomic_int known;           /* 0: not looked at yet, 1: no, 2: yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (!answer) {
        answer = vs_setting("VRAMSCOPE_CUDNN_BUILD_PLANS") ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

static cudnnStatus_t build(struct descriptor *plan)
{
    if (plan->built) return CUDNN_STATUS_SUCCESS;
    cudnnStatus_t status = real_cudnn()->finalize(plan->real->handle);
    plan->built = !status;
    return status;
}

static bool config_workspace(const struct descriptor *plan, int64_t *bytes)
{
    int64_t count = 0;
    return plan->config && !real_cudnn()->get(plan->config->handle, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE,
                                              CUDNN_TYPE_INT64, 1, &count, bytes);
}

static cudnnStatus_t built_workspace(struct descriptor *plan)
{
    int64_t count = 0;
    cudnnStatus_t status = build(plan);
    if (status) return status;
    return real_cudnn()->get(plan->real->handle, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                             &plan->workspace_bytes);
}

/* A bit for each of the engine's notes; none if they cannot be had: they only refine a duration. */
static unsigned numerical_notes(const struct descriptor *plan)
{
    const struct real_cudnn *real = real_cudnn();
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0, engines = 0;
    unsigned bits = 0;
    if (!plan->config || real->create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine)) return 0;
    if (real->get(plan->config->handle, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engines, &engine)
        || real->get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes))
        count = 0;
    for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) bits |= 1u << notes[i];
    real->destroy(engine);
    return bits;
}

cudnnStatus_t plan_finalize(struct descriptor *plan)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (builds_all_plans() || !config_workspace(plan, &plan->workspace_bytes)) status = built_workspace(plan);
    if (status) return status;
    struct plan_notes notes = {plan->workspace_bytes, plan->rank, numerical_notes(plan)};
    plan->seconds = plan_seconds(&plan->work, &notes);
    plan->finalized = true;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t plan_config(struct descriptor *plan, int64_t room, int64_t *count, struct descriptor **out)
{
    if (!plan->config) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (count) *count = 1;
    if (!out || room < 1) return CUDNN_STATUS_SUCCESS;
    if (!out[0]) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    real_release(out[0]->real);
    out[0]->real = real_retain(plan->config);
    out[0]->work = plan->work;
    out[0]->rank = plan->rank;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t plan_get(struct descriptor *plan, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t room, int64_t *count, void *value)
{
    if (!plan->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        if (count) *count = 1;
        if (value && room > 0) *(int64_t *)value = plan->workspace_bytes;
        return CUDNN_STATUS_SUCCESS;
    }
    if (!plan->real || type == CUDNN_TYPE_HANDLE) return not_kept(plan, name);
    if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) return plan_config(plan, room, count, value);
    cudnnStatus_t status = build(plan);
    return status ? status : real_cudnn()->get(plan->real->handle, name, type, room, count, value);
}

/* Two plans of one graph, one after the other: somebody compares them by their time. */
static void notice_search(const struct descriptor *plan)
{
    static _Thread_local uint64_t graph;
    static _Thread_local const void *last;
    if (last == plan) return;
    if (graph == plan->work.graph && graph)
        vs_modelled("cudnn.benchmark", VS_UNKNOWN,
                    "the plans of a convolution are timed on the virtual card: roofline of its operations and bytes, "
                    "traffic of the work space, cuDNN's own order between equals");
    graph = plan->work.graph;
    last = plan;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_handle,
                                  cudnnBackendDescriptor_t variant_pack)
{
    struct descriptor *plan = plan_handle, *given = variant_pack;
    if (!plan || !plan->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (!atomic_load_explicit(&plan->executed, memory_order_relaxed) && !atomic_exchange(&plan->executed, true))
        listing_forget(plan);
    notice_search(plan);
    if (given) vs_used_as(VS_WORKSPACE, given->workspace, (uint64_t)plan->workspace_bytes);
    vs_kernel_launched();
    vs_elapse(cudnn_stream(handle), plan->seconds);
    return CUDNN_STATUS_SUCCESS;
}
