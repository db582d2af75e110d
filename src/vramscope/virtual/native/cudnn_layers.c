/* The other layers of the older API that torch calls: batch norm, dropout states, CTC,
 * grid sampling, pooling.  What torch can call and is not here fails by name. */
#include "cudnn_parts.h"
#include <stdlib.h>

/* The signatures are the library's: most arguments decide no size. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- batch norm -------------------------------------------------------------------------- */
static bool is_channels_last(const struct tensor *x)
{
    int64_t pixels = 1;
    for (int i = 2; i < x->dims; i++) pixels *= x->size[i];
    return x->dims > 2 && x->stride[1] == 1 && pixels > 1;
}

/* 0 for NCHW in every shape that was tried.  For channels_last the library's answer depends
 * on a real handle; the graph API's plans for the same shapes mostly state two floats for
 * each channel and multiprocessor. */
static cudnnStatus_t batch_norm_workspace(cudnnTensorDescriptor_t descriptor, size_t *bytes)
{
    const struct tensor *x = (const struct tensor *)descriptor;
    *bytes = is_channels_last(x) ? (size_t)vs_card()->sms * (size_t)x->size[1] * 2 * sizeof(float) : 0;
    if (*bytes)
        vs_modelled("cuDNN batch norm work space, channels_last", *bytes,
                    "SMs x channels x 8 bytes, as the graph API's plans take; at most 0.5 MiB seen there");
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t z, const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *bytes)
{
    return batch_norm_workspace(x, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t scale, const cudnnActivationDescriptor_t activation,
    size_t *bytes)
{
    return batch_norm_workspace(x, bytes);
}

/* Only an activation fused to the norm needs one (a bit for each element); torch fuses none. */
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
                                                                   cudnnBatchNormOps_t ops,
                                                                   const cudnnActivationDescriptor_t activation,
                                                                   const cudnnTensorDescriptor_t x, size_t *bytes)
{
    *bytes = 0;
    if (ops == CUDNN_BATCHNORM_OPS_BN) return CUDNN_STATUS_SUCCESS;
    return cudnn_failure(CUDNN_STATUS_NOT_SUPPORTED, "batch norm fused with an activation is not simulated");
}

/* Reads its input `passes` times in all, at the speed of the memory. */
static cudnnStatus_t pass_over(cudnnHandle_t handle, cudnnTensorDescriptor_t descriptor, int passes)
{
    const struct tensor *x = (const struct tensor *)descriptor;
    cudnn_elapse(handle, 0, (double)tensor_elements(x) * element_bytes((int)x->type) * passes, (int)x->type);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t x_descriptor, const void *x, const cudnnTensorDescriptor_t z_descriptor, const void *z,
    const cudnnTensorDescriptor_t y_descriptor, void *y, const cudnnTensorDescriptor_t scale_descriptor,
    const void *scale, const void *bias, double factor, void *running_mean, void *running_variance, double epsilon,
    void *saved_mean, void *saved_variance, cudnnActivationDescriptor_t activation, void *workspace,
    size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
    vs_used_as(VS_WORKSPACE, workspace, workspace_bytes);
    return pass_over(handle, x_descriptor, 3);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t x_descriptor, const void *x, const cudnnTensorDescriptor_t y_descriptor, void *y,
    const cudnnTensorDescriptor_t scale_descriptor, const void *scale, const void *bias, const void *mean,
    const void *variance, double epsilon)
{
    return pass_over(handle, x_descriptor, 2);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void *alpha_data,
    const void *beta_data, const void *alpha_parameter, const void *beta_parameter,
    const cudnnTensorDescriptor_t x_descriptor, const void *x, const cudnnTensorDescriptor_t y_descriptor, const void *y,
    const cudnnTensorDescriptor_t dy_descriptor, const void *dy, const cudnnTensorDescriptor_t dz_descriptor, void *dz,
    const cudnnTensorDescriptor_t dx_descriptor, void *dx, const cudnnTensorDescriptor_t scale_descriptor,
    const void *scale, const void *bias, void *dscale, void *dbias, double epsilon, const void *saved_mean,
    const void *saved_variance, cudnnActivationDescriptor_t activation, void *workspace, size_t workspace_bytes,
    void *reserve, size_t reserve_bytes)
{
    vs_used_as(VS_WORKSPACE, workspace, workspace_bytes);
    return pass_over(handle, x_descriptor, 5);
}

/* ---- dropout states -------------------------------------------------------------------------- */
/* 24 bytes for each resident thread, in blocks of 256 threads and one more: it reproduces the
 * two sizes that the library states for two handles. */
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes)
{
    size_t blocks = (size_t)vs_card()->sms * (size_t)vs_card()->threads_per_sm / 256 + 1;
    *bytes = 24 * 256 * blocks;
    vs_modelled("cuDNN dropout states", *bytes, "24 bytes for each thread that fits on the card");
    return CUDNN_STATUS_SUCCESS;
}

/* ---- CTC --------------------------------------------------------------------------------------- */
struct ctc { int longest_label; };

