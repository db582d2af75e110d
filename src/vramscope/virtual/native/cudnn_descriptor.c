/* Descriptors of the older calls.  Those whose contents decide a size are kept; of the
 * others only the address matters. */
#include "cudnn_parts.h"
#include <stdlib.h>
#include <string.h>

static cudnnStatus_t make(size_t bytes, void *descriptor)
{
    void *made = calloc(1, bytes);
    memcpy(descriptor, &made, sizeof made);
    return made ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

static cudnnStatus_t drop(void *descriptor)
{
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

/* The signatures are the library's: most arguments decide no size. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- tensors and filters ------------------------------------------------------------ */
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *d) { return make(sizeof(struct tensor), d); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) { return drop(d); }
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *d) { return make(sizeof(struct tensor), d); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) { return drop(d); }

static cudnnStatus_t set_tensor(struct tensor *tensor, cudnnDataType_t type, int dims, const int *size, const int *stride)
{
    if (dims < 0 || dims > TENSOR_DIMS) return CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND;
    tensor->type = type;
    tensor->dims = dims;
    memcpy(tensor->size, size, (size_t)dims * sizeof *size);
    if (stride) memcpy(tensor->stride, stride, (size_t)dims * sizeof *stride);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_tensor(const struct tensor *tensor, int room, cudnnDataType_t *type, int *dims, int *size,
                                int *stride)
{
    int given = tensor->dims < room ? tensor->dims : room;
    *type = tensor->type;
    *dims = tensor->dims;
    memcpy(size, tensor->size, (size_t)given * sizeof *size);
    if (stride) memcpy(stride, tensor->stride, (size_t)given * sizeof *stride);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int dims, const int size[],
                                         const int stride[])
{
    return set_tensor((struct tensor *)tensor, type, dims, size, stride);
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor, int room, cudnnDataType_t *type, int *dims,
                                         int size[], int stride[])
{
    return get_tensor((const struct tensor *)tensor, room, type, dims, size, stride);
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int dims, const int size[])
{
    ((struct tensor *)filter)->format = format;
    return set_tensor((struct tensor *)filter, type, dims, size, NULL);
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter, int room, cudnnDataType_t *type,
                                         cudnnTensorFormat_t *format, int *dims, int size[])
{
    *format = ((const struct tensor *)filter)->format;
    return get_tensor((const struct tensor *)filter, room, type, dims, size, NULL);
}

int64_t tensor_elements(const struct tensor *tensor)
{
    int64_t elements = 1;
    for (int i = 0; i < tensor->dims; i++) elements *= tensor->size[i];
    return elements;
}

int element_bytes(int data_type)
{
    switch (data_type) {
    case CUDNN_DATA_DOUBLE: case CUDNN_DATA_INT64: return 8;
    case CUDNN_DATA_FLOAT: case CUDNN_DATA_INT32: return 4;
    case CUDNN_DATA_HALF: case CUDNN_DATA_BFLOAT16: return 2;
    case CUDNN_DATA_INT8: case CUDNN_DATA_UINT8: case CUDNN_DATA_BOOLEAN:
    case CUDNN_DATA_FP8_E4M3: case CUDNN_DATA_FP8_E5M2: return 1;
    default: return 0;
    }
}

/* ---- dropout --------------------------------------------------------------------------- */
cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t *d) { return make(sizeof(struct dropout), d); }
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t d) { return drop(d); }

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t d, cudnnHandle_t handle, float rate, void *states,
                                        size_t bytes, unsigned long long seed)
{
    ((struct dropout *)d)->rate = rate;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t d, cudnnHandle_t handle, float rate, void *states,
                                            size_t bytes, unsigned long long seed)
{
    return cudnnSetDropoutDescriptor(d, handle, rate, states, bytes, seed);
}

/* ---- descriptors whose contents decide no size ------------------------------------------- */
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *d) { return make(1, d); }
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t d) { return drop(d); }
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t d, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coefficient)
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *d) { return make(1, d); }
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t d) { return drop(d); }
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t d, cudnnPoolingMode_t mode, cudnnNanPropagation_t nan,
                                          int height, int width, int top, int left, int down, int right)
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateSpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t *d) { return make(1, d); }
cudnnStatus_t cudnnDestroySpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t d) { return drop(d); }
cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t d, cudnnSamplerType_t sampler,
                                                     cudnnDataType_t type, const int dims, const int size[])
{
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *d) { return make(1, d); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) { return drop(d); }
