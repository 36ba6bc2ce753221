"""Background work of an agent: stages, batches and a rebuild.

Due are records that changed after the checkpoint of a stage, and failed ones. A checkpoint moves when the results of a
batch are on disk; after a crash that batch runs again, without duplicates. One process works at a time.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.lock import only_one
from agent_memory.files.names import TASKS_CURRENT
from agent_memory.files.processes import CurrentNote, ReaderDiedError, read_alone
from agent_memory.knowledge.digest.model_digest import ModelDigest, ModelPermission
from agent_memory.knowledge.digest.passage_digest import PassageDigest
from agent_memory.knowledge.entities.entity_stage import EntityStage
from agent_memory.knowledge.pages.assignment import PageStage, guess_topics, open_to
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.item_stage import ItemStage
from agent_memory.knowledge.passages.items import STAGE
from agent_memory.knowledge.pipeline.ingestion_config import MemoryIngestionConfig
from agent_memory.knowledge.pipeline.stages import (
    ATTEMPTS,
    LEAST_DEATHS,
    MOST_DEATHS,
    MOST_FAILURES,
    Backlog,
    Batch,
    QuarantinedRecord,
    RunOutcome,
    StageCheckpoints,
    get_reason,
    get_title,
    is_of_older_version,
    is_quarantined,
    is_to_be_tried,
    make_code,
    move_checkpoint,
    start_checkpoint,
    with_never,
)
from agent_memory.knowledge.summaries import SummaryStage
from agent_memory.logs import get_logger
from agent_memory.memory import NOBODY
from agent_memory.models import EPISODE, MARK, RESOURCE, Listing, Resource, StageCheckpoint, derived_id, to_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from agent_memory.knowledge.llm.language_model import Asking
    from agent_memory.knowledge.pipeline.stages import Stage, WholeStage
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Clock, Episode, StageFailure, Topic
    from agent_memory.store.record_storage import RecordStorage

log = get_logger(__name__)
AT_ONCE: Final = 100
"""Records of a batch; those of one change stay together."""
_BEFORE: Final = 4
"""Changes before a batch whose records are its context."""
_FAILS: Final = (AgentMemoryError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
"""Errors that an unexpected record may cause; any other error is a fault of the program."""
BatchIds = list[tuple[int, str]]
ITEMS_ONLY: Final = MemoryIngestionConfig(entity_extraction_enabled=False, summarization_enabled=False)
"""Settings of a runner that stores passages and builds pages alone."""
_NAME: Final = "rebuild"
_QUOTED: Final = 0.8
"""Confidence in a quoted statement: a rule may take another sentence for one."""


class Runner:
    """The background work of one agent.

    Args:
        lock: The file that the process which works holds.
        marks: How far each step is.
        source: Returns the records of the kind of a name.
        stages: The steps, in the order in which they are done.
        clock: Source of the present.
        at_once: Number of records of a batch.
        after: Tidies up, once, when all that was due is done and there was something.
        last: Stages that scan everything, run after the others.
    """

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        lock: Path,
        marks: RecordStorage[StageCheckpoint],
        source: Callable[[str], RecordStorage[Any]],
        stages: Sequence[Stage],
        clock: Clock,
        at_once: int = AT_ONCE,
        after: Callable[[], Awaitable[object]] | None = None,
        *,
        last: Sequence[WholeStage] = (),
    ) -> None:
        self._lock, self._marks, self._source = lock, StageCheckpoints(marks), source
        self.stages, self._clock, self._at_once = tuple(stages), clock, at_once
        self._after, self.last = after, tuple(last)
        self._note, self._retry = CurrentNote(lock.with_name(TASKS_CURRENT)), frozenset[str]()

    async def run(
        self,
        batches: int | None = None,
        progress: Callable[[RunOutcome], object] | None = None,
        *,
        retry: Collection[str] = (),
    ) -> RunOutcome:
        """Run all stages that are due.

        Args:
            batches: Maximum number of batches; all when omitted.
            progress: Called with what was done so far, after each batch that is on disk.
            retry: IDs of records that are worked on again though they failed for good or are quarantined.

        Returns:
            Counts of this run; `is_busy`, at once, if another process works.

        Raises:
            StorageError: Earlier batches are done; the next run continues from there.
        """
        with only_one(self._lock) as is_ours:
            if not is_ours:
                return RunOutcome({}, is_busy=True)
            self._retry = frozenset(retry)
            with self._note.open_note():
                return await self._run(batches, progress)

    async def _run(self, batches: int | None, progress: Callable[[RunOutcome], object] | None) -> RunOutcome:
        done, failed, batches_left = dict.fromkeys((stage.name for stage in self.stages), 0), 0, batches
        for name, begin in self._steps():
            async with contextlib.aclosing(begin()) as batch:
                async for count, errors in batch:
                    done[name] = done.get(name, 0) + count
                    failed += errors
                    batches_left = None if batches_left is None else batches_left - 1
                    if progress is not None:
                        progress(RunOutcome(dict(done), failed))
                    if batches_left is not None and batches_left <= 0:
                        return RunOutcome(done, failed)
        after, self._after = (self._after, None) if any(done.values()) else (None, self._after)
        if after is not None:
            with contextlib.suppress(StorageError):  # the next run tidies up
                await after()
        self._note.forget_deaths()
        return RunOutcome(done, failed, is_over=True)

    async def backlog(self) -> list[Backlog]:
        """Return the backlog of each stage. Needs no lock.

        Raises:
            StorageError: The records cannot be read.
        """
        of_all = [await backlog.backlog() for backlog in self.last]
        return [
            *[await self._get_backlog(stage) for stage in self.stages],
            *(backlog for backlog in of_all if backlog.due),
        ]

    def _steps(self) -> Iterator[tuple[str, Callable[[], AsyncGenerator[tuple[int, int], None]]]]:
        for stage in self.stages:
            yield stage.name, partial(self._each, stage)
        for whole_stage in self.last:
            yield whole_stage.name, whole_stage.run_batches

    async def _each(self, stage: Stage) -> AsyncGenerator[tuple[int, int], None]:
        """Run one stage batch by batch; yield done and failed counts."""
        source = self._source(stage.source)
        last_mark = await self._marks.of(stage)
        mark = start_checkpoint(last_mark, stage, (await source.changed_after(last_mark.through)).last)
        is_new = True
        retries = [(0, failure.id) for failure in mark.failures if self._is_due(failure)]
        quarantined = frozenset(failure.id for failure in last_mark.failures if is_quarantined(failure))
        while True:
            changed = await source.changed_after(mark.through)
            if not changed.records and not retries:
                return
            if is_new:
                mark, is_new = with_never(mark, await stage.gone()), False
            for batch_ids in _split_batches(retries, changed.records, self._at_once):
                batch = await self._batch(source, batch_ids, mark)
                failures = await self._attempt(stage, batch, quarantined)
                tried = {record_id for _, record_id in batch_ids}
                mark = move_checkpoint(mark, batch_ids[-1][0], failures, tried, self._clock())
                await self._marks.keep(mark)
                yield len(batch_ids) - len(failures), len(failures)
                if len(mark.failures) > MOST_FAILURES:
                    log.warning("stage_stopped", stage=stage.name, failures=len(mark.failures))
                    return
            retries = []

    def _is_due(self, failure: StageFailure) -> bool:
        """Return True if a failed record is due in this run."""
        if failure.id in self._retry:
            return True
        return is_of_older_version(failure) or is_to_be_tried(failure, self._clock())

    async def _batch(self, source: RecordStorage[Any], batch_ids: BatchIds, mark: StageCheckpoint) -> Batch:
        """Return a batch of records for a step."""
        records = list((await source.get_many([record_id for _, record_id in batch_ids])).values())
        return Batch(records, await self._before(source, batch_ids), frozenset(mark.never))

    async def _attempt(self, stage: Stage, batch: Batch, quarantined: frozenset[str]) -> dict[str, str]:
        """Work on records, one by one after a failure.

        Returns:
            Why some failed, by id.
        """
        ids = [record.id for record in batch.records]
        if self._note.deaths.keys().isdisjoint(ids) and quarantined.isdisjoint(ids):
            try:
                with self._note.naming(ids):
                    return dict(await stage.do(batch))
            except StorageError:
                raise
            except _FAILS as error:
                log.info("stage_goes_one_by_one", stage=stage.name, error=type(error).__name__)
        failures: dict[str, str] = {}
        for record in batch.records:
            is_alone = record.id in quarantined or self._note.deaths.get(record.id, 0) >= LEAST_DEATHS
            try:
                failures |= await self._do_one(stage, replace(batch, records=[record]), is_alone=is_alone)
            except StorageError:
                raise
            except _FAILS as error:
                failures[record.id] = error.code if isinstance(error, AgentMemoryError) else type(error).__name__
        return failures

    async def _do_one(self, stage: Stage, batch: Batch, *, is_alone: bool) -> Mapping[str, str]:
        """Work on one record; read it in a child if `is_alone`."""
        record_id = batch.records[0].id

        async def read(reader: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            self._note.set_current(())  # what dies now is the child
            value = await read_alone(reader, *args, **kwargs)
            self._note.set_current([record_id])
            return value

        if self._note.deaths.get(record_id, 0) >= MOST_DEATHS and record_id not in self._retry:
            return {record_id: make_code("killed")}
        try:
            with self._note.naming([record_id]):
                return await stage.do(replace(batch, run=read) if is_alone else batch)
        except ReaderDiedError as error:
            log.warning("record_quarantined", stage=stage.name, record_id=record_id, reason=error.reason)
            return {record_id: make_code(error.reason)}

    async def _before(self, source: RecordStorage[Any], batch: BatchIds) -> list[Any]:
        """Return the records that changed just before a batch."""
        first = batch[0][0]
        if first <= 1:
            return []
        earlier = (await source.changed_after(max(0, first - 1 - _BEFORE))).records
        before = await source.get_many([record_id for seq, record_id in earlier if seq < first][-_BEFORE:])
        return list(before.values())

    async def _get_backlog(self, stage: Stage) -> Backlog:
        source, mark = self._source(stage.source), await self._marks.of(stage)
        changed = await source.changed_after(mark.through)
        mark = start_checkpoint(mark, stage, changed.last)
        if mark.through == 0:
            changed = await source.changed_after(0)
        failures = mark.failures
        given_up = sum(failure.attempts >= ATTEMPTS for failure in failures)
        waiting = {record_id for _, record_id in changed.records}
        waiting |= {failure.id for failure in failures if failure.attempts < ATTEMPTS}
        first = await source.get(changed.records[0][1]) if changed.records else None
        codes = tuple(dict.fromkeys(failure.code for failure in failures))
        quarantined = [
            QuarantinedRecord(
                failure.id,
                get_title(await source.get(failure.id)),
                datetime.fromtimestamp(failure.at, UTC),
                get_reason(failure),
            )
            for failure in failures
            if is_quarantined(failure)
        ]
        oldest = None if first is None else first.timestamp
        return Backlog(
            stage.name, stage.source, len(waiting), len(failures), given_up, oldest, codes, tuple(quarantined)
        )


def _split_batches(retries: BatchIds, due: BatchIds, at_once: int) -> Iterator[BatchIds]:
    """Yield batches; records of one change stay together."""
    for start in range(0, len(retries), at_once):
        yield retries[start : start + at_once]
    batch: BatchIds = []
    for seq, record_id in due:
        if len(batch) >= at_once and seq != batch[-1][0]:
            yield batch
            batch = []
        batch.append((seq, record_id))
    if batch:
        yield batch


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


async def store_passages(
    knowledge: Knowledge,
    service: MemoryService,
    sources: Sequence[Resource | Episode],
    topics: Sequence[Topic] | str,
    caller: Caller,
) -> None:
    """Store the passages of one resource, with topics.

    Args:
        knowledge: Records of the agent.
        service: Memories of the agent.
        sources: Turns of the resource, or the resource itself.
        topics: Topics to choose from, or the name of the only one.
        caller: Session that gets events.

    Raises:
        StorageError: Some may be stored; doing it again stores none twice.
    """
    moments = {source.id: source.observed_at for source in sources}

    async def prepare(drawn: Sequence[dict[str, Any]]) -> None:
        for group in sorted({values["group"] for values in drawn}):
            members = [values for values in drawn if values["group"] == group]
            if isinstance(topics, str):
                names = [topics] * len(members)
            else:
                texts = [values["content"] for values in members]
                names = await guess_topics(service, texts, open_to(group, topics))
            for values, name in zip(members, names, strict=True):
                moment = moments[values["links"][0]["id"]]
                values |= {"topic": name, "confidence": _QUOTED, "observed_at": moment and to_text(moment)}

    kind = RESOURCE.name if isinstance(sources[0], Resource) else EPISODE.name
    stage = ItemStage(knowledge, service, kind, caller, prepare)
    mark = await StageCheckpoints(knowledge.marks).of_name(STAGE, kind)
    await stage.store(Batch(sources, never={*mark.never, *await stage.gone()}))
