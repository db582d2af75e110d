"""What a program said before it ended, in a line for a table's cell."""

from __future__ import annotations

import re
import signal

_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Interrupt|Exit|Warning))\b:? ?(.*)$", re.MULTILINE)
_LONGEST = 300
NOTHING = "its process ended without a word"


def last_error(output: str) -> str:
    """The last error that a program printed; otherwise its last line; "" if it said nothing."""
    errors = _ERROR.findall(output)
    if errors:
        kind, text = errors[-1]
        return _shorter(f"{kind}: {text}".rstrip(": "))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return _shorter(lines[-1]) if lines else ""


def signal_name(number: int) -> str:
    """``SIGKILL``, or ``signal 35`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _shorter(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
