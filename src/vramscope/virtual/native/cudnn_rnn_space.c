/* Work space and reserve of recurrent layers: asked of the installed library once for each
 * network and set of lengths, see cudnn_rnn.c. */
#include "cudnn_rnn.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NOT_WRITTEN ((size_t)-1)
struct spaces { size_t work, reserve; };

/* The signatures are the library's: most arguments decide no size. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- the library's own functions -------------------------------------------------------- */
static struct {
    cudnnStatus_t (*create_rnn)(cudnnRNNDescriptor_t *), (*destroy_rnn)(cudnnRNNDescriptor_t);
    cudnnStatus_t (*create_data)(cudnnRNNDataDescriptor_t *), (*destroy_data)(cudnnRNNDataDescriptor_t);
    cudnnStatus_t (*create_dropout)(cudnnDropoutDescriptor_t *), (*destroy_dropout)(cudnnDropoutDescriptor_t);
    cudnnStatus_t (*set_dropout)(cudnnDropoutDescriptor_t, cudnnHandle_t, float, void *, size_t, unsigned long long);
    cudnnStatus_t (*set_rnn)(cudnnRNNDescriptor_t, cudnnRNNAlgo_t, cudnnRNNMode_t, cudnnRNNBiasMode_t,
                             cudnnDirectionMode_t, cudnnRNNInputMode_t, cudnnDataType_t, cudnnDataType_t,
                             cudnnMathType_t, int32_t, int32_t, int32_t, int32_t, cudnnDropoutDescriptor_t, uint32_t);
    cudnnStatus_t (*set_data)(cudnnRNNDataDescriptor_t, cudnnDataType_t, cudnnRNNDataLayout_t, int, int, int, const int *,
                              void *);
    cudnnStatus_t (*sizes)(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t, cudnnRNNDataDescriptor_t, size_t *,
                           size_t *);
} library;
static bool available;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_functions(void)
{
    const struct { const char *name; void *where; } wanted[] = {
        {"cudnnCreateRNNDescriptor", &library.create_rnn}, {"cudnnDestroyRNNDescriptor", &library.destroy_rnn},
        {"cudnnCreateRNNDataDescriptor", &library.create_data}, {"cudnnDestroyRNNDataDescriptor", &library.destroy_data},
        {"cudnnCreateDropoutDescriptor", &library.create_dropout},
        {"cudnnDestroyDropoutDescriptor", &library.destroy_dropout},
        {"cudnnSetDropoutDescriptor", &library.set_dropout}, {"cudnnSetRNNDescriptor_v8", &library.set_rnn},
        {"cudnnSetRNNDataDescriptor", &library.set_data}, {"cudnnGetRNNTempSpaceSizes", &library.sizes},
    };
    available = true;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *found = real_cudnn_symbol(wanted[i].name);
        memcpy(wanted[i].where, &found, sizeof found);
        available = available && found;
    }
}

/* A handle cannot be had without a device.  The sizes do not depend on what is in it, but it
 * must not be NULL and is read. */
static cudnnHandle_t dummy_handle(void)
{
    static char zeros[1 << 16];
    return (cudnnHandle_t)(void *)zeros;
}

/* What the library refuses without a device, as what has the same sizes: bfloat16 as float16,
 * and the persistent algorithms as the standard one. */
static cudnnDataType_t askable(cudnnDataType_t type) { return type == CUDNN_DATA_BFLOAT16 ? CUDNN_DATA_HALF : type; }

static bool set_up(const struct rnn *rnn, const struct sequences *data, cudnnDropoutDescriptor_t dropout,
                   cudnnRNNDescriptor_t network, cudnnRNNDataDescriptor_t input)
{
    float padding = 0;
    static char states[1 << 10];       /* only its address is kept */
    return !library.set_dropout(dropout, dummy_handle(), rnn->dropout, rnn->dropout > 0 ? states : NULL, 0, 0)
        && !library.set_rnn(network, CUDNN_RNN_ALGO_STANDARD, rnn->cell, rnn->bias, rnn->direction, rnn->input_mode,
                            askable(rnn->type), askable(rnn->precision), rnn->math, rnn->input, rnn->hidden,
                            rnn->projection, rnn->layers, dropout, rnn->flags)
        && !library.set_data(input, askable(data->type), data->layout, data->longest, data->batch, data->width,
                             data->lengths, &padding);
}

