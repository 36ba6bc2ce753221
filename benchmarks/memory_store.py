"""Measure storing and retrieving of `MemoryStore` against its contract's budgets.

    python -m benchmarks.memory_store [--entries 5000] [--asked 200] [--embedder local|none] [--json]

Entries of all types, three in ten of them interactions, are stored in an empty store in a temporary folder; each call
returns once they are synced. Then, all vectors being there:

- `store`: milliseconds of a call once the store has all entries: half, and 95 in 100 are faster; budget 100
- `bulk`: entries a second while the store is filled by `store_entries`, 100 at a time; budget 100 at least
- `simple`: milliseconds of `retrieve_relevant` for one type, budget 50
- `semantic`: for all types and kinds, budget 200
- `complex`: with types, a time range and a threshold, budget 500

`cpu_ms` is the processor's time of a call, with what is done behind it: on a machine with much else to do the other
figures say more about that.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.importance import ENTRY_TYPES
from agent_memory.lifecycle import MemoryEntry, MemoryEntryType, MemoryStore, MemoryStoreConfig
from agent_memory.models import utc_now
from agent_memory.settings import ServiceSettings
from benchmarks.harness import await_calls, build_parser, get_percentile, print_report
from benchmarks.scale.figures import OBJECTS, SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

Report = dict[str, Any]
BUDGETS: Final = {"store": 100.0, "simple": 50.0, "semantic": 200.0, "complex": 500.0}
"""Milliseconds."""
LEAST_PER_SECOND: Final = 100
_PLACES: Final = ("harbour", "office", "workshop", "archive", "lab", "depot", "studio", "garage")
_AT_ONCE: Final = 100


def main() -> int:
    """Measure and print; 1 where a budget is missed."""
    parser = build_parser("memory_store", __doc__, "--embedder", "--json")
    parser.add_argument("--entries", type=int, default=5000)
    parser.add_argument("--asked", type=int, default=200, help="calls of each kind that are measured")
    args = parser.parse_args()
    report = asyncio.run(measured(args.entries, args.asked, args.embedder))
    print_report(report, as_json=args.json)
    return 0 if kept(report) else 1


def kept(report: Report) -> bool:
    """Return True if all budgets are kept at the 95th percentile."""
    return report["bulk"]["per_second"] >= LEAST_PER_SECOND and all(
        report[name]["p95_ms"] <= budget for name, budget in BUDGETS.items()
    )


async def measured(entries: int, asked: int, embedder: str) -> Report:
    """Fill a store and ask it."""
    chance, many = random.Random(11), _entries()
    with tempfile.TemporaryDirectory() as folder:
        config = MemoryStoreConfig(storage_path=folder)
        settings = ServiceSettings.model_validate({"embedder": embedder})
        async with MemoryStore(config, agent_id="bench", settings=settings) as store:
            began = time.perf_counter()
            for number in range(0, entries, _AT_ONCE):
                await store.store_entries(list(islice(many, min(_AT_ONCE, entries - number))))
            report: Report = {"bulk": {"per_second": round(entries / (time.perf_counter() - began), 1)}}
            await store.service.storage.prepare(None)
            for storage in store.kept.storages():
                await storage.prepare(None)
            report["store"] = await _taking(asked, lambda: store.store_entry(next(many)))
            await store.service.storage.prepare(None)
            return report | await _retrieving(store, chance, asked)


async def _retrieving(store: MemoryStore, chance: random.Random, asked: int) -> Report:
    def question() -> str:
        return (
            f"What does the {chance.choice(SUBJECTS)} in the {chance.choice(_PLACES)} do with {chance.choice(OBJECTS)}?"
        )

    now = utc_now()
    period = (now - timedelta(days=60), now)
    types = [MemoryEntryType.KNOWLEDGE, MemoryEntryType.LEARNING, MemoryEntryType.INTERACTION]
    await store.retrieve_relevant(question())  # reads all, and loads the model
    return {
        "simple": await _taking(
            asked, lambda: store.retrieve_relevant(question(), entry_types=[MemoryEntryType.INSIGHT])
        ),
        "semantic": await _taking(asked, lambda: store.retrieve_relevant(question())),
        "complex": await _taking(
            asked, lambda: store.retrieve_relevant(question(), 50, 0.3, entry_types=types, time_range=period)
        ),
    }


def _entries() -> Iterator[MemoryEntry]:
    """Yield entries that all differ, stored over the last half year."""
    chance, now = random.Random(7), utc_now()
    for number in range(10**9):
        is_talk = chance.random() < 0.3
        yield MemoryEntry(
            entry_type=MemoryEntryType.INTERACTION if is_talk else chance.choice(ENTRY_TYPES[1:]),
            content={
                "text": f"The {chance.choice(SUBJECTS)} in the {chance.choice(_PLACES)} uses {chance.choice(OBJECTS)} "
                f"and {chance.choice(OBJECTS)} since change {number}, says {chance.choice(SUBJECTS)} {number % 97}."
            },
            timestamp=now - timedelta(minutes=chance.randrange(260_000)),
            session_id=f"session-{chance.randrange(50)}" if is_talk else "",
            semantic_tags=[f"tag-{chance.randrange(40)}"],
        )


async def _taking(count: int, call: Callable[[], Awaitable[object]]) -> dict[str, float]:
    processor = time.process_time()
    taken = [1000 * seconds for seconds in await await_calls(call, count)]
    processor = 1000 * (time.process_time() - processor) / count
    times = {"p50_ms": get_percentile(taken, 0.5), "p95_ms": get_percentile(taken, 0.95), "cpu_ms": processor}
    return {name: round(value, 2) for name, value in times.items()}


if __name__ == "__main__":
    raise SystemExit(main())
