"""One of the processes of `benchmarks.concurrency`: works on the agent's folder and writes down what it was told.

Reads its orders, a JSON object, from its command line; says `ready`, waits for a line, works, says `done`, waits for
another line, and ends. Goes through `MemoryService`, as a session does.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import AgentMemoryError, BusyError, UnknownIdError
from agent_memory.memories import MigratableStorage
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.models import Observation
from agent_memory.redaction import SecretRedactor
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

AGENT: Final = "bench"
_AT_ONCE: Final = timedelta(0)
"""Grace of a compaction: what was forgotten is purged, and the segments with it."""
DIMENSION: Final = 384
_WEIGHTS: Final = {
    "search": 40, "store": 20, "update": 12, "share": 8, "forget": 7, "capture": 8, "common": 3, "pair": 2
}  # fmt: skip
_TOPICS: Final = "ledger parser queue cache router scheduler journal exporter gateway index".split()  # noqa: SIM905
_THINGS: Final = "PostgreSQL Redis Kafka SQLite YAML protobuf gzip TLS coroutines snapshots".split()  # noqa: SIM905
_REASONS: Final = ("because it is faster", "since the audit", "after the outage in May", "to keep tests simple")
QUERIES: Final = tuple(f"why does the {topic} use {thing}" for topic, thing in zip(_TOPICS, _THINGS, strict=True))


@dataclass(frozen=True, slots=True)
class WorkerOrders:
    """Orders of one process.

    Attributes:
        moves: Operation numbers at which it migrates, goes back or builds anew.
    """

    root: str
    backend: str
    number: int
    operations: int
    seed: str
    log: str
    shared: tuple[str, ...] = ()
    compactions: tuple[int, ...] = ()
    moves: tuple[tuple[int, str], ...] = ()

    def encode(self) -> str:
        """Return the orders as they stand in a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> WorkerOrders:
        """Return the orders of an encoded text."""
        orders = cls(**json.loads(text))
        return replace(orders, moves=tuple((int(at), str(what)) for at, what in orders.moves))


def fact(choose: random.Random, mark: str) -> str:
    """Return a sentence that no other one equals, of the length that people store."""
    return (
        f"The {choose.choice(_TOPICS)} of {mark} uses {choose.choice(_THINGS)} {choose.choice(_REASONS)}, and the "
        f"{choose.choice(_TOPICS)} of {mark} uses {choose.choice(_THINGS)}."
    )


def open_service(root: str, backend: str) -> MemoryService:
    """Open the agent's memory as a session does, with an embedder that costs nothing."""
    settings, own = ServiceSettings(storage_root=root, embedder="none"), HashEmbedder(DIMENSION)
    if backend == "vector":
        storage: FileStorage = MigratableStorage(AGENT, settings=settings, embedder=own, wanted=False)
    else:
        storage = FileStorage(AGENT, settings=settings, embedder=own)
    audit = AuditLog(storage.folder.audit)
    return MemoryService(storage, settings, redactor=SecretRedactor(), audit=audit)


