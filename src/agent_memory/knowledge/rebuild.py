"""Rebuild: reads stored documents and conversations again, by the present rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.pipeline.stages import Marks
from agent_memory.models import MARK, Listing, StageCheckpoint, derived_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.knowledge.pipeline.runner import Runner
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService

_NAME: Final = "rebuild"


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """Counts of a rebuild.

    Attributes:
        records: Documents, conversations and turns.
        new: Items that were stored.
        failed: Records that could not be read.
        is_busy: Whether another process does the background work; it reads everything again.
    """

    records: int = 0
    new: int = 0
    failed: int = 0
    is_busy: bool = False


async def rebuild(
    knowledge: Knowledge,
    service: MemoryService,
    runner: Runner,
    progress: Callable[[int, int], object],
) -> RebuildResult:
    """Read all stored documents and conversations again, or go on with it.

    What was forgotten stays forgotten, and what a person edited or pinned stays. No language model is asked.

    Args:
        knowledge: Documents and conversations of the agent.
        service: Memories of the agent.
        runner: Background work of the agent, with all pages.
        progress: Called with the records that are done and those that are due.

    Raises:
        StorageError: Some may be read; doing it again does the rest.
    """
    marks = Marks(knowledge.marks)
    own = StageCheckpoint(
        agent_id=knowledge.agent_id, id=derived_id(MARK.prefix, _NAME), stage=_NAME, source_kind="item"
    )
    known = await knowledge.marks.get(own.id)
    if known is None or not known.through:
        for stage in (*runner.stages, *runner.last):
            mark = await marks.of(stage)
            await marks.keep(mark.model_copy(update={"version": 1, "through": 0}))
        await marks.keep(own.model_copy(update={"through": 1}))  # a rebuild is under way
    before, due = await service.storage.count(), sum(backlog.due for backlog in await runner.backlog())
    ran = await runner.run(progress=lambda so_far: progress(sum(so_far.done.values()), due))
    if ran.is_busy:
        return RebuildResult(is_busy=True)
    new = await service.storage.count() - before
    await marks.keep(own)
    totals = [(await storage.browse(Listing(limit=0))).total for storage in (knowledge.resources, knowledge.episodes)]
    return RebuildResult(sum(totals), new, ran.failed)
