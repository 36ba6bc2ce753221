"""Kills processes in each stage of sealing, merging, compaction and group commit, and looks what is left.

    python -m benchmarks.crash_stages [--kills 500] [--seed 0]

Each kill: a process stores, changes and forgets by several callers, seals after a single change, merges, and compacts
beside all that. It dies by SIGKILL right before, right after or half-way through the N-th call that changes a file in
the stage whose turn it is. A stage is told from the functions that are being executed; a process that ends without
having come that far does not count. Now and then whoever seals next is killed as well.

Then a fresh process opens, compares what is there with what was acknowledged, and its answers by words and by vectors
with those of a copy without `derived/`, which reads the whole journal; the doctor looks, and the next sealing must
leave nothing in the folder but what is listed. Ends with 1 if anything was found.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.doctor.examine import examine_agent
from agent_memory.doctor.findings import Severity
from agent_memory.errors import BusyError, StorageError
from agent_memory.models import MEMORY, Memory, utc_now
from agent_memory.storage import FileStorage, folder_of
from agent_memory.storage.sealed.sealing import seal_up
from benchmarks._crash_check import age
from benchmarks._crash_model import Expected, Heard, Pending, compare, shown
from benchmarks._crash_operations import AGENT, EMBEDDER, LONG_AGO, preload, settings_for
from benchmarks._crash_process import Child, Shim, changes_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from agent_memory.models import Clock, SearchResults
    from benchmarks._crash_model import Shown
    from benchmarks._crash_process import Say

_OF_PURGED: Final = "compaction, segments of what was purged"
STAGES: Final = {
    ("segments/chain.py", "list_segments"): "swap of segments.json",
    ("segments/merging.py", "merge"): "merge",
    ("segments/writing.py", "seal"): "seal",
    ("segments/vectors.py", "add_vectors"): "vectors",
    ("sealed/sealing.py", "_take_into_use"): "naming a segment",
    ("sealed/opening.py", "remove_unused"): "removal",
    ("journal/rewriting.py", "fill"): "compaction, before the rename",
    ("journal/rewriting.py", "put_in_place"): "compaction, at the rename",
    ("sealed/opening.py", "drop_purged"): _OF_PURGED,
    ("journal/writer.py", "append"): "group commit, line",
    ("journal/durability.py", "settle"): "group commit, sync",
}
"""Where a call is made, by the end of the file's name and the function: the innermost counts, but for the purge."""
First = tuple[str, str, float]
"""How it was searched, the id of the first hit, and its score."""
_ROUNDED: Final = 0.002
_PATIENCE: Final = 120.0
_MANY: Final = 150
_ALSO_THE_NEXT: Final = 0.25
_TRIES: Final = 12
"""Processes that may end without having come to a stage before that is a finding."""
_IN_DERIVED: Final = {"segments.json", ".lock"}


def stage_of(frame: FrameType | None) -> str:
    """Return the stage in which a call is made; empty in none."""
    found = []
    while frame is not None:
        code = frame.f_code
        for (file, function), stage in STAGES.items():
            if code.co_name == function and code.co_filename.endswith(file):
                found.append(stage)
        frame = frame.f_back
    return _OF_PURGED if _OF_PURGED in found else next(iter(found), "")


class StagedShim(Shim):
    """Strikes at a call of one stage.

    Args:
        say: See `Shim`.
        stage: Which.

    Attributes:
        seen: How many calls were made in each.
    """

    def __init__(self, say: Callable[..., None], stage: str) -> None:
        self._stage = stage
        self.seen: Counter[str] = Counter()
        super().__init__(say)

    def _around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        strikes = super()._around(name, call)

        def watched(*arguments: Any, **options: Any) -> Any:
            if not changes_files(name, arguments):
                return call(*arguments, **options)
            stage = stage_of(sys._getframe(1))  # noqa: SLF001 - the documented way to a frame
            self.seen[stage] += 1
            return (strikes if stage == self._stage else call)(*arguments, **options)

        return watched


@dataclass(frozen=True, slots=True)
class Order:
    """What one process does, and where it dies."""

    root: Path
    seed: int
    stage: str = ""
    at: int = 0
    how: str = "before"


