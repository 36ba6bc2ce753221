"""What is left of a talk when only its items are kept, and how well these are found.

    python -m benchmarks.items --locomo FILE [--vectors FILE.sqlite3] [--jsonl FILE ...] [--no-search]

A talk is read by `claims_of_talk`, session by session, each turn with its image's caption. Beside the items stand the
raw turns and sentences drawn at random with as many characters as the items have. The columns:

- `characters`: of the texts, as a share of those of the turns; names in front are not counted on either side.
- `quoted`: share of the evidence turns of which an item quotes something. Each pair of a question (categories 1 to 4)
  and a turn that its makers name as evidence counts once.
- `survive`: those of them whose items also hold every word (Snowball stem, no stop words) of the expected answer that
  the turn holds. A turn that shares no word with the answer survives when it is quoted. Sets without answers have none.
- `frac@10`, `any@5`: of turns: an item stands for the turn that it quotes, a turn counts at the place of its best item.
  Texts are stored as `Name: text` or without the name, with their session and its date; searches as shipped.

LoCoMo is not part of the project (see `benchmarks.retrieval`). `--jsonl` takes sets of the same form as there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings import LocalEmbedder
from agent_memory.knowledge.items.extraction.claims import Passage
from agent_memory.knowledge.items.extraction.sentences import spans_of
from agent_memory.knowledge.items.extraction.talk import claims_of_talk
from agent_memory.retrieval.tokens import index_terms
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks._retrieval_data import Group, load_jsonl, load_locomo
from benchmarks._retrieval_metrics import DEPTH, measure, outcome
from benchmarks._retrieval_sealed import filled
from benchmarks._retrieval_vectors import KeptVectors
from benchmarks._sealing import without_children

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_EVIDENCE: Final = re.compile(r"D\d+:\d+")
_ADVERSARIAL: Final = 5


@dataclass
class Talk:
    """A conversation: its turns and questions, who speaks, and what answers are expected of which turns."""

    group: Group
    speakers: Mapping[str, str]
    answers: list[tuple[str, str | None]] = field(default_factory=list)


Kept = list[tuple[str, str]]
"""Texts, each with the key of its turn."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.items", description=__doc__.partition("\n")[0])
    parser.add_argument("--locomo", type=Path, help="data/locomo10.json of snap-research/locomo")
    parser.add_argument("--jsonl", type=Path, nargs="+", default=[], help="sets with speakers")
    parser.add_argument("--vectors", type=Path, help="keeps what was embedded for the next run")
    parser.add_argument("--no-search", action="store_true", help="measure what survives alone")
    args = parser.parse_args()
    sets = {path.name: path for path in [args.locomo, *args.jsonl] if path is not None}
    if not sets:
        parser.error("a set is needed: --locomo FILE or --jsonl FILE")
    embedder = None if args.no_search else KeptVectors(LocalEmbedder(), args.vectors)
    try:
        for name, path in sets.items():
            talks = _locomo(path) if path == args.locomo else _lines(path)
            print("\n".join(_table(name, talks, embedder)))
    finally:
        if embedder is not None:
            embedder.close()
    return 0


def _locomo(path: Path) -> list[Talk]:
    talks = []
    for group, data in zip(load_locomo(path, (), "turn", "none"), json.loads(path.read_text("utf-8")), strict=True):
        turns = [turn for value in data["conversation"].values() if isinstance(value, list) for turn in value]
        known = {turn["dia_id"]: turn["speaker"] for turn in turns}
        talk = Talk(group, known)
        for question in data["qa"]:
            gold = [key for text in question["evidence"] for key in _EVIDENCE.findall(text)]
            if question["category"] != _ADVERSARIAL:
                talk.answers += [(key, str(question["answer"])) for key in gold if key in known]
        talks.append(talk)
    return talks


def _lines(path: Path) -> list[Talk]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    by_group: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["type"] == "memory":
            by_group.setdefault(row["group"], {})[row["id"]] = row.get("speaker", "")
    talks = [Talk(group, by_group[group.name]) for group in load_jsonl(path, "none")]
    for talk in talks:
        talk.answers = [(key, None) for query in talk.group.queries for key in query.gold]
    return talks


