"""What a plan's bars have beside the categories stays apart from them, and shades differ by lightness."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from test_page_colours import APART, SIGHT, THEMES, colours, contrast, lab, linear

from vramscope.views.page import files
from vramscope.views.plan_page.heat import STEPS


def all_colours(theme: str) -> dict[str, str]:
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", files.text_of("plan.css"))
    return {**colours(theme), **{name: both[THEMES[theme]] for name, *both in pairs}}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHT)
def test_cached_and_outside_are_no_category(theme: str, sight: str):
    known = all_colours(theme)
    seen = {name: lab(np.array(SIGHT[sight]) @ linear(colour)) for name, colour in known.items()}
    near = [
        (name, other)
        for name in ("cached", "outside")
        for other in (
            *(each for each in seen if each.startswith("c-")),
            "cached" if name == "outside" else "outside",
        )
        if np.linalg.norm(seen[name] - seen[other]) < APART
    ]

    assert near == []


@pytest.mark.parametrize("theme", THEMES)
def test_shades_differ_by_lightness_and_texts_on_them_can_be_read(theme: str):
    known = all_colours(theme)
    shades = [contrast(known[f"h{number}"], known["surface"]) for number in range(1, STEPS + 1)]
    pairs = [(f"h{number}", f"on-h{number}") for number in range(1, STEPS + 1)]
    pairs += [("over-0", "text"), ("over-1", "text")]

    assert shades == sorted(shades)
    assert all(below * 1.15 < above for below, above in pairwise(shades))
    assert [pair for pair in pairs if contrast(known[pair[0]], known[pair[1]]) < 4.5] == []
