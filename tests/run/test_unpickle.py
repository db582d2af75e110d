"""Plain data comes back as it was; anything else is refused before a single instruction of it runs."""

from __future__ import annotations

import copyreg
import pickle
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from vramscope.errors import RunError
from vramscope.run import unpickle
from vramscope.run.unpickle import read_pickle, unpickled

DATA = {
    "texts": ["", "a" * 300, "é" * 70_000],
    "numbers": [
        0,
        255,
        256,
        65_535,
        65_536,
        -1,
        2**31,
        -(2**31),
        2**40,
        2**63 - 1,
        2**63,
        2**64 - 1,
        1.5,
        -0.0,
    ],
    "none": None,
    "truth": [True, False],
    "pools": [(), (0,), (0, 2**40), (1, 2, 3), (1, 2, 3, 4)],
    "nested": [{"a": [{}, []]}] * 3,
    "many": list(range(70_000)),
    1: {2: "two"},
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data(protocol: int):
    assert unpickled(pickle.dumps(DATA, protocol)) == DATA


def test_one_object_stays_one():
    shared = [1]

    found = unpickled(pickle.dumps([shared, shared], 4))

    assert found[0] is found[1]


class Runs:
    """What a hostile pickle wants: a call when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


class Plain:
    """An object with attributes alone."""


@pytest.mark.parametrize("protocol", range(6))
def test_a_call_is_refused_and_not_made(tmp_path: Path, protocol: int):
    target = tmp_path / "ran"
    data = pickle.dumps({"segments": [Runs(target)]}, protocol)

    with pytest.raises(RunError, match="is no snapshot of torch, or is damaged"):
        unpickled(data)
    assert not target.exists()
    pickle.loads(data)  # what would have happened
    assert target.exists()


@pytest.mark.parametrize(
    "value",
    [print, Plain, Plain(), {1}, frozenset([1]), b"bytes", bytearray(b"b"), 2**64, 1 + 2j, ((1,),), ([],)],
)
def test_what_is_no_plain_data_is_refused(value: object):
    with pytest.raises(RunError):
        unpickled(pickle.dumps([value], 4))


HEAD = b"\x80\x04"
NAMED = {
    "a name from a module": b"cos\nsystem\n.",
    "a name from the stack": b"\x8c\x02os\x8c\x06system\x93.",
    "an object by its class": b"(ios\nsystem\n.",
    "a persistent one": b"Pabc\n.",
    "a persistent one from the stack": b"N\x51.",
    "an extension": b"\x82\x01.",
    "attributes": b"}}b.",
    "a call": b"N)R.",
    "a new object": b"N)\x81.",
    "a buffer": b"\x97.",
    "a large memo": b"Nr\xff\xff\xff\x7f.",
    "a text beyond the end": b"X\xff\xff\xff\x7fabc.",
    "a long text beyond the end": b"\x8d" + struct.pack("<Q", 1 << 62) + b"abc.",
    "a frame beyond the end": b"\x95" + struct.pack("<Q", 1 << 62) + b"N.",
    "a large integer": b"\x8a\x20" + b"\xff" * 32 + b".",
    "a larger integer": b"\x8b\xff\xff\xff\x7f\xff.",
    "nine bytes that are more than 64 bits": b"\x8a\x09" + b"\xff" * 9 + b".",
    "a number as text": b"I" + b"9" * 50 + b"\n.",
    "a tuple of what is on the stack": b"N\x85.",
    "a tuple of tuples": b"K\x01\x85\x94h\x00h\x00\x86.",
    "a tuple from a mark": b"(Nt.",
    "an object twice": b"N2.",
    "no end": b"N",
    "nothing on the stack": b".",
    "an object that is not in the memo": b"h\x07.",
    "a list as a key": b"}]Ns.",
    "a text that is no UTF-8": b"\x8c\x02\xff\xfe.",
    "a mark that is missing": b"]Ne.",
    "entries of no dict": b"]NNs.",
}


@pytest.mark.parametrize("what", NAMED)
def test_hostile(what: str):
    with pytest.raises(RunError, match="is no snapshot of torch, or is damaged"):
        unpickled(HEAD + NAMED[what])


def test_the_list_of_instructions_is_not_all_that_guards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Should it have a hole, the machine still knows no names."""
    monkeypatch.setattr(unpickle, "_fault", lambda data: None)
    copyreg.add_extension("os", "system", 0x70)
    try:
        for code in ("a name from a module", "a name from the stack", "a persistent one"):
            with pytest.raises(RunError, match="asks for"):
                unpickled(HEAD + NAMED[code])
        with pytest.raises(RunError):
            unpickled(HEAD + b"\x82\x70.")
    finally:
        copyreg.remove_extension("os", "system", 0x70)


def test_tuples_that_hash_for_ever_are_refused_at_once():
    """Each holds the one before twice: as a key of a dict it would be hashed 2^64 times."""
    code = b"}K\x00\x85\x94" + b"".join(b"h%ch%c\x86\x94" % (n, n) for n in range(64)) + b"Ns."
    began = time.perf_counter()

    with pytest.raises(RunError):
        unpickled(HEAD + code)
    assert time.perf_counter() - began < 1


def test_deep_nesting_is_no_crash():
    depth = 300_000

    found = unpickled(HEAD + b"]" * depth + b"a" * (depth - 1) + b".")

    assert isinstance(found, list) and len(found) == 1


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"{}", b"PK\x03\x04", b"\x80\x06N.", b"\x80\x01N.", b"not a pickle"]
)
def test_other_files(data: bytes):
    with pytest.raises(RunError, match="_dump_snapshot"):
        unpickled(data, "a.pickle")


def test_a_pointer_file_says_how_to_get_the_file():
    with pytest.raises(RunError, match=r"a.pickle is a pointer of Git LFS.*git lfs pull"):
        unpickled(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a.pickle")


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(RunError, match=r"cannot read .*none: No such file"):
        read_pickle(tmp_path / "none")


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a").write_bytes(pickle.dumps(DATA, 4))
    monkeypatch.setattr(unpickle, "LARGEST_BYTES", 1000)

    with pytest.raises(RunError, match=r"larger than .* record a shorter history"):
        read_pickle(tmp_path / "a")


def test_a_file(tmp_path: Path):
    (tmp_path / "a").write_bytes(pickle.dumps(DATA, 4))

    assert read_pickle(tmp_path / "a") == DATA