def _table(name: str, talks: Sequence[Talk], embedder: KeptVectors | None) -> list[str]:
    rows = {"raw turns": [_turns(each) for each in talks], "items": [_items(each) for each in talks]}
    rows["random sentences"] = [
        _random(talk, sum(len(text) for text, _ in kept)) for talk, kept in zip(talks, rows["items"], strict=True)
    ]
    head = f"{name:24}{'texts':>7}{'characters':>12}{'quoted':>8}{'survive':>9}"
    lines = [head + ("" if embedder is None else f"{'frac@10 / any@5: names':>26}{'no names':>14}")]
    whole = sum(len(text) for kept in rows["raw turns"] for text, _ in kept)
    for label, every in rows.items():
        share = sum(len(text) for kept in every for text, _ in kept) / whole
        quoted, survive = _surviving(talks, every)
        told = f"{survive:9.3f}" if any(answer for talk in talks for _, answer in talk.answers) else f"{'':9}"
        line = f"{label:24}{sum(map(len, every)):7}{share:12.3f}{quoted:8.3f}{told}"
        if embedder is not None:
            for named in (True, False):
                frac, found = asyncio.run(_found(talks, every, embedder, named=named))
                line += f"{frac:>{20 if named else 8}.3f}{found:6.3f}"
        lines.append(line)
    return lines


def _turns(talk: Talk) -> Kept:
    return [(item.text, item.key) for item in talk.group.items]


def _items(talk: Talk) -> Kept:
    sessions: dict[str, list[Passage]] = {}
    for item in talk.group.items:
        passage = Passage(item.key, item.text, talk.speakers[item.key], said_at=item.when)
        sessions.setdefault(item.session, []).append(passage)
    found = [pair for passages in sessions.values() for pair in claims_of_talk(passages)]
    return [(claim.text, passage.id) for passage, claim in found]


def _random(talk: Talk, characters: int) -> Kept:
    every = [(item.text[start:end], item.key) for item in talk.group.items for start, end in spans_of(item.text)]
    order = random.Random(1).sample(range(len(every)), len(every))
    kept, left = [], characters
    for at in order:
        if len(every[at][0]) <= left:
            kept.append(at)
            left -= len(every[at][0])
    return [every[at] for at in sorted(kept)]


def _surviving(talks: Sequence[Talk], every: Sequence[Kept]) -> tuple[float, float]:
    pairs, quoted, survive = 0, 0, 0
    for talk, kept in zip(talks, every, strict=True):
        texts = {item.key: item.text for item in talk.group.items}
        held: dict[str, list[str]] = {}
        for text, key in kept:
            held.setdefault(key, []).append(text)
        for key, answer in talk.answers:
            pairs += 1
            quoted += key in held
            wanted = _terms([answer or ""]) & _terms([texts[key]])
            survive += key in held and wanted <= _terms(held[key])
    return quoted / max(1, pairs), survive / max(1, pairs)


def _terms(texts: Iterable[str]) -> set[str]:
    return set(index_terms(" ".join(texts)))


async def _found(
    talks: Sequence[Talk], every: Sequence[Kept], embedder: KeptVectors, *, named: bool
) -> tuple[float, float]:
    """Return frac@10 and any@5 of turns over all questions."""
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder, without_children():
        for number, (talk, kept) in enumerate(zip(talks, every, strict=True)):
            rows += await _asked(talk, kept, partial(_opened, f"items-{number}", folder, talk, embedder), named=named)
    return sum(row["frac@10"] for row in rows) / len(rows), sum(row["any@5"] for row in rows) / len(rows)


def _opened(name: str, folder: str, talk: Talk, embedder: KeptVectors) -> FileStorage:
    settings = ServiceSettings.model_validate({})
    return FileStorage(name, folder, settings=settings, embedder=embedder, clock=lambda: talk.group.now)


async def _asked(talk: Talk, kept: Kept, opened: Any, *, named: bool) -> list[dict[str, float]]:
    of = {item.key: item for item in talk.group.items}
    stored = Group(talk.group.name)
    for number, (text, key) in enumerate(kept):
        said = f"{talk.speakers[key]}: {text}" if named else text
        stored.add(f"{key}|{number}", said, of[key].when, of[key].session)
    storage, key_of = await filled(opened, stored.items, "none", None)
    rows = []
    try:
        for query in talk.group.queries:
            found = await storage.search(query.text, limit=DEPTH)
            turns = dict.fromkeys(key_of[one.memory.id].partition("|")[0] for one in found)
            rows.append(measure(outcome(list(turns), query.gold, query.category), (5, 10)))
    finally:
        await storage.close()
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
