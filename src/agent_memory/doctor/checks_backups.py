"""Examine the backups of one agent: whether there are any, how old the newest is, whether the newest opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted
from agent_memory.lifecycle.backups import list_backups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case

MANY: Final = 1_000
"""From so many memories on, that there is no backup is worth a hint."""


def examine_backups(case: Case) -> Iterator[Concern]:
    """Look at the backups of an agent; what is in them is not read."""
    listed = list_backups(case.folder.path.parent, case.folder.agent_id)
    if not listed:
        if case.survey.count >= MANY:
            what = f"No backup of {counted(case.survey.count, 'memory', 'memories')} was made here."
            yield Concern("backups_none", what, "`agent-memory backup create` makes one, unless something else does.")
        return
    bad = [each for each in listed if each.problem]
    if bad:
        yield Concern(
            "backups_damaged",
            f"{counted(len(bad), 'backup')} of {len(listed):,} cannot be used.",
            "Make another one (`agent-memory backup create`), then remove these.",
            sum(each.size for each in bad),
            tuple(each.path.name for each in bad[:3]),
        )
    if whole := [each for each in listed if not each.problem]:
        days = max(0, (case.now - whole[0].made_at).days)
        what = f"{counted(len(whole), 'backup')}, the newest {counted(days, 'day')} old."
        yield Concern("backups", what, size=sum(each.size for each in whole))
