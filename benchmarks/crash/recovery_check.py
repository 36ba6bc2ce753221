"""Checks by a new process after a kill.

Runs in a forked child of `benchmarks.crash`. Whatever is wrong becomes a finding in one of four columns; nothing here
mends what the product should.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError
from agent_memory.files.lock import index_lock
from agent_memory.index import embedded_texts
from agent_memory.memories import MigratableStorage
from agent_memory.memory.scratchpad_file import render_file
from agent_memory.storage import AgentFolder, FileStorage, folder_of
from agent_memory.store.shards import Shards
from benchmarks.crash.model import AcknowledgedState, PendingOperation, compare, shown
from benchmarks.crash.operations import AGENT, CALLER, COMMANDS, EMBEDDER, open_service, run_command, settings_for
from benchmarks.crash.process import CallShim
from benchmarks.harness import seal_by_hand

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService
    from agent_memory.models import Memory
    from benchmarks.crash.model import Shown
    from benchmarks.crash.process import MessagePipe

    StoredAnswers = tuple[dict[str, Shown], list[tuple[str, float]]]
    """All records by ID; mode and best score of some searches."""

_PATIENCE: Final = 60.0
_OLD: Final = 10.0
"""Seconds by which temporary files are made older: they are left alone as long as they are fresh."""
_KNOWN: Final = re.compile(
    r"memories\.yaml|memories\.rejected\.yaml|scratchpad\.yaml|events(\.1)?\.jsonl|agent\.yaml|metadata\.json|\.lock"
    r"|embeddings\.sqlite3(-wal|-shm)?|shortlist\.json|memories\.db|memories\.db/build\.lock"
    r"|derived(/.*)?"  # the next seal removes what a dead one left
)
_ROUNDED: Final = 0.002
"""Difference of scores that rounding of sealed vectors makes."""
_SEARCHED: Final = 5
_OF_A_SHARD: Final = re.compile(r"(holder\.lock|state\.json|shard)?")


@dataclass(slots=True)
class RecoveryFindings:
    """Faults by column, and the outcome of the pending operation."""

    lost: list[str] = field(default_factory=list)
    reopen: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    now: dict[str, Shown | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecoveryCase:
    """Case to examine.

    Attributes:
        root: Storage root.
        pending: The operation under way.
        damaged: Lines put into the journal that are none.
        file: What was being imported, and
        every: what is in it.
        seed: Of the sample that is searched for.
        rerun: Do an interrupted move again.
    """

    root: Path
    pending: PendingOperation
    damaged: tuple[str, ...] = ()
    file: str = ""
    every: tuple[Shown, ...] = ()
    seed: int = 0
    rerun: bool = True


def recover(say: MessagePipe, root: Path, at: int, how: str) -> None:
    """Open, search, render and compact, until killed."""
    shim = CallShim(say)
    shim.arm(at, how)

    async def look() -> None:
        service = open_service(root)
        await service.storage.health()
        await service.search("key ledger", caller=CALLER)
        await service.scratchpad(CALLER)
        await service.settle()
        await service.storage.compact()
        await service.close()

    asyncio.run(look())
    say(recovered=True)


def examine(say: MessagePipe, case: RecoveryCase, expected: AcknowledgedState) -> None:
    """Judge what there is and tell the findings."""
    findings = RecoveryFindings()
    folder = folder_of(AGENT, case.root)
    had_torn_tail = _has_torn_tail(folder.journal)
    rejected_before = _rejected(folder)
    journal = folder.journal.read_text(errors="replace") if folder.journal.exists() else ""
    damaged = [line for line in case.damaged if line in journal or line in rejected_before]
    _await_builder(folder)
    asyncio.run(_check_replay(case, findings))
    asyncio.run(_look(case, expected, findings))
    expected.learn(findings.now)
    if case.file:
        _import_again(case, expected, findings)
    if case.rerun and case.pending.do in COMMANDS:
        _move_again(case, findings)
    asyncio.run(_go_on(case, expected, findings))
    _check_rejected(folder, damaged, rejected_before, findings, had_torn_tail=had_torn_tail)
    _await_holders(folder)
    asyncio.run(_start_once_more(case))
    _check_leftovers(folder, findings)
    say(**asdict(findings))


async def _found(service: MemoryService) -> dict[str, Shown]:
    return {memory.id: shown(memory) async for memory in service.storage.iter_all()}


async def _look(case: RecoveryCase, expected: AcknowledgedState, findings: RecoveryFindings) -> None:
    """Open it, compare, let it recover, compare again."""
    service = open_service(case.root)
    first = compare(expected, case.pending, await _found(service), settled=False)
    findings.lost += first.lost
    findings.half += first.half
    health = await service.storage.health()
    if health["status"] != "ok" and not case.damaged:
        findings.half.append(f"health: {health}")
    await service.scratchpad(CALLER)
    await service.settle()
    then = await _found(service)
    second = compare(expected, case.pending, then, settled=True)
    findings.half += [what for what in second.half if what not in first.half]
    findings.now = second.now
    expected.learn(second.now)
    await service.close()


async def _check_replay(case: RecoveryCase, findings: RecoveryFindings) -> None:
    """Compare what segments answer with a copy that has the journal alone."""
    folder = folder_of(AGENT, case.root)
    if not (folder.path / "derived").is_dir() or Shards(folder).active()[0] != "file":
        return
    with tempfile.TemporaryDirectory(dir=case.root.parent) as scratch, seal_by_hand():
        copy = folder_of(AGENT, Path(scratch) / "memory")
        copy.path.mkdir(parents=True, mode=0o700)
        for path in (folder.journal, folder.path / "agent.yaml", folder.path / "metadata.json"):
            if path.exists():
                shutil.copy2(path, copy.path / path.name)
        answers = await _read_answers(case.root, case.seed)
        findings.half += compare_answers(answers, await _read_answers(Path(scratch) / "memory", case.seed))


async def _read_answers(root: Path, seed: int) -> StoredAnswers:
    storage = FileStorage(AGENT, settings=settings_for(root), embedder=EMBEDDER)
    try:
        records = {memory.id: shown(memory) async for memory in storage.iter_all()}
        await storage.prepare(None)
        texts = sorted(str(record["content"]) for record in records.values())
        texts = random.Random(seed).sample(texts, min(_SEARCHED, len(texts)))
        answers = [await storage.search(query, 1) for text in texts for query in (text, text.split()[0])]
        return records, [(hits.mode, hits[0].relevance_score if hits else 0.0) for hits in answers]
    finally:
        await storage.close()


def compare_answers(answers: StoredAnswers, replayed: StoredAnswers) -> list[str]:
    """Return the differences from a full replay.

    Hits of equal scores may change places.
    """
    problems = [] if answers[0] == replayed[0] else ["records differ from a full replay"]
    pairs = zip(answers[1], replayed[1], strict=False)
    if len(answers[1]) != len(replayed[1]) or any(
        mode != replayed_mode or abs(score - replayed_score) > _ROUNDED
        for (mode, score), (replayed_mode, replayed_score) in pairs
    ):
        problems.append(f"an answer differs from a full replay: {answers[1]} {replayed[1]}")
    return problems


def _import_again(case: RecoveryCase, expected: AcknowledgedState, findings: RecoveryFindings) -> None:
    """Repeat an interrupted import and check that nothing is doubled."""
    code = run_command(case.root, "import", "--trusted", case.file)
    if code != 0:
        findings.half.append(f"the import done again ended with {code}")
    imported = {str(row["id"]): {key: value for key, value in row.items() if key != "id"} for row in case.every}
    expected.learn(imported)
    findings.now |= imported


def _move_again(case: RecoveryCase, findings: RecoveryFindings) -> None:
    backend = Shards(folder_of(AGENT, case.root)).active()[0]
    command = COMMANDS[case.pending.do]
    code = run_command(case.root, command)
    if code != (2 if command == "reindex" and backend == "file" else 0):
        findings.reopen.append(f"{command} done again ended with {code}")


async def _go_on(case: RecoveryCase, expected: AcknowledgedState, findings: RecoveryFindings) -> None:
    """Check that later changes and searches work on what was acknowledged."""
    choose = random.Random(case.seed)
    service = open_service(case.root)
    text = f"key{choose.getrandbits(48)} a further one"
    stored = (await service.store({"content": text}, CALLER)).memory
    changed = (await service.update(stored.id, {"content": text + " changed"}, CALLER)).memory
    gone = (await service.store({"content": f"key{choose.getrandbits(48)} soon gone"}, CALLER)).memory
    await service.forget(gone.id, CALLER)
    now: dict[str, Shown | None] = {stored.id: shown(changed), gone.id: None}
    expected.learn(now)
    findings.now |= now
    age(Path(folder_of(AGENT, case.root).path))
    await service.storage.compact()
    await _search(service, choose, findings)
    await _check_index(service, findings)
    verdict = compare(expected, PendingOperation(), await _found(service), settled=True)
    findings.lost += [f"in the end: {what}" for what in (*verdict.lost, *verdict.half)]
    health = await service.storage.health()
    if health["status"] != "ok":
        findings.half.append(f"health after a compaction: {health}")
    await service.settle()
    await _check_files(service, findings)
    await service.close()
    _check_shard(service, findings)


async def _search(service: MemoryService, choose: random.Random, findings: RecoveryFindings) -> None:
    await service.storage.prepare(None)
    valid = await service.storage.valid()
    for memory in choose.sample(valid, min(4, len(valid))):
        word = memory.content.split()[0]
        results = await service.storage.search(word, 100)
        if memory.id not in {result.memory.id for result in results}:
            findings.lost.append(f"a search for {word} does not find {memory.id}")
        if results.mode != "hybrid":
            findings.half.append(f"a search is by {results.mode}")


async def _check_index(service: MemoryService, findings: RecoveryFindings) -> None:
    storage = service.storage
    if storage.backend == "vector":
        assert isinstance(storage, MigratableStorage)
        if not await storage.caught_up(_PATIENCE):
            findings.half.append(f"the index did not catch up: {await storage.health()}")


async def _check_files(service: MemoryService, findings: RecoveryFindings) -> None:
    """Check that rendered files are current and JSON files parse."""
    storage = service.storage
    assert isinstance(storage, FileStorage)
    folder = storage.folder
    pad = await service.scratchpad(CALLER)
    text = folder.scratchpad.read_text()
    if text != render_file(pad.entries, AGENT):
        findings.half.append("scratchpad.yaml does not show what there is")
    for line in folder.audit.read_bytes().splitlines():
        try:
            json.loads(line or b"{}")
        except ValueError:  # one torn by a kill may stand there by itself, and must not spoil the next one
            if line.endswith(b"}"):
                findings.half.append(f"a line of events.jsonl is none: {line[:60]!r}")
    try:
        json.loads(folder.metadata.read_bytes())
    except (OSError, ValueError) as error:
        findings.half.append(f"metadata.json: {error}")


def _check_shard(service: MemoryService, findings: RecoveryFindings) -> None:
    """Compare the points of the index in use with the records."""
    storage = service.storage
    assert isinstance(storage, FileStorage)
    backend, name = Shards(storage.folder).active()
    if backend != "vector" or name is None:
        return
    from agent_memory.engines.shard import Shard  # loads the engine, in a process that ends soon

    store, state = storage.opened, Shards(storage.folder).state(name)
    assert state is not None
    records, later = store.refresh().records.values(), store.state.since(state.seq)
    memories: dict[str, Memory] = {record.id: record for record in records if record.id not in later}
    pieces = {memory.id: len(dict.fromkeys(embedded_texts(memory.content))) for memory in memories.values()}
    shard = Shard.open(Shards(storage.folder).get_path(name))
    points: dict[str, set[int]] = {}
    for point, memory_id in shard.owners():
        points.setdefault(memory_id, set()).add(point)
    if any(len(points[memory_id]) != pieces[memory_id] for memory_id in points.keys() & pieces.keys()):
        findings.half.append("the index holds other pieces of memories than the journal")
    sample = random.Random(0).sample(sorted(memories), min(40, len(memories)))
    first = {min(points[memory_id]): memory_id for memory_id in sample if memory_id in points}
    for point, vector in shard.vectors(list(first)).items():
        wanted = EMBEDDER.embed_documents([embedded_texts(memories[first[point]].content)[0]])[0]
        if sum(float(first_part) * float(part) for first_part, part in zip(wanted, vector, strict=True)) < 0.98:
            findings.half.append(f"the index has an older version of {first[point]}")
    shard.close()


# -- files ------------------------------------------------------------------------------------------------------------


def _has_torn_tail(journal: Path) -> bool:
    return journal.exists() and not journal.read_bytes().endswith(b"\n")


def _rejected(folder: AgentFolder) -> list[str]:
    """Return the rejected lines of the journal; unparsable ones begin with `?`."""
    path = folder.path / "memories.rejected.yaml"
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    lines_found = []
    for line in lines:
        try:
            lines_found.append(str(json.loads(line[4:]).get("line", "")))
        except ValueError:
            lines_found.append(f"?{line}")
    return lines_found


def _check_rejected(
    folder: AgentFolder, damaged: list[str], before: list[str], findings: RecoveryFindings, *, had_torn_tail: bool
) -> None:
    after = _rejected(folder)
    findings.half += [
        f"memories.rejected.yaml has a line that is none: {line[:60]}" for line in after if line[:1] == "?"
    ]
    for line in damaged:
        if after.count(line) != 1:
            findings.half.append(f"a damaged line was set aside {after.count(line)} times")
    new = [line for line in after[len(before) :] if line not in damaged]
    if len(new) > had_torn_tail:
        findings.half.append(f"{len(new)} lines were set aside, though {int(had_torn_tail)} was torn: {new[0][:60]!r}")


def _await_builder(folder: AgentFolder) -> None:
    """A build whose agent died ends by itself, soon."""
    deadline = time.monotonic() + _PATIENCE
    while folder.index.is_dir():
        try:
            with index_lock(folder.index / "build.lock", "look"):
                return
        except BusyError:
            assert time.monotonic() < deadline, "a build goes on though nobody waits for it any more"
            time.sleep(0.02)


def age(folder: Path) -> None:
    """Make temporary files old enough to be removed."""
    for within, _, names in os.walk(folder):  # unlike `glob`, it goes on where a folder is removed meanwhile
        for name in names:
            if name.startswith(".") and name.endswith(".tmp"):
                with contextlib.suppress(FileNotFoundError):
                    os.utime(Path(within, name), (time.time() - _OLD,) * 2)


def _await_holders(folder: AgentFolder) -> None:
    """Wait until holders of unused indexes have ended."""
    shards, deadline = Shards(folder), time.monotonic() + _PATIENCE
    for path in folder.index.glob("*/holder.lock"):
        while path.exists() and path.parent.name != shards.active()[1]:
            try:
                with index_lock(path, "look"):
                    break
            except BusyError:
                assert time.monotonic() < deadline, "the holder of an index outlives its agent"
                time.sleep(0.02)


async def _start_once_more(case: RecoveryCase) -> None:
    service = open_service(case.root)
    await service.search("key ledger", caller=CALLER)
    storage = service.storage
    if isinstance(storage, MigratableStorage):
        await asyncio.wait_for(storage.index.wait_settled(), _PATIENCE)  # it sweeps at its start
    await service.close()


def _check_leftovers(folder: AgentFolder, findings: RecoveryFindings) -> None:
    """Check that only known files and the shard in use exist."""
    shard = Shards(folder).active()[1] or "-"
    for path in sorted(folder.path.rglob("*")):
        name = str(path.relative_to(folder.path))
        of_index = name.removeprefix("memories.db/").partition("/")
        if _KNOWN.fullmatch(name) or (of_index[0] == shard and _is_of_shard(of_index[2])):
            continue
        if not any(name.startswith(f"{leftover}/") for leftover in findings.leftovers):
            findings.leftovers.append(name)


def _is_of_shard(name: str) -> bool:
    return name.startswith("shard/") or _OF_A_SHARD.fullmatch(name) is not None
