"""Merges of entities, and the visibility of entities. Pure.

The entity keeps what a merge changes under `metadata.merged`, so that `split` restores it. Guesses of rules of earlier
versions are hidden, never deleted.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from agent_memory.errors import ValidationError
from agent_memory.knowledge.entities.name_finder import BY_CAPITALS, REPEATED, is_identifier
from agent_memory.models.knowledge import RELATION_TYPES, Entity, Relation
from agent_memory.models.record import TRUST_ORDER, Record, Trust

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.models import EntityMentions

MERGED: Final = "merged"
"""Key of the merges in the metadata of an entity."""
_MOST_BYTES: Final = 6_144
"""Most bytes of the merges, of the 8 KiB of metadata."""
REMOVED_RULES: Final = "rules"
"""Detail of the source of records that earlier versions made."""
_LEAST: Final = 2
"""Occurrences of a name before it is shown."""


class AttributeValue(TypedDict):
    """Value of an attribute, its trust, and the ID of its entity."""

    value: str
    trust: Trust
    by: str


class Merges(TypedDict):
    """Entities merged into another one.

    `ids` are the entities in the order of merging. `attributes` has all values of each attribute in that order, that
    of the entity itself first. `aliases` has the new names of each entity.
    """

    ids: list[str]
    attributes: dict[str, list[AttributeValue]]
    aliases: dict[str, list[str]]


def merge(existing: Entity, new: Entity) -> Entity:
    """Merge a new entity into an existing one.

    ID, name, group and moments stay. A new value of an attribute replaces the old one, unless its trust is lower. Name
    and aliases of the new entity become aliases.

    Raises:
        ValidationError: They are one record, belong to two groups, were merged before, or the merge would be too large
            to be taken back.
    """
    merges = get_merges(existing)
    if new.id == existing.id or new.id in merges["ids"]:
        raise ValidationError(f"{new.id} is part of {existing.id} already.")
    if new.group != existing.group:
        raise ValidationError(f"{new.id} and {existing.id} belong to two groups; entities of one group can be merged.")
    merges["ids"].append(new.id)
    for key, value in new.attributes.items():
        values = merges["attributes"].setdefault(key, [])
        if not values and key in existing.attributes:
            values.append(_make_value(existing.attributes[key], existing))
        values.append(_make_value(value, new))
    own_names = {existing.name, *_own_aliases(existing, merges)}
    merges["aliases"][new.id] = [name for name in dict.fromkeys((new.name, *new.aliases)) if name not in own_names]
    return _replace_merges(existing, merges)


def split(merged: Entity, other_id: str) -> Entity:
    """Split off a merged entity; the result is as without that merge.

    Raises:
        ValidationError: It was not merged.
    """
    merges = get_merges(merged)
    if other_id not in merges["ids"]:
        raise ValidationError(f"{other_id} is no part of {merged.id}.")
    merges["ids"].remove(other_id)
    for values in merges["attributes"].values():
        values[:] = [value for value in values if value["by"] != other_id]
    del merges["aliases"][other_id]
    return _replace_merges(merged, merges)


def get_merges(entity: Entity) -> Merges:
    """Return a copy of the merges of an entity."""
    stored = cast("Mapping[str, Any]", entity.metadata.get(MERGED) or {})
    return Merges(
        ids=list(stored.get("ids", ())),
        attributes={key: list(values) for key, values in stored.get("attributes", {}).items()},
        aliases={entity_id: list(names) for entity_id, names in stored.get("aliases", {}).items()},
    )


def is_named_by_person(entity: Entity) -> bool:
    """Return True if a person named or merged an entity."""
    merge = entity.metadata.get("merge")
    return bool(entity.aliases) or (isinstance(merge, dict) and merge.get("stage") == "person")


def find_root(entity: Entity, by_id: Mapping[str, Entity]) -> Entity:
    """Return the entity at the end of the merges."""
    seen = {entity.id}
    while (into := entity.merged_into) is not None and into not in seen and into in by_id:
        seen.add(into)
        entity = by_id[into]
    return entity


def list_cluster(entity_id: str, by_id: Mapping[str, Entity]) -> list[str]:
    """Return the IDs of all entities merged with one, its own included."""
    if entity_id not in by_id:
        return [entity_id]
    root = find_root(by_id[entity_id], by_id)
    return [entity.id for entity in by_id.values() if find_root(entity, by_id) is root]


def _make_value(value: str, entity: Entity) -> AttributeValue:
    return AttributeValue(value=value, trust=entity.trust, by=entity.id)


def _holds(values: list[AttributeValue]) -> AttributeValue:
    """Return the latest value of the highest trust."""
    return max(enumerate(values), key=lambda entry: (TRUST_ORDER.index(entry[1]["trust"]), entry[0]))[1]


def _own_aliases(entity: Entity, merges: Merges) -> list[str]:
    brought = {name for names in merges["aliases"].values() for name in names}
    return [name for name in entity.aliases if name not in brought]


def _replace_merges(entity: Entity, merges: Merges) -> Entity:
    """Replace the merges of an entity."""
    before = get_merges(entity)
    attributes = {key: value for key, value in entity.attributes.items() if key not in before["attributes"]}
    attributes |= {key: _holds(values)["value"] for key, values in merges["attributes"].items() if values}
    brought = (name for item in merges["ids"] for name in merges["aliases"][item])
    aliases = list(dict.fromkeys((*_own_aliases(entity, before), *brought)))
    merges["attributes"] = {
        key: values for key, values in merges["attributes"].items() if any(item["by"] != entity.id for item in values)
    }
    metadata = {key: value for key, value in entity.metadata.items() if key != MERGED}
    if merges["ids"]:
        if len(json.dumps(merges, ensure_ascii=False).encode()) > _MOST_BYTES:
            raise ValidationError(
                f"What would be merged into {entity.id} is too much to be taken back: merge what says less."
            )
        metadata[MERGED] = cast("Any", merges)
    fields = entity.model_dump() | {"attributes": attributes, "aliases": aliases, "metadata": metadata}
    return type(entity)(**fields)


def is_guessed_entity(entity: Entity) -> bool:
    """Return True for a guess of a removed rule.

    Speakers, identifiers and decisions of a person are not guesses.
    """
    is_speaker = entity.entity_type == "person" and entity.confidence == 1
    return is_by_removed_rules(entity) and not (is_named_by_person(entity) or is_speaker or is_identifier(entity.name))


def is_guessed_relation(relation: Relation) -> bool:
    """Return True for a relation of a removed rule.

    A language model gave all other types.
    """
    return is_by_removed_rules(relation) and relation.relation_type in RELATION_TYPES


def is_by_removed_rules(record: Entity | EntityMentions | Relation) -> bool:
    """Return True if an earlier version made a record from a text."""
    return record.source.kind == "extraction" and record.source.detail == REMOVED_RULES


def count_guesses(records: Iterable[Record]) -> tuple[int, int]:
    """Count the guessed entities and relations among records."""
    entities = relations = 0
    for record in records:
        entities += isinstance(record, Entity) and is_guessed_entity(record)
        relations += isinstance(record, Relation) and is_guessed_relation(record)
    return entities, relations


def is_common_use(name: str, entity: Entity | None) -> bool:
    """Return True for a lower-case mention of a capitalized name."""
    return entity is not None and entity.source.detail == BY_CAPITALS and name == name.lower()


class NameCounts:
    """Counts sources of the names of a group.

    Args:
        mentions: Records of what sources name.
    """

    def __init__(self, mentions: Iterable[EntityMentions] = ()) -> None:
        self._capitalized, self._lowercase = Counter[str](), Counter[str]()
        self._counted: set[str] = set()
        for record in mentions:
            self.add(record)

    def add(self, record: EntityMentions) -> None:
        """Count the names of a record once, unless removed rules made it."""
        if record.id in self._counted or is_by_removed_rules(record):
            return
        self._counted.add(record.id)
        for name, entity_id in zip(record.content.splitlines(), record.entities, strict=False):
            counter = self._lowercase if name == name.lower() else self._capitalized
            counter[entity_id] += 1

    def is_shown(self, entity: Entity) -> bool:
        """Return True if declared, an identifier, or a name seen twice."""
        if entity.source.detail != BY_CAPITALS or is_named_by_person(entity):
            return not is_guessed_entity(entity)
        return self._count(entity) >= _LEAST and not self.is_common(entity)

    def has_lowercase(self, entity: Entity) -> bool:
        """Return True if a source has the name in lower case."""
        return self._lowercase[entity.id] > 0

    def is_common(self, entity: Entity) -> bool:
        """Return True if half of the sources have it in lower case."""
        return 0 < self._lowercase[entity.id] >= self._count(entity)

    def _count(self, entity: Entity) -> int:
        is_repeated = (entity.confidence or 0) >= REPEATED
        return max(self._capitalized[entity.id], _LEAST if is_repeated else 0)
