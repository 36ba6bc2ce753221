"""Count entities and relations that rules of earlier versions guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.entities.removed_rules import is_guessed_entity, is_guessed_relation
from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted
from agent_memory.models import ENTITY, Entity, Relation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case


def examine_guesses(case: Case) -> Iterator[Concern]:
    """Yield the number of hidden guesses, if this is the journal of entities."""
    if case.path.name != ENTITY.journal:
        return
    entities = relations = 0
    for states, _ in case.journal.portions():
        for record in (record for state in states for record in state.records.values()):
            entities += isinstance(record, Entity) and is_guessed_entity(record)
            relations += isinstance(record, Relation) and is_guessed_relation(record)
    if entities or relations:
        numbers = f"{counted(entities, 'entity', 'entities')} and {counted(relations, 'relation')}"
        yield Concern("entities_guessed", f"{numbers} that rules of an earlier version guessed are hidden.")
