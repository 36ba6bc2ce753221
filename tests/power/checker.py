"""Cuts the power at every step of a recording and opens what is left with the real product.

Two judges: `gaps` asks the disk model whether what was acknowledged is safe at that moment, `Inspector` opens what a
cut left. Either one alone finds a store that does not sync.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.index.segment import check_segments, open_chain
from agent_memory.memory import MemoryService
from agent_memory.models import MEMORY
from agent_memory.scratchpad import ScratchpadManager
from agent_memory.store.shards import Shards
from tests.power.disk import FATES, Disk, digest, lay_out
from tests.power.recorder import Recorder
from tests.power.scenarios import AFTERWARDS, EDITS, FOLDER, OFFLINE, Bob, state_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from tests.power.disk import Fate
    from tests.power.events import Event, State
    from tests.power.scenarios import Scenario


JOURNAL = f"{FOLDER}/{MEMORY.journal}"


def record(scenario: Scenario, base: Path) -> list[Event]:
    """Run a scenario in an empty folder and return what was done."""
    with Recorder(base) as recorder:
        asyncio.run(scenario(base, recorder))
    return recorder.events


def cut_power(name: str, events: Sequence[Event], folder: Path, **how: int) -> Report:
    """Run a campaign over the recording of the scenario of this name; see `Campaign.run`."""
    inspector = Inspector(folder / "rubble", EDITS.get(name, ()))
    return asyncio.run(Campaign(name, events, inspector).run(**how))


def gaps(events: Sequence[Event]) -> list[str]:
    """Return, for each acknowledgement that came too early, which one and what was not on the disk."""
    disk, found = Disk(), []
    for number, event in enumerate(events):
        disk.apply(event)
        if event.do == "ack":
            for path in (f"{FOLDER}/{Bob.kind.journal}", *event.durable):
                why = disk.gap(path)
                if why is not None:
                    found.append(f"{event.path} was acknowledged at step {number}, but {why}")
    return list(dict.fromkeys(found))


def syncs_per_ack(events: Sequence[Event], label: str) -> list[int]:
    """Return how often a file (not a folder) was synced before each acknowledgement of this label."""
    disk, counts, count = Disk(), [], 0
    for event in events:
        disk.apply(event)
        if event.do == "sync" and event.path in disk.files():
            count += 1
        elif event.do == "ack":
            if event.path == label:
                counts.append(count)
            count = 0
    return counts


@dataclass(frozen=True, slots=True)
class Promise:
    """What may be found after a cut: the state of the last acknowledgement, or on the way to the next."""

    before: State
    after: State
    atomic: bool
    refused: State = field(default_factory=dict)

    def broken_by(self, found: State) -> str | None:
        """Return what is wrong with the memories found, or None."""
        found = {key: record for key, record in found.items() if self.refused.get(key) != record}
        if found in (self.before, self.after):
            return None
        for memory_id in self.before.keys() | self.after.keys() | found.keys():
            allowed = [self.before.get(memory_id), self.after.get(memory_id)]
            if found.get(memory_id) not in allowed:
                return f"{_shown(found.get(memory_id))} instead of {' or '.join(map(_shown, allowed))}"
        return "half of what happens together" if self.atomic else None


def _shown(record: dict[str, Any] | None) -> str:
    return "nothing" if record is None else f"{record[Bob.kind.text][:40]!r} ({record['access_count']} accesses)"


@dataclass
class Report:
    """What a campaign did and found.

    Attributes:
        cuts: Power cuts.
        different: How many of them left something else than another one.
        failures: What was wrong, with what is needed to see it again.
    """

    cuts: int = 0
    different: int = 0
    failures: list[str] = field(default_factory=list)


class Inspector:
    """Opens what a cut left, in a folder of its own that is emptied each time.

    Args:
        folder: Where.
        edits: The texts that may be there once a person's edits of the scratchpad were taken over; none are under way
            when it is empty.
    """

    def __init__(self, folder: Path, edits: Collection[str] = ()) -> None:
        self._folder = folder
        self._edits = frozenset(edits)

    async def look(self, left: dict[str, bytes | None], promise: Promise) -> str | None:
        """Return what is wrong with what is left, or None."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        lay_out(left, self._folder)
        try:
            return await self._open(promise)
        except AgentMemoryError as error:
            return f"{type(error).__name__}: {error.message}"

    async def _open(self, promise: Promise) -> str | None:
        bob = Bob(self._folder)
        bob.clock.advance(days=100)
        try:
            found = await state_of(bob.records)
            wrong = promise.broken_by(found) or index_of(self._folder) or segments_of(self._folder)
            if wrong:
                return wrong
            await bob.records.health()
            added = bob.memory(AFTERWARDS)
            await bob.records.store(added)
            expected = {**found, added.id: added.model_dump(mode="json")}
            wrong = await self._again(expected, "the next store")
            if wrong or bob.kind is MEMORY:
                return wrong or await self._derived(bob, expected)
            await bob.records.compact()
            return await self._again(expected, "a compaction")
        finally:
            await bob.close()

    async def _again(self, expected: State, after: str) -> str | None:
        fresh = Bob(self._folder)
        try:
            found = await state_of(fresh.records)
            wrong = Promise(expected, expected, atomic=True).broken_by(found)
            return f"after {after}: {wrong}" if wrong else None
        finally:
            await fresh.close()

    async def _derived(self, bob: Bob, expected: State) -> str | None:
        """Look at what is made from the journal: it may be lost, but must neither fail nor change the truth."""
        service = MemoryService(bob.storage, OFFLINE, clock=bob.clock)
        pad = await service.scratchpad()
        if self._edits:
            strange = [memory.content for memory in await bob.storage.valid() if memory.content not in self._edits]
            if strange:
                return f"a look at the scratchpad made it {strange[0]!r}"
            await service.settle()  # accesses are counted behind the answer
            expected = await state_of(bob.storage)
        elif wrong := await self._again(expected, "a look at the scratchpad"):
            return wrong
        shown = await bob.storage.search("power came back", 1)
        if not shown or not len(pad):
            return "the new memory is not found"
        await bob.storage.compact()
        manager = ScratchpadManager("bob", storage=bob.storage, clock=bob.clock)
        await manager.save(pad)
        if manager.pad_file.look().saves:
            return "the scratchpad was not rendered anew"
        return await self._again(expected, "a compaction")


