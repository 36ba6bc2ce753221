"""Forgetting one entity: itself, what it was merged from, how it stands to others, and where it is named.

The texts that name it stay. It is not drawn again, from whatever text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from agent_memory.models import EPISODE, MENTIONS, NAMES, RESOURCE
from agent_memory.models.entities import ENTITY_STAGE
from agent_memory.storage.cleaning import redact_fields
from agent_memory.tasks.marks import Marks, with_never

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Entity, Mentions


class _Known(Protocol):
    """An entity, with what was merged into it."""

    @property
    def entity(self) -> Entity: ...

    @property
    def merged(self) -> tuple[Entity, ...]: ...


@dataclass(frozen=True, slots=True)
class Gone:
    """What was forgotten: how many entities, relations, and texts in which it was noted where it is named."""

    entities: int
    relations: int
    mentions: int


async def forget_entity(knowledge: Knowledge, known: _Known) -> Gone:
    """Forget an entity and what was merged into it; what is left where it is named are the others named there.

    Raises:
        StorageError: Some may be forgotten; doing it again does the rest.
    """
    ids = [known.entity.id, *(each.id for each in known.merged)]
    marks = Marks(knowledge.marks)
    for source in (EPISODE.name, RESOURCE.name):
        await marks.keep(with_never(await marks.of_name(ENTITY_STAGE, source), ids))
    relations = {each.id for one in ids for each in await knowledge.relations.linked_to(one)}
    if relations:
        await knowledge.relations.forget_many(sorted(relations))
    mentions = {each.id: each for one in ids for each in await knowledge.mentions.linked_to(one)}
    for each in mentions.values():
        await _without(knowledge, each, ids)
    there = await knowledge.entities.valid_among(ids)
    await knowledge.entities.forget_many([one for one in reversed(ids) if one in there])  # the one that has a name last
    return Gone(len(there), len(relations), len(mentions))


async def _without(knowledge: Knowledge, mention: Mentions, ids: Collection[str]) -> None:
    rows = list(zip(mention.content.splitlines(), mention.entities, mention.at, strict=False))
    kept = [row for row in rows if row[1] not in ids]
    if not kept:
        await knowledge.mentions.forget_many([mention.id])
        return
    links = [link.model_dump() for link in mention.links if not (link.rel == NAMES and link.id in ids)]
    changes: dict[str, Any] = {
        "content": "\n".join(name for name, _, _ in kept),
        "at": [at for _, _, at in kept],
        "links": links,
    }
    await knowledge.mentions.update(mention.id, redact_fields(MENTIONS, changes))
