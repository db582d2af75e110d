/* Recurrent layers, as cudnn_rnn.c and cudnn_rnn_space.c see them. */
#ifndef VRAMSCOPE_CUDNN_RNN_H
#define VRAMSCOPE_CUDNN_RNN_H
#include "cudnn_parts.h"
#pragma GCC visibility push(hidden)

struct rnn {
    cudnnRNNAlgo_t algorithm;
    cudnnRNNMode_t cell;
    cudnnRNNBiasMode_t bias;
    cudnnDirectionMode_t direction;
    cudnnRNNInputMode_t input_mode;
    cudnnDataType_t type, precision;
    cudnnMathType_t math;
    int32_t input, hidden, projection, layers;   /* projection = hidden: none */
    float dropout;
    uint32_t flags;
};
struct sequences {
    cudnnDataType_t type;
    cudnnRNNDataLayout_t layout;
    int longest, batch, width;
    int64_t tokens;                    /* sum of the lengths */
    int *lengths;                      /* one for each of the batch */
};
int rnn_gates(const struct rnn *rnn);
int rnn_directions(const struct rnn *rnn);
int64_t rnn_weight_elements(const struct rnn *rnn);

#pragma GCC visibility pop
#endif
