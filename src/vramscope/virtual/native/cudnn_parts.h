/* What the parts of the cuDNN stand-in share; nothing here is seen outside the library. */
#ifndef VRAMSCOPE_CUDNN_PARTS_H
#define VRAMSCOPE_CUDNN_PARTS_H
#include "vs.h"
#include <cudnn.h>
#include <stdatomic.h>
#pragma GCC visibility push(hidden)

/* ---- the installed library (cudnn_real.c) -------------------------------------- */
struct real_cudnn {
    cudnnStatus_t (*create)(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t *);
    cudnnStatus_t (*destroy)(cudnnBackendDescriptor_t);
    cudnnStatus_t (*finalize)(cudnnBackendDescriptor_t);
    cudnnStatus_t (*set)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                         const void *);
    cudnnStatus_t (*get)(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                         int64_t *, void *);
    void (*last_error)(char *, size_t);
    cudnnBackendDescriptor_t device;   /* the described card; NULL: it was refused */
};
/* NULL: it cannot be had; why is in cudnn_failure(). */
const struct real_cudnn *real_cudnn(void);
/* Any other function of the installed library, for calls that need no device; NULL: none. */
void *real_cudnn_symbol(const char *name);
bool real_cudnn_is_closing(void);      /* the process ends: it must not be called any more */

/* ---- errors (cudnn.c) -----------------------------------------------------------
 * Keeps the text for cudnnGetLastErrorString of this thread and returns the status. */
cudnnStatus_t cudnn_failure(cudnnStatus_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));
cudaStream_t cudnn_stream(cudnnHandle_t handle);

/* ---- how long work takes (cudnn_time.c) ----------------------------------------- */
struct work {
    double flops, bytes;               /* of the operations; bytes of the tensors they read and write */
    int64_t outputs, filter;           /* of a convolution, else 0: elements of its output side, of one output's filter */
    int type;                          /* cudnnDataType_t of its tensors */
    uint64_t graph;                    /* a number for each operation graph; 0: not part of one yet */
};
#define UNLISTED 30                    /* the rank of what no heuristic has ordered: behind nearly all that one has */
struct plan_notes {
    int64_t workspace_bytes;
    int rank;                          /* place in the list of cuDNN's heuristics, best first */
    unsigned numerical;                /* bit n: cudnnBackendNumericalNote_t n */
};
double plan_seconds(const struct work *work, const struct plan_notes *notes);
double roofline_seconds(double flops, double bytes, int type, bool tensor_core);
void cudnn_elapse(cudnnHandle_t handle, double flops, double bytes, int type);

/* ---- tensors of the older calls (cudnn_descriptor.c) ---------------------------- */
#define TENSOR_DIMS 8                  /* CUDNN_DIM_MAX */
struct tensor { cudnnDataType_t type; cudnnTensorFormat_t format; int dims, size[TENSOR_DIMS], stride[TENSOR_DIMS]; };
struct dropout { float rate; };
int64_t tensor_elements(const struct tensor *tensor);
int element_bytes(int data_type);      /* cudnnDataType_t; 0: unknown */

#pragma GCC visibility pop
#endif
