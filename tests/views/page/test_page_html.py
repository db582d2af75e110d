"""The page as text: one file, its policy, what it carries, and that nothing of a run is markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_runs import HOSTILE, KINDS, hostile, large, trained_run, uneven

from vramscope.run.categories import CATEGORIES
from vramscope.views.page import files, page_html

ROOT = Path(__file__).parents[3]
VOID = {"meta", "input", "img", "br", "link"}


class Elements(HTMLParser):
    """Every element of a page, with its attributes, and the text of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.inside.append(tag)
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.inside and self.inside[-1] in self.texts:
            self.texts[self.inside[-1]][-1] += data

    def of(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.found if name == tag)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_has_a_page(kind: str):
    page = page_html(KINDS[kind]())

    elements = Elements(page)
    assert elements.inside == []
    assert len(list(elements.of("h1"))) == 1
    names = [attributes["id"] for _, attributes in elements.found if attributes.get("id")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_fetched(kind: str):
    elements = Elements(page_html(KINDS[kind]()))

    places = [
        value
        for _, attributes in elements.found
        for name, value in attributes.items()
        if name in ("src", "href")
    ]
    assert all(place and place.startswith("#") for place in places)
    assert not list(elements.of("link"))
    assert "@import" not in files.style()
    assert "url(" not in files.style()


def test_the_policy_allows_this_script_and_this_style_alone():
    elements = Elements(page_html(trained_run()))
    policy = next(
        each["content"] for each in elements.of("meta") if each.get("http-equiv") == "Content-Security-Policy"
    )

    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for directive, text in (
        ("script-src", elements.texts["script"][-1]),
        ("style-src", elements.texts["style"][0]),
    ):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert not [
        attributes for _, attributes in elements.found if any(name.startswith("on") for name in attributes)
    ]
    assert not [attributes for _, attributes in elements.found if "style" in attributes]


def test_the_policy_comes_before_all_that_it_governs():
    tags = [tag for tag, _ in Elements(page_html(trained_run())).found]

    assert tags[:5] == ["html", "head", "meta", "meta", "meta"]


def test_no_text_of_a_run_is_markup():
    page = page_html(hostile())
    elements = Elements(page)

    assert HOSTILE[:-1] not in page
    assert not list(elements.of("img"))
    assert unescape(page).count(HOSTILE[:-1]) > 5


def test_the_scripts_do_not_end_their_element():
    assert "</" not in files.script()
    assert "<!--" not in files.script()
    assert "</style" not in files.style()


def test_the_data_cannot_end_their_element():
    elements = Elements(page_html(hostile()))

    assert json.loads(elements.texts["script"][0])["categories"] == list(CATEGORIES)


def test_a_page_of_100_000_events_is_at_most_3_mb():
    run = uneven(large(100_000))

    assert run.traces[0].moments >= 100_000
    assert len(page_html(run).encode()) < 3_000_000


def test_the_licences_go_with_the_libraries():
    script = files.script()

    assert "The MIT License" in script
    assert "Mike Bostock" in script


def test_the_libraries_are_those_of_the_lock_file():
    vendor = ROOT / "src" / "vramscope" / "views" / "page" / "vendor"
    told = json.loads((vendor / "versions.json").read_text(encoding="utf-8"))
    lock = json.loads((ROOT / "assets" / "package-lock.json").read_text(encoding="utf-8"))

    for name, version in told["packages"].items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    for name, digest in told["sha256"].items():
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest


def test_every_script_is_in_the_page():
    folder = ROOT / "src" / "vramscope" / "views" / "page" / "script"

    assert {path.stem for path in folder.glob("*.js")} == set(files.SCRIPTS)


def test_no_two_scripts_define_the_same_name():
    own = "\n".join(files.text_of(f"script/{name}.js") for name in files.SCRIPTS)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", own, re.MULTILINE)

    assert len(names) > 40
    assert len(names) == len(set(names))


def test_the_links_lead_somewhere():
    elements = Elements(page_html(trained_run()))
    names = {attributes.get("id") for _, attributes in elements.found}

    assert {place[1:] for each in elements.of("a") if (place := each["href"])} <= names
