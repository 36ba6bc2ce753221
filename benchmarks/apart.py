"""Whether an agent finds its own notes as before when whole talks lie beside them as items.

    python -m benchmarks.apart --jsonl NOTES.jsonl --locomo FILE [--sealed all] [--embedder none] [--vectors FILE]

The notes and their questions are a set as `benchmarks.retrieval` reads it; each turn of the talks becomes an item of
the same agent. Asked are: the notes alone; notes with items; and the same with all of it taken for notes, which is what
items would do if they were not kept apart.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings import LocalEmbedder
from agent_memory.memories import FileStorage
from agent_memory.models import MEMORY, Memory, Source, SourceKind
from agent_memory.settings import ServiceSettings
from agent_memory.store.segment_builder import seal_up
from benchmarks._sealing import without_children
from benchmarks.retrieval.data import load_jsonl, load_locomo
from benchmarks.retrieval.metrics import DEPTH, measure, outcome
from benchmarks.retrieval.vectors import KeptVectors

if TYPE_CHECKING:
    from agent_memory.embeddings import Embedder
    from benchmarks.retrieval.data import Group, Item

WAYS: Final = ("notes alone", "beside items", "items taken for notes")
_KS: Final = (5, 10)


async def ask(
    notes: Group, items: list[Item], way: str, embedder: Embedder | None, *, sealed: bool
) -> dict[str, float]:
    """Store the notes and, unless they are alone, the items; return the means over all questions."""
    settings = ServiceSettings.model_validate({} if embedder else {"embedder": "none"})
    with tempfile.TemporaryDirectory() as folder, without_children():
        opened = partial(FileStorage, "bench", folder, settings=settings, embedder=embedder, clock=lambda: notes.now)
        storage = opened()
        kind: SourceKind = "extraction" if way == WAYS[1] else "assistant"
        own: SourceKind = "assistant"
        every = [*[(item, kind) for item in (items if way != WAYS[0] else ())], *[(item, own) for item in notes.items]]
        memories = [_memory(item, origin) for item, origin in every]
        keys = {memory.id: item.key for memory, (item, _) in zip(memories, every, strict=True)}
        await storage.store_many(memories)
        await storage.prepare()
        if sealed:
            await storage.close()
            seal_up(storage.folder, MEMORY, embedder.identity if embedder else None, least=1)
            storage = opened()
            await storage.prepare()
        try:
            rows, began = [], time.process_time()
            for query in notes.queries:
                found = await storage.search(query.text, limit=DEPTH)
                ranked = [keys[hit.memory.id] for hit in found]
                row = measure(outcome(ranked, query.gold, query.category), _KS)
                rows.append({**row, "confidence": found.answer_confidence or 0.0})
            spent = 1000 * (time.process_time() - began) / max(1, len(rows))
        finally:
            await storage.close()
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} | {"ms CPU": spent}


def _memory(item: Item, origin: SourceKind) -> Memory:
    """Return a memory whose id follows from its key, so that what is equally good comes in one order in all runs."""
    known_as = f"mem-{hashlib.sha256(item.key.encode()).hexdigest()[:12]}"
    return Memory(
        agent_id="bench",
        id=known_as,
        content=item.text,
        timestamp=item.when,
        created_by_session=item.session,
        source=Source(kind=origin),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apart", description=__doc__.partition("\n")[0])
    parser.add_argument("--jsonl", type=Path, required=True, metavar="FILE", help="notes and questions")
    parser.add_argument("--locomo", type=Path, required=True, metavar="FILE", help="talks, see benchmarks.retrieval")
    parser.add_argument(
        "--sealed", choices=("none", "all"), default="none", help="what is sealed before it is searched"
    )
    parser.add_argument("--embedder", choices=("local", "none"), default="local", help="none: by words alone")
    parser.add_argument("--vectors", type=Path, metavar="FILE.sqlite3", help="keeps what was embedded for the next run")
    args = parser.parse_args()
    [notes, *_] = [group for group in load_jsonl(args.jsonl) if group.queries]
    items = [
        replace(item, key=f"{talk.name}:{item.key}")
        for talk in load_locomo(args.locomo, [], "turn")
        for item in talk.items
    ]
    embedder = KeptVectors(LocalEmbedder(), args.vectors) if args.embedder == "local" else None
    print(f"{len(notes.items)} notes, {len(items)} items, {len(notes.queries)} questions, sealed: {args.sealed}")
    try:
        for way in WAYS:
            means = asyncio.run(ask(notes, items, way, embedder, sealed=args.sealed == "all"))
            print(f"{way:24}", *(f"{name} {means[name]:.4f}" for name in ("any@5", "MRR", "confidence", "ms CPU")))
    finally:
        if embedder is not None:
            embedder.close()


if __name__ == "__main__":
    main()
