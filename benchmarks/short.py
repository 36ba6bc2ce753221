"""Measure whether the shown part of a hit has the answer.

    python -m benchmarks.short --locomo FILE --jsonl benchmarks/retrieval/facts.jsonl FILE ... [--vectors FILE.sqlite3]

The sets are those of `benchmarks.retrieval`: as they are, and joined to notes of some 2,000 characters, one memory a
line. Each is stored and searched through the service, with the limit that tools have when none is named. An answer is
the text of a memory that answers, as it was before it was joined; of a turn of LoCoMo, whose makers wrote an answer
down, the words of that, where the turn has them all. For each set:

- questions: those where a hit that is shown has the answer in its whole text
- readable: the share of them where it can be read in what is shown
- beyond: the share of the questions with an answer among the hits that lose it since it is not near the best
- tokens: of what is shown, a quarter of its characters, titles of linked memories included
- whole: the share of hits that are shown whole
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.words import index_terms
from agent_memory.memory import MemoryService, views
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks.drift.grade import tokens
from benchmarks.drift.product import shown_text
from benchmarks.harness import ManualClock, build_parser, open_embedder, open_scratch, print_report, store_items
from benchmarks.retrieval.data import QuestionGroup, load_jsonl, load_locomo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agent_memory.embeddings import Embedder

NOTE: Final = 2_000
"""Characters of a joined note, about."""

Answers = dict[str, list[tuple[str, str]]]
"""For each question, by its text, the memories that answer it: key, and what has to be read."""

_Holds = Callable[[str, str], bool]
_Asked = tuple[QuestionGroup, Answers, _Holds]


@dataclass
class ReadableReport:
    """Figures of a set."""

    readable: list[bool] = field(default_factory=list)
    beyond: list[bool] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)

    def as_dict(self) -> dict[str, float]:
        """Return shares and means."""
        means = {name: _mean(getattr(self, name)) for name in ("readable", "beyond", "tokens", "whole")}
        return {"questions": len(self.readable), **means}


def main() -> int:
    """Measure and print."""
    parser = build_parser("short", __doc__, "--locomo", "--jsonl", "--vectors", "--json")
    args = parser.parse_args()
    with open_embedder("local", args.vectors) as embedder:
        reports = {name: asyncio.run(_measured(groups, embedder)).as_dict() for name, groups in _sets(args)}
    if not reports:
        parser.error("a set is needed: --locomo FILE or --jsonl FILE")
    print_report(reports, as_json=args.json)
    return 0


def _sets(args: Any) -> Iterator[tuple[str, list[_Asked]]]:
    sets: list[tuple[str, list[QuestionGroup]]] = [(path.stem, load_jsonl(path)) for path in args.jsonl]
    if args.locomo:
        talks = load_locomo(args.locomo)
        rows = (row for talk in _read(args.locomo) for row in talk["qa"])
        answers_by_question = {row["question"]: str(row.get("answer", "")) for row in rows}
        as_words: list[_Asked] = [(group, _of_words(group, answers_by_question), _has_words) for group in talks]
        yield "LoCoMo turns", as_words
        sets.append(("LoCoMo facts", load_locomo(args.locomo, "observations")))
    for name, groups in sets:
        yield name, [(group, _of_texts(group), _has_text) for group in groups]
        yield f"{name}, notes of {NOTE:,}", [(*joined(group), _has_text) for group in groups]


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _of_texts(group: QuestionGroup) -> Answers:
    texts = {item.key: item.text for item in group.items}
    return {query.text: [(key, texts[key]) for key in query.gold] for query in group.queries}


def _of_words(group: QuestionGroup, said: dict[str, str]) -> Answers:
    return {query.text: [(key, said[query.text]) for key in query.gold] for query in group.queries}


def joined(group: QuestionGroup) -> tuple[QuestionGroup, Answers]:
    """Return a group with several memories per note, and its answers."""
    notes, place = QuestionGroup(group.name), dict[str, tuple[str, str]]()
    lines: list[str] = []
    for item, following in zip(group.items, [*group.items[1:], None], strict=True):
        place[item.key] = f"note-{len(notes.items)}", item.text
        lines.append(item.text)
        if following is None or sum(map(len, lines)) + len(following.text) > NOTE:
            notes.add(f"note-{len(notes.items)}", "\n".join(lines), item.when, "")
            lines = []
    for query in group.queries:
        notes.ask(query.text, [place[key][0] for key in query.gold], query.category, now=query.now)
    return notes, {query.text: [place[key] for key in query.gold] for query in group.queries}


async def _measured(groups: Sequence[_Asked], embedder: Embedder | None) -> ReadableReport:
    report = ReadableReport()
    with open_scratch() as folder:
        for number, (group, answers, holds) in enumerate(groups):
            now = ManualClock(group.now)
            storage = FileStorage(f"bench-{number}", folder, embedder=embedder, clock=now)
            service = MemoryService(storage, ServiceSettings(), clock=now)
            try:
                await _ask(service, group, answers, holds, report)
            finally:
                await service.close()
    return report


async def _ask(
    service: MemoryService, group: QuestionGroup, answers: Answers, holds: _Holds, report: ReadableReport
) -> None:
    keys = await store_items(service.storage, group.items)
    for query in group.queries:
        found = await service.search(query.text)
        wanted = answers[query.text]
        has = Counter[str]()
        for hit in found:
            answered = [text for key, text in wanted if key == keys[hit.memory.id] and holds(hit.memory.content, text)]
            shown = views.view_brief_hit(hit)["content"]
            has["any"] += bool(answered)
            has["near"] += bool(answered) and hit.is_near
            has["read"] += hit.is_near and any(holds(shown, text) for text in answered)
        if has["any"]:
            report.beyond.append(not has["near"])
        if has["near"]:
            report.readable.append(bool(has["read"]))
        hits = [views.view_brief_hit(hit) for hit in found.near]
        report.tokens.append(sum(tokens(shown_text(hit)) for hit in hits))
        report.whole += ["excerpt" not in hit for hit in hits]


def _has_text(shown: str, text: str) -> bool:
    return " ".join(text.split()) in " ".join(shown.split())


def _has_words(shown: str, text: str) -> bool:
    words = set(index_terms(text))
    return bool(words) and words <= set(index_terms(shown))


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 3) if values else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
