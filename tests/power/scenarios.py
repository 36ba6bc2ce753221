"""What people and programs do to one memory, step by step, each acknowledged with what may be relied upon from then on.

Each scenario begins in an empty folder and runs in any process: `python -m tests.power.scenarios NAME FOLDER` tells its
acknowledgements on standard output, for a tracer to see.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.index_builder import build
from agent_memory.journal.format import add_checksum
from agent_memory.memories import MigratableStorage
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.memory.caller import NOBODY
from agent_memory.models import MEMORY, Kind, Observation
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store.memory_storage import Files
from agent_memory.store.record_storage import RecordStorage
from agent_memory.store.segment_builder import seal_up
from agent_memory.store.shards import Shards
from tests.power.events import NONE, Names
from tests.power.sabotage import SABOTAGES, replace
from tests.support import FrozenClock

if TYPE_CHECKING:
    from agent_memory.memory.results import Imported
    from tests.power.events import State

ROOT = ".amplifier/memory"
"""Below the watched folder: a home in which nobody has stored anything yet."""
FOLDER = f"{ROOT}/bob"
OFFLINE = ServiceSettings(embedder="none")
AFTERWARDS = "after the power came back"
LONG = "sectors " * 200
"""More than a disk writes at once."""


class Ack(Protocol):
    """Tells that something is done."""

    def mark(self) -> None:
        """Note that a call has returned: it is done now. What that means is told by the call that follows."""

    def __call__(
        self, label: str, state: State, *, atomic: bool = True, durable: Names = (), refused: State = NONE
    ) -> None:
        """See `Event`."""


class Nobody:
    """Is told, and does not listen."""

    def mark(self) -> None:
        """See `Ack`."""

    def __call__(self, *_: object, **__: object) -> None:
        """See `Ack`."""


class Tell:
    """Tells whoever traces this process, on its standard output."""

    def mark(self) -> None:
        os.write(1, b'{"mark": 1}\n')

    def __call__(
        self, label: str, state: State, *, atomic: bool = True, durable: Names = (), refused: State = NONE
    ) -> None:
        """See `Ack`."""
        said = {"ack": label, "state": state, "atomic": atomic, "durable": durable, "refused": refused}
        os.write(1, json.dumps(said).encode() + b"\n")


class Bob:
    """One process's view of bob's memory, with a clock of its own.

    Attributes:
        kind: Of which records; a test may set another.
    """

    kind: ClassVar[Kind[Any]] = MEMORY

    def __init__(self, base: Path, ack: Ack = Nobody(), clock: FrozenClock | None = None) -> None:  # noqa: B008
        self.clock = clock or FrozenClock()
        self.folder = base / FOLDER
        self._ack = ack
        self._unknown: State = {}
        self.journal = self.folder / self.kind.journal
        self.storage = FileStorage("bob", base / ROOT, settings=OFFLINE, clock=self.clock)
        files = Files(self.kind, self.storage.folder, OFFLINE, self.clock)
        self.records = self.storage if self.kind is MEMORY else RecordStorage(files.backend())

    def memory(self, content: str, **fields: Any) -> Any:
        text = {self.kind.text: content}
        return self.kind.model(agent_id="bob", **text, timestamp=self.clock.advance(seconds=1), **fields)

    @property
    def rejected(self) -> str:
        """What was set aside from the journal, below the watched folder."""
        return f"{FOLDER}/{self.kind.journal.replace('.', '.rejected.')}"

    def entry(self, content: str, seq: int) -> bytes:
        """Return a line of the journal, as another process would write it."""
        record = self.kind.model(agent_id="bob", **{self.kind.text: content}, timestamp=FrozenClock()())
        value = {"seq": seq, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": self.kind.name, "id": record.id}
        return add_checksum(b"--- " + json.dumps({**value, "data": record.to_record()}).encode() + b"\n")

    async def store(self, content: str, **fields: Any) -> str:
        """Store a text and acknowledge it."""
        memory_id = await self.records.store(self.memory(content, **fields))
        await self.done("store")
        return memory_id

    async def close(self) -> None:
        """Let go of everything."""
        await self.records.close()
        await self.storage.close()

    async def done(self, label: str, *, atomic: bool = True, durable: Names = (), refused: State = NONE) -> None:
        """Acknowledge what has just returned."""
        self._ack.mark()
        self._unknown |= refused
        state = {key: value for key, value in (await state_of(self.records)).items() if key not in self._unknown}
        self._ack(label, state, atomic=atomic, durable=durable, refused=dict(self._unknown))


async def state_of(storage: RecordStorage[Any]) -> State:
    """Return every record as JSON, by its id."""
    return {record.id: record.model_dump(mode="json") async for record in storage.iter_all()}


# -- one process, nothing goes wrong ----------------------------------------------------------------------------------


async def first_store(base: Path, ack: Ack) -> None:
    """Store in a home where no folder of ours exists yet."""
    bob = Bob(base, ack)
    await bob.store("tea")
    await bob.store(LONG)
    await bob.close()


async def changes(base: Path, ack: Ack) -> None:
    """Store, update, touch, supersede, forget."""
    bob = Bob(base, ack)
    tea, coffee = await bob.store("tea"), await bob.store(f"coffee {LONG}")
    await bob.records.update(tea, {bob.kind.text: "green tea", "tags": ["drinks"]})
    await bob.done("update")
    await bob.records.touch([tea, coffee])
    await bob.done("touch")
    newer = await bob.store("white tea", supersedes=tea)
    newest = await bob.store(f"black tea {LONG}", supersedes=newer)
    await bob.records.delete(newest)  # a batch of three
    await bob.done("forget")
    await bob.records.update(coffee, {"pinned": True, bob.kind.text: "espresso"})
    await bob.done("update")
    await bob.store("milk")
    await bob.close()


async def together(base: Path, ack: Ack) -> None:
    """Store by several callers, who share a sync; then again while the journal is compacted."""
    bob = Bob(base, ack)
    await bob.store("tea")
    for name, beside in (("alone", ()), ("beside a compaction", (bob.records.compact(),))):
        memories = [bob.memory(f"{name} {number} {LONG if number % 3 == 0 else ''}") for number in range(6)]
        await asyncio.gather(*map(bob.records.store, memories), *beside)
        await bob.done("stores", atomic=False)
    await bob.close()


async def compactions(base: Path, ack: Ack) -> None:
    """Fold what is old, set aside what is no entry, and go on."""
    bob = Bob(base, ack)
    kept = [await bob.store(f"kept {number}") for number in range(3)]
    gone = await bob.store(f"gone {LONG}")
    await bob.records.update(kept[0], {bob.kind.text: f"changed {LONG}"})
    await bob.done("update")
    await bob.records.delete(gone)
    await bob.done("forget")
    write_foreign(bob.journal, b"--- {no entry\n")
    bob.clock.advance(days=60)
    for _ in range(3):
        await bob.records.touch(kept)
        await bob.done("touch")
    for round_ in range(2):
        await bob.records.compact()
        await bob.done("compact", durable=(bob.rejected,))
        await bob.store(f"after {round_}")
    await bob.close()


async def a_day(base: Path, ack: Ack) -> None:
    """Use the service: capture, search, promote, forget, with the scratchpad rendered behind the answers."""
    bob = Bob(base, ack)
    service = service_of(bob)
    first = await service.store({"content": "Prefers tea", "category": "preference"})
    await bob.done("store")
    await service.store({"content": f"Decided on PostgreSQL {LONG}", "category": "decision"})
    await bob.done("store")
    await service.settle()
    seen = [Observation(content=f"Fact number {number}", category="note", confidence=0.9) for number in range(3)]
    await service.capture(seen)
    await bob.done("capture", atomic=False)
    await service.search("tea")
    await service.settle()
    await bob.done("search")
    await service.promote(first.memory.id)
    await bob.done("promote")
    await service.forget(first.memory.id)
    await bob.done("forget")
    await service.close()


async def bring_back(base: Path, ack: Ack) -> None:
    """Import what was exported, twice, since the first time may have been cut short."""
    bob = Bob(base, ack)
    memories = [bob.memory(f"old {number} of box {number}", access_count=number) for number in range(4)]
    memories.append(bob.memory(LONG, supersedes=memories[0].id))
    every: State = {memory.id: memory.model_dump(mode="json") for memory in memories}
    service = service_of(bob)

    def each(_: Imported) -> None:
        ack("import", dict(every))  # so few are one change

    for _ in range(2):
        await service.writer.import_memories(memories, each, NOBODY, trusted=True)
        await bob.done("import")
    await service.close()


async def edited_pad(base: Path, ack: Ack) -> None:
    """Take over what a person changed in scratchpad.yaml."""
    bob = Bob(base, ack)
    service = service_of(bob)
    for text in ("tea", "coffee"):
        await service.store({"content": text})
        await bob.done("store")
        await service.settle()
    pad = bob.folder / "scratchpad.yaml"
    edited = pad.read_bytes().replace(b"content: tea", b"content: green tea") + b"- content: milk\n"
    write_foreign(pad, edited, truncate=True)
    await service.scratchpad()
    await bob.done("edit", atomic=False)
    await service.settle()
    write_foreign(pad, b"{ no list", truncate=True)
    await service.scratchpad()
    kept = [f"{FOLDER}/{path.name}" for path in bob.folder.glob("scratchpad.broken*")]
    await bob.done("edit", durable=tuple(kept))
    await service.close()


async def sealing(base: Path, ack: Ack) -> None:
    """Seal after every few changes, merge, compact with what was sealed, purge, and seal again."""
    bob = Bob(base, ack)
    folder = bob.storage.folder

    async def seal(label: str) -> None:
        await asyncio.to_thread(seal_up, folder, bob.kind, None, 1)
        place = folder.segments(bob.kind.name)
        listed = json.loads((place / "segments.json").read_bytes())["segments"]
        used = [path for name in listed for path in (place / name).iterdir()]
        files = [path for path in (place / "segments.json", *used) if path.is_file()]
        await bob.done(label, durable=tuple(path.relative_to(base).as_posix() for path in files))

    kept = [await bob.store(f"kept {number}") for number in range(3)]
    await seal("seal")
    gone = await bob.store(f"gone {LONG}")
    await bob.records.update(kept[0], {bob.kind.text: "changed"})
    await bob.done("update")
    await seal("seal")
    for number in range(3):
        await bob.store(f"later {number}")
    await seal("merge")
    await bob.records.delete(gone)
    await bob.done("forget")
    bob.clock.advance(days=60)
    await bob.records.compact()
    await bob.done("compact")
    await seal("seal anew")
    await bob.close()


async def moved(base: Path, ack: Ack) -> None:
    """Build a vector index, switch to it, write, build anew, and roll back."""
    embedder, bob = HashEmbedder(), Bob(base, ack)
    growing = MigratableStorage("bob", base / ROOT, embedder=embedder, clock=bob.clock)
    for number in range(3):
        await growing.store(bob.memory(f"tea number{number}"))
        await bob.done("store")
    for round_ in range(2):
        await growing.prepare(None)
        await growing.close()
        build(growing.folder, MEMORY, embedder.identity, activate=True, report=lambda **_: None)
        built = [path for path in growing.folder.index.rglob("*") if path.is_file() and path.suffix != ".lock"]
        safe = [path.relative_to(base).as_posix() for path in (*built, growing.folder.metadata)]
        await bob.done("migrate", durable=tuple(safe))
        await bob.store(f"later {round_}")
    shards = Shards(growing.folder)
    shards.switch("file", None)
    shards.sweep()
    await bob.done("roll back", durable=(f"{FOLDER}/metadata.json",))
    await bob.store("last")
    await bob.storage.close()


# -- helpers ----------------------------------------------------------------------------------------------------------


def service_of(bob: Bob) -> MemoryService:
    return MemoryService(bob.storage, OFFLINE, audit=AuditLog(bob.storage.folder.audit), clock=bob.clock)


def write_foreign(path: Path, content: bytes, *, truncate: bool = False, sync: bool = False) -> None:
    """Write as an editor or a dying process does: without a sync, unless told."""
    mode = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if truncate else os.O_APPEND)
    descriptor = os.open(path, mode, 0o600)
    os.write(descriptor, content)
    if sync:
        os.fsync(descriptor)
    os.close(descriptor)


Scenario: TypeAlias = Callable[[Path, Ack], Coroutine[Any, Any, None]]
ALONE: tuple[Scenario, ...] = (
    first_store,
    changes,
    together,
    compactions,
    a_day,
    bring_back,
    edited_pad,
    sealing,
    moved,
)
EDITS = {"edited_pad": ("tea", "green tea", "coffee", "milk", AFTERWARDS)}
"""Texts that may be there once somebody's edits, perhaps cut short, were taken over."""


def main() -> None:
    """Run the scenario that the command line names, in the folder it names, sabotaged if it says how."""
    name, base, *sabotages = sys.argv[1:]
    for sabotage in sabotages:
        SABOTAGES[sabotage](replace)
    asyncio.run(globals()[name](Path(base), Tell()))


if __name__ == "__main__":
    main()
