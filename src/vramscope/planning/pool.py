"""This process's warm servers: one for each set of modules and environment that its cells need."""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping

from vramscope.planning.cell import Cell
from vramscope.virtual.warm import WarmServer

_MOST = 3
"""So many processes are kept; each holds the libraries' memory, some 300 to 700 MB."""
_LEFT_OUT = (
    *(
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "CUDA_VISIBLE_DEVICES",
    ),
    *("CUDA_MODULE_LOADING", "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "NVIDIA_TF32_OVERRIDE"),
    *("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCH_BLAS_PREFER_CUBLASLT", "DISABLE_ADDMM_CUDA_LT"),
    *("TORCH_CUDNN_USE_HEURISTIC_MODE_B", "TORCH_CUDNN_V8_API_DISABLED", "TORCH_COMPILE_DISABLE"),
    "CUDA_LAUNCH_BLOCKING",
)
"""What changes a program's memory and so must stand in its cell, whichever process runs it."""

_Key = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
_lock = threading.Lock()
_servers: OrderedDict[_Key, WarmServer] = OrderedDict()


def server_for(cell: Cell) -> WarmServer:
    """The server that has what the cell needs; its process is started by the first program."""
    key = (cell.modules, tuple(sorted(cell.environment.items())))
    with _lock:
        server = _servers.get(key)
        if server is None:
            server = _servers[key] = WarmServer(cell.modules, environment_for(cell, os.environ))
        _servers.move_to_end(key)
        _let_rest(server)
        return server


def environment_for(cell: Cell, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of the cell's program in a process that has the given one.

    What matters is the cell's alone, so that it comes to the same result here and on another machine."""
    return {**{name: value for name, value in given.items() if name not in _LEFT_OUT}, **cell.environment}


def close_all() -> None:
    """Ends all of them, and the programs that run in them."""
    with _lock:
        servers = [*_servers.values()]
        _servers.clear()
    for server in servers:
        server.close()


def _let_rest(wanted: WarmServer) -> None:
    """Ends the longest unused processes until there is room for one more; those that run a program stay."""
    awake = [server for server in _servers.values() if server.awake and server is not wanted]
    for server in awake[: max(len(awake) + 1 - _MOST, 0)]:
        server.rest()


atexit.register(close_all)
