"""Processes to be killed: each repeats one kind of operation, as a user would.

Each operation is announced (`begin`, with what it will change), acknowledged (`done`), and followed by `settled` once
the work behind its answer is over. Runs in a forked child; the driver hears all this through a pipe.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.cli.formats import encode
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.memory import AuditLog, Caller, MemoryService
from agent_memory.models import MEMORY, Memory, new_memory_id, utc_now
from agent_memory.redaction import SecretRedactor
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, detect_storage, folder_of
from agent_memory.store.segment_builder import seal_up
from benchmarks.crash.model import AcknowledgedState, PendingOperation, shown
from benchmarks.crash.process import CallShim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.memory.results import Imported
    from agent_memory.models import Clock
    from benchmarks.crash.model import Shown
    from benchmarks.crash.process import MessagePipe

AGENT: Final = "bob"
EMBEDDER: Final = HashEmbedder(dimension=256)
CALLER: Final = Caller("crash")
MOVES: Final = ("migration", "build", "rollback", "reindex")
OPERATIONS: Final = ("store", "together", "update", "forget", "compaction", "scratchpad", "import", "seal", *MOVES)
ENOUGH: Final = 12
"""Memories; with fewer an update or a forget is preceded by a store."""
COMMANDS: Final = {"migration": "migrate", "rollback": "rollback", "reindex": "reindex"}
LONG_AGO: Final = timedelta(days=60)
"""Beyond the journal's grace time, so that a compaction has something to fold."""


@dataclass(frozen=True, slots=True)
class VictimJob:
    """Work of one process, and the call at which it dies.

    Attributes:
        do: One of `OPERATIONS`.
        root: Storage root.
        seed: Of its choices.
        at: File-changing call at which it kills itself, counted in operation number `skip`; 0: it does not.
        how: `before`, `after` or `torn`.
        skip: Operations that go well before.
        rounds: Operations at most.
        in_builder: Whether the call is counted in the process that builds an index, where it starts one.
        attached: Wait for a tracer before beginning.
    """

    do: str
    root: Path
    seed: int
    at: int = 0
    how: str = "before"
    skip: int = 0
    rounds: int = 1000
    in_builder: bool = False
    attached: bool = False


def settings_for(root: Path) -> ServiceSettings:
    """Return the settings every process here uses."""
    return ServiceSettings(storage_root=str(root), suspects=False)  # links that nobody here asked for are no loss


def open_service(root: Path, clock: Clock = utc_now) -> MemoryService:
    """Open the agent's service the way a session does, with a clock of its own."""
    settings = settings_for(root)
    storage = detect_storage(AGENT, settings=settings, clock=clock)
    assert isinstance(storage, FileStorage)
    return MemoryService(storage, settings, audit=AuditLog(storage.folder.audit), clock=clock)


