"""Measure backups next to writing processes, and kill what makes them.

    python -m benchmarks.backups [--memories 100000] [--writers 8] [--kills 100] [--seed 0] [--json]

First some processes store all the time, each a memory and then a record in another journal, while a backup is made,
read again and restored. A backup must be a beginning of each journal as it stands, with at most one memory of each
process that has no record yet: then it is of one moment. Then processes that make, restore or prune backups are killed
by SIGKILL, half of them at a random moment and half right before a call that changes a file, beside two that store.
After each kill what is there is opened: each file with the name of a backup must be whole, the agent must be all of one
state, and everything that was acknowledged must be there or in a backup. Ends with 1 if not.
"""

from __future__ import annotations

import asyncio
import json
import random
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final
from zipfile import ZipFile

from agent_memory.care.backups.backup_reader import list_backups, verify_backup
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.files.layout import folder_of
from agent_memory.journal import Change, Journal
from agent_memory.memories import FileStorage
from agent_memory.models import MEMORY, Memory, to_text
from agent_memory.settings import ServiceSettings
from benchmarks.backups.worker import AGENT, PAIR, PAIRS
from benchmarks.harness import build_parser, print_report

_AT_ONCE: Final = 2_000
_FEW: Final = 300
_CHANCES: Final = {"create": 5, "restore": 8, "prune": 2}
_SECONDS: Final = 120.0
_FRESH: Final = 1.5
"""Seconds after which what a killed process left is no longer taken for what one is about to write; see `temporary`."""


@dataclass(slots=True)
class BackupReport:
    """Figures of a run; times in seconds."""

    memories: int = 0
    writers: int = 0
    bytes: int = 0
    create: float = 0.0
    verify: float = 0.0
    restore: float = 0.0
    waited: float = 0.0
    stored: int = 0
    busy: int = 0
    kills: dict[str, int] = field(default_factory=dict)
    ended: int = 0
    old: int = 0
    new: int = 0
    lost: list[str] = field(default_factory=list)

    def wrong(self, what: str) -> None:
        """Note what must not be."""
        self.lost.append(what)


