"""Rounding and splitting against the installed torch's own constants, and sizes worked out by hand."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from vramscope.run.rules import (
    MIN_BLOCK,
    NEVER,
    SMALL_BUFFER,
    SMALL_SIZE,
    Rules,
    least_rests,
    rounded_sizes,
    rules_of,
)

MIB = 1 << 20


def header() -> str:
    found = importlib.util.find_spec("torch")
    path = found and found.origin and Path(found.origin).parent / "include/c10/core/AllocatorConfig.h"
    if not path or not path.is_file():
        pytest.skip("no torch with this header is installed")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "value"),
    [("kMinBlockSize", MIN_BLOCK), ("kSmallSize", SMALL_SIZE), ("kSmallBuffer", SMALL_BUFFER)],
)
def test_constants_are_torch_s(name: str, value: int):
    found = re.search(rf"constexpr size_t {name} = (\d+);", header())

    assert found is not None
    assert int(found[1]) == value


@pytest.mark.parametrize(
    ("asked", "block"), [(0, 512), (1, 512), (512, 512), (513, 1024), (4_000_000, 4_000_256), (MIB, MIB)]
)
def test_sizes_are_multiples_of_512(asked: int, block: int):
    assert rounded_sizes(np.array([asked]), Rules()).tolist() == [block]


@pytest.mark.parametrize(
    ("asked", "parts", "block"),
    [
        (1200 * 1024, 4, 1280 * 1024),  # the example in roundup_power2_next_division
        (MIB, 4, MIB),
        (2048, 4, 2048),  # not above 512 x 4
        (2049, 4, 2560),
        (5 * MIB, 2, 6 * MIB),
        (600, 64, 1024),
    ],
)
def test_intervals_between_powers_of_two_can_be_divided(asked: int, parts: int, block: int):
    assert rounded_sizes(np.array([asked]), Rules(divisions=(parts,) * 16)).tolist() == [block]


def test_each_interval_may_have_its_own_division():
    rules = rules_of({"roundup_power2_divisions": {"1": 4, "2": 0, "4": 1, "8": 2}})

    assert rounded_sizes(np.array([MIB + 1, 2 * MIB + 1, 4 * MIB + 1, 8 * MIB + 1]), rules).tolist() == [
        MIB + MIB // 4,
        2 * MIB + 512,
        4 * MIB + 512,
        12 * MIB,
    ]


def test_when_a_block_is_split():
    sizes = np.array([512, MIB, MIB + 512, 64 * MIB])

    assert least_rests(sizes, Rules()).tolist() == [512, 512, MIB + 1, MIB + 1]
    assert least_rests(sizes, Rules(max_split_bytes=32 * MIB)).tolist() == [512, 512, MIB + 1, NEVER]


@pytest.mark.parametrize("told", [-1, 0, None, "20", 1 << 63])
def test_without_a_limit_all_are_split(told: object):
    assert rules_of({"max_split_size": told}) == Rules()


@pytest.mark.parametrize("told", [None, 4, [4], {"1": "4"}, {"1": -1}, {"one": 4}])
def test_divisions_that_make_no_sense_are_none(told: object):
    assert rules_of({"roundup_power2_divisions": told}) == Rules()
