"""This process's warm servers: one for each set of modules and environment that its cells need."""

from __future__ import annotations

import atexit
import threading
from collections import OrderedDict

from vramscope.plan.cell import Cell
from vramscope.virtual.warm import WarmServer

_MOST = 3
"""So many are kept; each holds the libraries' memory, some 300 to 700 MB."""

_Key = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
_lock = threading.Lock()
_servers: OrderedDict[_Key, WarmServer] = OrderedDict()


def server_for(cell: Cell) -> WarmServer:
    """The server that has what the cell needs; made at its first use."""
    key = (cell.modules, tuple(sorted(cell.environment.items())))
    with _lock:
        server = _servers.get(key)
        if server is None:
            server = _servers[key] = WarmServer(cell.modules, cell.environment)
        _servers.move_to_end(key)
        if len(_servers) > _MOST:
            _close_one_idle()
        return server


def close_all() -> None:
    """Ends all of them."""
    with _lock:
        while _servers:
            _servers.popitem()[1].close()


def _close_one_idle() -> None:
    """Ends the longest unused one that runs nothing."""
    for key, server in _servers.items():
        if not server.busy:
            del _servers[key]
            server.close()
            return


atexit.register(close_all)