class BackupWorker:
    """A process of `worker`.

    Args:
        arguments: What it is told.
    """

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "benchmarks.backups.worker", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.said: list[dict[str, Any]] = []
        self._rest = b""

    @property
    def _out(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def listen(self, seconds: float = 0.0) -> list[dict[str, Any]]:
        """Return its new messages; wait some seconds for the first."""
        new: list[dict[str, Any]] = []
        if self._out.closed:
            return new
        while select.select([self._out], [], [], 0.0 if new else seconds)[0]:
            block = self._out.read1(1 << 16)  # type: ignore[attr-defined]
            if not block:
                break
            *lines, self._rest = (self._rest + block).split(b"\n")
            new += [json.loads(line) for line in lines]
        self.said += new
        return new

    def wait_for(self, key: str) -> dict[str, Any]:
        """Return the first thing it says with this key."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            for each in self.listen(0.2):
                if key in each:
                    return each
            if self.process.poll() is not None and not self.listen():
                break
        raise RuntimeError(f"{self.process.pid} did not say {key}")

    def go(self) -> None:
        """Start its work."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it, and hear what it said before."""
        self.process.kill()
        self.process.wait()
        self.listen()
        for each in (self.process.stdin, self._out):
            if each is not None:
                each.close()

    def acknowledged(self, key: str = "memory") -> set[str]:
        """Return the ids of what it was told is stored."""
        return {each[key] for each in self.said if key in each}


def fill(root: Path, size: int) -> None:
    """Fill an agent with memories and one record of another journal."""
    folder, now = folder_of(AGENT, root), datetime.now(UTC)
    journal = Journal(folder.journal, {MEMORY.name})
    for start in range(0, size, _AT_ONCE):
        with journal.locked() as writer:
            for number in range(start, min(start + _AT_ONCE, size)):
                text = (
                    f"Shelf {number} of hall {number % 17} has {number * 7 % 91} boxes of the {number % 13}th delivery."
                )
                memory = Memory(agent_id=AGENT, id=f"mem-{number:012x}", content=text, timestamp=now)
                writer.append([Change("put", MEMORY.name, memory.id, memory.to_record())])
    with Journal(folder.path / PAIRS, {PAIR}).locked() as writer:
        writer.append([Change("put", PAIR, "par-00000000000f", {"of": "nobody", "at": to_text(now)})])


def ids_in(root: Path) -> tuple[set[str], set[str]]:
    """Return the IDs of memories and pairs that a new process finds."""

    async def known() -> set[str]:
        storage = FileStorage(AGENT, root, settings=ServiceSettings(embedder="none"))
        found = {memory.id async for memory in storage.iter_all()}
        if (await storage.health())["status"] != "ok":
            raise RuntimeError("the journal is not sound")
        await storage.close()
        return found

    memories = asyncio.run(known())
    entries = Journal(folder_of(AGENT, root).path / PAIRS, {PAIR}).poll().entries
    return memories, {change.id.replace("par-", "mem-") for entry in entries for change in entry.changes}


def check_moment(file: Path, report: BackupReport, writers: int, *, restored: bool = False) -> set[str]:
    """Check that a backup is whole; return the IDs of its memories.

    Args:
        file: The backup.
        report: Where to note what is wrong.
        writers: How many processes store.
        restored: Whether restorings came in between: then each may have stored a memory before and its record after it.
    """
    found = verify_backup(file)
    for problem in found.problems:
        report.wrong(f"{file.name}: {problem}")
    memories = found.ids.get(MEMORY.name, set())
    pairs = {each.replace("par-", "mem-") for each in found.ids.get(PAIR, set())} - {"mem-00000000000f"}
    if len(pairs - memories) > writers * restored:
        report.wrong(f"{file.name}: {len(pairs - memories)} records without their memory")
    filled = {f"mem-{number:012x}" for number in range(report.memories)}
    if len(memories - pairs - filled) > writers:
        report.wrong(f"{file.name}: {len(memories - pairs - filled)} memories without their record")
    return memories


def measure(root: Path, report: BackupReport, size: int, writers: int) -> None:
    """Make, read and restore a backup beside processes that store."""
    report.memories, report.writers = size, writers
    fill(root, size)
    processes = [BackupWorker("store", root, f"w{number}") for number in range(writers)]
    for process in processes:
        process.wait_for("ready")
    told = _told(processes)
    made = _done(root, "create")
    journal = folder_of(AGENT, root).journal.read_bytes()
    file = root / "_backups" / made["file"]
    report.create, report.bytes = made["seconds"], made["bytes"]
    with ZipFile(file) as archive:
        if not journal.startswith(archive.read("memories.yaml")):
            report.wrong("the backup is no beginning of the journal")
    begun = time.perf_counter()
    verify_backup(file)
    report.verify = time.perf_counter() - begun
    if told - check_moment(file, report, writers):
        report.wrong("the backup lacks what was acknowledged before it")
    before = _told(processes)
    restored = _done(root, "restore", str(file))
    report.restore = restored["seconds"]
    time.sleep(0.5)
    for process in processes:
        process.kill()
    safe = check_moment(root / "_backups" / restored["before"], report, writers)
    now, _ = ids_in(root)
    if before - safe:
        report.wrong(f"{len(before - safe)} acknowledged memories are not in the backup of now")
    if lost := _told(processes) - safe - now:
        report.wrong(f"{len(lost)} acknowledged memories are nowhere")
    said = [each for process in processes for each in process.said]
    report.stored = sum("memory" in each for each in said)
    report.busy = sum("busy" in each for each in said)
    report.waited = max((each["seconds"] for each in said if "seconds" in each), default=0.0)


def kill(root: Path, report: BackupReport, kills: int, rng: random.Random) -> None:
    """Kill processes that make, restore or prune backups; check the rest."""
    report.memories = _FEW
    fill(root, _FEW)
    first = create_backup(folder_of(AGENT, root)).path
    base = root / "base.zip"
    base.write_bytes(first.read_bytes())
    storing = [BackupWorker("store", root, f"k{number}") for number in range(2)]
    for each in storing:
        each.wait_for("ready")
    seen: dict[str, set[str]] = {}
    look(root, report, storing, seen)
    calls, lasting = dict.fromkeys(_CHANCES, 60), dict.fromkeys(_CHANCES, 0.2)
    died = Counter[str]()
    while died.total() < kills:
        doing = rng.choices(list(_CHANCES), list(_CHANCES.values()))[0]
        exact = rng.random() < 0.5
        victim = BackupWorker(doing, root, str(base), "--die", str(rng.randint(1, calls[doing])) if exact else "0")
        victim.wait_for("ready")
        victim.go()
        if exact:
            victim.process.wait()
        else:
            time.sleep(rng.uniform(0.0, 1.2 * lasting[doing]))
        victim.kill()
        for said in victim.said:
            calls[doing] = said.get("calls", calls[doing])
            lasting[doing] = said.get("seconds", lasting[doing])
        if any("done" in said for said in victim.said):
            report.ended += 1
        else:
            died[doing] += 1
        look(root, report, storing, seen)
    for each in storing:
        each.kill()
    report.kills = dict(died)
    end(root, report, storing, seen)


def look(root: Path, report: BackupReport, storing: list[BackupWorker], seen: dict[str, set[str]]) -> None:
    """Look what a killed process has left."""
    told = _told(storing)
    memories, pairs = ids_in(root)
    filled = {f"mem-{number:012x}" for number in range(_FEW)}
    if filled - memories:
        report.wrong(f"{len(filled - memories)} memories of the backup are gone")
    # What was stored between the two looks at the journals has its record only.
    single = ((memories - filled) ^ (pairs - {"mem-00000000000f"})) & told
    if len(single) > 2 * len(storing) + 2:
        report.wrong(f"{len(single)} memories and records of different states")
    for backup in list_backups(root):
        if backup.path.name not in seen:
            seen[backup.path.name] = check_moment(backup.path, report, len(storing), restored=True)
    everywhere = set().union(memories, *seen.values())
    if lost := told - everywhere:
        again, _ = ids_in(root)
        if lost := lost - again:
            report.wrong(f"{len(lost)} acknowledged memories are nowhere")
    is_old = bool((memories - filled) & told)
    report.old, report.new = report.old + is_old, report.new + (not is_old)
    if not list_backups(root):
        report.wrong("no backup is left")


def end(root: Path, report: BackupReport, storing: list[BackupWorker], seen: dict[str, set[str]]) -> None:
    """Look whether anything stays behind once backups are made and restored again."""
    time.sleep(_FRESH)
    made = create_backup(folder_of(AGENT, root))
    seen[made.path.name] = check_moment(made.path, report, len(storing), restored=True)
    subprocess.run(
        [sys.executable, "-m", "benchmarks.backups.worker", "restore", str(root), str(made.path)],
        check=True, input=b"\n", stdout=subprocess.DEVNULL,
    )  # fmt: skip
    left = [*folder_of(AGENT, root).path.glob(".restoring*"), *(root / "_backups").glob(".*")]
    if left:
        report.wrong(f"left behind: {', '.join(each.name for each in left)}")


def _told(processes: list[BackupWorker]) -> set[str]:
    for process in processes:
        process.listen()
    return set().union(*(process.acknowledged() for process in processes))


def _done(root: Path, *arguments: str) -> dict[str, Any]:
    worker = BackupWorker(arguments[0], root, *arguments[1:])
    worker.wait_for("ready")
    worker.go()
    try:
        return worker.wait_for("done")
    finally:
        worker.process.wait()
        worker.kill()


def run(memories: int, writers: int, kills: int, seed: int) -> tuple[BackupReport, BackupReport]:
    """Measure, then kill; return what was seen of both."""
    measured, killed = BackupReport(), BackupReport()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a child of one that was killed may write
        if memories:
            measure(Path(folder) / "measured", measured, memories, writers)
        if kills:
            (Path(folder) / "killed").mkdir()
            kill(Path(folder) / "killed", killed, kills, random.Random(seed))
    return measured, killed


def main() -> None:
    """Run as the command line says, and print what was seen."""
    parser = build_parser("backups", __doc__, "--kills", "--seed", "--json", kills=100)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--writers", type=int, default=8)
    given = parser.parse_args()
    measured, killed = run(given.memories, given.writers, given.kills, given.seed)
    print_report({"measured": asdict(measured), "killed": asdict(killed)}, as_json=given.json)
    sys.exit(1 if measured.lost or killed.lost else 0)
