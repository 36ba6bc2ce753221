"""Items as lines of a page, with their sources. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from agent_memory.knowledge.topics.page import Footnote
    from agent_memory.models import Trust


DOCUMENTS: Final = 1
"""Part of a page with the passages of documents."""


class PagePlace(NamedTuple):
    """Place of an item on a page, compared field by field.

    Attributes:
        part: `DOCUMENTS`, or 0 for talk and notes.
        moment: Seconds since 1970 at which it was said; infinite if unknown.
        source: ID of the document.
        start: Place of the words in the document, or of the turn in the conversation.
        number: Number of the item among those of the topic, oldest first.
    """

    part: int
    moment: float
    source: str
    start: int
    number: int


@dataclass(frozen=True, slots=True)
class TopicItem:
    """An item, as a page needs it.

    Attributes:
        id: ID of the item (mem-).
        text: Words of its line.
        note: Place of its words; `note.item` is `id`.
        heading: Heading of its section.
        said_at: When it was said; None for documents.
        order: `PagePlace`; of a statement that of its passage, and the place of its words.
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


HEADINGS: Final = {
    "preference": "Preferences",
    "decision": "Decisions",
    "pattern": "Decisions",
    "task": "To do and open questions",
    "question": "To do and open questions",
    "discovery": "Findings",
    "insight": "Findings",
    "bugfix": "Findings",
}
"""Headings by category, in the order of a page."""
REST: Final = "Facts"
"""Last heading, of what has no other one."""
_TITLES: Final = ["", *HEADINGS.values()]


def rank_of(title: str, sections: Collection[str] = ()) -> int:
    """Return the rank of a heading: categories, others, the rest.

    Args:
        title: Heading.
        sections: Headings of documents, which are no categories, whatever they are called.
    """
    if title in sections:
        return len(_TITLES)
    return _TITLES.index(title) if title in _TITLES else len(_TITLES) + (title == REST)