def storage_of(root: Path, clock: Clock = utc_now) -> FileStorage:
    """Open the agent's memories with vectors that cost nothing."""
    return FileStorage(AGENT, settings=settings_for(root), embedder=EMBEDDER, clock=clock)


def seal_all(root: Path) -> bool:
    """Seal after a single change."""
    return seal_up(folder_of(AGENT, root), MEMORY, EMBEDDER.identity, 1)


class Victim:
    """A process that works until it is killed, or is done.

    Args:
        say: To the driver.
        order: What to do.
        expected: What there is so far.
    """

    def __init__(self, say: Say, order: Order, expected: Expected) -> None:
        self._say = say
        self._order = order
        self._expected = expected
        self._choose = random.Random(order.seed)
        self._shim = StagedShim(say, order.stage)

    def run(self) -> None:
        """Do it all once."""
        try:
            asyncio.run(self._work())
        except BusyError as error:
            self._say(busy=error.message)
        self._say(seen=dict(self._shim.seen))

    async def _work(self) -> None:
        past = storage_of(self._order.root, lambda: datetime.now(UTC) - LONG_AGO)
        await self._change(past, self._choose.randint(2, 4))
        await past.prepare(None)
        await past.close()
        self._shim.arm(self._order.at, self._order.how)
        storage = storage_of(self._order.root)
        for _ in range(2):
            await self._change(storage, self._choose.randint(1, 6))
            await storage.prepare(None)
            await asyncio.to_thread(seal_all, self._order.root)
        sealing = asyncio.to_thread(self._seal_beside)
        await asyncio.gather(self._store_together(storage), storage.compact(), sealing)
        await asyncio.to_thread(seal_all, self._order.root)
        await storage.close()

    def _seal_beside(self) -> None:
        """Seal while a compaction may remove what is being written; the next sealing begins anew."""
        with contextlib.suppress(StorageError):
            seal_all(self._order.root)

    def _memory(self) -> Memory:
        words = " ".join(self._choose.choice(("tea", "ledger", "office", "Lyon", "tram")) for _ in range(6))
        return Memory(agent_id=AGENT, content=f"key{self._choose.getrandbits(48):012x} {words}")

    async def _store_together(self, storage: FileStorage) -> None:
        """Store by several callers, who share a sync."""
        memories = [self._memory() for _ in range(6)]
        self._say(pending=asdict(Pending("store", extra=[{**shown(each), "id": each.id} for each in memories])))

        async def store(memory: Memory) -> None:
            await storage.store(memory)
            self._learn({memory.id: shown(memory)})

        await asyncio.gather(*map(store, memories))

    async def _change(self, storage: FileStorage, count: int) -> None:
        """Store some, reword one and forget one."""
        await self._store_together(storage)
        for _ in range(count):
            memory_id = self._choose.choice(list(self._expected.memories))
            new = {"content": self._memory().content}
            await self._done(storage.update(memory_id, new), {memory_id: {**self._expected.memories[memory_id], **new}})
        memory_id = self._choose.choice(list(self._expected.memories))
        await self._done(storage.delete(memory_id), {memory_id: None})

    async def _done(self, doing: Any, changed: dict[str, Shown | None]) -> None:
        self._say(pending=asdict(Pending("change", changed=changed)))
        await doing
        self._learn(changed)

    def _learn(self, now: dict[str, Shown | None]) -> None:
        self._say(now=now)
        self._expected.learn(now)


def seal_next(say: Say, order: Order) -> None:
    """Seal what is left, and be killed in the middle of that."""
    StagedShim(say, order.stage).arm(order.at, order.how)
    seal_all(order.root)


def work(say: Say, order: Order, expected: Expected) -> None:
    """Be a `Victim`."""
    Victim(say, order, expected).run()


# -- what is left -----------------------------------------------------------------------------------------------------


