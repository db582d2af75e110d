"""Run files that are wrong: real ones with a byte, a column, a word of JSON or a whole part changed.

Most changes keep the zip itself intact, so that what is wrong lies deep within."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from builders import out_of_memory, trained, training
from bytes_changed import cut, flipped, moved
from million import million_run
from traces import Story, training_story
from vramscope.run.journal import journal_of, write_journal
from vramscope.run.run import Run
from vramscope.run.schema import report_to_dict
from vramscope.run.store import save_run

Parts = dict[str, bytes]
WORDS: list[Any] = [
    *(None, True, -1, 0, 1, 7, 1 << 31, 1 << 62, 1 << 63, 1 << 64, 10**300, -(10**300), 0.5, 1e308),
    *(
        float("inf"),
        float("nan"),
        "",
        "a",
        "\x1b[31m",
        "\ud800",
        "é" * 500,
        "[bold]",
        [],
        {},
        [[]],
        [None] * 3,
    ),
    *([0], [1 << 63], {"a": 1}, {"": {}}),
]
"""What a value in JSON is changed to."""
NUMBERS = (
    -(1 << 63),
    -(1 << 31),
    -2,
    -1,
    0,
    1,
    12,
    255,
    1 << 16,
    1 << 31,
    1 << 40,
    (1 << 62) + 1,
    (1 << 63) - 1,
)
"""What a row of a column is changed to."""


@cache
def originals() -> tuple[bytes, ...]:
    """Files that are right."""
    journal = journal_of(training())
    runs = (
        Run(trained(), journal, (training_story().trace(),), name="train.py"),
        Run(out_of_memory(), journal, (training_story().trace(), Story().span("other").trace())),
        Run(None, origin="imported", traces=(training_story().trace(),), name="dump.pickle"),
        Run(trained()),
        million_run(1000),
    )
    with TemporaryDirectory() as folder:
        return (*(_saved(run, Path(folder) / "a.vram") for run in runs), _zipped(_before()))


def mutant(seed: int, right: Sequence[bytes] = ()) -> bytes:
    """The wrong file of that number, the same one each time; made of one of those that are right."""
    chance = random.Random(seed)
    data = chance.choice(right or originals())
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = chance.choice((flipped, cut, moved, *(_repacked,) * 9))(data, chance)
    return data


def _saved(run: Run, path: Path) -> bytes:
    save_run(path, run)
    return path.read_bytes()


def _before() -> Parts:
    """A file of the schema before."""
    return {
        "format.json": b'{"schema": "vramscope.run/1", "vramscope": "0.1.0"}',
        "report.json": json.dumps(report_to_dict(trained())).encode(),
        "journal.jsonl": write_journal(journal_of(training())),
    }


def _zipped(parts: Parts, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return file.getvalue()


def _repacked(data: bytes, chance: random.Random) -> bytes:
    """A whole zip again, of other parts; a file that is no zip any more stays as it is."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # whatever an earlier change has made of it
        return data
    if not parts:
        return data
    chance.choice(CHANGES)(parts, chance)
    methods = (zipfile.ZIP_DEFLATED,) * 8 + (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    return _zipped(parts, chance.choice(methods))


def _lose(parts: Parts, chance: random.Random) -> None:
    del parts[chance.choice(list(parts))]


def _swap(parts: Parts, chance: random.Random) -> None:
    one, other = (chance.choice(list(parts)) for _ in range(2))
    parts[one], parts[other] = parts[other], parts[one]


def _damage(parts: Parts, chance: random.Random) -> None:
    name = chance.choice(list(parts))
    parts[name] = chance.choice((flipped, cut, moved))(parts[name], chance)


def _fill(parts: Parts, chance: random.Random) -> None:
    parts[chance.choice(list(parts))] = chance.choice(
        (b"", b"[" * 100_000, bytes(1000), chance.randbytes(300))
    )


def _rename(parts: Parts, chance: random.Random) -> None:
    name = chance.choice(list(parts))
    parts[name.replace("0", "1") if "0" in name else name + "x"] = parts.pop(name)


def _recolumn(parts: Parts, chance: random.Random) -> None:
    """Another number in a row, another number of rows, or another type."""
    columns = [name for name in parts if name.endswith(".npy")]
    if not columns:
        return
    name = chance.choice(columns)
    try:
        column = np.load(io.BytesIO(parts[name]), allow_pickle=False)
    except Exception:  # as above
        return
    parts[name] = chance.choice((_row, _row, _row, _rows, _type, _header))(np.atleast_1d(column), chance)


def _row(column: np.ndarray, chance: random.Random) -> bytes:
    values = [int(each) for each in column.ravel()[:5000]] or [0]
    for _ in range(chance.randint(1, 3)):
        other = values if chance.random() < 0.6 else NUMBERS
        values[chance.randrange(len(values))] = chance.choice(other)
    return _npy(np.array(values, np.int64 if min(values) < 0 else np.uint64))


def _rows(column: np.ndarray, chance: random.Random) -> bytes:
    return _npy(chance.choice((column[:-1], np.repeat(column, 2), column[:0], column[::-1], column[None])))


def _type(column: np.ndarray, chance: random.Random) -> bytes:
    kinds = (">i8", "<f8", "<f4", "|b1", "<c16", "|S3", "<U2", "<M8[us]", "|i1", "<i2")
    return _npy(column.astype(chance.choice(kinds)))


def _header(column: np.ndarray, chance: random.Random) -> bytes:
    data = _npy(column)
    shape = f"({len(column)},)".encode()
    return data.replace(
        *chance.choice(((shape, b"(99999999999,)"), (b"'<", b"'|"), (b"False", b"True"), (b"{", b"(")))
    )


def _npy(column: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, column, allow_pickle=False)
    return file.getvalue()


def _reword(parts: Parts, chance: random.Random) -> None:
    """Another value somewhere in a JSON document."""
    name = chance.choice([name for name in parts if name.endswith((".json", ".jsonl"))] or [""])
    lines = parts.get(name, b"").split(b"\n") if name.endswith("l") else [parts.get(name, b"")]
    number = chance.randrange(len(lines))
    try:
        document = json.loads(lines[number])
    except (ValueError, RecursionError):
        return
    lines[number] = json.dumps(_changed(document, chance)).encode()
    parts[name] = b"\n".join(lines)


def _changed(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.95:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {other: item for other, item in value.items() if other != key}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        if chance.random() < 0.1:
            return value[:place] + value[place + 1 :]
        return [*value[:place], _changed(value[place], chance), *value[place + 1 :]]
    same = [word for word in WORDS if type(word) is type(value)]
    return chance.choice(same if same and chance.random() < 0.6 else WORDS)


CHANGES: tuple[Callable[[Parts, random.Random], None], ...] = (
    *(_lose, _swap, _damage, _fill, _rename),
    *(_recolumn,) * 6,
    *(_reword,) * 6,
)
