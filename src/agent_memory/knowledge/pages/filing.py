"""Where items are filed: the topic they name, a declared one that they are like, those they speak of, or none."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.pages.paging import title_of, topic_item
from agent_memory.knowledge.topics.assignment import UNFILED, Assignment, Declared, assign, nearest
from agent_memory.knowledge.topics.entities import LEAST_ITEMS
from agent_memory.models import EVERYTHING, Listing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.embeddings.protocol import Matrix
    from agent_memory.knowledge.topics.assignment import Embed
    from agent_memory.models import Memory, Topic
    from agent_memory.service import MemoryService

ENTITY: Final = "entity"
"""`source.detail` of a topic that nobody declared: it is made of what items speak of."""


@dataclass(frozen=True, slots=True)
class Filed:
    """What belongs together.

    Attributes:
        members: The memories of each topic by its name, the oldest first; also of names that have no topic yet.
        titles: How names are written that nobody declared.
        unfiled: Items that belong to no topic.
        total: All items.
    """

    members: Mapping[str, Sequence[Memory]]
    titles: Mapping[str, str]
    unfiled: int
    total: int


def is_entity(topic: Topic) -> bool:
    """Tell whether a topic was made of what items speak of, rather than declared."""
    return topic.source.detail == ENTITY


async def file_all(service: MemoryService, topics: Sequence[Topic]) -> Filed:
    """File everything: an item that names a topic there, others by the rules of `topics.assignment`.

    Raises:
        StorageError: They cannot be read.
    """
    memories = (await service.admin.browse(Listing("oldest", EVERYTHING))).records
    names = {topic.name for topic in topics}
    free = [each for each in memories if each.is_item and each.topic not in names]
    declared = declared_of(topics)
    embed = await embed_of(service, [each.content for each in free], declared)
    made = await asyncio.to_thread(_assigned_all, free, topics, embed)
    few = {name for name, own in made.members().items() if len(own) < LEAST_ITEMS and name not in names}
    members: dict[str, list[Memory]] = {}
    for each in memories:
        own = (each.topic,) if each.topic in names else made.topics.get(each.id, ())
        for name in [one for one in own if one not in few] or ([UNFILED] if each.is_item else []):
            members.setdefault(name, []).append(each)
    unfiled = len(members.pop(UNFILED, ()))
    titles = {topic.name: title_of(topic) for topic in topics} | dict(made.titles)
    return Filed(members, titles, unfiled, sum(each.is_item for each in memories))


async def unfiled_of(service: MemoryService, topics: Sequence[Topic]) -> int:
    """Return how many items are on no page of these topics.

    Raises:
        StorageError: They cannot be read.
    """
    filed = {one for topic in topics for one in topic.item_ids}
    live = await service.admin.valid_among(filed)
    total = (await service.admin.browse(Listing(filters=EVERYTHING, limit=0))).total
    notes = (await service.admin.browse(Listing(limit=0))).total
    return max(0, total - notes - sum(each.is_item for each in live.values()))


def declared_of(topics: Sequence[Topic]) -> list[Declared]:
    """Return the topics that somebody declared."""
    return [Declared(topic.name, topic.description) for topic in topics if not is_entity(topic)]


async def guessed(service: MemoryService, texts: Sequence[str], topics: Sequence[Topic]) -> list[str]:
    """Return for each text the declared topic that it belongs to; an empty text where it is none, or several alike."""
    declared = declared_of(topics)
    if not declared or not texts:
        return [""] * len(texts)
    embed = await embed_of(service, texts, declared)
    return await asyncio.to_thread(nearest, texts, declared, embed)


async def embed_of(service: MemoryService, texts: Sequence[str], declared: Sequence[Declared]) -> Embed | None:
    """Return what gives these texts and the phrases of topics their vectors; None where words have to do."""
    if not declared or not texts:
        return None
    every = list(dict.fromkeys([*texts, *(phrase for topic in declared for phrase in topic.phrases)]))
    matrix = await service.admin.vectors_of(every)
    if matrix is None:
        return None
    rows = {text: at for at, text in enumerate(every)}

    def embed(some: list[str]) -> Matrix:
        return matrix[[rows[text] for text in some]]

    return embed


def _assigned_all(items: Sequence[Memory], topics: Sequence[Topic], embed: Embed | None) -> Assignment:
    """Assign items; a topic that a group declared takes in what that group gave alone."""
    made = _assigned(items, declared_of(open_to("", topics)), embed)
    found = dict(made.topics)
    for group in sorted({topic.group for topic in topics if topic.group and not is_entity(topic)}):
        own = [each for each in items if each.belongs_to == group]
        names = nearest([each.content for each in own], declared_of(open_to(group, topics)), embed) if own else []
        found |= {each.id: (name,) for each, name in zip(own, names, strict=True) if name}
    return replace(made, topics=found)


def open_to(group: str, topics: Sequence[Topic]) -> list[Topic]:
    """Return the topics under which what belongs to a group may be filed; an empty one is none."""
    return [each for each in topics if each.group in {"", group}]


def _assigned(items: Sequence[Memory], declared: Sequence[Declared], embed: Embed | None) -> Assignment:
    return assign([topic_item(each, {}, order) for order, each in enumerate(items)], declared, embed)
