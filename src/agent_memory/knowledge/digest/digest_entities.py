"""Entities and relations of digested statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.entities.entity_index import get_entity_id
from agent_memory.knowledge.entities.merges import REMOVED_RULES, list_cluster
from agent_memory.knowledge.entities.name_finder import BY_CAPITALS
from agent_memory.knowledge.entities.relations import RELATIONS, ExtractedRelationship, make_relations, store_relations
from agent_memory.knowledge.pipeline.stages import StageCheckpoints
from agent_memory.models import DIGEST, ENTITY, EPISODE, MENTIONS, NAMES, RESOURCE, derived_id
from agent_memory.models.knowledge import ENTITY_STAGE
from agent_memory.store.record_redaction import make_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.knowledge.records import Knowledge

_MAY_BE_HIDDEN: Final = frozenset({BY_CAPITALS, REMOVED_RULES})


async def note_entities(knowledge: Knowledge, items: Iterable[Mapping[str, Any]]) -> None:
    """Store owners, entities and relations of statements, except forgotten ones.

    Args:
        knowledge: Records of the agent.
        items: Fields of the statements.

    Raises:
        StorageError: Some may be stored; doing it again stores none twice.
    """
    marks = [await StageCheckpoints(knowledge.marks).of_name(ENTITY_STAGE, kind.name) for kind in (EPISODE, RESOURCE)]
    forgotten = {record_id for mark in marks for record_id in mark.never}
    for item in items:
        details = item["metadata"]
        relations = [ExtractedRelationship.model_validate(row) for row in details.get(RELATIONS, ())]
        declared = {name for relation in relations for name in relation.names}
        names = {" ".join(name.split()) for name in (details.get("owner", ""), *details.get("entities", ()))} - {""}
        ids = {name: get_entity_id(name, item["group"]) for name in sorted(names | declared)}
        ids = {name: entity_id for name, entity_id in ids.items() if entity_id not in forgotten}
        for name, entity_id in ids.items():
            await _note_entity(knowledge, name, entity_id, item)
        mentions_id = derived_id(MENTIONS.prefix, item["id"], DIGEST)
        if ids and await knowledge.mentions.get(mentions_id) is None:
            links = [*item["links"], *({"rel": NAMES, "id": entity_id} for entity_id in ids.values())]
            values = {**_head(item), "links": links, "content": "\n".join(ids), "at": [details["at"][0]] * len(ids)}
            record = make_record(MENTIONS, values, knowledge.agent_id)
            await knowledge.mentions.store_many([with_fields(record, id=mentions_id)])
        if relations:
            await _note_relations(knowledge, relations, ids, item)


async def _note_relations(
    knowledge: Knowledge, relations: Iterable[ExtractedRelationship], ids: Mapping[str, str], item: Mapping[str, Any]
) -> None:
    """Store the relations that a statement declares."""
    quoted = [relation.model_copy(update={"quote": item["content"]}) for relation in relations]
    source = (item["id"], item["links"][0]["id"])
    records = make_relations(_head(item), knowledge.agent_id, quoted, ids, source)
    by_id = {entity.id: entity for entity in await knowledge.entities.valid() if entity.group == item["group"]}
    await store_relations(knowledge, records, lambda entity_id: list_cluster(entity_id, by_id))


async def _note_entity(knowledge: Knowledge, name: str, entity_id: str, item: Mapping[str, Any]) -> None:
    """Store an entity, or show one that was hidden."""
    existing = await knowledge.entities.get(entity_id)
    if existing is None:
        values = {**_head(item), "name": name, "entity_type": "name", "confidence": 1.0}
        record = make_record(ENTITY, values, knowledge.agent_id)
        await knowledge.entities.store_many([with_fields(record, id=entity_id)])
    elif existing.source.detail in _MAY_BE_HIDDEN:
        await knowledge.entities.update(entity_id, {"source": {"kind": "extraction", "detail": DIGEST}})


def _head(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("timestamp", "observed_at", "group", "source", "trust")}
