"""Items of a topic, and its page rebuilt without silent loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.errors import StorageError
from agent_memory.knowledge.pages.page import (
    SOURCES,
    Footnote,
    Line,
    OwnText,
    Page,
    PageClaim,
    escape,
    parse,
    with_lines,
)
from agent_memory.knowledge.pages.subjects import DOCUMENT, PERSON, TALK, is_derived
from agent_memory.knowledge.passages.items import get_place, get_source_id, is_passage
from agent_memory.knowledge.passages.sections import SEPARATOR, find_words
from agent_memory.models import flatten
from agent_memory.models.clock import FILE_TIME
from agent_memory.models.memory import PASSAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.pages.page_files import SavedPage
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory, Topic, Trust

_EXCHANGES: Final = "Exchanges"
_UNDATED: Final = "Without a date"
_NOTE: Final = "note"
_MOST_QUOTED: Final = 500
"""Characters of a text that is quoted whole."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text of a resource or of a turn.

    Attributes:
        source, resource: ID of the text, and ID of its resource.
        text: Whole text of the source.
        label: Type and title, for a reader.
        order: Place of a turn in its conversation.
        speaker: Name or role of who said a turn.
    """

    source: str
    resource: str
    text: str
    label: str
    order: int = 0
    speaker: str = ""


async def load_texts(knowledge: Knowledge, source_ids: Iterable[str]) -> dict[str, SourceText | None]:
    """Return the texts of sources by ID; None for a missing one.

    Raises:
        StorageError: The records cannot be read; a long text that is missing or damaged counts as missing.
    """
    ids = list(dict.fromkeys(filter(None, source_ids)))
    turns, resources = await knowledge.load_sources(ids)
    texts: dict[str, SourceText | None] = {}
    for source in ids:
        turn = turns.get(source)
        resource = resources.get((turn.conversation or "") if turn is not None else source)
        texts[source], record = None, turn or resource
        if record is not None:
            try:
                text = await knowledge.text_of(record)
            except StorageError:
                continue
            home = resource.id if resource is not None else source
            label = f"{resource.resource_type} {resource.title}".strip() if resource is not None else "a turn"
            speaker, order = (turn.speaker or turn.role.title(), turn.order) if turn is not None else ("", 0)
            texts[source] = SourceText(source, home, text, label, order, speaker)
    return texts


def build_page(
    topic: Topic,
    memories: Sequence[Memory],
    sources: Mapping[str, SourceText | None],
    now: datetime,
    saved: SavedPage | None = None,
) -> TopicConsolidation:
    """Return the rebuilt page of a topic, with dropped lines and reasons.

    Args:
        topic: With the page as it was rendered last.
        memories: What it is made of, the oldest first.
        sources: For each id that one of them names as its source, the text; None for one that is gone.
        now: When it is made.
        saved: Page in its files; if a person edited it, the result is a proposal.
    """
    rendered = replace(parse_rendered(topic), title=get_title(topic))
    items, about = build_items(topic, memories, sources), topic.description if is_derived(topic) else ""
    if saved is None:
        return consolidate(rendered, items, now=now, about=about)
    if saved.is_edited:
        return consolidate(saved.page, items, now=now, rendered=rendered, about=about)
    return consolidate(replace(saved.page, title=rendered.title), items, now=now, about=about)


def shorten_page(topic: Topic, memories: Sequence[Memory], sources: Mapping[str, SourceText | None]) -> Page:
    """Return the last rendered page without deleted items."""
    rendered = parse_rendered(topic)
    on_it = set(rendered.items)
    items = build_items(topic, [memory for memory in memories if memory.id in on_it], sources)
    made = consolidate(rendered, items, now=rendered.consolidated_at or topic.timestamp, about=rendered.about)
    return replace(_keep_words(made.page, rendered), consolidated_at=rendered.consolidated_at)


def _keep_words(page: Page, rendered: Page) -> Page:
    """Return a page with the words that its claims had.

    A language model worded claims for earlier versions. Claims with other footnotes stay as they are.
    """
    texts = {claim.notes: claim.text for claim in rendered.claims if not claim.is_by_hand}
    lines: list[tuple[str, Line]] = []
    for title, line in page.lines():
        if isinstance(line, PageClaim) and not line.is_by_hand:
            line = replace(line, text=texts.get(line.notes, line.text))  # noqa: PLW2901 - the same claim
        lines.append((title, line))
    return with_lines(page, lines)


def parse_rendered(topic: Topic) -> Page:
    """Return the last rendered page of a topic, or an empty one."""
    return parse(topic.body) if topic.body else Page(get_title(topic))


def build_description(title: str) -> str:
    """Return the default description of a topic."""
    return f"What is known of {title}."


def get_title(topic: Topic) -> str:
    """Return the title of a topic."""
    title = topic.metadata.get("title")
    return title if isinstance(title, str) and title else topic.name.replace("_", " ").title()


def build_items(topic: Topic, memories: Sequence[Memory], sources: Mapping[str, SourceText | None]) -> list[TopicItem]:
    """Return memories as a page needs them, statements next to their passages.

    Args:
        topic: Topic of the page.
        memories: Memories of the topic, oldest first.
        sources: As for `build_page`.
    """
    items: dict[str, TopicItem] = {}
    for place, memory in enumerate(memories):
        items[memory.id] = _build_item(topic, memory, sources, place)
    for memory in memories:
        passage = items.get(str(memory.metadata.get(PASSAGE, "")))
        if passage is not None:
            item = items[memory.id]
            order = (*passage.order, item.note.start)
            items[memory.id] = replace(item, heading=passage.heading, said_at=passage.said_at, order=order)
    return list(items.values())


def _build_item(topic: Topic, memory: Memory, sources: Mapping[str, SourceText | None], place: int) -> TopicItem:
    """Return a memory as a page needs it."""
    note = _note(memory, sources)
    if is_passage(memory) and "speaker" not in memory.metadata:
        path = str(memory.metadata.get("heading", ""))
        words = memory.content.removeprefix(path).strip("\n") if path else memory.content
        heading = flatten(path or note.label)
        if topic.source.detail == DOCUMENT:  # the title of the page is above all
            heading = flatten(path).removeprefix(get_title(topic)).removeprefix(SEPARATOR)
        section = heading if heading != SOURCES else f"{get_title(topic)}{SEPARATOR}{heading}"
        order = PagePlace(DOCUMENTS, 0, note.source, note.start, place)
        return TopicItem(memory.id, words or path, note, section, order=order, trust=memory.trust)
    is_dated = FILE_TIME not in memory.metadata
    heading = HEADINGS.get(memory.category, REST)
    if memory.is_item and memory.category == _NOTE:
        month = f"{memory.moment:%Y-%m}" if is_dated else _UNDATED
        heading = {TALK: _EXCHANGES, PERSON: month}.get(topic.source.detail or "", heading)
    text = memory.content if is_passage(memory) else flatten(memory.content)
    turn = sources.get(get_source_id(memory))
    if is_passage(memory) and turn is not None and turn.speaker and f"\n{turn.speaker}: " not in f"\n{text}":
        text = f"{turn.speaker}: {text}"
    moment = memory.observed_at.timestamp() if memory.observed_at else float("inf")
    order = PagePlace(0, moment, "", place if turn is None else turn.order, note.start)
    return TopicItem(memory.id, text, note, heading, memory.observed_at if is_dated else None, order, memory.trust)


def _note(memory: Memory, sources: Mapping[str, SourceText | None]) -> Footnote:
    source = get_source_id(memory)
    if not source:
        return Footnote(memory.id, 0, len(memory.content), memory.content, "noted by the agent", item=memory.id)
    passage = sources.get(source)
    start, end = _place(memory, source, "" if passage is None else passage.text)
    if passage is None:
        return Footnote(source, start, end, flatten(memory.content), "deleted since", item=memory.id)
    resource = passage.resource if passage.resource != source else ""
    quote = passage.text[start:end]
    # A passage has the words of its source, so the page need not say them twice.
    quote = "" if is_passage(memory) and quote.strip() in memory.content else quote
    return Footnote(source, start, end, quote, passage.label, resource, memory.id)


def _place(memory: Memory, source: str, text: str) -> tuple[int, int]:
    """Return the place of a memory's words in a source."""
    start, end = get_place(memory, source) or (0, 0)
    if 0 <= start < end:
        return start, end
    # Without a place the words are searched for; a short text is quoted whole, a long one not at all.
    return find_words(memory.content, text) or (0, len(text) if len(text) <= _MOST_QUOTED else 0)


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
        is_proposal: True if a person edited the page, so that this one is stored next to it.
    """

    page: Page
    dropped: tuple[DroppedLine, ...] = ()
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
    return TopicConsolidation(page, tuple(dropped), is_proposal=rendered is not None)


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
