"""What a page is made of: an item with where its words stand. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_memory.models import flatten

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from agent_memory.knowledge.topics.page import Footnote
    from agent_memory.models import Trust

NORMAL: Final = 0.5


@dataclass(frozen=True, slots=True)
class TopicItem:
    """An item, as a page needs it.

    Attributes:
        id: The item's (mem-).
        text: It stands by itself.
        note: Where its words stand; `note.item` is `id`.
        category: What kind of statement it is.
        said_at: When it was said or written.
        importance: 0 to 1.
        speaker: Who said it, if it was said.
        order: The place of its source in the conversation.
        trust: Of who said it.
        is_document: Whether it is a passage of a document.
    """

    id: str
    text: str
    note: Footnote
    category: str = "note"
    said_at: datetime | None = None
    importance: float = NORMAL
    speaker: str = ""
    order: int = 0
    trust: Trust = "medium"
    is_document: bool = False

    @property
    def line(self) -> str:
        """The text as one line that a person can read."""
        return flatten(self.text) or "-"


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
    Heading("Facts", ()),
)
"""In the order of a page; what no heading names stands below the last, or below a subject of its own."""
REST: Final = HEADINGS[-1].title


def heading_of(category: str) -> str:
    """Return below which heading an item of this category stands."""
    return next((each.title for each in HEADINGS if category in each.categories), REST)


def rank_of(title: str) -> int:
    """Return where a heading stands on a page: kinds of statements, then subjects, then the rest."""
    titles = [each.title for each in HEADINGS]
    if title == REST:
        return len(titles)
    return titles.index(title) if title in titles else len(titles) - 1
