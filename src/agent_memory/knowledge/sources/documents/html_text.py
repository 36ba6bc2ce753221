"""Words of an HTML page. Pure.

Linear in the length of a page, which the parser of the standard library is not.
"""

from __future__ import annotations

import html
import re
from typing import Final

_TAG: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*+)[^<>]*+>|<[!?][^<>]*+>")
_HIDDEN: Final = frozenset({"head", "noscript", "script", "style", "template"})
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "form", "h1",
    "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul",
})  # fmt: skip
_PARAGRAPHS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "p"})
_SPACES: Final = re.compile(r"[^\S\n]++")
_BREAKS: Final = re.compile(r" ?\n ?(?:\n ?)*+")


def read_html(page: str) -> tuple[str, str]:
    """Return the title and the words of a page, as in Markdown."""
    page = _drop_comments(page)
    parts, titles = list[str](), list[str]()
    place, hidden, is_title = 0, "", False
    for tag in _TAG.finditer(page):
        words = page[place : tag.start()].replace("\n", " ")
        if is_title:
            titles.append(words)
        elif not hidden:
            parts.append(words)
        place, name = tag.end(), (tag[2] or "").lower()
        is_title = name == "title" and not tag[1]
        if hidden:
            hidden = "" if tag[1] and name == hidden else hidden
        elif name in _HIDDEN and not tag[1]:
            hidden = name
        elif name:
            parts.append(_mark_tag(name, is_end=bool(tag[1])))
    if not hidden:
        parts.append(page[place:])
    text = _SPACES.sub(" ", html.unescape("".join(parts)))
    text = _BREAKS.sub(lambda gap: "\n\n" if gap[0].count("\n") > 1 else "\n", text)
    return " ".join(html.unescape("".join(titles)).split()), text.strip()


def _mark_tag(name: str, *, is_end: bool) -> str:
    """Return the Markdown mark in place of a tag."""
    if name in {"td", "th"}:
        return "" if is_end else " | "
    if name not in _BLOCKS:
        return ""
    if is_end:
        return "\n\n" if name in _PARAGRAPHS else "\n"
    return f"\n{'#' * int(name[1])} " if name in _PARAGRAPHS - {"p"} else "\n- " if name == "li" else "\n"


def _drop_comments(page: str) -> str:
    head, *rest = page.split("<!--")
    return head + "".join(part.partition("-->")[2] for part in rest)
