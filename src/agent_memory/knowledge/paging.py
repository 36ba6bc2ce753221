"""From a topic's memories to its page: each with the words it rests on, as `topics` wants them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.shapes import source_of
from agent_memory.knowledge.topics.consolidation import consolidate
from agent_memory.knowledge.topics.items import NORMAL, TopicItem
from agent_memory.knowledge.topics.page import Footnote, Page
from agent_memory.knowledge.topics.parsing import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.layers import Passage
    from agent_memory.knowledge.topics.consolidation import Consolidation
    from agent_memory.models import Memory, Topic


def page_of(
    topic: Topic, memories: Sequence[Memory], sources: Mapping[str, Passage | None], now: datetime
) -> Consolidation:
    """Return the page of a topic made anew, and what of the page before is not on it, each with the reason.

    Args:
        topic: With the page before.
        memories: What it is made of, the oldest first.
        sources: For each id that one of them names as its source, the text; None for one that is gone.
        now: When it is made.
    """
    before = parse(topic.body) if topic.body else Page(topic.name.replace("_", " ").title())
    return consolidate(before, [_item(each, sources, order) for order, each in enumerate(memories)], now=now)


def _item(memory: Memory, sources: Mapping[str, Passage | None], order: int) -> TopicItem:
    return TopicItem(
        memory.id,
        memory.content,
        _note(memory, sources),
        memory.category,
        memory.observed_at,
        NORMAL if memory.importance is None else memory.importance,
        order=order,
    )


def _note(memory: Memory, sources: Mapping[str, Passage | None]) -> Footnote:
    source = source_of(memory)
    if not source:
        return Footnote(memory.id, 0, len(memory.content), memory.content, "noted by the agent", item=memory.id)
    start, end = _place(memory)
    passage = sources.get(source)
    if passage is None:
        return Footnote(source, start, end, memory.content, "deleted since", item=memory.id)
    resource = passage.resource if passage.resource != source else ""
    return Footnote(source, start, end, passage.text[start:end], passage.label, resource, memory.id)


def _place(memory: Memory) -> tuple[int, int]:
    """Return where its words stand in the text of its source."""
    at = memory.metadata.get("at")
    places = [each for each in at if isinstance(each, int)] if isinstance(at, list) else []
    match places:
        case [start, end] if 0 <= start <= end:
            return start, end
    return 0, len(memory.content)