def examine(say: Say, root: Path, pending: Pending, expected: Expected, seed: int) -> None:
    """Open what is left, compare, repair; tell what was found to be wrong, and what the operation had done."""
    wrong: list[str] = []
    found = asyncio.run(_answers(root, seed))
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        shutil.copytree(root, Path(scratch) / "memory")
        shutil.rmtree(folder_of(AGENT, Path(scratch) / "memory").path / "derived", ignore_errors=True)
        whole = asyncio.run(_answers(Path(scratch) / "memory", seed))
    wrong += [
        f"{name} differs from a full replay: {value} {whole[name]}" if name != "records" else f"{name} differ"
        for name, value in found.items()
        if (value != whole[name] if name == "records" else not alike(value, whole[name]))
    ]
    verdict = compare(expected, pending, found["records"], settled=False)
    wrong += [*(f"lost: {what}" for what in verdict.lost), *(f"half done: {what}" for what in verdict.half)]
    report = examine_agent(root, AGENT, now=utc_now(), settings=settings_for(root), kinds=(MEMORY,))
    bad = (Severity.PROBLEM, Severity.WARNING)
    wrong += [f"the doctor: {each.sentence}" for each in report.findings if each.severity in bad]
    asyncio.run(_go_on(root))
    seal_all(root)
    wrong += [f"left over: {name}" for name in leftovers(root)]
    say(wrong=wrong, now={**verdict.now, **asyncio.run(_further(root, expected))})


async def _answers(root: Path, seed: int) -> dict[str, Any]:
    """Return all records, and what is found by words alone and by words and vectors."""
    storage, choose = storage_of(root), random.Random(seed)
    try:
        records = {memory.id: shown(memory) async for memory in storage.iter_all()}
        await storage.prepare(None)
        valid = sorted([memory.content async for memory in storage.iter_all() if FURTHER not in memory.content])
        queries = choose.sample(valid, min(5, len(valid)))
        keys = [_first(await storage.search(query.split()[0], 1)) for query in queries]
        by_vector = [_first(await storage.search(query, 1)) for query in queries]
        return {"records": records, "the answer by words": keys, "the answer by vectors": by_vector}
    finally:
        await storage.close()


def _first(hits: SearchResults) -> First:
    return hits.mode, hits[0].memory.id if hits else "", hits[0].relevance_score if hits else 0.0


def alike(some: list[First], others: list[First]) -> bool:
    """Tell whether answers are the same; of two hits that score alike either may be the first.

    Sealed vectors are halves of floats, which changes a score in the fourth place.
    """
    return len(some) == len(others) and all(
        mode == other_mode and abs(score - other_score) <= _ROUNDED
        for (mode, _, score), (other_mode, _, other_score) in zip(some, others, strict=True)
    )


FURTHER: Final = "a further one"


async def _go_on(root: Path) -> None:
    """Store and compact: what is left of temporary files goes with that."""
    age(folder_of(AGENT, root).path)
    storage = storage_of(root)
    await storage.store(Memory(agent_id=AGENT, content=FURTHER))
    await storage.prepare(None)
    await storage.compact()
    await storage.close()


async def _further(root: Path, expected: Expected) -> dict[str, Shown | None]:
    storage = storage_of(root)
    now = {memory.id: shown(memory) async for memory in storage.iter_all() if memory.content == FURTHER}
    await storage.close()
    return {key: value for key, value in now.items() if key not in expected.memories}


def leftovers(root: Path) -> list[str]:
    """Return what is in the folder and not in use."""
    folder = folder_of(AGENT, root)
    place = folder.segments(MEMORY.name)
    names = json.loads((place / "segments.json").read_bytes())["segments"]
    found = [path.name for path in place.iterdir() if path.name not in {*names, *_IN_DERIVED}]
    found += [f"{path.parent.name}/{path.name}" for path in place.glob("*/.*")]
    return found + [path.name for path in folder.path.iterdir() if path.name.endswith((".tmp", ".bak"))]


# -- driving ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Row:
    """Figures of one stage."""

    before: int = 0
    torn: int = 0
    after: int = 0
    next_killed: int = 0
    not_reached: int = 0
    busy: int = 0
    found: int = 0


