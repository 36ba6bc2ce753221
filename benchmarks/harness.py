"""Shared parts of all benchmarks: options, samples, reports, stores, processes."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory.models import Memory
from agent_memory.store import memory_storage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.embeddings import Embedder
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService
    from agent_memory.settings import ServiceSettings
    from agent_memory.storage import MemoryStorage
    from benchmarks.retrieval.data import SetItem

_Row = TypeVar("_Row")
_Z: Final = 1.96
_LEAST_CALLS: Final = 3
_LOOP_STEP: Final = 0.002
_KILLED_SECONDS: Final = 120
_CATEGORY: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FILE_CALLS: Final = (
    "open", "write", "pwrite", "fsync", "rename", "replace", "unlink", "mkdir", "rmdir", "remove", "ftruncate",
)  # fmt: skip
"""Functions of `os` that change a file or its name. An archive itself is written without them."""

# -- options ----------------------------------------------------------------------------------------------------------

_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--embedder": {
        "choices": ("local", "languages", "none"),
        "default": "local",
        "help": "languages: with the second model; none: by words alone",
    },
    "--json": {"action": "store_true", "help": "print JSON"},
    "--jsonl": {"type": Path, "metavar": "FILE", "nargs": "+", "default": [], "help": "sets, see benchmarks.retrieval"},
    "--kills": {"type": int, "default": 500, "help": "processes to kill"},
    "--locomo": {"type": Path, "metavar": "FILE", "help": "data/locomo10.json of snap-research/locomo (CC BY-NC 4.0)"},
    "--rounds": {"type": int, "default": 200, "help": "calls behind each percentile"},
    "--seed": {"type": int, "default": 0, "help": "of all choices"},
    "--vectors": {"type": Path, "metavar": "FILE.sqlite3", "help": "keeps what was embedded for the next run"},
}


def build_parser(name: str, doc: str | None, *options: str, **defaults: Any) -> argparse.ArgumentParser:
    """Return the parser of a benchmark with some of the common options.

    Args:
        name: Name of the benchmark, without the package.
        doc: Its docstring; the first paragraph is the description.
        options: Names of common options.
        defaults: Defaults of them that differ.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=(doc or "").partition("\n\n")[0])
    for option in options:
        parser.add_argument(option, **_OPTIONS[option])
    parser.set_defaults(**defaults)
    return parser


def print_report(report: Any, lines: Iterable[str] | None = None, *, as_json: bool) -> None:
    """Print a report as JSON, or as `lines` (default: `render_figures`)."""
    lines = render_figures(report) if lines is None and not as_json else lines
    print(json.dumps(report, indent=2, ensure_ascii=False) if as_json else "\n".join(lines or ()), flush=True)


def render_figures(report: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield a line for each group of figures in a nested report."""
    for name, value in report.items():
        if isinstance(value, dict) and any(isinstance(part, dict) for part in value.values()):
            yield f"{indent}{name}"
            yield from render_figures(value, f"{indent}  ")
        elif isinstance(value, list) and value and isinstance(value[0], str):
            yield from [f"{indent}{name}", *(f"{indent}  {text}" for text in value)]
        else:
            group = value.items() if isinstance(value, dict) else [("", value)]
            parts = (f"{key} {part:.4g}" if isinstance(part, float) else f"{key} {part}" for key, part in group)
            yield f"{indent}{name:20} {', '.join(parts).strip()}"


def render_rows(head: str, rows: Mapping[str, Mapping[str, Any]], width: int, first: int = 12) -> Iterator[str]:
    """Yield the lines of a table whose rows have the same columns."""
    for number, (name, row) in enumerate(rows.items()):
        if number == 0:
            yield " ".join([f"{head:{first}}", *(f"{column:>{width}}" for column in row)])
        yield " ".join([f"{name:{first}}", *(f"{value:{width}}" for value in row.values())])


# -- samples ----------------------------------------------------------------------------------------------------------


def get_percentile(samples: Sequence[float], share: float) -> float:
    """Return a quantile of samples; 0 without samples."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def get_share(passed: Sequence[bool]) -> float:
    """Return the share of true values, rounded; 0 without values."""
    return round(sum(passed) / len(passed), 3) if passed else 0.0


def get_wilson_interval(hits: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share.

    E. B. Wilson, Journal of the American Statistical Association 22 (1927).
    """
    if not count:
        return 0.0, 1.0
    share, square = hits / count, _Z * _Z / count
    middle, half = share + square / 2, _Z * (share * (1 - share) / count + square / count / 4) ** 0.5
    return (middle - half) / (1 + square), (middle + half) / (1 + square)


def resample(rows: Sequence[_Row], measure: Callable[[list[_Row]], float], draws: int, seed: int) -> list[float]:
    """Return a measure of rows drawn again, in ascending order: a bootstrap."""
    chance = random.Random(seed)
    return sorted(measure(chance.choices(rows, k=len(rows))) for _ in range(draws))


def measure_calls(call: Callable[[], object], rounds: int, most_seconds: float = math.inf) -> list[float]:
    """Return the seconds of `rounds` calls.

    At least three, if they take longer than `most_seconds`.
    """
    samples, end = list[float](), time.perf_counter() + most_seconds
    while len(samples) < rounds and (len(samples) < _LEAST_CALLS or time.perf_counter() < end):
        started = time.perf_counter()
        call()
        samples.append(time.perf_counter() - started)
    return samples


async def await_calls(
    call: Callable[[], Awaitable[object]], rounds: int, most_seconds: float = math.inf
) -> list[float]:
    """Return the seconds of awaited calls, as `measure_calls`."""
    samples, end = list[float](), time.perf_counter() + most_seconds
    while len(samples) < rounds and (len(samples) < _LEAST_CALLS or time.perf_counter() < end):
        started = time.perf_counter()
        await call()
        samples.append(time.perf_counter() - started)
    return samples


def read_memory(process: int | str, name: str) -> float:
    """Return a memory figure of a process, such as VmHWM, in MiB.

    0 if it is unknown.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), 0.0)


