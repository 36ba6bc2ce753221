"""Entities, mentions and relations that rules of earlier versions guessed: hidden, never deleted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.identifiers import is_identifier
from agent_memory.knowledge.entities.merging import is_named_by_person
from agent_memory.models.knowledge import RELATION_TYPES, Entity, Relation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import EntityMentions
    from agent_memory.models.record import Record

REMOVED_RULES: Final = "rules"
"""Detail of the source of records that earlier versions made."""


def is_guessed_entity(entity: Entity) -> bool:
    """Return True for a guess of a removed rule.

    A speaker, an identifier or what a person decided is no guess.
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
