"""What a block of memory is for: the field's categories, one word each."""

from __future__ import annotations

PARAMETER = "parameter"
BUFFER = "buffer"
GRADIENT = "gradient"
OPTIMIZER_STATE = "optimizer_state"
ACTIVATION = "activation"
INPUT = "input"
TEMPORARY = "temporary"
WORKSPACE = "workspace"
AUTOCAST_CACHE = "autocast_cache"
COMMUNICATION = "communication"
KV_CACHE = "kv_cache"
UNKNOWN = "unknown"

CATEGORIES = (
    PARAMETER,
    BUFFER,
    GRADIENT,
    OPTIMIZER_STATE,
    ACTIVATION,
    INPUT,
    TEMPORARY,
    WORKSPACE,
    AUTOCAST_CACHE,
    COMMUNICATION,
    KV_CACHE,
    UNKNOWN,
)
"""In the order that views show them; a block's `category` column is an index into this."""

INDEX = {name: index for index, name in enumerate(CATEGORIES)}
"""From a category's name to its number in a column."""

_PLURALS = {
    PARAMETER: "parameters",
    BUFFER: "buffers",
    GRADIENT: "gradients",
    OPTIMIZER_STATE: "optimizer states",
    ACTIVATION: "activations",
    INPUT: "inputs",
    TEMPORARY: "temporaries",
    WORKSPACE: "workspaces",
    AUTOCAST_CACHE: "autocast cache",
    KV_CACHE: "KV cache",
}


def plural(category: str) -> str:
    """A category's blocks in a sentence or a table."""
    return _PLURALS.get(category, category)
