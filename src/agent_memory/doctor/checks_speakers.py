"""Check who speaks in imported conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.doctor.reading import Reading
from agent_memory.knowledge.intake.speakers import TALKS_FILE, TURNS_FILE, of_speakers
from agent_memory.service.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case
    from agent_memory.files.concerns import Concern


def examine_speakers(case: Case) -> Iterator[Concern]:
    """Yield concerns about guessed speakers, if this is the journal of turns."""
    if case.path.name != TURNS_FILE:
        return
    kinds = tuple(kind for kind in KINDS if kind.journal == TALKS_FILE)
    talks = Reading(case.folder.path / TALKS_FILE, case.folder.agent_id, kinds).load().values()
    turns = (record for states, _ in case.journal.portions() for state in states for record in state.records.values())
    yield from of_speakers(talks, turns)
