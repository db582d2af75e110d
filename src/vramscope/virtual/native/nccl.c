/* libnccl without peers: a communicator is made at once, a collective succeeds at
 * once and moves what is known.  What NCCL itself keeps on a card (channels, proxies)
 * is outside the allocator and not known: see vs_uncounted below. */
#include <nccl.h>
#include <stdlib.h>
#include <string.h>
#include "vs.h"

struct ncclComm { int ranks, rank, device; };

static ncclResult_t make(ncclComm_t *out, int ranks, int rank, int device)
{
    struct ncclComm *made = calloc(1, sizeof *made);
    if (!made) return ncclSystemError;
    *made = (struct ncclComm){ranks, rank, device};
    *out = made;
    if (ranks > 1) vs_uncounted("NCCL communicators", VS_UNKNOWN, "what NCCL keeps on a card is not simulated; 350 to 750 MiB were reported for 2 to 8 ranks");
    return ncclSuccess;
}

ncclResult_t ncclGetVersion(int *version) { *version = NCCL_VERSION_CODE; return ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) { memset(id, 7, sizeof *id); return ncclSuccess; }
const char *ncclGetErrorString(ncclResult_t result) { return result == ncclSuccess ? "no error" : "not simulated on the virtual card"; }
const char *ncclGetLastError(ncclComm_t comm) { VS_UNUSED(comm); return ""; }

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) { VS_UNUSED(id); return make(comm, ranks, rank, vs_device()); }
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    VS_UNUSED(config);
    return ncclCommInitRank(comm, ranks, id, rank);
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int ids, ncclUniqueId *id, ncclConfig_t *config)
{
    VS_UNUSED(ids); VS_UNUSED(id); VS_UNUSED(config);
    return make(comm, ranks, rank, vs_device());
}
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    for (int i = 0; i < count; i++) {
        ncclResult_t result = make(&comms[i], count, i, devices ? devices[i] : i);
        if (result != ncclSuccess) return result;
    }
    return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    VS_UNUSED(key); VS_UNUSED(config);
    *out = NULL;
    /* How many ranks share the colour only the peers know; all of them is the most. */
    return color == NCCL_SPLIT_NOCOLOR ? ncclSuccess : make(out, comm->ranks, comm->rank, comm->device);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { free(comm); return ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t comm) { free(comm); return ncclSuccess; }
ncclResult_t ncclCommFinalize(ncclComm_t comm) { VS_UNUSED(comm); return ncclSuccess; }
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) { *count = comm->ranks; return ncclSuccess; }
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) { *rank = comm->rank; return ncclSuccess; }
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) { *device = comm->device; return ncclSuccess; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) { VS_UNUSED(comm); *error = ncclSuccess; return ncclSuccess; }
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle)
{
    VS_UNUSED(comm); VS_UNUSED(bytes);
    *handle = buffer;
    return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle) { VS_UNUSED(comm); VS_UNUSED(handle); return ncclSuccess; }
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window, int flags)
{
    VS_UNUSED(comm); VS_UNUSED(bytes); VS_UNUSED(flags);
    *window = (ncclWindow_t)buffer;
    return ncclSuccess;
}
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type, ncclScalarResidence_t where, ncclComm_t comm)
{
    VS_UNUSED(scalar); VS_UNUSED(type); VS_UNUSED(where); VS_UNUSED(comm);
    *op = ncclNumOps;                         /* the first number that names no built-in operation */
    return ncclSuccess;
}
ncclResult_t ncclMemAlloc(void **address, size_t bytes)
{
    *address = vs_take(vs_device(), bytes);
    return *address ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void *address) { return !address || vs_give(address) ? ncclSuccess : ncclInvalidArgument; }
ncclResult_t ncclGroupStart(void) { return ncclSuccess; }
ncclResult_t ncclGroupEnd(void) { return ncclSuccess; }

/* ---- collectives ---------------------------------------------------------------------------- */
static size_t width(ncclDataType_t type)
{
    switch (type) {
    case ncclFloat16: case ncclBfloat16: return 2;
    case ncclInt32: case ncclUint32: case ncclFloat32: return 4;
    case ncclInt64: case ncclUint64: case ncclFloat64: return 8;
    default: return 1;                        /* int8, uint8, the 8-bit floats */
    }
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    vs_used_as(VS_COMMUNICATION, send, count * width(type));
    vs_used_as(VS_COMMUNICATION, receive, count * width(type));
    VS_UNUSED(op); VS_UNUSED(comm); VS_UNUSED(stream);
    vs_copied_across(receive, send, count * width(type));
    return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    VS_UNUSED(root);
    return ncclAllReduce(send, receive, count, type, ncclSum, comm, stream);
}
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    VS_UNUSED(root);
    return receive ? ncclAllReduce(send, receive, count, type, op, comm, stream) : ncclSuccess;
}
ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    vs_used_as(VS_COMMUNICATION, send, count * width(type));
    vs_used_as(VS_COMMUNICATION, receive, count * width(type) * (size_t)comm->ranks);
    size_t bytes = count * width(type);
    VS_UNUSED(stream);
    for (int i = 0; i < comm->ranks; i++) vs_copied_across((char *)receive + (size_t)i * bytes, send, bytes);
    return ncclSuccess;
}
ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    vs_used_as(VS_COMMUNICATION, send, count * width(type) * (size_t)comm->ranks);
    vs_used_as(VS_COMMUNICATION, receive, count * width(type));
    VS_UNUSED(op); VS_UNUSED(comm); VS_UNUSED(stream);
    vs_overwritten(receive, count * width(type));
    return ncclSuccess;
}
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    vs_used_as(VS_COMMUNICATION, send, count * width(type));
    VS_UNUSED(send); VS_UNUSED(count); VS_UNUSED(type); VS_UNUSED(peer); VS_UNUSED(comm); VS_UNUSED(stream);
    return ncclSuccess;
}
ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    vs_used_as(VS_COMMUNICATION, receive, count * width(type));
    VS_UNUSED(peer); VS_UNUSED(comm); VS_UNUSED(stream);
    vs_overwritten(receive, count * width(type));
    return ncclSuccess;
}
ncclResult_t ncclAlltoAll(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    vs_used_as(VS_COMMUNICATION, send, count * width(type) * (size_t)comm->ranks);
    vs_used_as(VS_COMMUNICATION, receive, count * width(type) * (size_t)comm->ranks);
    VS_UNUSED(send); VS_UNUSED(stream);
    vs_overwritten(receive, count * width(type) * (size_t)comm->ranks);
    return ncclSuccess;
}
ncclResult_t ncclGather(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return comm->rank == root ? ncclAllGather(send, receive, count, type, comm, stream) : ncclSuccess;
}
ncclResult_t ncclScatter(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    VS_UNUSED(send); VS_UNUSED(root);
    return ncclRecv(receive, count, type, 0, comm, stream);
}
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id) { VS_UNUSED(comm); return ncclGetUniqueId(id); }
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *out, ncclConfig_t *config, int flags)
{
    VS_UNUSED(excluded); VS_UNUSED(config); VS_UNUSED(flags);
    return make(out, comm->ranks - count, comm->rank, comm->device);
}
