"""How fast a search is: by words, by words and meaning, with several processes at once, and embedding a query.

    python -m benchmarks.search_speed [--memories 5000] [--processes 8] [--turns] [--json]

Times are of the search index itself, in one process or several that search without pause at the same time; the query's
vector is given, as after the first of several searches. Memories are facts recombined from `benchmarks/data`; with
`--turns` they are turns of talks, which cost more to rank. Budgets are those of the design: 5,000 memories, keyword p95
5 ms, first search 300 ms, hybrid in 8 processes p95 25 ms, embedding a query 15 ms.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings import EmbeddingWorker, LocalEmbedder
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.models import MEMORY, Memory, SearchRequest
from agent_memory.retrieval import DenseIndex, SearchIndex, read_question

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

_DATA: Final = Path(__file__).with_name("data") / "facts.jsonl"
_NOW: Final = datetime(2026, 6, 1, tzinfo=UTC)
_ROUNDS: Final = 2


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_speed", description=__doc__.partition("\n")[0])
    parser.add_argument("--memories", type=int, default=5_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--turns", action="store_true", help="memories are turns of talks")
    parser.add_argument("--json", action="store_true", help="for machines")
    args = parser.parse_args()
    memories, queries = _memories(args.memories, turns=args.turns), _queries()
    report = {
        "memories": args.memories,
        "turns": args.turns,
        "keyword": _keyword(memories, queries),
        "hybrid": _summary(_hybrid(memories, queries)),
        f"hybrid in {args.processes} processes": _together(args.processes, args.memories, turns=args.turns),
        "embed query": _embedding(queries),
    }
    print(json.dumps(report, indent=2) if args.json else "\n".join(starmap("{:24} {}".format, report.items())))


def _rows(kind: str) -> list[str]:
    rows = [json.loads(line) for line in _DATA.read_text("utf-8").splitlines()]
    return [row["text"] for row in rows if row["type"] == kind]


def _queries() -> list[str]:
    return _rows("query")


def _memories(count: int, *, turns: bool) -> list[Memory]:
    """Recombine halves of known facts: a vocabulary and lengths as people have, and no two alike."""
    choose, facts = random.Random(3), _rows("memory")
    made = []
    for number in range(count):
        one, other = choose.choice(facts).split(), choose.choice(facts).split()
        text = " ".join([*one[: len(one) // 2 + 2], *other[len(other) // 2 :]])
        if turns:
            text = f"{('Ann', 'Ben')[number % 2]}: {text}"
        made.append(
            Memory(
                agent_id="bench",
                id=f"mem-{number:012x}",
                content=text,
                created_by_session=f"session-{number // 20}",
                timestamp=_NOW - timedelta(hours=count - number),
            )
        )
    return made


def _asked(query: str) -> SearchRequest:
    return SearchRequest(query, 5, _NOW)


def _keyword(memories: list[Memory], queries: list[str]) -> dict[str, float]:
    index = SearchIndex()
    for memory in memories:
        index.put(MEMORY.document(memory))
    began = time.perf_counter()
    index.search(_asked(queries[0]))
    first = 1000 * (time.perf_counter() - began)
    times = []
    for query in queries * _ROUNDS:
        began = time.perf_counter()
        index.search(_asked(query))
        times.append(1000 * (time.perf_counter() - began))
    return {"first_ms": round(first, 1), **_summary(times)}


def _hybrid(memories: list[Memory], queries: list[str], barrier: Barrier | None = None) -> list[float]:
    worker = EmbeddingWorker(HashEmbedder(dimension=384))
    index = SearchIndex(vectors=DenseIndex(worker))
    for memory in memories:
        index.put(MEMORY.document(memory))
    index.warm()
    assert worker.drain(300)
    questions = [index.embed_question(index.parse_question(_asked(query))) for query in queries]
    assert index.search(_asked(queries[0]), questions[0]).mode == "hybrid"
    if barrier is not None:
        barrier.wait(600)
    times = []
    for _ in range(_ROUNDS):
        for query, known in zip(queries, questions, strict=True):
            began = time.perf_counter()
            question = replace(read_question(query, _NOW), vector=known.vector)
            index.search(_asked(query), question)
            times.append(1000 * (time.perf_counter() - began))
    worker.close()
    return times


def _one_of_many(count: int, turns: bool, barrier: Barrier, results: Any) -> None:  # noqa: FBT001  a process's entry
    results.put(_hybrid(_memories(count, turns=turns), _queries(), barrier))


def _together(processes: int, count: int, *, turns: bool) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    running = [context.Process(target=_one_of_many, args=(count, turns, barrier, results)) for _ in range(processes)]
    for process in running:
        process.start()
    times = [taken for _ in running for taken in results.get(timeout=900)]
    for process in running:
        process.join()
    return _summary(times)


def _embedding(queries: list[str]) -> dict[str, float]:
    embedder = LocalEmbedder()
    began = time.perf_counter()
    embedder.embed_query("load")
    load = 1000 * (time.perf_counter() - began)
    times = []
    for query in queries:
        began = time.perf_counter()
        embedder.embed_query(query)
        times.append(1000 * (time.perf_counter() - began))
    return {"load_ms": round(load, 1), **_summary(times)}


def _summary(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "p50_ms": round(ordered[len(ordered) // 2], 2),
        "p95_ms": round(ordered[int(0.95 * len(ordered))], 2),
        "max_ms": round(ordered[-1], 2),
    }


if __name__ == "__main__":
    main()
