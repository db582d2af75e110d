"""Numbers that JSON has not."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """Infinity and NaN as null: settings may hold them, and a training that diverges has them for a loss.

    Columns of whole numbers or texts, which may have millions, are left as they are."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)) and not (value and isinstance(value[0], (int, str))):
        return [finite(each) for each in value]
    return value