@dataclass
class LoopHold:
    """The longest hold of the event loop so far, in seconds.

    Attributes:
        seconds: Processor time of the thread of the loop: what other programs took is not counted.
        wall: By the clock.
        process: Processor time of the process: also of a thread that keeps the interpreter to itself.
    """

    seconds: float = 0.0
    wall: float = 0.0
    process: float = 0.0


@contextlib.asynccontextmanager
async def watch_loop() -> AsyncIterator[LoopHold]:
    """Measure how long the event loop is held in the block.

    A task wants to run every two milliseconds.
    """
    hold, is_over = LoopHold(), asyncio.Event()

    async def watch() -> None:
        while not is_over.is_set():
            cpu, wall, process = time.thread_time(), time.perf_counter(), time.process_time()
            await asyncio.sleep(_LOOP_STEP)
            hold.seconds = max(hold.seconds, time.thread_time() - cpu)
            hold.process = max(hold.process, time.process_time() - process)
            hold.wall = max(hold.wall, time.perf_counter() - wall - _LOOP_STEP)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    try:
        yield hold
    finally:
        is_over.set()
        await watching


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file with JSON lines, plain or gzipped."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().splitlines() if line.strip()]


def read_replacements(path: Path, known: Collection[str]) -> set[tuple[str, str]]:
    """Return pairs of known IDs, listed as `new > old`."""
    pairs: list[tuple[str, str]] = re.findall(r"\b(\w+)\s+>\s+(\w+)\b", path.read_text("utf-8"))
    return {pair for pair in pairs if pair[0] in known and pair[1] in known}


# -- stores -----------------------------------------------------------------------------------------------------------


class ManualClock:
    """Clock that shows the moment it was set to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the moment."""
        return self.now


@contextlib.contextmanager
def open_embedder(name: str, vectors: Path | None = None) -> Iterator[Embedder | None]:
    """Open an embedder with stored vectors; None for `none`."""
    if name == "none":
        yield None
        return
    from agent_memory.embeddings import LocalEmbedder  # loads the model's library
    from agent_memory.embeddings.embedder_pair import EmbedderPair
    from agent_memory.embeddings.multilingual import MultilingualEmbedder
    from benchmarks.retrieval.vectors import KeptVectors

    with contextlib.ExitStack() as stack:
        english: Embedder = stack.enter_context(contextlib.closing(KeptVectors(LocalEmbedder(), vectors)))
        if name == "local":
            yield english
        else:
            second = stack.enter_context(contextlib.closing(KeptVectors(MultilingualEmbedder(), vectors)))
            yield EmbedderPair(english, second)


async def store_items(storage: MemoryStorage, items: Iterable[SetItem]) -> dict[str, str]:
    """Store the items of a set; return keys by memory ID."""
    keys: dict[str, str] = {}
    memories = []
    for item in items:
        memory = Memory(
            agent_id=storage.agent_id,
            content=item.text,
            timestamp=item.when,
            created_by_session=item.session,
            category=item.category if _CATEGORY.fullmatch(item.category) else "note",
        )
        keys[memory.id] = item.key
        memories.append(memory)
    await storage.store_many(memories)
    await storage.prepare()
    return keys


@contextlib.asynccontextmanager
async def open_agent(settings: ServiceSettings, agent: str = "bob") -> AsyncIterator[tuple[MemoryService, Knowledge]]:
    """Open the service and the knowledge of an agent, and close both."""
    from agent_memory.knowledge.records import Knowledge  # a feature package
    from agent_memory.memory import open_service

    service, knowledge = open_service(agent, settings), Knowledge(agent, settings)
    try:
        yield service, knowledge
    finally:
        await knowledge.close()
        await service.close()


@contextlib.contextmanager
def seal_by_hand() -> Iterator[None]:
    """Suppress child processes that seal next to a measurement."""
    start, memory_storage.start_child = memory_storage.start_child, lambda command: None  # noqa: ARG005
    try:
        yield
    finally:
        memory_storage.start_child = start


@contextlib.contextmanager
def open_scratch() -> Iterator[Path]:
    """Open a temporary folder into which no child process seals."""
    with tempfile.TemporaryDirectory() as folder, seal_by_hand():
        yield Path(folder)


# -- processes --------------------------------------------------------------------------------------------------------


def tell(**values: Any) -> None:
    """Write one JSON object for the benchmark that started this process."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def die_at(number: int) -> list[int]:
    """Kill this process before its N-th file change; return the counter."""
    seen = [0]

    def count(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            seen[0] += 1
            if seen[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in _FILE_CALLS:
        setattr(os, name, count(getattr(os, name)))
    return seen


def run_until_killed(module: str, *arguments: object, die: int, **environment: str) -> tuple[bool, int]:
    """Run a module that dies before a call.

    Returns:
        True if it died, and the number of calls that it counted.

    Raises:
        RuntimeError: It failed by itself.
    """
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments), "--die", str(die)]
    done = subprocess.run(
        command, capture_output=True, timeout=_KILLED_SECONDS, check=False, env={**os.environ, **environment}
    )
    if done.returncode not in {0, -signal.SIGKILL}:
        raise RuntimeError(done.stderr.decode()[-2000:])
    lines = done.stdout.splitlines()
    return done.returncode != 0, int(json.loads(lines[-1])["calls"]) if lines else 0
