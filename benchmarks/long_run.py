"""Months of use in minutes: do memory, files and latency stay flat? Exits with 1 when a bound is broken.

    python -m benchmarks.long_run [--operations 100000] [--memories 2000] [--weeks 26] [--seed N] [--json] [--plot FILE]

One process stores, searches, updates and forgets through `MemoryService`, with a clock that is moved on after each
operation, so that what is forgotten grows older than the grace time and the journal is compacted as it would be in
months. Nobody asks for a compaction. After a while as many memories are forgotten as stored: from then on everything
must stay as it is. The embedder is one that costs nothing, so that the figures are those of the memory.

Two things are checked in every window of operations and end the run with 1:

- The journal has at most `2 * alive + max(1000, alive) + 2 * young` lines, where `young` are the changes of the last 31
  days (the grace time, and the day that it is counted in). Alive memories take a line each and, within the grace time,
  one for their accesses; a change may part two lines of accesses; the rest is what a compaction waits for.
- In the last third of the windows neither a file nor the process's memory is more than a quarter larger than it ever
  was in the middle third.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.journal.format import decode_line
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.models import to_text
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks.concurrency.worker import QUERIES, fact
from benchmarks.harness import ManualClock, build_parser, draw_lines, get_percentile, print_report, read_memory

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_AGENT: Final = "bench"
_BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_YOUNG: Final = timedelta(days=31)
_SEARCHES: Final = 0.5
_UPDATES: Final = 0.15
_GROWTH: Final = 1.25
_MARGIN: Final = {"rss_mb": 4.0, "journal_kb": 64.0, "vectors_kb": 4500.0, "events_kb": 10_400.0, "lines": 500.0}
"""What may come on top of a quarter: an allocator's arena, a few lines, the write-ahead log of SQLite, one rotation."""

_DRAWN: Final = (
    "lines", "bound", "rss_mb", "store_p50_ms", "store_p95_ms", "search_p50_ms", "search_p95_ms",
)  # fmt: skip


@dataclass(slots=True)
class UseWindow:
    """Some operations, and what there was at their end. Sizes in kB, times in milliseconds."""

    operations: int
    day: int
    alive: int
    lines: int
    bound: int
    compactions: int
    rss_mb: float
    journal_kb: float
    vectors_kb: float
    events_kb: float
    store_p50_ms: float
    store_p95_ms: float
    search_p50_ms: float
    search_p95_ms: float


