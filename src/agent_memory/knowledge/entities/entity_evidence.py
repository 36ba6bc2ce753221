"""Evidence that a capitalized word is a name: sources with its capital, and without."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.mention import REPEATED
from agent_memory.knowledge.entities.merging import is_named_by_person
from agent_memory.knowledge.entities.name_reader import BY_CAPITALS
from agent_memory.knowledge.entities.removed_rules import is_by_removed_rules, is_guessed_entity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import Entity, EntityMentions

_LEAST: Final = 2
"""Occurrences of a name before it is shown."""


def is_common_use(name: str, entity: Entity | None) -> bool:
    """Return True for a lower-case mention of a capitalized name."""
    return entity is not None and entity.source.detail == BY_CAPITALS and name == name.lower()


class NameEvidence:
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
        """Return True if at least half of the sources have it in lower case."""
        return 0 < self._lowercase[entity.id] >= self._count(entity)

    def _count(self, entity: Entity) -> int:
        is_repeated = (entity.confidence or 0) >= REPEATED
        return max(self._capitalized[entity.id], _LEAST if is_repeated else 0)
