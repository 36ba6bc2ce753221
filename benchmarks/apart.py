"""Measure whether an agent finds its own notes as before when whole talks are items of the same agent.

    python -m benchmarks.apart --jsonl NOTES.jsonl --locomo FILE [--sealed all] [--embedder none] [--vectors FILE]

The notes and their questions are a set as `benchmarks.retrieval` reads it; each turn of the talks becomes an item of
the same agent. Asked are: the notes alone; notes with items; and the same with all of it taken for notes, which is what
items would do if they were not kept apart.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.memories import FileStorage
from agent_memory.models import MEMORY, Memory, Source, SourceKind
from agent_memory.settings import ServiceSettings
from agent_memory.store.segment_builder import seal_up
from benchmarks.harness import build_parser, open_embedder, seal_by_hand
from benchmarks.retrieval.data import load_jsonl, load_locomo
from benchmarks.retrieval.metrics import DEPTH, measure, outcome

if TYPE_CHECKING:
    from agent_memory.embeddings import Embedder
    from benchmarks.retrieval.data import QuestionGroup, SetItem

WAYS: Final[dict[str, SourceKind | None]] = {
    "notes alone": None, "beside items": "extraction", "items taken for notes": "assistant",
}  # fmt: skip
_KS: Final = (5, 10)


async def ask(
    notes: QuestionGroup, items: list[SetItem], way: str, embedder: Embedder | None, *, sealed: bool
) -> dict[str, float]:
    """Store the notes and the items of a way; return the means over all questions."""
    settings = ServiceSettings.model_validate({} if embedder else {"embedder": "none"})
    with tempfile.TemporaryDirectory() as folder, seal_by_hand():
        opened = partial(FileStorage, "bench", folder, settings=settings, embedder=embedder, clock=lambda: notes.now)
        storage, kind = opened(), WAYS[way]
        memories = [_build_memory(item, kind) for item in items if kind]
        memories += [_build_memory(item, "assistant") for item in notes.items]
        stored = [*(items if kind else ()), *notes.items]
        keys = {memory.id: item.key for memory, item in zip(memories, stored, strict=True)}
        await storage.store_many(memories)
        await storage.prepare()
        if sealed:
            await storage.close()
            seal_up(storage.folder, MEMORY, embedder.identity if embedder else None, least=1)
            storage = opened()
            await storage.prepare()
        try:
            rows, started = [], time.process_time()
            for query in notes.queries:
                found = await storage.search(query.text, limit=DEPTH)
                row = measure(outcome([keys[hit.memory.id] for hit in found], query.gold, query.category), _KS)
                rows.append({**row, "confidence": found.answer_confidence or 0.0})
            spent = 1000 * (time.process_time() - started) / max(1, len(rows))
        finally:
            await storage.close()
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]} | {"ms CPU": spent}


def _build_memory(item: SetItem, origin: SourceKind) -> Memory:
    """Return a memory with an ID of its key, so that equally good ones come in one order in all runs."""
    return Memory(
        agent_id="bench",
        id=f"mem-{hashlib.sha256(item.key.encode()).hexdigest()[:12]}",
        content=item.text,
        timestamp=item.when,
        created_by_session=item.session,
        source=Source(kind=origin),
    )


def main() -> None:
    """Measure and print."""
    parser = build_parser("apart", __doc__, "--jsonl", "--locomo", "--embedder", "--vectors")
    parser.add_argument("--sealed", choices=("none", "all"), default="none", help="sealed before it is searched")
    args = parser.parse_args()
    if not args.jsonl or not args.locomo:
        parser.error("--jsonl and --locomo are needed")
    [notes, *_] = [group for group in load_jsonl(args.jsonl[0]) if group.queries]
    items = [
        replace(item, key=f"{talk.name}:{item.key}")
        for talk in load_locomo(args.locomo, [], "turn")
        for item in talk.items
    ]
    print(f"{len(notes.items)} notes, {len(items)} items, {len(notes.queries)} questions, sealed: {args.sealed}")
    with open_embedder(args.embedder, args.vectors) as embedder:
        for way in WAYS:
            means = asyncio.run(ask(notes, items, way, embedder, sealed=args.sealed == "all"))
            print(f"{way:24}", *(f"{name} {means[name]:.4f}" for name in ("any@5", "MRR", "confidence", "ms CPU")))


if __name__ == "__main__":
    main()