@dataclass
class Campaign:
    """All kills of one run."""

    scratch: Path
    choose: random.Random
    rows: dict[str, Row] = field(default_factory=lambda: {stage: Row() for stage in STAGES.values()})
    problems: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    begun: int = 0
    root: Path = Path()
    expected: Expected = field(default_factory=Expected)

    def kill(self, stage: str) -> None:
        """Kill one process in a stage, and judge what it left."""
        row = self.rows[stage]
        for _ in range(_TRIES):
            self._make_room()
            most = self.calls[stage] or 1
            how = self.choose.choice(("before", "after", "torn"))
            heard, struck = self._work(Order(self.root, self._seed(), stage, self.choose.randint(1, most), how), row)
            if struck:
                break
            row.not_reached += 1
        else:
            self.problems.append(f"{stage}: no process came that far")
            return
        name = struck.split()[0]
        setattr(row, name, getattr(row, name) + 1)
        if self.choose.random() < _ALSO_THE_NEXT:
            next_stage = self.choose.choice(("seal", "merge", "swap of segments.json", "vectors", "removal"))
            order = Order(self.root, 0, next_stage, self.choose.randint(1, max(1, self.calls[next_stage] // 3)), how)
            row.next_killed += self._ended("next", seal_next, order)[1] == -signal.SIGKILL
        messages, _ = self._ended("check", examine, self.root, heard.pending, self.expected, self._seed())
        message: dict[str, Any] = messages[-1] if messages else {"crashed": "it says nothing"}
        wrong = message.get("wrong", [message.get("crashed", "")])
        row.found += len(wrong)
        self.problems += [f"{stage}, {struck}: {what}" for what in wrong]
        self.expected.learn(message.get("now", {}))

    def _work(self, order: Order, row: Row) -> tuple[Heard, str]:
        heard = Heard()
        struck = ""
        messages, _ = self._ended("victim", work, order, self.expected)
        for message in messages:
            heard.take(message, self.expected)
            struck = message.get("struck", struck)
            row.busy += "busy" in message
            if "busy" in message or "crashed" in message:
                self.problems.append(f"{order.stage}: {message.get('busy') or message['crashed']}")
            for stage, count in message.get("seen", {}).items():
                self.calls[stage] = max(self.calls[stage], count)
        if not struck:
            heard.pending = Pending()
        return heard, struck

    def _make_room(self) -> None:
        """Begin a folder anew where there is none or it has become large."""
        if self.begun and len(self.expected.memories) < _MANY:
            return
        shutil.rmtree(self.root.parent, ignore_errors=True) if self.begun else None
        self.begun += 1
        self.root, self.expected = self.scratch / f"home{self.begun}" / "memory", Expected()
        self.root.mkdir(parents=True)
        for _ in range(2):  # a first one that fills it, and one that tells how many calls there are
            self._work(Order(self.root, self._seed()), Row())

    def _ended(self, name: str, function: Any, *arguments: object) -> tuple[list[dict[str, Any]], int]:
        child = Child(self.scratch / f"{name}.log", function, *arguments)
        messages = []
        while (message := child.hear(_PATIENCE)) is not None:
            messages.append(message)
        child.kill() if child.is_alive and messages == [] else None
        code = child.wait()
        child.close()
        return messages, code

    def _seed(self) -> int:
        return self.choose.getrandbits(32)


def run(kills: int, seed: int) -> dict[str, Any]:
    """Kill so many processes, the stages in turn, and return the report."""
    preload()
    with tempfile.TemporaryDirectory(prefix="stages-") as scratch:
        campaign = Campaign(Path(scratch), random.Random(seed))
        stages = list(campaign.rows)
        for number in range(kills):
            campaign.kill(stages[number % len(stages)])
        rows = {stage: asdict(row) for stage, row in campaign.rows.items()}
        return {"seed": seed, "stages": rows, "problems": campaign.problems}


def table(report: dict[str, Any]) -> str:
    """Return the report for people."""
    names = list(asdict(Row()))
    lines = [" ".join([f"{'stage':40}", *(f"{name:>12}" for name in names)])]
    total = {name: sum(row[name] for row in report["stages"].values()) for name in names}
    for stage, row in {**report["stages"], "all": total}.items():
        lines.append(" ".join([f"{stage:40}", *(f"{row[name]:12}" for name in names)]))
    return "\n".join([*lines, "", *(report["problems"] or ["nothing lost, nothing half done, nothing left over"])])


def main() -> None:
    """Kill, judge, print; exit with 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash_stages", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="for machines")
    args = parser.parse_args()
    with contextlib.suppress(OSError):
        os.nice(5)
    report = run(args.kills, args.seed)
    print(json.dumps(report, indent=2) if args.json else table(report))
    sys.exit(1 if report["problems"] else 0)


if __name__ == "__main__":
    main()
