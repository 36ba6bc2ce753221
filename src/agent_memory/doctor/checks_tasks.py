"""Examine background work: what failed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.doctor.reading import Reading
from agent_memory.models import EPISODE, RESOURCE
from agent_memory.tasks.inspection import of_marks
from agent_memory.tasks.quarantine import title_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case
    from agent_memory.files.concerns import Concern


def examine_tasks(case: Case) -> Iterator[Concern]:
    """Look at the marks of the steps, where this is their journal."""
    if case.path == case.folder.tasks:
        yield from of_marks(case.journal.load().values(), lambda record_id: _find_title(case, record_id))


def _find_title(case: Case, record_id: str) -> str:
    """Return how a resource or episode is called; empty if there is no such record."""
    kind = RESOURCE if record_id.startswith(RESOURCE.prefix) else EPISODE
    kinds = (kind, *kind.beside())
    reading = Reading(case.folder.path / kind.journal, case.folder.agent_id, kinds)
    return title_of(reading.load().get(record_id))
