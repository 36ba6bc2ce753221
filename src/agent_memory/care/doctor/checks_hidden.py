"""Check records of earlier versions that the present rules would not make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.files.concerns import Concern
from agent_memory.files.wording import counted
from agent_memory.language.similarity import find_conflict
from agent_memory.models import may_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.care.doctor.context import Case


def examine_conflicts(case: Case) -> Iterator[Concern]:
    """Count undecided pairs of valid memories that do not conflict."""
    replaced = case.survey.replaced
    pairs = [
        (newer_id, older_id)
        for newer_id, older_ids in case.survey.undecided.items()
        for older_id in older_ids
        if newer_id not in replaced and older_id not in replaced
    ]
    if not pairs:
        return
    memories = case.journal.load({memory_id for pair in pairs for memory_id in pair})
    hidden = 0
    for newer, older in ((memories.get(newer_id), memories.get(older_id)) for newer_id, older_id in pairs):
        if newer is not None and older is not None:
            hidden += not may_conflict(newer, older) or find_conflict(newer.content, older.content) is None
    if hidden:
        yield Concern(
            "conflicts_hidden",
            f"{counted(hidden, 'undecided pair is', 'undecided pairs are')} hidden: by the present rule the memories "
            "do not conflict.",
        )
