"""From a topic's memories to its page: each with the words it rests on, as `topics` wants them. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.facade.shapes import source_of
from agent_memory.knowledge.items.drawn import is_passage, place_of
from agent_memory.knowledge.llm.grounding import place_of as words_at
from agent_memory.knowledge.topics.consolidation import Consolidation, consolidate
from agent_memory.knowledge.topics.items import NORMAL, TopicItem
from agent_memory.knowledge.topics.page import Footnote, Page
from agent_memory.knowledge.topics.parsing import parse
from agent_memory.knowledge.topics.rewording import keep_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.facade.layers import Passage
    from agent_memory.knowledge.topics.saves import SavedPage
    from agent_memory.models import Memory, Topic

_MOST_IN_NAME: Final = 60
_MOST_QUOTED: Final = 500
"""Characters of a text that is quoted whole: as many as a paragraph that is one item."""


def page_of(
    topic: Topic,
    memories: Sequence[Memory],
    sources: Mapping[str, Passage | None],
    now: datetime,
    saved: SavedPage | None = None,
) -> Consolidation:
    """Return the page of a topic made anew, and what of the page before is not on it, each with the reason.

    Args:
        topic: With the page as it was rendered last.
        memories: What it is made of, the oldest first.
        sources: For each id that one of them names as its source, the text; None for one that is gone.
        now: When it is made.
        saved: The page as it lies there; if a person changed it, what is returned is a proposal.
    """
    rendered = rendered_of(topic)
    items = [topic_item(each, sources, order) for order, each in enumerate(memories)]
    if saved is None:
        return consolidate(rendered, items, now=now)
    return consolidate(saved.page, items, now=now, rendered=rendered if saved.is_edited else None)


def shortened(topic: Topic, memories: Sequence[Memory], sources: Mapping[str, Passage | None]) -> Page:
    """Return the page as it was rendered last, without what is gone: what a person's changes are told from."""
    rendered = rendered_of(topic)
    on_it = set(rendered.items)
    items = [topic_item(each, sources, order) for order, each in enumerate(memories) if each.id in on_it]
    made = consolidate(rendered, items, now=rendered.consolidated_at or topic.timestamp)
    return replace(keep_words(made.page, rendered), consolidated_at=rendered.consolidated_at)


def rendered_of(topic: Topic) -> Page:
    """Return the page of a topic as it was rendered last; one without sections where it never was."""
    return parse(topic.body) if topic.body else Page(title_of(topic))


def unsaid(title: str) -> str:
    """Return the description of a topic that nobody described."""
    return f"What is known of {title}."


def title_of(topic: Topic) -> str:
    """Return how a topic is written."""
    title = topic.metadata.get("title")
    return title if isinstance(title, str) and title else topic.name.replace("_", " ").title()


def topic_item(memory: Memory, sources: Mapping[str, Passage | None], order: int) -> TopicItem:
    """Return a memory as a page needs it.

    Args:
        memory: It.
        sources: As for `page_of`; without any, what it says is its quote.
        order: Its place among the others.
    """
    return TopicItem(
        memory.id,
        memory.content,
        _note(memory, sources),
        memory.category,
        memory.observed_at,
        NORMAL if memory.importance is None else memory.importance,
        _speaker(memory),
        order,
        memory.trust,
        is_passage(memory) and not memory.metadata.get("speaker"),
    )


def _speaker(memory: Memory) -> str:
    """Return who said it: items of turns begin with the name, or have it in front of their last line."""
    if is_passage(memory):
        name = str(memory.metadata.get("speaker", ""))
        return name if name and f"\n{name}: " in f"\n{memory.content}" else ""
    name, found, _ = memory.content.partition(": ")
    return name if found and len(name) <= _MOST_IN_NAME and source_of(memory).startswith("epi-") else ""


def _note(memory: Memory, sources: Mapping[str, Passage | None]) -> Footnote:
    source = source_of(memory)
    if not source:
        return Footnote(memory.id, 0, len(memory.content), memory.content, "noted by the agent", item=memory.id)
    passage = sources.get(source)
    start, end = _place(memory, source, "" if passage is None else passage.text)
    if passage is None:
        return Footnote(source, start, end, memory.content, "deleted since", item=memory.id)
    resource = passage.resource if passage.resource != source else ""
    return Footnote(source, start, end, passage.text[start:end], passage.label, resource, memory.id)


def _place(memory: Memory, source: str, text: str) -> tuple[int, int]:
    """Return where its words stand in the text of one of its sources."""
    start, end = place_of(memory, source) or (0, 0)
    if 0 <= start < end:
        return start, end
    # Nobody said where: they stand there word for word, or a short text is quoted whole, and of a long one nothing.
    return words_at(memory.content, text) or (0, len(text) if len(text) <= _MOST_QUOTED else 0)
