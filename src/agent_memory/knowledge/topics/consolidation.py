"""Page of a topic rebuilt from its items, without silent loss. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.knowledge.topics.page import Footnote, Line, OwnText, Page, PageClaim, escape, with_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from agent_memory.models import Trust

DOCUMENTS: Final = 1
"""Part of a page with the passages of documents."""
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
INTERVAL: Final = 10
"""New items after which a page is rebuilt."""
GONE: Final = "its item is kept no longer"
TAKEN_OUT: Final = "taken out by hand"


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


def get_rank(title: str, sections: Collection[str] = ()) -> int:
    """Return the rank of a heading: categories, others, the rest.

    Args:
        title: Heading of a section.
        sections: Headings of documents, which never count as categories.
    """
    if title in sections:
        return len(_TITLES)
    return _TITLES.index(title) if title in _TITLES else len(_TITLES) + (title == REST)


@dataclass(frozen=True, slots=True)
class DroppedLine:
    """Line or item that the page lacks; `item` may be empty."""

    text: str
    item: str
    reason: str


@dataclass(frozen=True, slots=True)
class TopicConsolidation:
    """Result of rebuilding a page.

    Attributes:
        page: The rebuilt page, whole; `split` makes parts of it.
        dropped: What is not on it, and why.
        added: Ids of items that were not on the page before.
        is_proposal: True if a person edited the page, so that this one is stored next to it.
    """

    page: Page
    dropped: tuple[DroppedLine, ...] = ()
    added: tuple[str, ...] = ()
    is_proposal: bool = False


def consolidate(
    before: Page, items: Sequence[TopicItem], *, now: datetime, rendered: Page | None = None, about: str = ""
) -> TopicConsolidation:
    """Return the page of these items.

    Each claim of the page before is on the new one or among `dropped`, and so is each item. Lines that a person wrote
    or changed stay; what a person took out does not come back.

    Args:
        before: The page there is; one without sections for a new topic.
        items: All items of the topic that live, in any order.
        now: Present moment, UTC.
        rendered: The page as it was rendered last, if a person changed it since: `before` is what they made of it.
        about: Description of the page below its title, empty for none.
    """
    if rendered is not None:
        before = _with_edits(before, rendered)
    live = {item.id: item for item in items if item.id not in before.taken_out}
    dropped = [DroppedLine(item.line, item.id, TAKEN_OUT) for item in items if item.id in before.taken_out]
    own_lines, by_hand = _kept_by_hand(before, live, dropped)
    ordered = sorted((item for item in live.values() if item.id not in by_hand), key=_order)
    claims = [(item.heading, _make_claim(item)) for item in ordered]
    places = [(item.heading, item.order) for item in ordered]
    sections = {title for title, place in places if isinstance(place, PagePlace) and place.part == DOCUMENTS} - {""}
    for claim in before.claims:
        dropped += [
            DroppedLine(claim.text, item, GONE)
            for item in claim.items
            if item not in live and item not in before.taken_out and not claim.is_by_hand
        ]
    lines = _arrange_lines(own_lines, claims, partial(get_rank, sections=sections))
    page = with_lines(replace(before, about=about, consolidated_at=now.replace(microsecond=0)), lines)
    was = {*before.items, *before.taken_out}
    added = tuple(item for item in page.items if item not in was)
    return TopicConsolidation(page, tuple(dropped), added, is_proposal=rendered is not None)


def _with_edits(edited: Page, rendered: Page) -> Page:
    """Return an edited page with changed and removed lines marked."""
    was = {claim.notes: claim for claim in rendered.claims}
    lines: list[tuple[str, Line]] = []
    for title, line in edited.lines():
        if isinstance(line, PageClaim) and line.notes and not line.is_edited:
            # Without its footnote's own words a claim is a person's; words are compared, not how they are written.
            original = was.get(line.notes)
            if original is None or original.text != line.text or original.said != line.said:
                lines.append((title, replace(line, text=escape(line.text), is_edited=True)))
                continue
        lines.append((title, line))
    taken_out = [item for item in rendered.items if item not in set(edited.items)]
    page = with_lines(edited, lines)
    return replace(page, taken_out=tuple(dict.fromkeys((*edited.taken_out, *rendered.taken_out, *taken_out))))


def _kept_by_hand(
    before: Page, live: Mapping[str, TopicItem], dropped: list[DroppedLine]
) -> tuple[list[tuple[str, Line]], set[str]]:
    """Return a person's lines, and the items of their footnotes."""
    own_lines: list[tuple[str, Line]] = []
    items: set[str] = set()
    for title, line in before.lines():
        if isinstance(line, OwnText):
            own_lines.append((title, line))
        elif line.is_by_hand:
            notes = tuple(note for note in line.notes if not note.item or note.item in live)
            dropped += [DroppedLine(note.quote, note.item, GONE) for note in line.notes if note not in notes]
            items |= {note.item for note in notes}
            own_lines.append((title, replace(line, notes=notes)))
    return own_lines, items


def _order(item: TopicItem) -> tuple[tuple[int | float | str, ...], str]:
    return item.order, item.id


def _make_claim(item: TopicItem) -> PageClaim:
    day = item.said_at.date() if item.said_at else None
    return PageClaim(item.line, (item.note,), day, is_untrusted=item.trust == "low")


def _arrange_lines(
    own_lines: Sequence[tuple[str, Line]], claims: Sequence[tuple[str, PageClaim]], rank: Callable[[str], int]
) -> list[tuple[str, Line]]:
    """Return the lines by heading, a person's lines first."""
    # A person's lines keep their section; those without a heading come first.
    titles = list(dict.fromkeys(title for title, _ in own_lines))
    for title in sorted(dict.fromkeys(title for title, _ in claims), key=rank):
        if title not in titles:
            later = [place for place, heading in enumerate(titles) if heading and rank(heading) > rank(title)]
            titles.insert(later[0] if later else len(titles), title)
    lines: dict[str, list[Line]] = {title: [] for title in titles}
    for title, line in (*own_lines, *claims):
        lines[title].append(line)
    return [(title, line) for title in titles for line in lines[title]]
