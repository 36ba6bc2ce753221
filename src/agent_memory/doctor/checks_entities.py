"""Count entities and relations that rules of earlier versions guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.entities.removed_rules import ENTITIES_FILE, count_guesses
from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case


def examine_guesses(case: Case) -> Iterator[Concern]:
    """Yield the number of hidden guesses, if this is the journal of entities."""
    if case.path.name != ENTITIES_FILE:
        return
    records = (record for states, _ in case.journal.portions() for state in states for record in state.records.values())
    entities, relations = count_guesses(records)
    if entities or relations:
        numbers = f"{counted(entities, 'entity', 'entities')} and {counted(relations, 'relation')}"
        yield Concern("entities_guessed", f"{numbers} that rules of an earlier version guessed are hidden.")
