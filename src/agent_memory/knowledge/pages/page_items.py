"""Items of a topic as lines of its page, with their sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.knowledge.pages.subjects import DOCUMENT, PERSON, TALK, is_derived
from agent_memory.knowledge.passages.items import get_place, get_source_id, is_passage
from agent_memory.knowledge.passages.sections import SEPARATOR, find_words
from agent_memory.knowledge.topics.consolidation import (
    DOCUMENTS,
    HEADINGS,
    REST,
    PagePlace,
    TopicConsolidation,
    TopicItem,
    consolidate,
)
from agent_memory.knowledge.topics.page import SOURCES, Footnote, Line, Page, PageClaim, parse, with_lines
from agent_memory.models import EPISODE, RESOURCE, flatten
from agent_memory.models.clock import FILE_TIME
from agent_memory.models.memory import PASSAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.knowledge.topics.page_files import SavedPage
    from agent_memory.models import Memory, Topic

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
    turns = await knowledge.episodes.valid_among(
        [source_id for source_id in ids if source_id.startswith(EPISODE.prefix)]
    )
    conversations = {turn.conversation for turn in turns.values() if turn.conversation}
    resources = await knowledge.resources.valid_among(
        [*conversations, *(source_id for source_id in ids if source_id.startswith(RESOURCE.prefix))]
    )
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
