"""Compare what processes on one agent acknowledged with what is stored.

    python -m benchmarks.concurrency [--processes 8] [--operations 500] [--repeat 20] [--backend file|vector|both]
                                     [--memories 5000] [--seed N] [--json]

Each process is an interpreter of its own that opens the agent's folder as a session does and stores, searches, updates,
forgets and captures in a seeded mix, without a pause; now and then one compacts, and with the vector backend one
migrates, builds the index anew or goes back to files. It writes down what it was told. At last somebody who just came
looks at the folder: what is there must be what the processes were told, ids and texts, nothing more and nothing less. A
memory that several processes change must have the text of a change that no other one followed.

The agent has `--memories`, with vectors, before the processes begin. An embedder that costs nothing makes the vectors.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.journal.format import decode_line, encode_entry
from agent_memory.journal.salvage import get_rejected_path
from agent_memory.memories import MigratableStorage
from agent_memory.models import Memory
from agent_memory.storage import FileStorage, folder_of
from benchmarks.concurrency.check import AcknowledgedWrite, compare, expected
from benchmarks.concurrency.worker import AGENT, DIMENSION, WorkerOrders, fact, open_service
from benchmarks.harness import build_parser, get_percentile, print_report, read_jsonl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_SHARED: Final = 12
_PATIENCE: Final = 600.0
_LOOKED_UP: Final = 20
_COMPACTIONS: Final = 1 / 1000
"""Of each process, for each operation."""
_TOLD: Final = frozenset({"store", "capture", "duplicate", "update", "forget"})


@dataclass(slots=True)
class RoundOutcome:
    """Result of one round."""

    backend: str
    problems: list[str] = field(default_factory=list)
    acknowledged: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    moves: Counter[str] = field(default_factory=Counter)
    searches: Counter[str] = field(default_factory=Counter)
    writes: list[float] = field(default_factory=list)
    memories: int = 0
    seconds: float = 0.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; 0 when nothing was lost."""
    args = _arguments(argv)
    outcomes: list[RoundOutcome] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        template = Path(scratch) / "template"
        prepare(template, args.memories)
        backends = ("file", "vector") if args.backend == "both" else (args.backend,)
        for number in range(args.repeat):
            backend = backends[number % len(backends)]
            root = Path(scratch) / f"{backend}-{number}"
            shutil.copytree(template, root)
            outcomes.append(one_round(root, backend, args, f"{args.seed}-{backend}-{number}"))
            _tell_progress(outcomes, args.repeat)
            shutil.rmtree(root, ignore_errors=True)  # a sealing child may still write
    report = summary(outcomes, args)
    print_report(report, as_json=args.json)
    return 1 if report["lost"] else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = build_parser("concurrency", __doc__, "--seed", "--json", seed=1)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, default=500, help="of each process")
    parser.add_argument(
        "--repeat", type=int, default=20, help="rounds, each on a fresh folder; of both backends in turn"
    )
    parser.add_argument("--backend", choices=("file", "vector", "both"), default="both")
    parser.add_argument("--memories", type=int, default=5000, help="there before the processes begin")
    return parser.parse_args(argv)


def prepare(root: Path, count: int) -> None:
    """Give the agent `count` memories and their vectors."""
    choose = random.Random(count)
    folder = folder_of(AGENT, root)
    folder.path.mkdir(parents=True, mode=0o700)
    first, *rest = (
        Memory(agent_id=AGENT, content=fact(choose, f"house {number}")) for number in range(count + _SHARED)
    )
    storage = FileStorage(AGENT, root)
    asyncio.run(_store_and_close(storage, first))
    at = decode_line(folder.journal.read_bytes().splitlines()[1])["at"]
    from agent_memory.journal import Change  # for this alone

    with folder.journal.open("ab") as journal:
        for seq, memory in enumerate(rest, start=2):
            journal.write(encode_entry(seq, at, (Change("put", "memory", memory.id, memory.to_record()),)))
    model = HashEmbedder(DIMENSION)
    texts = [memory.content for memory in (first, *rest)]
    cache = VectorCache(folder.vectors)
    cache.put_many(model.identity, dict(zip(map(text_hash, texts), model.embed_documents(texts), strict=True)))
    cache.close()


