"""Examine background work: what failed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.doctor.reading import Reading
from agent_memory.service.kinds import KINDS
from agent_memory.tasks.inspection import of_marks
from agent_memory.tasks.quarantine import get_title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case
    from agent_memory.files.concerns import Concern


def examine_tasks(case: Case) -> Iterator[Concern]:
    """Look at the marks of the steps, where this is their journal."""
    if case.path == case.folder.tasks:
        yield from of_marks(case.journal.load().values(), lambda record_id: _find_title(case, record_id))


def _find_title(case: Case, record_id: str) -> str:
    """Return the title of a record, or nothing."""
    journals = {kind.journal for kind in KINDS if record_id.startswith(kind.prefix)}
    for name in journals:
        kinds = tuple(kind for kind in KINDS if kind.journal == name)
        record = Reading(case.folder.path / name, case.folder.agent_id, kinds).load().get(record_id)
        if record is not None:
            return get_title(record)
    return ""
