"""The page of a plan: one file, its policy, what it shows, and that nothing of a plan is markup."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from plan_shapes import HOSTILE, SHAPES, hostile, many, one, plan_of, result, row, six, twelve

from vramscope.views.page import files
from vramscope.views.plan_page import plan_page
from vramscope.views.plan_page.bars import bars_html
from vramscope.views.plan_page.heat import STEPS, heat_html, shade

VOID = {"meta", "input", "img", "br", "link"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HEAT = re.compile(r'<td class="(\w+)" title="row (\d+): ([^"]*)">')


class Elements(HTMLParser):
    """Every element of a page, with its attributes; what is opened is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.style = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.inside and self.inside[-1] == "style":
            self.style += data

    def of(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.found if name == tag)

    def ids(self) -> list[str]:
        return [told for _, attributes in self.found if (told := attributes.get("id"))]


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_has_a_page_whose_links_lead_somewhere(name: str):
    elements = Elements(plan_page(SHAPES[name]()))
    places = [attributes["href"] or "" for attributes in elements.of("a")]

    assert elements.inside == []
    assert len(list(elements.of("h1"))) == 1
    assert len(elements.ids()) == len(set(elements.ids()))
    assert all(place.startswith("#") for place in places)
    assert {place[1:] for place in places} <= set(elements.ids())


@pytest.mark.parametrize("name", SHAPES)
def test_nothing_is_fetched_and_nothing_runs(name: str):
    elements = Elements(plan_page(SHAPES[name]()))
    attributes = {name for _, told in elements.found for name in told}

    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in elements.found}
    assert not {"src", "style"} & attributes
    assert not [name for name in attributes if name.startswith("on")]
    assert "url(" not in elements.style
    assert "@import" not in elements.style


def test_the_policy_allows_this_style_alone_and_comes_first():
    elements = Elements(plan_page(six()))
    policy = next(each["content"] for each in elements.of("meta") if each.get("http-equiv")) or ""
    digest = base64.b64encode(hashlib.sha256(elements.style.encode()).digest()).decode()

    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    assert "unsafe" not in policy
    assert [tag for tag, _ in elements.found][:4] == ["html", "head", "meta", "meta"]


def test_no_text_of_a_plan_is_markup():
    page = plan_page(hostile())

    assert HOSTILE not in page
    assert "<img" not in page
    assert unescape(page).count(HOSTILE[:-1]) > 20


def test_each_row_is_once_in_the_heat_map_in_the_bars_and_in_the_table():
    plan = many()
    page = plan_page(plan)

    assert sorted(int(number) for _, number, _ in HEAT.findall(page)) == [row.number for row in plan.rows]
    assert page.count('class="stack"') == len(plan.rows)
    assert len(re.findall(r'<tr id="row-\d+">', page)) == len(plan.rows)
    assert page.count("<caption>") == 2 * 2 * 3


def test_the_axes_are_two_knobs_and_each_card_has_its_map():
    told = heat_html(twelve())

    assert re.findall(r"<caption>(.*?)</caption>", told) == ["rtx-4090", "a100-80gb"]
    assert told.count("tune ↓ checkpoint →") == 2


def test_a_knob_that_varies_alone_has_the_cards_beside_it():
    rows = [row(1, {"batch": "8"}, result(3)), row(2, {"batch": "8"}, result(4, "rtx-4090"), "rtx-4090")]
    rows += [row(3, {"batch": "16"}, result(5)), row(4, {"batch": "16"}, result(6, "rtx-4090"), "rtx-4090")]

    assert "batch ↓ card →" in heat_html(plan_of(rows, ("batch",)))


def test_there_is_no_map_of_a_single_row():
    assert heat_html(one()) == ""


@pytest.mark.parametrize(("size", "kind"), [(0.2, "h1"), (5.8, "h4"), (11.75, f"h{STEPS}"), (11.77, "over")])
def test_shades_go_by_the_share_of_the_card(size: float, kind: str):
    assert shade(result(size)) == kind


def test_what_does_not_fit_is_told_by_a_word_and_a_pattern_beside_the_colour():
    told = {number: (kind, title) for kind, number, title in HEAT.findall(heat_html(twelve()))}
    css = files.text_of("plan.css")

    assert told["1"] == ("over", "does not fit, needs 131.20 of 23.64 GiB")
    assert "too big" in heat_html(twelve())
    assert re.search(r"\.over \{ background: repeating-linear-gradient", css)


def test_bars_are_as_long_as_the_process_total_and_the_line_is_the_card():
    told = bars_html(six(), "order")
    for found, svg in zip(six().rows, re.findall(r"<svg.*?</svg>", told), strict=True):
        line = float(re.findall(r'<line x1="([\d.]+)%', svg)[0])
        last = re.findall(r'x="([\d.]+)%" width="([\d.]+)%"', svg)[-1]
        share = (found.result.process_total_bytes or 0) / found.result.capacity_bytes
        assert sum(map(float, last)) == pytest.approx(line * share, abs=0.01)


def test_a_bar_far_beyond_the_card_is_cut_and_says_so():
    told = bars_html(twelve(), "order")

    assert "131.20 GiB →" in told
    assert "40.10 GiB →" not in told
    assert all(float(place) <= 100.001 for place in re.findall(r'x="([\d.]+)%"', told))


def test_the_levels_of_maths_are_said_plainly():
    page = plan_page(SHAPES["budget"]())

    assert re.findall(r'class="maths m\d">([^<]*)<', page) == [
        "same result",
        "fewer bits",
        "computes something else",
    ]


def test_a_phone_shows_every_shape_without_a_complaint_or_a_sideways_scroll(tmp_path: Path):
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (the dev extra)"
    )
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    complaints: list[str] = []
    with playwright.sync_playwright() as running:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses its sandbox to root
        browser = running.chromium.launch(executable_path=program, args=sandbox)
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        page.on("console", lambda message: complaints.append(message.text))
        page.on(
            "request",
            lambda request: complaints.extend([request.url] * (not request.url.startswith("file:"))),
        )
        for name in ("twelve", "many", "hostile", "budget"):
            (tmp_path / f"{name}.html").write_text(plan_page(SHAPES[name]()), encoding="utf-8")
            page.goto((tmp_path / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == 390, name
            assert page.evaluate("globalThis.hacked") is None
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
        page.check("#theme-light")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        browser.close()
    assert complaints == []