async def _store_and_close(storage: FileStorage, memory: Memory) -> None:
    await storage.store(memory)
    await storage.close()


def one_round(root: Path, backend: str, args: argparse.Namespace, seed: str) -> RoundOutcome:
    """Run all processes on one folder and check the result."""
    outcome, begun = RoundOutcome(backend), time.monotonic()
    before = asyncio.run(contents(root))
    shared = tuple(list(before)[-_SHARED:])
    lock = folder_of(AGENT, root).path / ".lock"
    inode = lock.stat().st_ino
    logs = _work(root, backend, args, seed, shared, outcome)
    outcome.seconds = time.monotonic() - begun
    wanted = expected(before, (AcknowledgedWrite.of(each) for log in logs for each in log if each["op"] in _TOLD))
    found = asyncio.run(contents(root))
    outcome.memories = len(found)
    outcome.problems += compare(wanted, found)
    if lock.stat().st_ino != inode:
        outcome.problems.append("the lock file was replaced")
    outcome.problems += _journal_problems(root)
    outcome.problems += asyncio.run(search_problems(root, backend, found, random.Random(seed)))
    for log in logs:
        _sum_up(log, outcome)
    return outcome


def _work(
    root: Path, backend: str, args: argparse.Namespace, seed: str, shared: tuple[str, ...], outcome: RoundOutcome
) -> list[list[dict[str, Any]]]:
    orders = [_orders(root, backend, args, seed, number, shared) for number in range(args.processes)]
    command = [sys.executable, "-m", "benchmarks.concurrency.worker"]
    running = [
        subprocess.Popen([*command, order.encode()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for order in orders
    ]
    try:
        for word in ("ready", "done", "settled"):
            for process in running:
                assert process.stdout is not None
                said = process.stdout.readline().strip()
                if said != word:
                    outcome.problems.append(f"a process ended before it was {word}")
            for process in running:
                assert process.stdin is not None
                if process.poll() is None:
                    process.stdin.write("\n")
                    process.stdin.flush()
        codes = [process.wait(_PATIENCE) for process in running]
        outcome.problems += [f"a process ended with {code}" for code in codes if code]
    finally:
        for process in running:
            process.kill()
            process.communicate()
    return [read_jsonl(Path(order.log)) for order in orders]


def _orders(
    root: Path, backend: str, args: argparse.Namespace, seed: str, number: int, shared: tuple[str, ...]
) -> WorkerOrders:
    choose = random.Random(f"{seed}-{number}")
    compactions = tuple(at for at in range(args.operations) if choose.random() < _COMPACTIONS)
    moves = []
    if backend == "vector" and number < 3:
        at = sorted(choose.sample(range(args.operations), min(2, args.operations)))
        moves = [(each, choose.choice(("migrate", "migrate", "rollback", "reindex"))) for each in at]
    return WorkerOrders(
        root=str(root),
        backend=backend,
        number=number,
        operations=args.operations,
        seed=f"{seed}-{number}-work",
        log=str(root / f"told-{number}.jsonl"),
        shared=shared,
        compactions=compactions,
        moves=tuple(moves),
    )


async def contents(root: Path) -> dict[str, str]:
    """Return the texts by ID, as a new process reads them."""
    service = open_service(str(root), "file")
    found = {memory.id: memory.content async for memory in service.storage.iter_all()}
    await service.close()
    return found


def _journal_problems(root: Path) -> list[str]:
    """Check that journal numbers rise, and that nothing is rejected or left."""
    folder = folder_of(AGENT, root)
    seqs = [decode_line(line)["seq"] for line in folder.journal.read_bytes().splitlines()[1:]]
    problems = [] if seqs == sorted(set(seqs)) else ["numbers in the journal do not rise"]
    if get_rejected_path(folder.journal).exists():
        problems.append("lines were set aside as damaged")
    strange = [*folder.path.glob("*.rewritten-*"), *folder.path.glob(".*.tmp"), *folder.path.glob("*.broken*")]
    return problems + [f"left behind: {path.name}" for path in strange]


async def search_problems(root: Path, backend: str, found: dict[str, str], choose: Any) -> list[str]:
    """Check that a new process finds a sample of the memories."""
    service = open_service(str(root), backend)
    storage, problems = service.storage, []
    await storage.prepare(None)
    if isinstance(storage, MigratableStorage) and storage.backend == "vector":
        await storage.search("is there an index")
        if not await storage.caught_up(_PATIENCE):
            problems.append("the index does not catch up")
    valid = {memory.id for memory in await storage.valid()}
    known = sorted(valid & found.keys())
    for memory_id in choose.sample(known, min(_LOOKED_UP, len(known))):
        results = await storage.search(found[memory_id])
        if memory_id not in {hit.memory.id for hit in results}:
            problems.append(f"not found by its own text: {memory_id}")
        if results.mode != "hybrid":
            problems.append(f"a search at the end was answered by {results.mode}")
    health = await storage.health()
    if health["status"] != "ok":
        problems.append(f"health: {health}")
    await service.close()
    return problems


def _sum_up(log: list[dict[str, Any]], outcome: RoundOutcome) -> None:
    for each in log:
        match each["op"]:
            case "search":
                outcome.searches[each["mode"]] += 1
            case "error":
                outcome.errors[f"{each['of']}: {each['code']}"] += 1
                if each["code"] != "busy":
                    outcome.problems.append(f"{each['of']} failed: {each['message']}")
            case "wrong":
                outcome.problems.append(each["what"])
            case "move":
                outcome.moves[f"{each['what']}: {each['outcome']}"] += 1
            case "end" if "problem" in each["embedding"]:
                outcome.problems.append(f"embedding: {each['embedding']}")
        if each["op"] in _TOLD | {"compact"}:
            outcome.acknowledged[each["op"]] += 1
            outcome.writes.append(each["end"] - each["begin"])


def summary(outcomes: list[RoundOutcome], args: argparse.Namespace) -> dict[str, Any]:
    """Return the report of all rounds."""
    by_backend = {}
    for backend in dict.fromkeys(outcome.backend for outcome in outcomes):
        rounds = [outcome for outcome in outcomes if outcome.backend == backend]
        by_backend[backend] = _summary_of(rounds)
    lost = sum(len(outcome.problems) for outcome in outcomes)
    given = {key: getattr(args, key) for key in ("processes", "operations", "repeat", "memories", "seed")}
    return {**given, "lost": lost, "backends": by_backend}


def _summary_of(rounds: list[RoundOutcome]) -> dict[str, Any]:
    writes = [taken for outcome in rounds for taken in outcome.writes]
    return {
        "rounds": len(rounds),
        "as_told": sum(not outcome.problems for outcome in rounds),
        "acknowledged": dict(sum((outcome.acknowledged for outcome in rounds), Counter[str]())),
        "errors": dict(sum((outcome.errors for outcome in rounds), Counter[str]())),
        "moves": dict(sum((outcome.moves for outcome in rounds), Counter[str]())),
        "searches": dict(sum((outcome.searches for outcome in rounds), Counter[str]())),
        "write_p95_ms": round(1000 * get_percentile(writes, 0.95), 1),
        "longest_write_ms": round(1000 * max(writes, default=0.0), 1),
        "memories_at_the_end": [outcome.memories for outcome in rounds],
        "seconds_a_round": round(statistics.mean(outcome.seconds for outcome in rounds), 1),
        "problems": [problem for outcome in rounds for problem in outcome.problems][:20],
    }


def _tell_progress(outcomes: list[RoundOutcome], repeat: int) -> None:
    latest = outcomes[-1]
    verdict = "as told" if not latest.problems else f"{len(latest.problems)} problems, first: {latest.problems[0]}"
    print(f"{len(outcomes)}/{repeat} {latest.backend}: {latest.seconds:.1f} s, {verdict}", file=sys.stderr)
