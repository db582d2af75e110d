"""What an allocator does, as torch's history spells it: ``TraceEntry::Action``, c10/core/CachingDeviceAllocator.h."""

ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
    "annotate",
    "other",
)
"""An event's `action` is an index into this; what torch may add one day is "other"."""

(
    ALLOC,
    FREE_REQUESTED,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    SNAPSHOT,
    OOM,
    ANNOTATE,
    OTHER,
) = range(len(ACTIONS))
