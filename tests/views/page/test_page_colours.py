"""The page's colours: every category has one, each pair stays apart for colour-blind eyes, texts can be read."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from vramscope.run.categories import CATEGORIES
from vramscope.views.page import files

SIGHT = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
"""Machado, Oliveira and Fernandes 2009, severity 1.0: how linear RGB is seen."""
APART = 12.0
"""CIE 1976 colour difference; about 2 can just be seen side by side."""
THEMES = {"light": 0, "dark": 1}


def colours(theme: str) -> dict[str, str]:
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", files.text_of("page.css"))
    return {name: both[THEMES[theme]] for name, *both in pairs}


def linear(colour: str) -> np.ndarray:
    long = colour if len(colour) == 7 else "#" + "".join(2 * each for each in colour[1:])
    value = np.array([int(long[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    share = to_xyz @ np.clip(light, 0, 1) / np.array([0.9505, 1, 1.089])
    root = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHT)
def test_categories_stay_apart(theme: str, sight: str):
    seen = {
        name: lab(np.array(SIGHT[sight]) @ linear(colour))
        for name, colour in colours(theme).items()
        if name.startswith("c-")
    }

    assert len(seen) == len(CATEGORIES)
    near = [(a, b) for a, b in combinations(seen, 2) if np.linalg.norm(seen[a] - seen[b]) < APART]
    assert near == []


@pytest.mark.parametrize("theme", THEMES)
def test_every_category_has_a_colour_and_a_readable_text_on_it(theme: str):
    known, css = colours(theme), files.text_of("page.css")

    for category in CATEGORIES:
        rule = re.search(rf"\.c-{category} \{{ --swatch: var\(--c-{category}\);(.*?)\}}", css)
        assert rule, category
        told = re.search(r"--on-swatch: (?:light-dark\((#\w+), (#\w+)\)|(#\w+))", rule[1])
        text = (told[3] or told[1 + THEMES[theme]]) if told else "#000"
        assert contrast(text, known[f"c-{category}"]) >= 4.5, category


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["text", "muted", "accent", "good", "bad", "warn"])
def test_texts_can_be_read(theme: str, name: str):
    known = colours(theme)

    assert contrast(known[name], known["surface"]) >= 4.5
    assert contrast(known["band-text"], known["band-backward"]) >= 4.5
