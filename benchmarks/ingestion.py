"""Measure the ingestion of conversations: time and disk space of a turn, and the cost of signals.

    python -m benchmarks.ingestion [--turns 500] [--chars 200] [--json]
    python -m benchmarks.ingestion --ingestor [--turns 500] [--chars 1000] [--pairs 100] [--json]

Turns of common words in no order, each with another text, are ingested one after the other as the hook of a session
does; each is synced before it is acknowledged. Nothing is embedded.

- `turn`: milliseconds of one call: half, 95 and 99 in 100 are faster; and how many a second
- `cpu_ms`: processor time of a turn
- `disk`: bytes of the agent's folder for each byte of text

With `--ingestor` through `MemoryIngestor`, each turn with an answer of half its length:

- `turn`: the same, without the background work
- `signals`: processor time of a turn, and by how much more it is with Prometheus and a tracer of OpenTelemetry that
  collects in memory: the median over pairs of blocks of turns in one process, with its interval of 95 in 100
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.entries import get_disk_size
from agent_memory.ingestion import MemoryIngestionConfig, MemoryIngestor, Turn
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.records import Knowledge
from agent_memory.settings import ServiceSettings
from benchmarks.harness import await_calls, build_parser, get_percentile, print_report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_WORDS: Final = """
the of and to in is that it was for on are as with they at be this from have or by one had but what some
we can out other were all there when up use your how said each she which their time will way about many
then them write would like so these her long make thing see him two has look more day could go come did
number sound no most people over know water than call first who may down side been now find any new work
part take get place made live where after back little only round man year came show every good give our
under name very through just form sentence great think say help low line differ turn cause much mean
before move right boy old too same tell does set three want air
""".split()  # noqa: SIM905 - a list of them would take a line each
_NAMES: Final = ("Ada", "Tobias Reuter", "Turin", "Acme GmbH", "PostgreSQL", "ORD-4711", "api.example.org", "Lena")
_BEGUN: Final = datetime(2026, 1, 5, tzinfo=UTC)
_BLOCK: Final = 10
_SESSION: Final = SimpleNamespace(tenant_id="acme", id="bench")
_CHARS: Final = {False: 200, True: 1000}
"""Default length of a turn, without and with `--ingestor`."""


def turns_of(count: int, chars: int, seed: int) -> list[ReceivedTurn]:
    """Return so many turns of two speakers, each of about so many characters, with a word that no other turn has."""
    made = random.Random(seed)

    def text(number: int) -> str:
        words = [f"w{seed}x{number}"]
        while sum(map(len, words)) + len(words) < chars:
            words.append(made.choice(_WORDS))
        return " ".join(words) + "."

    return [ReceivedTurn(text(number), speaker="Ada" if number % 2 else "Bob") for number in range(count)]


async def measure(count: int, chars: int) -> dict[str, Any]:
    """Ingest turns and return the figures."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # children seal on
        knowledge = Knowledge("bob", ServiceSettings(storage_root=folder, embedder="none"))
        ingest, turns = Ingest(knowledge), turns_of(count, chars, 1)
        conversation = (await ingest.conversation("session-1", title="A talk")).record.id
        await ingest.turn(ReceivedTurn("Begin."), conversation=conversation)  # what is imported and opened once
        waiting, cpu = iter(enumerate(turns, 1)), time.process_time()

        async def ingest_next() -> None:
            order, turn = next(waiting)
            await ingest.turn(turn, conversation=conversation, order=order, is_live=True)

        figures = {"turn": await measure_turns(ingest_next, count)}
        cpu = time.process_time() - cpu
        await knowledge.close()
        disk = get_disk_size(knowledge.folder.path) / sum(len(turn.text.encode()) for turn in turns)
    return figures | {"cpu_ms": 1000 * cpu / count, "disk": disk}


async def measure_turns(call: Callable[[], Awaitable[object]], count: int) -> dict[str, float]:
    """Return the latencies of so many calls in milliseconds, and calls a second."""
    spent = await await_calls(call, count)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    times = {name: 1000 * get_percentile(spent, share) for name, share in shares.items()}
    return times | {"per_second": len(spent) / sum(spent)}


async def measure_ingestor(count: int, chars: int, pairs: int) -> dict[str, Any]:
    """Ingest turns with answers, and return the figures."""
    off = MemoryIngestionConfig(entity_extraction_enabled=False, summarization_enabled=False)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        settings, turns = ServiceSettings(storage_root=folder, embedder="none"), iter(_turns(count, chars))
        async with MemoryIngestor("bench", settings, off) as ingestor:
            figures = {"turn": await measure_turns(lambda: ingestor.ingest_turn(next(turns), _SESSION), count)}
    return figures | {"signals": await _signalled(chars, pairs)}


def say(chars: int, number: int) -> str:
    """Return sentences of ten common words, some with a name."""
    drawn, (common,) = random.Random(number), turns_of(1, chars, number)
    words = [word if drawn.random() > 0.05 else drawn.choice(_NAMES) for word in common.text.split()]
    return " ".join(f"{word}." if position % 10 == 9 else word for position, word in enumerate(words))[:chars]


def _turns(count: int, chars: int) -> list[Turn]:
    return [
        Turn(say(chars, number), say(chars // 2, -1 - number), timestamp=_BEGUN + timedelta(minutes=number))
        for number in range(count)
    ]


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


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = build_parser("ingestion", __doc__, "--json")
    parser.add_argument("--ingestor", action="store_true", help="through MemoryIngestor")
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--chars", type=int, help="of a turn")
    parser.add_argument("--pairs", type=int, default=100, help="of blocks of turns with and without signals")
    args = parser.parse_args(argv)
    chars = args.chars or _CHARS[args.ingestor]
    work = measure_ingestor(args.turns, chars, args.pairs) if args.ingestor else measure(args.turns, chars)
    print_report(asyncio.run(work), as_json=args.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
