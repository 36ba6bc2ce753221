"""A page as a file: front matter as the Open Knowledge Format has it, and a checksum of what was rendered. Pure.

The checksum tells from the file alone whether a person changed it since.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.escaping import escaped
from agent_memory.knowledge.topics.item_removal import cut_rendered
from agent_memory.knowledge.topics.parsing import parse
from agent_memory.knowledge.topics.rendering import render
from agent_memory.models import to_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_memory.knowledge.topics.page import Page

FORMAT_VERSION: Final = "0.2"
"""Of the Open Knowledge Format, https://github.com/GoogleCloudPlatform/knowledge-catalog/tree/main/okf."""
PROPOSED: Final = ".proposed.md"
_RESERVED: Final = frozenset({"index", "log"})
_NAME: Final = re.compile(r"\.?([a-z0-9_]+?)_?(?:-\d+)?(?:\.proposed|\.saved-[0-9a-f]+)?\.md")
_FRONT: Final = re.compile(r"\A---\n(?:.*\n)*?---\n+")
_RENDERED: Final = re.compile(r"^rendered: ([0-9a-f]{16})\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PageFile:
    """What a page's file says: the page, and whether it is as it was rendered."""

    page: Page
    is_edited: bool


def file_name(topic: str, part: int = 1) -> str:
    """Return the name of the file of one part of a topic's page."""
    stem = f"{topic}_" if topic in _RESERVED else topic
    return f"{stem}.md" if part == 1 else f"{stem}-{part}.md"


def proposal_name(topic: str) -> str:
    """Return the name of the file with what would be rendered if nobody had changed the page."""
    return file_name(topic).removesuffix(".md") + PROPOSED


def topic_of(name: str) -> str:
    """Return the topic that a file's name is made of; empty if it is no page's."""
    found = _NAME.fullmatch(name)
    return found[1] if found else ""


def body_of(text: str) -> str:
    """Return what a file says without its front matter."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT.match(text)
    return text[front.end() :] if front else text


def page_file(page: Page, description: str) -> str:
    """Return the whole file of a page."""
    front = ["type: Topic", f"title: {_quoted(page.title)}", f"description: {_quoted(description)}"]
    if page.consolidated_at is not None:
        front.append(f"generated: {{by: agent-memory, at: {_quoted(to_text(page.consolidated_at))}}}")
    text = "\n".join(["---", *front, "---", "", render(page)])
    return _marked(text)


def _marked(text: str) -> str:
    return text.replace("\n---\n", f"\nrendered: {_checksum(text)}\n---\n", 1)


def read_page_file(text: str) -> PageFile:
    """Return what a file says. Without its checksum it counts as edited."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT.match(text)
    mark = _RENDERED.search(front[0]) if front else None
    is_edited = mark is None or _checksum(text[: mark.start()] + text[mark.end() :]) != mark[1]
    return PageFile(parse(text[front.end() :] if front else text), is_edited)


def shortened_file(text: str, gone: Collection[str]) -> str | None:
    """Return a rendered file without some items, or None."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT.match(text)
    mark = _RENDERED.search(front[0]) if front else None
    if mark is None or _checksum(text[: mark.start()] + text[mark.end() :]) != mark[1]:
        return None
    short = cut_rendered(text[: mark.start()] + text[mark.end() :], gone)
    return None if short is None else _marked(short)


def index_file(topics: Sequence[tuple[str, str, str, int]]) -> str:
    """Return the page that lists the topics.

    Args:
        topics: Name, title, description and number of items of each.
    """
    lines = [
        f"- [{escaped(title)}]({file_name(name)}) - {escaped(description)} ({items} items)"
        for name, title, description, items in sorted(topics)
    ]
    return "\n".join(
        ["---", f'okf_version: "{FORMAT_VERSION}"', "---", "", "# Topics", "", *(lines or ["None yet."]), ""]
    )


def _quoted(text: str) -> str:
    """Return a text as YAML writes it between quotes, in one line."""
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(each if each.isprintable() else f"\\U{ord(each):08X}" for each in shown) + '"'


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
