"""A zip file that may be anything: parts are read by name, and never more of them than was promised."""

from __future__ import annotations

import struct
import zipfile
import zlib

from vramscope.errors import RunError

DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError, OverflowError)
"""What zipfile and json raise on damaged content: NotImplementedError for an unknown compression,
RuntimeError for a part marked as encrypted (and its subclass RecursionError for absurd nesting)."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ALWAYS_BYTES = 16 << 20
_RATIO = 200
"""A file may unpack to _ALWAYS_BYTES and _RATIO times its own size: runs shrink to about a fifth, mere
zeros to a thousandth."""


class Archive:
    """The parts of an open zip file."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        allowed = _ALWAYS_BYTES + _RATIO * _length(file)
        total = sum(part.file_size for part in file.infolist())
        if total > allowed:
            raise RunError(f"it would unpack to {total} bytes: it was not written by vramscope")

    def __contains__(self, name: str) -> bool:
        return name in self._file.NameToInfo

    def read(self, name: str) -> bytes:
        """The bytes of a part; RunError if there is none of that name."""
        try:
            part = self._file.getinfo(name)
        except KeyError:
            raise RunError(f"it holds no {name}: it was not written by vramscope") from None
        if part.compress_type not in _METHODS:
            raise RunError(f"its {name} is packed in another way than vramscope does it")
        with self._file.open(part) as opened:
            return opened.read(part.file_size + 1)  # one more: at its end its sum is compared


def _length(file: zipfile.ZipFile) -> int:
    """The size of the whole file on disk, whatever its directory says."""
    assert file.fp is not None
    file.fp.seek(0, 2)
    return file.fp.tell()