static struct spaces ask_library(const struct rnn *rnn, const struct sequences *data, cudnnForwardMode_t mode)
{
    struct spaces spaces = {NOT_WRITTEN, NOT_WRITTEN};
    cudnnDropoutDescriptor_t dropout = NULL;
    cudnnRNNDescriptor_t network = NULL;
    cudnnRNNDataDescriptor_t input = NULL;
    pthread_once(&once, find_functions);
    if (!available) return spaces;
    if (!library.create_dropout(&dropout) && !library.create_rnn(&network) && !library.create_data(&input)
        && set_up(rnn, data, dropout, network, input))
        library.sizes(dummy_handle(), network, mode, input, &spaces.work, &spaces.reserve);   /* see cudnn_rnn.c */
    if (input) library.destroy_data(input);
    if (network) library.destroy_rnn(network);
    if (dropout) library.destroy_dropout(dropout);
    return spaces;
}

/* ---- where it does not answer ------------------------------------------------------------- */
/* k elements for each token, hidden unit and direction are kept for backward: 6L - 1 for LSTM,
 * 7L - 1 for GRU, 2L - 1 for a plain RNN of L layers, and a bit for each dropped input. */
static size_t reserve_formula(const struct rnn *rnn, const struct sequences *data)
{
    int per_layer = rnn->cell == CUDNN_LSTM ? 6 : rnn->cell == CUDNN_GRU ? 7 : 2, directions = rnn_directions(rnn);
    size_t units = (size_t)data->tokens * (size_t)rnn->hidden * (size_t)directions;
    size_t kept = units * (size_t)(per_layer * rnn->layers - 1) * (size_t)element_bytes((int)rnn->type);
    size_t mask = rnn->dropout > 0 ? units * (size_t)directions * (size_t)(rnn->layers - 1) / 8 : 0;
    return kept + mask + 256;
}

/* LSTM, one layer, padded: the weights once more and about 75 + 6 T states of batch x hidden. */
static size_t work_estimate(const struct rnn *rnn, const struct sequences *data)
{
    size_t weights = (size_t)rnn_weight_elements(rnn), state = (size_t)data->batch * (size_t)rnn->hidden;
    return (weights + (75 + 6 * (size_t)data->longest) * state) * (size_t)element_bytes((int)rnn->type);
}

static struct spaces find_spaces(const struct rnn *rnn, const struct sequences *data, cudnnForwardMode_t mode)
{
    struct spaces spaces = ask_library(rnn, data, mode);
    bool answered = spaces.work != NOT_WRITTEN;
    if (mode == CUDNN_FWD_MODE_INFERENCE) spaces.reserve = 0;
    if (spaces.reserve == NOT_WRITTEN) spaces.reserve = reserve_formula(rnn, data);
    if (!answered) spaces.work = work_estimate(rnn, data);
    vs_modelled("cuDNN RNN work space", spaces.work,
                answered ? "as the installed cuDNN states it without a device; a card may take up to 30 % more"
                         : "estimated: the installed cuDNN did not say");
    return spaces;
}

/* ---- memo ------------------------------------------------------------------------------------ */
#define MEMO 256
struct memo { uint64_t key; struct spaces spaces; };
static struct memo memo[MEMO];
static pthread_mutex_t memo_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)   /* FNV-1a */
{
    for (const unsigned char *byte = data; bytes--; byte++) hash = (hash ^ *byte) * 1099511628211u;
    return hash;
}

static uint64_t key_of(const struct rnn *rnn, const struct sequences *data, cudnnForwardMode_t mode)
{
    const int shape[] = {(int)mode, (int)data->type, (int)data->layout, data->longest, data->batch, data->width};
    uint64_t hash = mix(mix(14695981039346656037u, rnn, sizeof *rnn), shape, sizeof shape);
    return mix(hash, data->lengths, (size_t)data->batch * sizeof *data->lengths) | 1;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t data, size_t *work, size_t *reserve)
{
    const struct rnn *rnn = (const struct rnn *)descriptor;
    const struct sequences *sequences = (const struct sequences *)data;
    uint64_t key = key_of(rnn, sequences, mode);
    struct memo *slot = &memo[key % MEMO];
    pthread_mutex_lock(&memo_lock);
    if (slot->key != key) *slot = (struct memo){key, find_spaces(rnn, sequences, mode)};
    struct spaces spaces = slot->spaces;
    pthread_mutex_unlock(&memo_lock);
    if (work) *work = spaces.work;
    if (reserve) *reserve = spaces.reserve;
    return CUDNN_STATUS_SUCCESS;
}
