"""Measure the ingestion of conversations: time of a turn, turns a second, disk space.

    python -m benchmarks.ingestion [--turns 500] [--chars 200] [--embedder none|local]

Turns of common words in no order, each with another text, are taken in one after the other as the hook of a session
does (each is synced before it is acknowledged), then as many again as one file. Besides: a turn that was acknowledged
is looked for by a word of its own, and what the agent's folder takes when all vectors are made is compared with what
was given.

- `turn`: milliseconds of one call, half of the calls and 95 in 100 are faster; `cpu` is of the process
- `per_second`: turns taken in a second, one after the other, and as a file
- `found`: milliseconds from the acknowledgement until a search by words has found the turn
- `backlog`: seconds until every text has its vector, from when the last turn was in, and how many a second
- `disk`: bytes of the agent's folder to bytes of the texts, and bytes a turn
- `drawn`: the items that background work draws from the turns then, without pages: how many, turns a second, and how
  many items have their vectors a second, from when it begins
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.entries import get_disk_size
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.passages.item_stage import ItemStage
from agent_memory.knowledge.pipeline.background_work import Runner
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import NOBODY, open_service
from agent_memory.models import EPISODE, RESOURCE, SearchRequest, utc_now
from agent_memory.settings import ServiceSettings
from benchmarks.harness import build_parser, get_percentile, print_report

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS: Final = """
the of and to in is that it was for on are as with they at be this from have or by one had but what some
we can out other were all there when up use your how said each she which their time will way about many
then them write would like so these her long make thing see him two has look more day could go come did
number sound no most people over know water than call first who may down side been now find any new work
part take get place made live where after back little only round man year came show every good give our
under name very through just form sentence great think say help low line differ turn cause much mean
before move right boy old too same tell does set three want air
""".split()  # noqa: SIM905 - a list of them would take a line each
_LOOKED_FOR: Final = 50


def turns_of(count: int, chars: int, seed: int) -> list[ReceivedTurn]:
    """Return so many turns of two speakers, each of about so many characters, with a word that no other turn has."""
    made = random.Random(seed)

    def text(number: int) -> str:
        words = [f"w{seed}x{number}"]
        while sum(map(len, words)) + len(words) < chars:
            words.append(made.choice(_WORDS))
        return " ".join(words) + "."

    return [ReceivedTurn(text(number), speaker="Ada" if number % 2 else "Bob") for number in range(count)]


async def measure(folder: Path, count: int, chars: int, embedder: str) -> dict[str, Any]:
    """Take in turns one by one, then as a file, and return the figures."""
    settings = ServiceSettings(storage_root=str(folder / "root"), embedder=embedder)
    knowledge = Knowledge("bob", settings)
    ingest, given = Ingest(knowledge), turns_of(count, chars, 1)
    begun = await ingest.conversation("session-1", title="A talk")
    await ingest.turn(ReceivedTurn("Begin."), conversation=begun.record.id)  # what is imported and opened once
    taken, cpu, started = list[float](), time.process_time(), time.perf_counter()
    for order, turn in enumerate(given, 1):
        before = time.perf_counter()
        await ingest.turn(turn, conversation=begun.record.id, order=order, is_live=True)
        taken.append((time.perf_counter() - before) * 1000)
    alone, cpu = time.perf_counter() - started, time.process_time() - cpu
    found = [await _found(knowledge, ingest, turn) for turn in turns_of(_LOOKED_FOR, chars, 3)]
    path, more = folder / "talk.jsonl", turns_of(count, chars, 2)
    lines = (json.dumps({"speaker": turn.speaker, "text": turn.text}) for turn in more)
    path.write_text("\n".join(lines), encoding="utf-8")
    started = time.perf_counter()
    await ingest.file(path)
    whole, started = time.perf_counter() - started, time.perf_counter()
    worked = time.process_time()
    pending = int(knowledge.episodes.embedding_status().get("pending", 0))
    is_embedded = await knowledge.episodes.prepare(None)
    backlog, worked = time.perf_counter() - started, time.process_time() - worked
    await knowledge.close()
    size = sum(len(turn.text.encode()) for turn in [*given, *more]) + _LOOKED_FOR * chars
    disk = get_disk_size(knowledge.folder.path)
    drawn = await _drawn(settings)
    return {
        "turn_ms": {**_summarize(taken), "most": round(max(taken), 2)},
        "turn_cpu_ms": round(cpu * 1000 / count, 2),
        "per_second": {"alone": round(count / alone), "file": round(count / whole)},
        "found_ms": _summarize(found),
        "backlog": {
            "seconds": round(backlog, 2),
            "vectors": is_embedded,
            "per_second": round(pending / backlog) if is_embedded else None,
            "cpu_ms_a_text": round(1000 * worked / pending, 1) if is_embedded else None,
        },
        "disk": {"times": round(disk / size, 2), "bytes_a_turn": round(disk / (2 * count + _LOOKED_FOR + 1))},
        "drawn": drawn,
    }


def _summarize(milliseconds: Sequence[float]) -> dict[str, float]:
    return {"p50": round(get_percentile(milliseconds, 0.5), 2), "p95": round(get_percentile(milliseconds, 0.95), 2)}


async def _drawn(settings: ServiceSettings) -> dict[str, Any]:
    """Draw items from all turns, and return how fast that and their vectors were."""
    knowledge, service = Knowledge("bob", settings), open_service("bob", settings)
    stages = [ItemStage(knowledge, service, kind.name, NOBODY) for kind in (RESOURCE, EPISODE)]
    runner = Runner(knowledge.folder.tasks_lock, knowledge.marks, knowledge.of, stages, utc_now)
    try:
        started = time.perf_counter()
        ran = await runner.run()
        drawn = time.perf_counter() - started
        is_embedded = await service.storage.prepare(None)
        whole, items = time.perf_counter() - started, await service.storage.count()
    finally:
        await service.close()
        await knowledge.close()
    return {
        "items": items,
        "turns_per_second": round(ran.done[ItemStage.name] / drawn),
        "vectors_per_second": round(items / whole) if is_embedded else None,
    }


async def _found(knowledge: Knowledge, ingest: Ingest, turn: ReceivedTurn) -> float:
    """Return the milliseconds until an acknowledged turn is found by its word."""
    kept, word = (await ingest.turn(turn)).record.id, turn.text.partition(" ")[0]
    started = time.perf_counter()
    while True:
        answer = await knowledge.episodes.answer(SearchRequest(word, 1, utc_now(), patience=0))
        if [record.id for record in answer.records] == [kept]:
            return (time.perf_counter() - started) * 1000


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the figures."""
    parser = build_parser("ingestion", __doc__, "--embedder", "--json", embedder="none")
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--chars", type=int, default=200)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        figures = asyncio.run(measure(Path(folder), asked.turns, asked.chars, asked.embedder))
    print_report(figures, as_json=asked.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
