"""Merges of entities, and the visibility of entities. Pure.

Guesses of rules of earlier versions are hidden, never deleted.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, cast

from agent_memory.errors import ValidationError
from agent_memory.knowledge.entities.name_finder import BY_CAPITALS, REPEATED, is_identifier
from agent_memory.models.knowledge import RELATION_TYPES, Entity, Relation
from agent_memory.models.record import TRUST_ORDER, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from agent_memory.models import EntityMentions
    from agent_memory.models.record import Trust

ATTRIBUTE_TRUST: Final = "attribute_trust"
"""Key of the metadata of a merged entity: the trust of attributes, by name, where it is not that of the entity."""
REMOVED_RULES: Final = "rules"
"""Detail of the source of records that earlier versions made."""
_LEAST: Final = 2
"""Occurrences of a name before it is shown."""


def merge(existing: Entity, *further: Entity) -> Entity:
    """Return an entity with the names and attributes of further ones.

    ID, name, group and moments stay. Of an attribute the latest value of the highest trust counts. Names and aliases
    of the further ones become aliases. The metadata keeps the trust of attributes for the next merge.

    Raises:
        ValidationError: One is the entity itself, or belongs to another group.
    """
    for entity in further:
        if entity.id == existing.id:
            raise ValidationError(f"{entity.id} is part of {existing.id} already.")
        if entity.group != existing.group:
            raise ValidationError(
                f"{entity.id} and {existing.id} belong to two groups; entities of one group can be merged."
            )
    values: dict[str, tuple[Trust, str]] = {}
    for member in (existing, *further):
        for key, (trust, value) in _list_values(member).items():
            if key not in values or TRUST_ORDER.index(trust) >= TRUST_ORDER.index(values[key][0]):
                values[key] = trust, value
    attributes = {key: value for key, (_, value) in values.items()}
    trusts = {key: trust for key, (trust, _) in values.items() if trust != existing.trust}
    metadata = {key: value for key, value in existing.metadata.items() if key != ATTRIBUTE_TRUST}
    metadata |= {ATTRIBUTE_TRUST: cast("JsonValue", trusts)} if trusts else {}
    names = dict.fromkeys(name for member in (existing, *further) for name in (member.name, *member.aliases))
    aliases = [name for name in names if name != existing.name or name in existing.aliases]
    return existing.model_copy(update={"attributes": attributes, "aliases": aliases, "metadata": metadata})


def _list_values(entity: Entity) -> dict[str, tuple[Trust, str]]:
    """Return the trust and the value of each attribute."""
    stored = entity.metadata.get(ATTRIBUTE_TRUST)
    trusts = stored if isinstance(stored, dict) else {}
    return {
        key: (next((trust for trust in TRUST_ORDER if trust == trusts.get(key)), entity.trust), value)
        for key, value in entity.attributes.items()
    }


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
