"""HTML from values: whatever is not markup already is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Markup(str):
    """A text that is HTML, and stays as it is."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | bool | None) -> Markup:
    """An element; `class_` is the attribute `class`, `aria_label` is ``aria-label``; True is one without a value."""
    told = "".join(
        _attribute(name, value) for name, value in attributes.items() if value not in (None, False)
    )
    return Markup(f"<{tag}{told}>{joined(children)}</{tag}>")


def joined(parts: Iterable[str]) -> Markup:
    """Several parts one after another."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def section(name: str, title: str, *children: str) -> Markup:
    """A part of the page with its heading; nothing where it has no content."""
    body = joined(children)
    if not body:
        return Markup()
    heading = element("div", element("h2", title, id=f"{name}-title"), class_="head")
    return element("section", heading, body, id=name, aria_labelledby=f"{name}-title")


def paragraphs(sentences: Iterable[str], kind: str) -> Markup:
    """One paragraph each."""
    return joined(element("p", sentence, class_=kind) for sentence in sentences)


def items(sentences: Iterable[str], kind: str | None = None) -> Markup:
    """A list; nothing where it has no item."""
    listed = joined(element("li", sentence) for sentence in sentences)
    return element("ul", listed, class_=kind) if listed else Markup()


def pairs(rows: Iterable[tuple[str, str, str]], kind: str | None = None) -> Markup:
    """Terms, their values, and a note on each; nothing where there is none."""
    listed = joined(
        element("div", element("dt", term), element("dd", value, _note(note))) for term, value, note in rows
    )
    return element("dl", listed, class_=kind) if listed else Markup()


def _note(text: str) -> Markup:
    return joined((" ", element("small", text))) if text else Markup()


def _attribute(name: str, value: str | bool | None) -> str:
    known = name.rstrip("_").replace("_", "-")
    return f" {known}" if value is True else f' {known}="{escape(str(value))}"'