class WorkerSession:
    """Work of one process, and its own memories with their texts."""

    def __init__(self, orders: WorkerOrders, service: MemoryService) -> None:
        self._orders = orders
        self._service = service
        self._choose = random.Random(orders.seed)
        self._own: dict[str, str] = {}
        self._captured: dict[str, str] = {}
        self._gone: set[str] = set()
        self._pairs_seen: set[str] = set()
        self._moving: set[asyncio.Task[None]] = set()
        self._log = os.open(orders.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, **record: Any) -> None:
        """Write down one thing, at once: it must survive whatever happens to this process."""
        os.write(self._log, json.dumps(record).encode() + b"\n")

    async def work(self) -> None:
        """Do all operations, one after the other, and the moves beside them."""
        moves = dict(self._orders.moves)
        kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        for number in range(self._orders.operations):
            if number in moves:
                self._moving.add(asyncio.create_task(self._move(moves[number])))
            if number in self._orders.compactions:
                await self._timed("compact", partial(self._service.storage.compact, _AT_ONCE))
            kind = self._choose.choices(kinds, weights)[0]
            await getattr(self, f"_{kind}")(f"p{self._orders.number}n{number}")
        await asyncio.gather(*self._moving)

    # -- operations ---------------------------------------------------------------------------------------------------

    async def _search(self, mark: str) -> None:
        """Ask, now for a topic, now for something of one's own, and look whether the answer can be true."""
        known = list(self._own.items())
        wanted = self._choose.choice(known) if known and self._choose.random() < 0.5 else None
        query = wanted[1] if wanted else f"{self._choose.choice(QUERIES)} {mark if self._choose.random() < 0.2 else ''}"
        begin = time.monotonic()
        try:
            found = (await self._service.search(query)).results
        except AgentMemoryError as error:
            self._refused("search", error, begin)
            return
        self.note(op="search", mode=found.mode)
        texts = {hit.memory.id: hit.memory.content for hit in found}
        for memory_id, text in texts.items():
            if memory_id in self._gone:
                self.note(op="wrong", what=f"{memory_id} was found after it was forgotten")
            if self._own.get(memory_id, text) != text:
                self.note(op="wrong", what=f"{memory_id} was found with an old text")
        if wanted and wanted[0] not in texts:
            self.note(op="wrong", what=f"{wanted[0]} was not found by its own text {wanted[1]!r}")

    async def _store(self, mark: str) -> None:
        text = fact(self._choose, mark)
        await self._keep(text, self._own)

    async def _common(self, _mark: str) -> None:
        """Store what every process stores: all must be told the same id."""
        await self._keep(f"Everybody knows common fact {self._choose.randrange(20)} of this house.", {})

    async def _update(self, mark: str) -> None:
        if self._own:
            memory_id = self._choose.choice(list(self._own))
            await self._change(memory_id, f"{fact(self._choose, mark)} Corrected.", self._own)

    async def _share(self, mark: str) -> None:
        """Change or, rarely, forget what others change at the same time."""
        memory_id = self._choose.choice(self._orders.shared)
        if self._choose.random() < 0.03:
            await self._forget_one(memory_id, {})
        else:
            await self._change(memory_id, f"{fact(self._choose, mark)} Shared.", {})

    async def _forget(self, _mark: str) -> None:
        if self._own:
            await self._forget_one(self._choose.choice(list(self._own)), self._own)

    async def _capture(self, mark: str) -> None:
        """Capture something new, or what was captured and forgotten: that must not come back."""
        if self._captured and self._choose.random() < 0.3:
            memory_id, text = self._captured.popitem()
            if await self._forget_one(memory_id, {}):
                await self._capture_text(text)
            return
        await self._capture_text(f"We decided that {fact(self._choose, mark)}")

    async def _capture_text(self, text: str) -> None:
        seen = Observation(content=text, category="decision", confidence=0.9)
        outcome = await self._timed("capture", lambda: self._service.capture([seen]), text=text)
        for memory_id in outcome.stored if outcome else ():
            self._captured[memory_id] = text

    async def _pair(self, mark: str) -> None:
        """Replace one memory by another and forget both at once; nobody may see one of them gone without the other."""
        async for memory in self._service.storage.iter_all():
            if memory.supersedes and memory.content.startswith("pair"):
                self._pairs_seen.add(f"{memory.id} {memory.supersedes}")
        ids = {memory.id async for memory in self._service.storage.iter_all()}
        for pair in list(self._pairs_seen):
            newer, older = pair.split()
            if (newer in ids) != (older in ids):
                self.note(op="wrong", what=f"half a batch was seen: {newer} and {older}")
        older = await self._keep(f"pair {mark} began in {fact(self._choose, mark)}", {})
        newer = older and await self._keep(f"pair {mark} ended in {fact(self._choose, mark)}", {}, supersedes=older)
        if newer and self._choose.random() < 0.7:
            await self._forget_one(newer, {})

    async def _keep(self, text: str, own: dict[str, str], **fields: Any) -> str:
        begin = time.monotonic()
        try:
            stored = await self._service.store({"content": text, "category": "note", **fields})
        except AgentMemoryError as error:
            self._refused("store", error, begin)
            return ""
        op = "duplicate" if stored.duplicate else "store"
        self.note(op=op, id=stored.memory.id, text=text, begin=begin, end=time.monotonic())
        own[stored.memory.id] = text
        return stored.memory.id

    async def _change(self, memory_id: str, text: str, own: dict[str, str]) -> None:
        if await self._timed("update", lambda: self._service.update(memory_id, {"content": text}), memory_id, text):
            own[memory_id] = text

    async def _forget_one(self, memory_id: str, own: dict[str, str]) -> bool:
        begin = time.monotonic()
        try:
            gone = await self._service.forget(memory_id)
        except AgentMemoryError as error:
            self._refused("forget", error, begin)
            return False
        for older_version in (memory_id, *gone.older_versions):
            self.note(op="forget", id=older_version, begin=begin, end=time.monotonic())
            self._gone.add(older_version)
        own.pop(memory_id, None)
        return True

    async def _timed(self, op: str, call: Callable[[], Awaitable[Any]], memory_id: str = "", text: str = "") -> Any:
        begin = time.monotonic()
        try:
            outcome = await call()
        except AgentMemoryError as error:
            self._refused(op, error, begin)
            return None
        for each in outcome.stored if op == "capture" else [memory_id]:
            self.note(op=op, id=each, text=text, begin=begin, end=time.monotonic())
        return outcome

    def _refused(self, op: str, error: AgentMemoryError, begin: float) -> None:
        if isinstance(error, UnknownIdError) and op in {"update", "forget"}:
            self.note(op="too late", of=op)  # somebody else has forgotten it
        else:
            seconds = time.monotonic() - begin
            self.note(op="error", of=op, code=error.code, message=error.message, seconds=seconds)

    async def _move(self, what: str) -> None:
        """Migrate, build anew or go back, while everybody goes on; another's build under way is no error."""
        from agent_memory.memory import NOBODY  # used here alone

        growth = self._service.monitor.migration
        begin = time.monotonic()
        try:
            await (growth.rollback(NOBODY) if what == "rollback" else growth.migrate(NOBODY))
        except BusyError as error:
            building = "building" in error.message
            self.note(op="move", what=what, outcome="another was building" if building else "busy")
        except AgentMemoryError as error:
            self.note(op="error", of=what, code=error.code, message=error.message)
        else:
            self.note(op="move", what=what, outcome="done", seconds=time.monotonic() - begin)


async def _run(orders: WorkerOrders) -> None:
    service = open_service(orders.root, orders.backend)
    await service.storage.prepare(None)
    session = WorkerSession(orders, service)
    await _meet("ready")
    await session.work()
    await _meet("done")
    await service.settle()
    await service.storage.prepare(None)
    session.note(op="end", embedding=service.storage.embedding_status())
    await _meet("settled")
    await service.close()


async def _meet(word: str) -> None:
    """Report a stage and wait until all processes have reached it."""
    sys.stdout.write(word + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(_run(WorkerOrders.decode(sys.argv[1])))