def index_of(folder: Path) -> str | None:
    """Return what is wrong with the switch between backends: it names an index that is whole, or none."""
    shards = Shards(Bob(folder).storage.folder)
    backend, shard = shards.active()
    if backend == "vector" and (shard is None or shards.state(shard) is None):
        return "the index in use is not whole"
    return None


def segments_of(folder: Path) -> str | None:
    """Return what is wrong with the segments that are listed: all their bytes were synced before that."""
    place = Bob(folder).storage.folder.segments(Bob.kind.name)
    try:
        check_segments(open_chain(place, Bob.kind.name).segments)
    except StorageError as error:
        return f"a listed segment is not whole: {error.message}"
    return None


@contextlib.contextmanager
def real_disk_unasked() -> Iterator[None]:
    """Spare the real disk while rubble is looked through: its power is not cut."""
    with mock.patch.object(os, "fsync"):
        yield


class Campaign:
    """Cuts the power again and again over one recording.

    Args:
        name: Of the recording, for the report.
        events: The recording.
        inspector: Who opens what is left.
    """

    def __init__(self, name: str, events: Sequence[Event], inspector: Inspector) -> None:
        self._name = name
        self._events = events
        self._inspector = inspector
        self._seen: set[tuple[str, int]] = set()

    async def run(self, *, seed: int, per_step: int, most: int = 0, enough: int = 0) -> Report:
        """Cut after every step.

        Args:
            seed: Of all chances.
            per_step: Cuts after each step.
            most: Cuts at most, about, spread over the steps; 0 for all.
            enough: Failures after which it stops; 0 goes on.
        """
        report, disk, choose = Report(), Disk(), random.Random(f"{self._name} {seed}")
        promises = list(_promises(self._events))
        share = min(1.0, most / (len(self._events) * per_step)) if most else 1.0
        with real_disk_unasked():
            for step, event in enumerate(self._events):
                disk.apply(event)
                for turn in range(per_step):
                    if enough and len(report.failures) >= enough:
                        return report
                    if choose.random() < share:
                        fate = FATES[(step + turn) % len(FATES)] if per_step < len(FATES) else FATES[turn % len(FATES)]
                        await self._cut(report, disk, step, fate, choose, promises[step])
        return report

    async def _cut(
        self, report: Report, disk: Disk, step: int, fate: Fate, choose: random.Random, promise: tuple[int, Promise]
    ) -> None:
        number, promised = promise
        left = disk.cut(fate, choose)
        report.cuts += 1
        if (told := (digest(left), number)) in self._seen:
            return
        self._seen.add(told)
        report.different += 1
        wrong = await self._inspector.look(left, promised)
        if wrong:
            report.failures.append(f"{self._name}, cut after step {step} ({self._events[step]}), {fate} left: {wrong}")


def _promises(events: Sequence[Event]) -> Iterator[tuple[int, Promise]]:
    """Yield, for each step, the number of acknowledgements so far and what may be found after a cut there."""
    acks = [event for event in events if event.do == "ack"]
    done, before = 0, {}
    for event in events:
        if event.do == "ack":
            done, before = done + 1, event.state
        coming = acks[done] if done < len(acks) else None
        if coming is None:
            yield done, Promise(before, before, atomic=True, refused=acks[-1].refused)
        else:
            yield done, Promise(before, coming.state, coming.atomic, coming.refused)
