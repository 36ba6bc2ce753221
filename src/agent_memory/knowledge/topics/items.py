"""Items as lines of a page, with their sources. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agent_memory.knowledge.topics.page import Footnote
    from agent_memory.models import Trust


@dataclass(frozen=True, slots=True)
class TopicItem:
    """An item, as a page needs it.

    Attributes:
        id: ID of the item (mem-).
        text: Words of its line.
        note: Place of its words; `note.item` is `id`.
        heading: Heading of its section.
        said_at: When it was said; None for documents.
        order: Place on the page; statements follow the place of their passage.
        trust: Trust of its source.
    """

    id: str
    text: str
    note: Footnote
    heading: str
    said_at: datetime | None = None
    order: tuple[int | float | str, ...] = ()
    trust: Trust = "medium"

    @property
    def line(self) -> str:
        """Text without empty lines, tabs, and spaces at the ends of lines."""
        lines = (line.rstrip() for line in self.text.expandtabs(4).strip().split("\n"))
        return "\n".join(filter(None, lines)) or "-"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of pages and the categories below it."""

    title: str
    categories: Sequence[str] = field(default=())


HEADINGS: Final = (
    Heading("Preferences", ("preference",)),
    Heading("Decisions", ("decision", "pattern")),
    Heading("To do and open questions", ("task", "question")),
    Heading("Findings", ("discovery", "insight", "bugfix")),
)
"""In the order of a page."""
REST: Final = "Facts"
"""Last heading, of what has no other one."""


def heading_of(category: str) -> str:
    """Return the heading for items of a category."""
    return next((heading.title for heading in HEADINGS if category in heading.categories), REST)


def rank_of(title: str) -> int:
    """Return the rank of a heading: categories, others, the rest."""
    titles = ["", *(heading.title for heading in HEADINGS)]
    if title in titles:
        return titles.index(title)
    return len(titles) + (title == REST)