@dataclass(slots=True)
class LongRunState:
    """The state of a run: the ids that are alive, and the samples of the window under way."""

    choose: random.Random
    target: int
    alive: list[str] = field(default_factory=list)
    stores: list[float] = field(default_factory=list)
    searches: list[float] = field(default_factory=list)
    number: int = 0
    generations: list[str] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print; 0 when every bound was kept."""
    parser = build_parser("long_run", __doc__, "--seed", "--json", seed=1)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--memories", type=int, default=2000, help="alive once as many are forgotten as stored")
    parser.add_argument("--weeks", type=float, default=26, help="that the clock moves on altogether")
    parser.add_argument("--windows", type=int, default=50, help="samples taken")
    parser.add_argument("--plot", type=Path, help="draw the windows into this file (needs matplotlib)")
    args = parser.parse_args(argv)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        windows = asyncio.run(run(Path(root), args))
    problems = judged(windows)
    report = {
        "operations": args.operations,
        "weeks": args.weeks,
        "seed": args.seed,
        "seconds": round(time.monotonic() - begun, 1),
        "problems": problems,
        "windows": [asdict(window) for window in windows],
    }
    print_report(report, [table(windows, problems)], as_json=args.json)
    if args.plot:
        lines = {name: [(window.operations, getattr(window, name)) for window in windows] for name in _DRAWN}
        draw_lines(lines, args.plot, "lines, MB, ms", "operations")
    return 1 if problems else 0


async def run(root: Path, args: argparse.Namespace) -> list[UseWindow]:
    """Do all operations and return the windows."""
    settings, clock = ServiceSettings(storage_root=str(root), embedder="none"), ManualClock(_BEGIN)
    embedder = HashEmbedder()
    storage = FileStorage(_AGENT, settings=settings, clock=clock, embedder=embedder)
    service = MemoryService(storage, settings, audit=AuditLog(storage.folder.audit), clock=clock)
    state = LongRunState(random.Random(args.seed), args.memories)
    step = timedelta(weeks=args.weeks) / args.operations
    each = max(1, args.operations // args.windows)
    windows = []
    while state.number < args.operations:
        await one(service, state)
        clock.now += step
        state.number += 1
        if state.number % each == 0:
            await service.settle()
            windows.append(sample(storage, state, clock.now))
            state.stores, state.searches = [], []
            embedder.embedded.clear()  # its own record of every text is none of the product's memory
    await service.close()
    return windows


async def one(service: MemoryService, state: LongRunState) -> None:
    """Do one operation, drawn so that the memories reach their number and keep it."""
    choose = state.choose
    drawn, begun = choose.random(), time.perf_counter()
    if drawn < _SEARCHES:
        await service.search(f"{choose.choice(QUERIES)} {choose.randrange(state.target)}")
        state.searches.append(1000 * (time.perf_counter() - begun))
    elif drawn < _SEARCHES + _UPDATES and state.alive:
        await service.update(choose.choice(state.alive), {"content": fact(choose, f"change {state.number}")})
    elif state.alive and choose.random() < 0.5 * len(state.alive) / state.target:
        position = choose.randrange(len(state.alive))
        state.alive[position], state.alive[-1] = state.alive[-1], state.alive[position]
        await service.forget(state.alive.pop())
    else:
        stored = await service.store({"content": fact(choose, f"house {state.number}"), "category": "note"})
        state.stores.append(1000 * (time.perf_counter() - begun))
        state.alive.append(stored.memory.id)
    if state.number % 50 == 0:
        await service.settle()  # a conversation has pauses, in which what was left to do is done


def sample(storage: FileStorage, state: LongRunState, now: datetime) -> UseWindow:
    """Look at the files and at this process."""
    folder = storage.folder
    header, *lines = map(decode_line, folder.journal.read_bytes().splitlines())
    if header["generation"] not in state.generations:
        state.generations.append(header["generation"])
    since = to_text(now - _YOUNG)
    young = sum(line["at"] >= since and not _is_touch(line) for line in lines)
    alive = len(state.alive)
    return UseWindow(
        operations=state.number,
        day=(now - _BEGIN).days,
        alive=alive,
        lines=len(lines),
        bound=2 * alive + max(1000, alive) + 2 * young,
        compactions=len(state.generations) - 1,
        rss_mb=round(read_memory("self", "VmRSS"), 1),
        journal_kb=_kilobytes(folder.journal),
        vectors_kb=_kilobytes(*folder.path.glob(f"{folder.vectors.name}*")),
        events_kb=_kilobytes(*folder.path.glob("events*.jsonl")),
        store_p50_ms=round(get_percentile(state.stores, 0.5), 2),
        store_p95_ms=round(get_percentile(state.stores, 0.95), 2),
        search_p50_ms=round(get_percentile(state.searches, 0.5), 2),
        search_p95_ms=round(get_percentile(state.searches, 0.95), 2),
    )


def _is_touch(line: dict[str, Any]) -> bool:
    return all(each["op"] == "touch" for each in line.get("entries", (line,)))


def judged(windows: Sequence[UseWindow]) -> list[str]:
    """Return the broken bounds, a sentence each."""
    problems = [
        f"after {window.operations} operations the journal has {window.lines} lines, {window.bound} are allowed"
        for window in windows
        if window.lines > window.bound
    ]
    third = len(windows) // 3
    if third:
        for name, margin in _MARGIN.items():
            before = max(getattr(window, name) for window in windows[third : 2 * third])
            later = max(getattr(window, name) for window in windows[2 * third :])
            if later > _GROWTH * before + margin:
                problems.append(f"{name} has grown from {before:g} to {later:g}")
    return problems


def _kilobytes(*paths: Path) -> float:
    return round(sum(path.stat().st_size for path in paths if path.exists()) / 1024, 1)


def table(windows: Sequence[UseWindow], problems: Sequence[str]) -> str:
    """Return about twelve of the windows for people, and the verdict."""
    head = (
        f"{'ops':>8}{'day':>5}{'alive':>7}{'lines':>8}{'bound':>8}{'compacted':>10}{'RSS MB':>8}{'journal kB':>11}"
        f"{'vectors kB':>11}{'events kB':>10}{'store p50/p95 ms':>18}{'search p50/p95 ms':>19}"
    )
    lines = [head]
    for window in windows[:: max(1, len(windows) // 12)]:
        stores = f"{window.store_p50_ms:.1f} / {window.store_p95_ms:.1f}"
        searches = f"{window.search_p50_ms:.1f} / {window.search_p95_ms:.1f}"
        lines.append(
            f"{window.operations:>8}{window.day:>5}{window.alive:>7}{window.lines:>8}{window.bound:>8}"
            f"{window.compactions:>10}{window.rss_mb:>8}{window.journal_kb:>11}{window.vectors_kb:>11}"
            f"{window.events_kb:>10}{stores:>18}{searches:>19}"
        )
    verdict = [f"BROKEN: {problem}" for problem in problems] or ["Every bound was kept, and everything stays flat."]
    return "\n".join([*lines, "", *verdict])


if __name__ == "__main__":
    sys.exit(main())
