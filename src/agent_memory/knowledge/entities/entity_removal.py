"""Removal of an entity: its record, merged entities, relations and mentions.

The texts that name it stay. No text brings it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from agent_memory.knowledge.pipeline.marks import Marks, with_never
from agent_memory.models import EPISODE, MENTIONS, NAMES, RESOURCE
from agent_memory.models.knowledge import ENTITY_STAGE
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Entity, EntityMentions


class _MergedEntity(Protocol):
    """An entity with all merged into it."""

    @property
    def entity(self) -> Entity: ...

    @property
    def merged(self) -> tuple[Entity, ...]: ...


@dataclass(frozen=True, slots=True)
class RemovedCounts:
    """Numbers of forgotten entities, relations and records of mentions."""

    entities: int
    relations: int
    mentions: int


async def forget_entity(knowledge: Knowledge, known: _MergedEntity) -> RemovedCounts:
    """Forget an entity and all merged into it.

    Other entities of the same texts stay.

    Raises:
        StorageError: Some may be forgotten; a second call forgets the rest.
    """
    ids = [known.entity.id, *(entity.id for entity in known.merged)]
    marks = Marks(knowledge.marks)
    for source in (EPISODE.name, RESOURCE.name):
        await marks.keep(with_never(await marks.of_name(ENTITY_STAGE, source), ids))
    relations = {relation.id for entity_id in ids for relation in await knowledge.relations.linked_to(entity_id)}
    if relations:
        await knowledge.relations.forget_many(sorted(relations))
    mentions = {record.id: record for entity_id in ids for record in await knowledge.mentions.linked_to(entity_id)}
    for record in mentions.values():
        await _remove_names(knowledge, record, ids)
    existing = await knowledge.entities.valid_among(ids)
    # the entity that the others were merged into is the last, so that a second call finds it
    await knowledge.entities.forget_many([entity_id for entity_id in reversed(ids) if entity_id in existing])
    return RemovedCounts(len(existing), len(relations), len(mentions))


async def _remove_names(knowledge: Knowledge, mention: EntityMentions, ids: Collection[str]) -> None:
    rows = list(zip(mention.content.splitlines(), mention.entities, mention.at, strict=False))
    left = [row for row in rows if row[1] not in ids]
    if not left:
        await knowledge.mentions.forget_many([mention.id])
        return
    links = [link.model_dump() for link in mention.links if not (link.rel == NAMES and link.id in ids)]
    changes: dict[str, Any] = {
        "content": "\n".join(name for name, _, _ in left),
        "at": [at for _, _, at in left],
        "links": links,
    }
    await knowledge.mentions.update(mention.id, redact_fields(MENTIONS, changes))