def preload() -> None:
    """Import what the children will need, once for all of them; opens nothing and starts no thread."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a thread of numpy's would not survive the fork
    for name in (
        "agent_memory.cli.app",
        "agent_memory.integrations.amplifier.services",
        "agent_memory.integrations.amplifier.service_opener",
        "numpy",
        "rich.progress",
        "Stemmer",
        "threadpoolctl",
        "yaml",
    ):
        importlib.import_module(name)
    SecretRedactor().redact("a memory")
    Memory(agent_id=AGENT, content="a memory")


def run_command(root: Path, *words: str) -> int:
    """Run `agent-memory` with these words in this process, and return its exit code."""
    import typer  # with the command line

    from agent_memory.cli.app import build  # as a user's process would

    command = typer.main.get_command(build())
    code = command([*words, "--agent", AGENT, "--root", str(root), "--json"], standalone_mode=False)
    return code if isinstance(code, int) else 0


class MemoryVictim:
    """A process that works until it is killed.

    Args:
        say: To the driver.
        job: What to do.
        expected: What there is so far.
        shim: Counts the calls, one that strikes at any if omitted.
    """

    def __init__(
        self, say: MessagePipe, job: VictimJob, expected: AcknowledgedState, shim: CallShim | None = None
    ) -> None:
        self._say = say
        self._job = job
        self._expected = expected
        self._choose = random.Random(job.seed)
        self._shim = shim or CallShim(say)
        self._number = 0

    def run(self) -> None:
        """Do what the job says."""
        if self._job.attached:
            self._await_tracer()
        if self._job.do in MOVES:
            self._move()
            return
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        service = open_service(self._job.root)
        work: dict[str, Callable[[MemoryService], Awaitable[None]]] = {
            "store": self._store,
            "together": self._store_together,
            "update": self._update,
            "forget": self._forget,
            "compaction": self._compact,
            "scratchpad": self._edit_scratchpad,
            "import": self._import,
            "seal": self._seal,
        }
        while self._number < self._job.rounds:
            if self._job.do in {"update", "forget", "seal"} and len(self._expected.memories) < ENOUGH:
                await self._store(service)
            else:
                await work[self._job.do](service)
        await service.close()

    # -- telling ------------------------------------------------------------------------------------------------------

    def _begin(self, pending: PendingOperation) -> None:
        self._say(begin=self._number, pending=asdict(pending))
        if self._number == self._job.skip:
            self._shim.arm(self._job.at, self._job.how)
        elif self._job.at == 0:
            self._shim.calls()  # what prepared this operation does not count

    def _announce(self, pending: PendingOperation) -> None:
        """Begin something that only prepares an operation."""
        self._say(pending=asdict(pending))

    def _done(self, now: dict[str, Shown | None]) -> None:
        self._say(done=self._number, now=now)
        self._expected.learn(now)

    def _settled(self) -> None:
        calls = self._shim.calls() if self._job.at == 0 else 0  # where it is to strike, they must go on counting
        self._say(settled=self._number, calls=calls)
        self._number += 1

    def _await_tracer(self) -> None:
        self._say(ready=True)
        descriptor = os.open("/proc/self/status", os.O_RDONLY)
        deadline = time.monotonic() + 10
        while b"TracerPid:\t0" in os.pread(descriptor, 4096, 0):
            assert time.monotonic() < deadline, "nobody traces this process"
            time.sleep(0.005)

    # -- operations ---------------------------------------------------------------------------------------------------

    def _text(self) -> str:
        words = " ".join(self._choose.choice(_WORDS) for _ in range(self._choose.randint(1, 12)))
        long = "and so on " * self._choose.choice((0, 0, 0, 0, 0, 0, 20, 20, 450))
        # Digits alone: a word of letters and digits mixed may be taken for a secret, and the text would be another.
        return f"key{self._choose.getrandbits(48)} {words} {long}".strip()

    async def _store(self, service: MemoryService) -> None:
        values: dict[str, Any] = {"content": self._text(), "category": self._choose.choice(("note", "decision"))}
        if self._choose.random() < 0.3 and self._expected.memories:
            values["supersedes"] = self._choose.choice(list(self._expected.memories))
        if self._choose.random() < 0.3:
            values["tags"] = ["one", "two"]
        self._begin(PendingOperation("store", extra=[values]))
        stored = await service.store(values, CALLER)
        self._done({stored.memory.id: shown(stored.memory)})
        await service.settle()
        self._settled()

    async def _store_together(self, service: MemoryService) -> None:
        """Store by several callers, who share a sync, while the journal is compacted."""
        memories = [Memory(agent_id=AGENT, content=self._text()) for _ in range(8)]
        self._begin(PendingOperation("together", extra=[{**shown(memory), "id": memory.id} for memory in memories]))

        async def store(memory: Memory) -> None:
            await service.storage.store(memory)
            self._say(now={memory.id: shown(memory)})

        await asyncio.gather(service.storage.compact(), *map(store, memories))
        self._done({memory.id: shown(memory) for memory in memories})
        self._settled()

    async def _seal(self, service: MemoryService) -> None:
        """Change something, seal it, or compact it: the next process reads segments and the journal."""
        turn = self._number % 4
        if turn in {1, 2}:
            change = self._forget if turn == 2 else self._choose.choice((self._store, self._update))
            await change(service)
            return
        self._begin(PendingOperation("seal"))
        if turn == 0:
            await asyncio.to_thread(seal_up, folder_of(AGENT, self._job.root), MEMORY, EMBEDDER.identity, 1)
        else:
            await service.writer.compact(timedelta())  # segments lose what was forgotten
        self._done({})
        self._settled()

    async def _update(self, service: MemoryService) -> None:
        memory_id = self._choose.choice(list(self._expected.memories))
        changes: dict[str, Any] = self._choose.choice(
            (
                {"content": self._text()},
                {"tags": [f"tag{self._choose.randint(0, 99)}"]},
                {"content": self._text(), "category": "insight", "pinned": self._choose.random() < 0.1},
            )
        )
        self._begin(PendingOperation("update", changed={memory_id: {**self._expected.memories[memory_id], **changes}}))
        updated = await service.update(memory_id, changes, CALLER)
        self._done({memory_id: shown(updated.memory)})
        await service.settle()
        self._settled()

    async def _forget(self, service: MemoryService) -> None:
        memory_id = self._choose.choice(list(self._expected.memories))
        for _ in range(self._choose.randint(0, 2)):  # versions to be forgotten with it, in one line
            memory_id = (await self._prepared(service, supersedes=memory_id)).id
        gone = dict.fromkeys([memory_id, *await service.storage.older_versions(memory_id)])
        self._begin(PendingOperation("forget", changed=dict.fromkeys(gone)))
        await service.forget(memory_id, CALLER)
        self._done(dict.fromkeys(gone))
        await service.settle()
        self._settled()

    async def _compact(self, service: MemoryService) -> None:
        await self._live_long_ago()
        if self._choose.random() < 0.4:
            self._damage(service)
        self._begin(PendingOperation("compaction"))
        await asyncio.to_thread(run_command, self._job.root, "compact")
        self._done({})
        self._settled()

    async def _live_long_ago(self) -> None:
        """Store, change and forget as of two months ago, so that there is something to fold."""
        past = open_service(self._job.root, lambda: datetime.now(UTC) - LONG_AGO)
        kept = [await self._prepared(past) for _ in range(3)]
        changes = {"content": self._text()}
        self._announce(PendingOperation("compaction", changed={kept[0].id: {**shown(kept[0]), **changes}}))
        self._done({kept[0].id: shown((await past.update(kept[0].id, changes, CALLER)).memory)})
        self._announce(PendingOperation("compaction", changed={kept[1].id: None}))
        await past.forget(kept[1].id, CALLER)
        self._done({kept[1].id: None})
        await past.storage.touch([kept[2].id])
        await past.close()

    async def _prepared(self, service: MemoryService, **more: str) -> Memory:
        """Store something to work with."""
        values = {"content": self._text(), **more}
        self._announce(PendingOperation(self._job.do, extra=[values]))
        stored = (await service.store(values, CALLER)).memory
        self._done({stored.id: shown(stored)})
        return stored

    def _damage(self, service: MemoryService) -> None:
        """Put a line into the journal that is none: a compaction sets it aside, once."""
        assert isinstance(service.storage, FileStorage)
        line = f"--- {{not json {self._choose.getrandbits(32):08x}\n"
        self._say(damaged=line)
        with service.storage.folder.journal.open("a") as journal:
            journal.write(line)

    async def _edit_scratchpad(self, service: MemoryService) -> None:
        """Do what a person does: change an entry of the file, add one, save; then have the agent look."""
        import yaml  # as the product does

        await self._prepared(service)
        await service.settle()
        found = dict(self._expected.memories)
        assert isinstance(service.storage, FileStorage)
        path = service.storage.folder.scratchpad
        text = path.read_text()
        entries = yaml.safe_load(text)
        entry, new, added = self._choose.choice(entries), self._text(), self._text()
        before = dict(found[entry["id"]])
        entry["content"] = new
        entries.append({"content": added})
        footer = [line for line in text.splitlines() if line.startswith("# rendered")]
        changed: dict[str, Shown | None] = {entry["id"]: {**before, "content": new}}
        pending = PendingOperation("scratchpad", changed=changed, extra=[{"content": added}])
        self._announce(pending)
        _save(path, yaml.safe_dump(entries, sort_keys=False) + footer[-1] + "\n")
        self._begin(replace(pending, must=True))
        await service.scratchpad(CALLER)
        await service.settle()
        now = {memory.id: shown(memory) async for memory in service.storage.iter_all()}
        self._done({key: value for key, value in now.items() if found.get(key) != value})
        self._settled()

    async def _import(self, service: MemoryService) -> None:
        memories = self._exported()
        # A file of its own each time: killed once the next one is saved, the last one is still what was announced.
        file = self._job.root.parent / f"import-{self._number}.jsonl"
        _save(file, "".join(encode(memory, "jsonl") for memory in memories))
        every: list[Shown] = [{"id": memory.id, **shown(memory)} for memory in memories]
        self._say(file=str(file), every=every)
        self._begin(PendingOperation("import", extra=every))
        if self._choose.random() < 0.5:
            by_id = {memory.id: memory for memory in memories}

            def each(imported: Imported) -> None:
                self._say(now={imported.memory_id: shown(by_id[imported.memory_id])})

            await service.writer.import_memories(memories, each, CALLER, trusted=True)
            await service.settle()
        else:
            await asyncio.to_thread(run_command, self._job.root, "import", "--trusted", str(file))
        self._done({memory.id: shown(memory) for memory in memories})
        self._settled()

    def _exported(self) -> list[Memory]:
        """Return memories as an export has them: chains, links to what comes later, links to what was forgotten."""
        memories: list[Memory] = []
        for _ in range(12):
            past = utc_now() - timedelta(hours=self._choose.randint(1, 5000))
            memories.append(
                Memory(agent_id=AGENT, content=self._text(), timestamp=past, access_count=self._choose.randint(0, 9))
            )
        forgotten = new_memory_id()
        for older, newer in ((0, 1), (1, 2), (7, 4), (8, 7)):  # 4 and 7 come before what they replace
            memories[newer] = memories[newer].model_copy(update={"supersedes": memories[older].id})
        for number in (9, 11):
            memories[number] = memories[number].model_copy(update={"supersedes": forgotten})
        return memories

    # -- moving -------------------------------------------------------------------------------------------------------

    def _move(self) -> None:
        job = self._job
        if job.in_builder:
            os.environ |= {
                "CRASH_AT": str(job.at),
                "CRASH_HOW": job.how,
                "PYTHONPATH": os.pathsep.join([str(job.root.parent / "site"), str(Path(__file__).parents[2])]),
            }
            self._job = job = replace(job, at=0)
        self._begin(PendingOperation(job.do))
        if job.do == "build":
            from agent_memory.engines import index_builder as build  # a builder's process loads the engine

            identity = json.dumps(asdict(EMBEDDER.identity))
            build.main([str(folder_of(AGENT, job.root).path), MEMORY.place, identity, "7", "--activate"])
        else:
            code = run_command(job.root, COMMANDS[job.do])
            if code != 0:
                self._say(failed=code)
        self._done({})
        self._settled()


def _save(path: Path, text: str) -> None:
    """Save as an editor does; its temporary file lies outside the agent's folder: it is no leftover of the product."""
    temporary = path.parents[1] / "editor.tmp"
    temporary.write_text(text)
    temporary.rename(path)


_WORDS: Final = "tea coffee ledger backup office Lyon deploy tests Anna Friday blue tram".split()  # noqa: SIM905
