"""Measure how often `similar` lists the memory that became untrue.

    python -m benchmarks.similar WORLD.json.gz ... [--agent FILE.jsonl --replaced FILE] [--distractors FILE.jsonl ...]

A WORLD is one of `benchmarks.drift`: each contradicting note against the note that it contradicts, by shape. `--agent`
is a set of `benchmarks.retrieval`, `--replaced` a text that says `new > old` of its ids. `--distractors` adds the
memories of other sets. All notes are stored before the first is compared.

Prints the share of new notes with the old one among their similar ones, and the mean number of similar ones of all
notes.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.memory import NOBODY
from agent_memory.memory.similarity import find_similar
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks.harness import build_parser, open_embedder, open_scratch, read_jsonl, read_replacements
from benchmarks.reword.benchmark import read_world

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_memory.embeddings import Embedder

_SAMPLE: Final = 200
"""Notes whose number of similar ones is counted."""


class ReplacedPair(NamedTuple):
    """Keys of a note and of the one that it makes untrue."""

    shape: str
    new: str
    old: str


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = build_parser("similar", __doc__, "--embedder", "--vectors", "--json")
    parser.add_argument("worlds", type=Path, nargs="*", metavar="WORLD")
    parser.add_argument("--agent", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--replaced", type=Path, metavar="FILE")
    parser.add_argument("--distractors", type=Path, nargs="+", default=[], metavar="FILE")
    args = parser.parse_args(argv)
    more = [text for path in args.distractors for text in _read_texts(path).values()]
    with open_embedder(args.embedder, args.vectors) as embedder:
        for name, texts, pairs in _load_cases(args):
            report = asyncio.run(measure(texts, pairs, more, embedder))
            print(json.dumps({"set": name, **report}) if args.json else render_report(name, report), flush=True)
    return 0


def _load_cases(args: Any) -> Iterator[tuple[str, dict[str, str], list[ReplacedPair]]]:
    for path in args.worlds:
        yield path.name, _read_texts(path), list(_read_pairs(read_world(path)))
    if args.agent:
        texts = _read_texts(args.agent)
        listed = sorted(read_replacements(args.replaced, texts))
        yield args.agent.name, texts, [ReplacedPair("replaced", *pair) for pair in listed]


def _read_texts(path: Path) -> dict[str, str]:
    """Return the texts of a world or set by key."""
    if path.suffix == ".jsonl":
        return {row["id"]: row["text"] for row in read_jsonl(path) if row["type"] == "memory"}
    records = [op.get("record") or op["new"] for op in read_world(path)["ops"] if op["op"] in {"inscribe", "supersede"}]
    return {record["key"]: f"{record['title']}\n{record['body']}".strip() for record in records}


def _read_pairs(world: dict[str, Any]) -> Iterator[ReplacedPair]:
    for probe in world["probes"]:
        if probe["family"] == "contradiction" and probe.get("positive"):
            yield ReplacedPair(probe["shape"], probe["witness"], probe["gold"])
        elif probe["family"] == "drift":
            yield ReplacedPair("drift", probe["gold"], probe["stale"])


async def measure(
    texts: dict[str, str], pairs: list[ReplacedPair], distractors: list[str], embedder: Embedder | None
) -> dict[str, Any]:
    """Return shares of listed pairs and the mean number of similar notes."""
    settings = ServiceSettings.model_validate({} if embedder else {"embedder": "none"})
    with open_scratch() as folder:
        storage = FileStorage("bench", folder, settings=settings, embedder=embedder)
        try:
            memories = {key: Memory(agent_id="bench", content=text) for key, text in texts.items()}
            more = [Memory(agent_id="bench", content=text) for text in distractors]
            await storage.store_many([*memories.values(), *more])
            await storage.prepare()
            listed = defaultdict(list)
            for pair in pairs:
                similar = await find_similar(storage, memories[pair.new], NOBODY)
                listed[pair.shape].append(memories[pair.old].id in {memory.id for memory in similar})
            notes = list(memories.values())
            sample = notes[:: max(1, len(notes) // _SAMPLE)]
            counts = [len(await find_similar(storage, memory, NOBODY)) for memory in sample]
        finally:
            await storage.close()
    shapes = {shape: {"n": len(hits), "found": round(sum(hits) / len(hits), 3)} for shape, hits in listed.items()}
    return {"memories": len(memories) + len(more), "shapes": shapes, "mean_similar": sum(counts) / len(counts)}


def render_report(name: str, report: dict[str, Any]) -> str:
    """Return the report of one set as text."""
    shapes = "  ".join(f"{shape} {row['found']:.2f} ({row['n']})" for shape, row in report["shapes"].items())
    return f"{name}, {report['memories']} memories: {shapes}; similar ones of a note {report['mean_similar']:.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
