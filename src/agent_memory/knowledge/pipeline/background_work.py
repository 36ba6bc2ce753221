"""Background work of an agent: its stages, and a rebuild."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.digest.model_digest import ModelDigest, ModelPermission
from agent_memory.knowledge.digest.passage_digest import PassageDigest
from agent_memory.knowledge.entities.entity_stage import EntityStage
from agent_memory.knowledge.pages.page_stage import PageStage
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.item_stage import ItemStage
from agent_memory.knowledge.pipeline.ingestion_config import MemoryIngestionConfig
from agent_memory.knowledge.pipeline.runner import Runner
from agent_memory.knowledge.pipeline.stages import StageCheckpoints
from agent_memory.knowledge.summaries.summary_stage import SummaryStage
from agent_memory.memory import NOBODY
from agent_memory.models import EPISODE, MARK, RESOURCE, Listing, StageCheckpoint, derived_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.knowledge.llm.language_model import Asking
    from agent_memory.knowledge.pipeline.stages import Stage, WholeStage
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService

ITEMS_ONLY: Final = MemoryIngestionConfig(entity_extraction_enabled=False, summarization_enabled=False)
"""Settings of a runner that stores passages and builds pages alone."""
_NAME: Final = "rebuild"


def runner_of(
    knowledge: Knowledge,
    service: MemoryService,
    caller: Caller = NOBODY,
    config: MemoryIngestionConfig | None = None,
    asking: Asking | None = None,
    permission: ModelPermission | None = None,
    *,
    at_once: bool = False,
) -> Runner:
    """Build the runner of an agent's background work.

    Args:
        knowledge: Records of the agent.
        service: Memories of the agent.
        caller: Session for events.
        config: Settings of the stages; the defaults when omitted.
        asking: Access to a language model that digests passages; None for none.
        permission: Conditions of its use; those of a program that hands over a model when omitted.
        at_once: Build every changed page, since a person waits for it.
    """
    config, person, caller = config or MemoryIngestionConfig(), caller, caller.of_no_group()
    kinds = (RESOURCE.name, EPISODE.name)
    stages: list[Stage] = [ItemStage(knowledge, service, kind, caller) for kind in kinds]
    if config.entity_extraction_enabled and config.entity_extraction.enabled:
        stages += [EntityStage(knowledge, kind, config) for kind in kinds]
    if config.summarization_enabled and config.summarization.enabled:
        stages.append(SummaryStage(knowledge, config.summarization))
    pages = Pages(knowledge, service, 1) if at_once else Pages(knowledge, service)
    last: list[WholeStage] = [PageStage(knowledge, service, pages, caller, at_once=at_once)]
    if asking is not None and asking.model is not None:
        permission = permission or ModelPermission(person)
        last.append(ModelDigest(knowledge, service, PassageDigest(knowledge, service), asking, permission))
    lock, marks = knowledge.folder.tasks_lock, knowledge.marks
    return Runner(lock, marks, knowledge.of, stages, knowledge.clock, after=knowledge.sweep, last=last)


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """Counts of a rebuild.

    Attributes:
        records: Documents, conversations and turns.
        new: Items that were stored.
        failed: Records that could not be read.
        is_busy: True if another process does the background work; it reads everything again.
    """

    records: int = 0
    new: int = 0
    failed: int = 0
    is_busy: bool = False


async def rebuild(
    knowledge: Knowledge, service: MemoryService, runner: Runner, progress: Callable[[int, int], object]
) -> RebuildResult:
    """Read all stored documents and conversations again, or continue.

    What was forgotten stays forgotten, and what a person edited or pinned stays. No language model is asked.

    Args:
        knowledge: Documents and conversations of the agent.
        service: Memories of the agent.
        runner: Background work of the agent, with all pages.
        progress: Called with the numbers of done and due records.

    Raises:
        StorageError: Some may be read; a second call reads the rest.
    """
    marks = StageCheckpoints(knowledge.marks)
    checkpoint = StageCheckpoint(
        agent_id=knowledge.agent_id, id=derived_id(MARK.prefix, _NAME), stage=_NAME, source_kind="item"
    )
    stored = await knowledge.marks.get(checkpoint.id)
    if stored is None or not stored.through:
        for stage in (*runner.stages, *runner.last):
            mark = await marks.of(stage)
            await marks.keep(mark.model_copy(update={"version": 1, "through": 0}))
        await marks.keep(checkpoint.model_copy(update={"through": 1}))  # a rebuild is under way
    before, due = await service.storage.count(), sum(backlog.due for backlog in await runner.backlog())
    ran = await runner.run(progress=lambda so_far: progress(sum(so_far.done.values()), due))
    if ran.is_busy:
        return RebuildResult(is_busy=True)
    new = await service.storage.count() - before
    await marks.keep(checkpoint)
    totals = [(await storage.browse(Listing(limit=0))).total for storage in (knowledge.resources, knowledge.episodes)]
    return RebuildResult(sum(totals), new, ran.failed)
