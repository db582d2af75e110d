/* libcupti: a profiler on the virtual card starts and stops, and sees no kernel. */
#include <cupti.h>
#include "vs.h"

CUptiResult cuptiGetVersion(uint32_t *version) { *version = CUPTI_API_VERSION; return CUPTI_SUCCESS; }
CUptiResult cuptiGetTimestamp(uint64_t *timestamp) { *timestamp = 0; return CUPTI_SUCCESS; }
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record)
{
    VS_UNUSED(buffer); VS_UNUSED(valid_bytes);
    *record = NULL;
    return CUPTI_ERROR_MAX_LIMIT_REACHED;     /* "no more records" */
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    VS_UNUSED(context); VS_UNUSED(stream);
    *dropped = 0;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result ? "not simulated on the virtual card" : "no error";
    return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data)
{
    VS_UNUSED(callback); VS_UNUSED(data);
    *subscriber = (CUpti_SubscriberHandle)&vs_device;   /* any address: it only comes back to cuptiUnsubscribe */
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
    VS_UNUSED(kind);
    if (last) *last = 0;
    return CUPTI_SUCCESS;
}
