"""Measure latency and throughput of `MemoryIngestor`, and the cost of signals.

    python -m benchmarks.ingestor [--turns 500] [--chars 1000] [--pairs 100] [--json]

Turns of common words are taken in one after the other, each with an answer, so each makes two episodes; every 20
episodes a summary is due, and every name in them an entity. Nothing is embedded here (`benchmarks.ingestion` does
that). A fresh process each:

- `episode`, `event`: milliseconds of a call, synced: half, 95 and 99 in 100 are faster; and how many a second
- `extraction`, `lookup`, `window`, `meta`: the same of drawing entities from an episode, of looking one up among those
  that are known, and of both kinds of summaries
- `memory`: KB of private memory that 1,000 episodes add
- `signals`: processor time of a turn without the work behind it, and by how much more it is with Prometheus and a
  tracer of OpenTelemetry that collects in memory: the median over pairs of blocks of turns in one process, with its
  interval of 95 in 100
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.compat.focal import view_episode, view_summary
from agent_memory.ingestion import (
    ConversationSummarizer,
    EntityDeduplicator,
    EntityExtractor,
    MemoryIngestionConfig,
    MemoryIngestor,
    Turn,
)
from agent_memory.settings import ServiceSettings
from benchmarks.harness import await_calls, build_parser, get_percentile, print_report
from benchmarks.ingestion import turns_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_NAMES: Final = ("Ada", "Tobias Reuter", "Turin", "Acme GmbH", "PostgreSQL", "ORD-4711", "api.example.org", "Lena")
_BEGUN: Final = datetime(2026, 1, 5, tzinfo=UTC)
_BLOCK: Final = 10
_SESSION: Final = SimpleNamespace(tenant_id="acme", id="bench")


def main() -> int:
    """Measure and print."""
    parser = build_parser("ingestor", __doc__, "--json")
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--chars", type=int, default=1000, help="of what the user says; an answer has half of that")
    parser.add_argument("--pairs", type=int, default=100, help="of blocks of turns with and without signals")
    args = parser.parse_args()
    figures = asyncio.run(_measured(args.turns, args.chars))
    figures["signals"] = asyncio.run(_signalled(args.chars, args.pairs))
    print_report(figures, as_json=args.json)
    return 0


def _said(chars: int, number: int) -> str:
    """Return sentences of ten common words, some with a name."""
    drawn, (common,) = random.Random(number), turns_of(1, chars, number)
    words = [word if drawn.random() > 0.05 else drawn.choice(_NAMES) for word in common.text.split()]
    return " ".join(f"{word}." if position % 10 == 9 else word for position, word in enumerate(words))[:chars]


def _turns(count: int, chars: int) -> list[Turn]:
    return [
        Turn(_said(chars, number), _said(chars // 2, -1 - number), timestamp=_BEGUN + timedelta(minutes=number))
        for number in range(count)
    ]


async def _timed(calls: Sequence[Callable[[], Awaitable[Any]]]) -> dict[str, float]:
    waiting = iter(calls)

    async def call_next() -> None:
        await next(waiting)()

    spent = await await_calls(call_next, len(calls))
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    times = {name: 1000 * get_percentile(spent, share) for name, share in shares.items()}
    return times | {"per_second": len(spent) / sum(spent)}


async def _measured(count: int, chars: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # children seal on
        settings = ServiceSettings(storage_root=folder, embedder="none")
        off = MemoryIngestionConfig(entity_extraction_enabled=False, summarization_enabled=False)
        figures: dict[str, Any] = {}
        async with MemoryIngestor("bench", settings, off) as ingestor:
            turns, before = _turns(count, chars), _private_kb()
            figures["episode"] = await _timed([_call(ingestor.ingest_turn, turn, _SESSION) for turn in turns])
            figures["memory"] = 1000 * (_private_kb() - before) / (2 * count)
            texts = [_said(chars, number) for number in range(count // 5)]
            figures["event"] = await _timed([_call(ingestor.ingest_event, "run", text, "acme:bench") for text in texts])
        async with MemoryIngestor("bench", settings) as ingestor:
            await ingestor.background.tell()
            await ingestor.background.settle()
            figures |= await _behind(ingestor, count)
    return figures


async def _behind(ingestor: MemoryIngestor, count: int) -> dict[str, Any]:

    knowledge, extractor = ingestor.knowledge, EntityExtractor()
    episodes = [view_episode(episode) for episode in (await knowledge.episodes.valid())[:count]]
    deduplicator = EntityDeduplicator(knowledge)
    entities = [entity for entity in await knowledge.entities.valid() if entity.group]
    await deduplicator.find_duplicate(entities[0], "acme:bench")  # read once
    summarizer = ConversationSummarizer(knowledge)
    windows = [episodes[number : number + 20] for number in range(0, len(episodes) - 19, 20)]
    summaries = [view_summary(summary) for summary in await knowledge.summaries.valid() if summary.level == "window"]
    metas = [summaries[number : number + 5] for number in range(0, len(summaries) - 4, 5)]
    return {
        "extraction": await _timed([_call(extractor.extract, episode) for episode in episodes]),
        "lookup": await _timed([_call(deduplicator.find_duplicate, entity, "acme:bench") for entity in entities]),
        "window": await _timed([_call(summarizer.summarize_window, window, "acme:bench") for window in windows]),
        "meta": await _timed([_call(summarizer.create_meta_summary, meta, "acme:bench") for meta in metas]),
    }


def _call(function: Callable[..., Awaitable[Any]], *given: Any) -> Callable[[], Awaitable[Any]]:
    return lambda: function(*given)


def _private_kb() -> float:
    rows = Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()
    return sum(float(row.split()[1]) for row in rows if row.startswith("Private_"))


async def _nothing() -> None:
    """Do nothing."""


async def _signalled(chars: int, pairs: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """Return the CPU time of a turn, by what is collected.

    One process takes in blocks of turns, collecting in one and not in the next, in random order: what other programs
    add falls on both alike.
    """
    import prometheus_client
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    libraries = {"opentelemetry.trace": trace, "prometheus_client": prometheus_client}
    turns, choose = iter(_turns((pairs + 1) * 2 * _BLOCK, chars)), random.Random(seed)
    spent: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with MemoryIngestor("bench", ServiceSettings(storage_root=folder, embedder="none")) as ingestor:
            setattr(ingestor.background, "tell", _nothing)  # noqa: B010 - it takes more than what is measured
            for _ in range(pairs + 1):
                for collects in choose.sample([False, True], 2):
                    for name, library in libraries.items():
                        sys.modules.pop(name, None)
                        if collects:
                            sys.modules[name] = library
                    began = time.process_time()
                    for turn in islice(turns, _BLOCK):
                        await ingestor.ingest_turn(turn, _SESSION)
                    spent[collects].append(1000 * (time.process_time() - began) / _BLOCK)
                    exporter.clear()
    without, within = spent[False][1:], spent[True][1:]  # the first of each loads what it needs
    more = [with_signals / plain - 1 for with_signals, plain in zip(within, without, strict=True)]
    drawn = sorted(median(choose.choices(more, k=len(more))) for _ in range(1000))
    added = {"more": median(more), "low": drawn[25], "high": drawn[974]}
    return {"nothing": {"ms": median(without)}, "everything": {"ms": median(within), **added}}


if __name__ == "__main__":
    raise SystemExit(main())
