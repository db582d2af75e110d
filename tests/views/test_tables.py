from __future__ import annotations

import pytest

from vramscope.units import GIB, KIB, MIB, TIB, format_in, size_in, unit_for
from vramscope.views.figures import change, figure, in_phase, share, unit_of
from vramscope.views.paragraphs import TextOptions
from vramscope.views.tables import Bars, Column, beginning, ending, place_within, printable, table

NAMES = ["ResNet.layer1.0.conv1", "ResNet.fc"]


def drawn(width: int, *columns: Column, bars: Bars | None = None, ascii_only: bool = False) -> list[str]:
    return [line.plain for line in table(columns, TextOptions(width, ascii_only), bars)]


def test_a_table():
    found = drawn(
        60, Column("GiB", NAMES, right=False), Column("", ["1.00", "12.00"]), Column("share", ["8 %", "92 %"])
    )

    assert found == [
        "  GiB                           share",
        "  ResNet.layer1.0.conv1   1.00    8 %",
        "  ResNet.fc              12.00   92 %",
    ]


def test_a_column_without_cells_is_none():
    assert drawn(60, Column("a", ["x"]), Column("b", [""])) == ["  a", "  x"]
    assert drawn(60, Column("b", [""])) == []


def test_columns_go_by_rank_and_what_matters_is_said():
    columns = [
        Column("name", NAMES, right=False, least=14),
        Column("first", ["1234567890"] * 2, rank=1),
        Column("second", ["1234567890"] * 2, rank=2),
    ]

    assert drawn(60, *columns)[0] == "  name                        first      second"
    assert drawn(39, *columns)[0] == "  name                        first"
    assert drawn(25, *columns) == [
        "  name",
        "  ResNet.layer1.0.conv1",
        "  ResNet.fc",
        "  no room here for: first",
    ]


def test_a_column_is_cut_once_those_that_may_go_have_gone():
    columns = [Column("name", NAMES, right=False, least=8, wish=16), Column("x", ["123456789"] * 2, rank=2)]

    assert drawn(29, *columns)[1] == "  ….layer1.0.conv1  123456789"
    assert drawn(28, *columns)[1] == "  ResNet.layer1.0.conv1"
    assert drawn(12, *columns)[1] == "  …1.0.conv1"


def test_bars():
    bars = Bars([8, 2], 8, beyond=[8, 6])
    rows = [Column("a", ["x", "y"])]

    assert drawn(13, *rows, bars=bars)[1:] == ["  x  ████████", "  y  ██░░░░"]
    assert drawn(13, *rows, bars=bars, ascii_only=True)[1:] == ["  x  ########", "  y  ##----"]
    assert drawn(10, *rows, bars=bars)[1:] == ["  x", "  y"]
    assert drawn(13, *rows, bars=Bars([None, 4], 8))[1:] == ["  x", "  y  ████"]


def test_wide_characters_keep_the_columns():
    found = drawn(40, Column("", ["模型", "ab"], right=False), Column("n", ["1", "2"]))

    assert found[1:] == ["  模型  1", "  ab    2"]


@pytest.mark.parametrize(
    ("largest", "coarse", "fine"),
    [
        (0, "KiB", "KiB"),
        (5 * KIB, "KiB", "KiB"),
        (MIB, "MiB", "MiB"),
        (3 * GIB, "GiB", "MiB"),
        (2 * TIB, "GiB", "GiB"),
    ],
)
def test_one_unit_for_a_table(largest: int, coarse: str, fine: str):
    assert unit_of([1, None, largest]) == coarse
    assert unit_of([1, None, largest], fine=True) == fine


def test_figures():
    assert figure(1536, "KiB") == "1.5"
    assert figure(0, "GiB") == ""
    assert figure(None, "GiB") == "unknown"
    assert format_in(1234 * MIB, "MiB") == "1,234.0"
    assert format_in(GIB // 4, "GiB") == "0.25"
    assert size_in(1.5, "GiB") == GIB + GIB // 2
    assert [unit_for(size) for size in (0, -GIB, TIB)] == ["KiB", "GiB", "TiB"]


@pytest.mark.parametrize(
    ("size", "text"), [(MIB, "+1.0"), (-3 * MIB, "−3.0"), (0, ""), (1, ""), (MIB // 10, "+0.1")]
)
def test_change(size: int, text: str):
    assert change(size, "MiB") == text


@pytest.mark.parametrize(
    ("part", "whole", "text"), [(1, 4, "25.0 %"), (1, 10**6, "<0.1 %"), (0, 4, ""), (1, 0, "")]
)
def test_share(part: int, whole: int, text: str):
    assert share(part, whole) == text


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (40, "src/net/train.py:41 in forward"),
        (29, "train.py:41 in forward"),
        (16, "train.py:41 in …"),
        (12, "train.py:41…"),
        (11, "train.py:41"),
        (6, "…py:41"),
    ],
)
def test_a_place_keeps_its_line(width: int, shown: str):
    assert place_within("src/net/train.py:41 in forward", width) == shown


def test_cutting():
    assert (ending("abcdef", 4), ending("abcd", 4)) == ("…def", "abcd")
    assert (beginning("abcdef", 4), beginning("abcd", 4)) == ("abc…", "abcd")


def test_printable():
    assert printable("a\x1b[31m\nb") == "a [31m b"


@pytest.mark.parametrize(
    ("phase", "step", "words"),
    [
        ("backward", 2, "in backward, step 2"),
        ("forward", None, "in forward"),
        ("other", None, ""),
        (None, None, ""),
    ],
)
def test_in_phase(phase: str | None, step: int | None, words: str):
    assert in_phase(phase, step) == words
