"""Evidence that a capitalized word is a name: how many sources have it with its capital, and how many without."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.entities.mention import REPEATED
from agent_memory.entities.name_reader import BY_CAPITALS
from agent_memory.entities.removed_rules import is_by_removed_rules, is_declared, is_guessed_entity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import Entity, Mentions

_LEAST: Final = 2
"""Occurrences of a name before it is shown."""


def is_common_use(name: str, entity: Entity | None) -> bool:
    """Return True if a name that was found by its capitals is written without them: no mention of it is shown."""
    return entity is not None and entity.source.detail == BY_CAPITALS and name == name.lower()


class NameEvidence:
    """Counts sources of the names of a group.

    Args:
        mentions: Records of what sources name.
    """

    def __init__(self, mentions: Iterable[Mentions] = ()) -> None:
        self._large, self._small = Counter[str](), Counter[str]()
        self._counted: set[str] = set()
        for record in mentions:
            self.add(record)

    def add(self, record: Mentions) -> None:
        """Count the names of a record, once; not those of removed rules."""
        if record.id in self._counted or is_by_removed_rules(record):
            return
        self._counted.add(record.id)
        for name, entity_id in zip(record.content.splitlines(), record.entities, strict=False):
            counter = self._small if name == name.lower() else self._large
            counter[entity_id] += 1

    def is_shown(self, entity: Entity) -> bool:
        """Return True for an entity that is declared, has an identifier's form, or a name that was seen twice."""
        if entity.source.detail != BY_CAPITALS or is_declared(entity):
            return not is_guessed_entity(entity)
        return self._count(entity) >= _LEAST and not self.is_common(entity)

    def has_small(self, entity: Entity) -> bool:
        """Return True if a source has the name in small letters."""
        return self._small[entity.id] > 0

    def is_common(self, entity: Entity) -> bool:
        """Return True for a word that at least as many sources write small."""
        return 0 < self._small[entity.id] >= self._count(entity)

    def _count(self, entity: Entity) -> int:
        is_repeated = (entity.confidence or 0) >= REPEATED
        return max(self._large[entity.id], _LEAST if is_repeated else 0)