cudnnStatus_t cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t *descriptor)
{
    *descriptor = calloc(1, sizeof(struct ctc));
    return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t descriptor)
{
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t descriptor, cudnnDataType_t type,
                                          cudnnLossNormalizationMode_t normalization, cudnnNanPropagation_t nan)
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t descriptor, cudnnDataType_t type,
                                           cudnnLossNormalizationMode_t normalization, cudnnCTCGradMode_t gradient,
                                           int longest_label)
{
    ((struct ctc *)descriptor)->longest_label = longest_label;
    return CUDNN_STATUS_SUCCESS;
}

/* The size cannot be asked without a device and none was ever published, and torch has chosen
 * cuDNN before it asks.  So it is a guess and said to be one: the forward and the backward
 * variables of the algorithm, T x N x (2 L + 1) fp32 each (Graves et al., ICML 2006). */
static cudnnStatus_t ctc_workspace(cudnnTensorDescriptor_t probabilities, int longest_label, size_t *bytes)
{
    const struct tensor *x = (const struct tensor *)probabilities;
    *bytes = 2 * sizeof(float) * (size_t)x->size[0] * (size_t)x->size[1] * (2 * (size_t)longest_label + 1);
    vs_uncounted("cuDNN CTC loss work space", *bytes,
                 "a guess: two tables of T x N x (2 L + 1) fp32; torch.backends.cudnn.flags(enabled=False) takes "
                 "torch's own kernel, which is exact");
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t probabilities,
                                           const cudnnTensorDescriptor_t gradients, const int *labels,
                                           const int *label_lengths, const int *input_lengths, cudnnCTCLossAlgo_t algorithm,
                                           cudnnCTCLossDescriptor_t descriptor, size_t *bytes)
{
    const struct tensor *x = (const struct tensor *)probabilities;
    int longest = 0;
    for (int i = 0; i < x->size[1]; i++) longest = label_lengths[i] > longest ? label_lengths[i] : longest;
    return ctc_workspace(probabilities, longest, bytes);
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algorithm,
                                              cudnnCTCLossDescriptor_t descriptor,
                                              const cudnnTensorDescriptor_t probabilities,
                                              const cudnnTensorDescriptor_t gradients, size_t *bytes)
{
    return ctc_workspace(probabilities, ((const struct ctc *)descriptor)->longest_label, bytes);
}

cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, const cudnnTensorDescriptor_t probs_descriptor, const void *probs,
                           const int labels[], const int label_lengths[], const int input_lengths[], void *costs,
                           const cudnnTensorDescriptor_t gradients_descriptor, void *gradients,
                           cudnnCTCLossAlgo_t algorithm, cudnnCTCLossDescriptor_t descriptor, void *workspace,
                           size_t workspace_bytes)
{
    return pass_over(handle, probs_descriptor, 2);
}

cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algorithm, cudnnCTCLossDescriptor_t descriptor,
                              const cudnnTensorDescriptor_t probs_descriptor, const void *probs, const int labels[],
                              const int label_lengths[], const int input_lengths[], void *costs,
                              const cudnnTensorDescriptor_t gradients_descriptor, void *gradients, size_t workspace_bytes,
                              void *workspace)
{
    return cudnnCTCLoss(handle, probs_descriptor, probs, labels, label_lengths, input_lengths, costs, gradients_descriptor,
                        gradients, algorithm, descriptor, workspace, workspace_bytes);
}

/* ---- grid sampling and pooling: no workspace -------------------------------------------------- */
static cudnnStatus_t launch(cudnnHandle_t handle)
{
    cudnn_elapse(handle, 0, 0, CUDNN_DATA_FLOAT);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t descriptor,
                                                 const void *theta, void *grid)
{
    return launch(handle);
}

cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(cudnnHandle_t handle,
                                                  const cudnnSpatialTransformerDescriptor_t descriptor, const void *dgrid,
                                                  void *dtheta)
{
    return launch(handle);
}

cudnnStatus_t cudnnSpatialTfSamplerForward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t descriptor,
                                           const void *alpha, const cudnnTensorDescriptor_t x_descriptor, const void *x,
                                           const void *grid, const void *beta, cudnnTensorDescriptor_t y_descriptor,
                                           void *y)
{
    return pass_over(handle, x_descriptor, 2);
}

cudnnStatus_t cudnnSpatialTfSamplerBackward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t descriptor,
                                            const void *alpha, const cudnnTensorDescriptor_t x_descriptor, const void *x,
                                            const void *beta, const cudnnTensorDescriptor_t dx_descriptor, void *dx,
                                            const void *alpha_grid, const cudnnTensorDescriptor_t dy_descriptor,
                                            const void *dy, const void *grid, const void *beta_grid, void *dgrid)
{
    return pass_over(handle, x_descriptor, 4);
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t descriptor, const void *alpha,
                                  const cudnnTensorDescriptor_t x_descriptor, const void *x, const void *beta,
                                  const cudnnTensorDescriptor_t y_descriptor, void *y)
{
    return pass_over(handle, x_descriptor, 2);
}
