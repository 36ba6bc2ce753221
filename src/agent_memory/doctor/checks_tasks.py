"""Examine background work: what failed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.tasks.inspection import of_marks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case
    from agent_memory.files.concerns import Concern


def examine_tasks(case: Case) -> Iterator[Concern]:
    """Look at the marks of the steps, where this is their journal."""
    if case.path == case.folder.tasks:
        yield from of_marks(case.journal.load().values())
