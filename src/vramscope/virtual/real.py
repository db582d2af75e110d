"""The real card of this machine, if it has one."""

from __future__ import annotations

import ctypes


def real_card_name() -> str | None:
    """The name of the machine's first GPU as its driver gives it, or None without one.

    Asked through NVML (nvmlDeviceGetName), which starts no CUDA context.
    """
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2():
        return None
    try:
        handle, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)  # NVML_DEVICE_NAME_V2_BUFFER_SIZE
        if nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) or nvml.nvmlDeviceGetName(
            handle, name, len(name)
        ):
            return None
        return name.value.decode(errors="replace")
    finally:
        nvml.nvmlShutdown()
