"""The crash suite for a kind of record other than memories: four operations, on a storage without a service."""

from __future__ import annotations

import asyncio
import random
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.checks.codes import Severity
from agent_memory.care.checks.examination import examine_agent
from agent_memory.models import Kind, SearchRequest, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.storage import folder_of
from agent_memory.store.memory_storage import Files
from agent_memory.store.record_storage import RecordStorage
from benchmarks.crash.model import AcknowledgedState, PendingOperation, compare, shown
from benchmarks.crash.operations import AGENT, ENOUGH, LONG_AGO, MemoryVictim
from benchmarks.crash.process import CallShim
from benchmarks.crash.recovery_check import RecoveryCase, RecoveryFindings, age

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.models import Clock, Record
    from benchmarks.crash.model import Shown
    from benchmarks.crash.process import MessagePipe

OPERATIONS: Final = ("store", "update", "forget", "compaction")
"""What every kind has; the other operations of the suite are commands and files of memories."""
_SETTINGS: Final = ServiceSettings(embedder="none")


def kind_named(name: str) -> Kind[Any]:
    """Return the kind at `MODULE:NAME`.

    Raises:
        ValueError: There is no kind there.
    """
    try:
        kind = resolve_name(name)
    except (ImportError, AttributeError) as error:
        raise ValueError(str(error)) from error
    if isinstance(kind, Kind):
        return kind
    raise ValueError(f"{name} is no kind of record")


def open_records(kind: Kind[Any], root: Path, clock: Clock = utc_now) -> RecordStorage[Any]:
    """Open the agent's records of a kind."""
    files = Files(kind, folder_of(AGENT, root), _SETTINGS, clock)
    return RecordStorage(files.backend())


class RecordVictim(MemoryVictim):
    """A process that works on records of any kind until it is killed.

    Args:
        say, job, expected: See `MemoryVictim`.
        kind: Of the records.
    """

    def __init__(self, say: MessagePipe, job: Any, expected: AcknowledgedState, kind: Kind[Any]) -> None:
        super().__init__(say, job, expected)
        self._kind = kind

    async def _serve(self) -> None:
        records = open_records(self._kind, self._job.root)
        work: dict[str, Callable[[RecordStorage[Any]], Awaitable[None]]] = {
            "store": self._store_record,
            "update": self._change,
            "forget": self._delete,
            "compaction": self._fold,
        }
        while self._number < self._job.rounds:
            few = self._job.do in {"update", "forget"} and len(self._expected.memories) < ENOUGH
            await work["store" if few else self._job.do](records)
            self._settled()
        await records.close()

    def _record(self, **more: str) -> Record:
        record: Record = self._kind.model(agent_id=AGENT, **{self._kind.text: self._text()}, **more)
        return record

    async def _store_record(self, records: RecordStorage[Any]) -> None:
        record = self._record()
        self._begin(PendingOperation("store", extra=[{"id": record.id, **shown(record)}]))
        await records.store(record)
        self._done({record.id: shown(record)})

    async def _change(self, records: RecordStorage[Any]) -> None:
        record_id, changes = self._any(), {self._kind.text: self._text()}
        self._begin(PendingOperation("update", changed={record_id: {**self._expected.memories[record_id], **changes}}))
        self._done({record_id: shown(await records.update(record_id, changes))})

    async def _delete(self, records: RecordStorage[Any]) -> None:
        record_id = self._any()
        for _ in range(self._choose.randint(0, 2)):  # versions to be forgotten with it, in one line
            record_id = (await self._ready(records, supersedes=record_id)).id
        gone = dict.fromkeys([record_id, *await records.older_versions(record_id)])
        self._begin(PendingOperation("forget", changed=dict.fromkeys(gone)))
        await records.delete(record_id)
        self._done(dict.fromkeys(gone))

    async def _fold(self, records: RecordStorage[Any]) -> None:
        past = open_records(self._kind, self._job.root, lambda: datetime.now(UTC) - LONG_AGO)
        kept, gone = await self._ready(past), await self._ready(past)
        self._announce(PendingOperation("compaction", changed={gone.id: None}))
        await past.delete(gone.id)
        self._done({gone.id: None})
        await past.touch([kept.id])
        await past.close()
        self._begin(PendingOperation("compaction"))
        await records.compact()
        self._done({})

    async def _ready(self, records: RecordStorage[Any], **more: str) -> Record:
        record = self._record(**more)
        self._announce(PendingOperation(self._job.do, extra=[{"id": record.id, **shown(record)}]))
        await records.store(record)
        self._done({record.id: shown(record)})
        return record

    def _any(self) -> str:
        return self._choose.choice(list(self._expected.memories))


def recover_records(say: MessagePipe, root: Path, at: int, how: str, kind: Kind[Any]) -> None:
    """Open, search and compact, and be killed in the middle of that."""
    CallShim(say).arm(at, how)

    async def look() -> None:
        records = open_records(kind, root)
        await records.health()
        await records.answer(SearchRequest("key ledger", 5, utc_now()))
        await records.compact()
        await records.close()

    asyncio.run(look())
    say(recovered=True)


def examine_records(say: MessagePipe, case: RecoveryCase, expected: AcknowledgedState, kind: Kind[Any]) -> None:
    """Judge what there is of a kind, and have the doctor examine it; tell the findings."""
    findings = RecoveryFindings()
    asyncio.run(_look(case, expected, findings, kind))
    report = examine_agent(case.root, AGENT, now=utc_now(), settings=_SETTINGS, kinds=(kind,))
    problems = [finding for finding in report.findings if finding.severity is Severity.PROBLEM]
    findings.reopen += [f"the doctor: {problem.sentence}" for problem in problems]
    say(**asdict(findings))


async def _found(records: RecordStorage[Any]) -> dict[str, Shown]:
    return {record.id: shown(record) async for record in records.iter_all()}


async def _look(case: RecoveryCase, expected: AcknowledgedState, findings: RecoveryFindings, kind: Kind[Any]) -> None:
    """Open it, compare, change it further, compact it, compare again, and look for each of a sample."""
    choose, records = random.Random(case.seed), open_records(kind, case.root)
    first = compare(expected, case.pending, await _found(records), settled=True)
    findings.lost, findings.half, findings.now = first.lost, first.half, first.now
    expected.learn(first.now)
    record = kind.model(agent_id=AGENT, **{kind.text: f"key{choose.getrandbits(48)} a further one"})
    await records.store(record)
    now: dict[str, Shown | None] = {
        record.id: shown(await records.update(record.id, {kind.text: kind.text_of(record) + " changed"}))
    }
    expected.learn(now)
    findings.now |= now
    folder = folder_of(AGENT, case.root)
    age(Path(folder.path))
    await records.compact()
    valid = await records.valid()
    for each in choose.sample(valid, min(4, len(valid))):
        word = kind.text_of(each).split()[0]
        answer = await records.answer(SearchRequest(word, 100, utc_now()))
        if each.id not in {found.id for found in answer.records}:
            findings.lost.append(f"a search for {word} does not find {each.id}")
    then = compare(expected, PendingOperation(), await _found(records), settled=True)
    findings.lost += [f"in the end: {what}" for what in (*then.lost, *then.half)]
    if (health := await records.health())["status"] != "ok":
        findings.half.append(f"health after a compaction: {health}")
    await records.close()
    findings.leftovers += [path.name for path in folder.path.iterdir() if path.name.endswith((".tmp", ".bak"))]
