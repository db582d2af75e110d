/* Recurrent layers.
 *
 * The weight space is a sum that the library's answers for every case tried confirm.  The
 * reserve and the work space are asked of the installed library: cudnnGetRNNTempSpaceSizes
 * writes both before it looks at the device that is missing (it then returns an execution
 * error).  That is no documented use, so the reserve also has its formula, for the day that
 * the library stops answering, and the work space is reported as modelled. */
#include "cudnn_parts.h"
#include "cudnn_rnn.h"
#include <stdlib.h>
#include <string.h>

/* The signatures are the library's: most arguments decide no size. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- descriptors ---------------------------------------------------------------------- */
cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *descriptor)
{
    *descriptor = calloc(1, sizeof(struct rnn));
    return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t descriptor)
{
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t descriptor, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t cell,
                                       cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                                       cudnnRNNInputMode_t input_mode, cudnnDataType_t type, cudnnDataType_t precision,
                                       cudnnMathType_t math, int32_t input, int32_t hidden, int32_t projection,
                                       int32_t layers, cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    if (input < 1 || hidden < 1 || layers < 1 || projection < 1 || projection > hidden)
        return cudnn_failure(CUDNN_STATUS_BAD_PARAM, "RNN of input %d, hidden %d, projection %d, %d layers", (int)input,
                             (int)hidden, (int)projection, (int)layers);
    memset(descriptor, 0, sizeof(struct rnn));   /* the padding too: the whole is compared as bytes */
    struct rnn *rnn = (struct rnn *)descriptor;
    rnn->algorithm = algorithm; rnn->cell = cell; rnn->bias = bias; rnn->direction = direction;
    rnn->input_mode = input_mode; rnn->type = type; rnn->precision = precision; rnn->math = math;
    rnn->input = input; rnn->hidden = hidden; rnn->projection = projection; rnn->layers = layers;
    rnn->dropout = dropout ? ((const struct dropout *)dropout)->rate : 0;
    rnn->flags = flags;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *descriptor)
{
    *descriptor = calloc(1, sizeof(struct sequences));
    return *descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor)
{
    if (descriptor) free(((struct sequences *)descriptor)->lengths);
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int longest, int batch, int width,
                                        const int lengths[], void *padding)
{
    struct sequences *sequences = (struct sequences *)descriptor;
    if (batch < 1 || longest < 1) return CUDNN_STATUS_BAD_PARAM;
    int *copy = realloc(sequences->lengths, (size_t)batch * sizeof *copy);
    if (!copy) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    *sequences = (struct sequences){type, layout, longest, batch, width, 0, copy};
    for (int i = 0; i < batch; i++) {
        copy[i] = lengths ? lengths[i] : longest;
        sequences->tokens += copy[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- weights ---------------------------------------------------------------------------- */
int rnn_gates(const struct rnn *rnn)
{
    return rnn->cell == CUDNN_LSTM ? 4 : rnn->cell == CUDNN_GRU ? 3 : 1;
}

int rnn_directions(const struct rnn *rnn) { return rnn->direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }

static bool projects(const struct rnn *rnn) { return rnn->projection < rnn->hidden; }

static int64_t biases_per_gate(const struct rnn *rnn)
{
    return rnn->bias == CUDNN_RNN_NO_BIAS ? 0 : rnn->bias == CUDNN_RNN_DOUBLE_BIAS ? 2 : 1;
}

/* A pseudo-layer is one direction of one layer; all but the first layer read both directions. */
static int64_t columns_in(const struct rnn *rnn, int pseudo_layer)
{
    int directions = rnn_directions(rnn);
    if (pseudo_layer >= directions) return (int64_t)rnn->projection * directions;
    return rnn->input_mode == CUDNN_SKIP_INPUT ? 0 : rnn->input;
}

static int64_t matrix_elements(const struct rnn *rnn, int pseudo_layer)
{
    int64_t gates = (int64_t)rnn_gates(rnn) * rnn->hidden * (columns_in(rnn, pseudo_layer) + rnn->projection);
    return gates + (projects(rnn) ? (int64_t)rnn->projection * rnn->hidden : 0);
}

static int64_t bias_elements(const struct rnn *rnn) { return biases_per_gate(rnn) * rnn_gates(rnn) * rnn->hidden; }

/* Elements of the matrices of all pseudo-layers before this one. */
static int64_t matrices_before(const struct rnn *rnn, int pseudo_layer)
{
    int64_t elements = 0;
    for (int i = 0; i < pseudo_layer; i++) elements += matrix_elements(rnn, i);
    return elements;
}

int64_t rnn_weight_elements(const struct rnn *rnn)
{
    int pseudo_layers = rnn->layers * rnn_directions(rnn);
    return matrices_before(rnn, pseudo_layers) + pseudo_layers * bias_elements(rnn);
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor, size_t *bytes)
{
    const struct rnn *rnn = (const struct rnn *)descriptor;
    *bytes = (size_t)rnn_weight_elements(rnn) * (size_t)element_bytes((int)rnn->type);
    return CUDNN_STATUS_SUCCESS;
}

/* Within a pseudo-layer: a matrix for each gate from the input, one for each from the hidden
 * state, then the projection.  The biases of all pseudo-layers follow all the matrices. */
static int64_t matrix_offset(const struct rnn *rnn, int pseudo_layer, int which)
{
    int gates = rnn_gates(rnn);
    int64_t input = (int64_t)rnn->hidden * columns_in(rnn, pseudo_layer), state = (int64_t)rnn->hidden * rnn->projection;
    int64_t inside = which < gates ? which * input : gates * input + (which - gates) * state;
    return matrices_before(rnn, pseudo_layer) + inside;
}

static int64_t bias_offset(const struct rnn *rnn, int pseudo_layer, int which)
{
    int pseudo_layers = rnn->layers * rnn_directions(rnn);
    return matrices_before(rnn, pseudo_layers) + pseudo_layer * bias_elements(rnn) + (int64_t)which * rnn->hidden;
}

/* Dimensions 1, rows, columns, as the library gives them; zero rows: there is no such part. */
static void hand_out(const struct rnn *rnn, const void *space, int64_t offset, int rows, int columns,
                     cudnnTensorDescriptor_t descriptor, void **address)
{
    const int size[3] = {1, rows, columns}, stride[3] = {rows * columns, columns, 1};
    if (descriptor) cudnnSetTensorNdDescriptor(descriptor, rnn->type, rows ? 3 : 0, size, stride);
    if (address) *address = rows ? (char *)(uintptr_t)space + offset * element_bytes((int)rnn->type) : NULL;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor, int32_t pseudo_layer,
                                      size_t space_bytes, const void *space, int32_t which,
                                      cudnnTensorDescriptor_t matrix, void **matrix_address,
                                      cudnnTensorDescriptor_t bias, void **bias_address)
{
    const struct rnn *rnn = (const struct rnn *)descriptor;
    int gates = rnn_gates(rnn);
    if (which < 0 || which > 2 * gates || pseudo_layer < 0 || pseudo_layer >= rnn->layers * rnn_directions(rnn))
        return cudnn_failure(CUDNN_STATUS_BAD_PARAM, "RNN weight %d of pseudo-layer %d", (int)which, (int)pseudo_layer);
    bool is_projection = which == 2 * gates;
    int rows = is_projection ? (projects(rnn) ? rnn->projection : 0) : rnn->hidden;
    int columns = is_projection ? rnn->hidden : which < gates ? (int)columns_in(rnn, pseudo_layer) : rnn->projection;
    hand_out(rnn, space, matrix_offset(rnn, pseudo_layer, which), columns ? rows : 0, columns, matrix, matrix_address);
    bool has_bias = !is_projection && which < biases_per_gate(rnn) * gates;
    hand_out(rnn, space, bias_offset(rnn, pseudo_layer, which), has_bias ? rnn->hidden : 0, 1, bias, bias_address);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- execution ---------------------------------------------------------------------------- */
static void elapse(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor, cudnnRNNDataDescriptor_t data)
{
    const struct rnn *rnn = (const struct rnn *)descriptor;
    const struct sequences *sequences = (const struct sequences *)data;
    double weights = (double)rnn_weight_elements(rnn);
    cudnn_elapse(handle, 2 * weights * (double)sequences->tokens, weights * element_bytes((int)rnn->type), (int)rnn->type);
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
                              const int32_t lengths[], cudnnRNNDataDescriptor_t x_descriptor, const void *x,
                              cudnnRNNDataDescriptor_t y_descriptor, void *y, cudnnTensorDescriptor_t h_descriptor,
                              const void *hx, void *hy, cudnnTensorDescriptor_t c_descriptor, const void *cx, void *cy,
                              size_t weight_bytes, const void *weights, size_t work_bytes, void *work,
                              size_t reserve_bytes, void *reserve)
{
    vs_used_as(VS_WORKSPACE, work, work_bytes);
    elapse(handle, rnn, x_descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t lengths[],
                                      cudnnRNNDataDescriptor_t y_descriptor, const void *y, const void *dy,
                                      cudnnRNNDataDescriptor_t x_descriptor, void *dx,
                                      cudnnTensorDescriptor_t h_descriptor, const void *hx, const void *dhy, void *dhx,
                                      cudnnTensorDescriptor_t c_descriptor, const void *cx, const void *dcy, void *dcx,
                                      size_t weight_bytes, const void *weights, size_t work_bytes, void *work,
                                      size_t reserve_bytes, void *reserve)
{
    vs_used_as(VS_WORKSPACE, work, work_bytes);
    elapse(handle, rnn, x_descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode,
                                         const int32_t lengths[], cudnnRNNDataDescriptor_t x_descriptor, const void *x,
                                         cudnnTensorDescriptor_t h_descriptor, const void *hx,
                                         cudnnRNNDataDescriptor_t y_descriptor, const void *y, size_t weight_bytes,
                                         void *dweights, size_t work_bytes, void *work, size_t reserve_bytes,
                                         void *reserve)
{
    vs_used_as(VS_WORKSPACE, work, work_bytes);
    elapse(handle, rnn, x_descriptor);
    return CUDNN_STATUS_SUCCESS;
}
