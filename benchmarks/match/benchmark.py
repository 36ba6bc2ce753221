"""Measure how well `match` separates questions that a memory answers from others.

    python -m benchmarks.match --locomo FILE --jsonl benchmarks/retrieval/facts.jsonl FILE ... [--vectors FILE.sqlite3]

A set's questions without `gold` have no answer; further ones without an answer are those of `data/unanswerable.json`
and those of the set's next group, with the names of its people in place of the others'. `data/everyday.jsonl`
asks each question of a memory that holds one note.

Prints for each set and kind of question: the share of answers that are strong, weak and none; of the strong ones, the
share with a right result among those shown; of the strong results, the share that is right.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models import SearchRequest
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks.harness import build_parser, open_embedder, open_scratch, print_report, store_items
from benchmarks.retrieval.data import has_speakers, load_jsonl, load_locomo
from benchmarks.retrieval.forms import NAME, OBSERVATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agent_memory.embeddings import Embedder
    from benchmarks.retrieval.data import QuestionGroup

_UNANSWERABLE: Final = Path(__file__).with_name("unanswerable.json")
_FORMS: Final = (NAME, "none", OBSERVATIONS)
_LIMIT: Final = 5
_MAX_OF_NEXT: Final = 60


@dataclass(frozen=True)
class GradedAnswer:
    """One question and the grades of its answer.

    Attributes:
        set_name: File and form of the set.
        kind: Source of a question without an answer, else "answerable".
        match: Grade of the answer.
        hits: Grade of each result, and True if it is right.
    """

    set_name: str
    kind: str
    match: str
    hits: tuple[tuple[str, bool], ...]


def main() -> int:
    """Measure and print."""
    parser = build_parser("match", __doc__, "--locomo", "--jsonl", "--vectors", "--embedder", "--json")
    args = parser.parse_args()
    with open_embedder(args.embedder, args.vectors) as embedder:
        answers = [answer for name, groups in _load_sets(args) for answer in asyncio.run(_ask(name, groups, embedder))]
    if not answers:
        parser.error("a set is needed: --locomo FILE or --jsonl FILE")
    report = build_report(answers)
    print_report(report, as_json=args.json)
    return 0


def _load_sets(args: Any) -> Iterator[tuple[str, list[QuestionGroup]]]:
    for form in _FORMS if args.locomo else ():
        yield f"{args.locomo.stem} {form}", load_locomo(args.locomo, form)
    for path in args.jsonl:
        for form in _FORMS[:2] if has_speakers(path) else ("",):
            yield f"{path.stem} {form}".strip(), load_jsonl(path, form or NAME)


async def _ask(name: str, groups: list[QuestionGroup], embedder: Embedder | None) -> list[GradedAnswer]:
    frames = json.loads(_UNANSWERABLE.read_text("utf-8"))
    settings, answers = ServiceSettings.model_validate({} if embedder else {"embedder": "none"}), []
    with open_scratch() as folder:
        for number, group in enumerate(groups):
            storage = FileStorage(f"bench-{number}", folder, settings=settings, embedder=embedder)
            try:
                ids = {key: memory_id for memory_id, key in (await store_items(storage, group.items)).items()}
                for kind, text, gold, now in _list_questions(group, groups[(number + 1) % len(groups)], frames):
                    answer = await storage.answer(SearchRequest(text, _LIMIT, now or group.now))
                    answers.append(_grade(name, kind, answer, {ids[key] for key in gold}))
            finally:
                await storage.close()
    return answers


def _list_questions(
    group: QuestionGroup, following: QuestionGroup, frames: dict[str, Any]
) -> Iterator[tuple[str, str, Sequence[str], Any]]:
    """Yield kind, text, right answers and moment of each question."""
    for query in group.queries:
        yield "answerable", query.text, query.gold, query.now
    for query in group.unanswerable:
        yield "of the set", query.text, (), query.now
    names, next_names = frames["talks"].get(group.name, ()), frames["talks"].get(following.name, ())
    texts = [frame.format(*names) for frame in frames["about_a_talk"]] if names else frames["of"].get(group.name, ())
    for text in texts:
        yield "own", text, (), None
    if {item.text for item in group.items} != {item.text for item in following.items}:
        queries = following.queries
        for query in queries[:: max(1, len(queries) // _MAX_OF_NEXT)]:
            yield "next group", _rename(query.text, next_names, names), (), None


def _rename(text: str, old_names: Iterable[str], new_names: Iterable[str]) -> str:
    for old, new in zip(old_names, new_names, strict=False):
        text = re.sub(rf"\b{re.escape(old)}\b", new, text, flags=re.IGNORECASE)
    return text


def _grade(name: str, kind: str, answer: Any, gold: set[str]) -> GradedAnswer:
    ranking = answer.ranking
    hits = tuple((hit.match, hit.id in gold) for hit in ranking.hits)
    return GradedAnswer(name, kind, ranking.match, hits)


def build_report(answers: Iterable[GradedAnswer]) -> dict[str, dict[str, dict[str, float]]]:
    """Return shares by set and kind of question."""
    groups: dict[tuple[str, str], list[GradedAnswer]] = defaultdict(list)
    for answer in answers:
        groups[answer.set_name, answer.kind].append(answer)
    report: dict[str, dict[str, dict[str, float]]] = {}
    for (name, kind), group in sorted(groups.items()):
        grades = Counter(answer.match for answer in group)
        row = {"count": len(group)} | {grade: grades[grade] / len(group) for grade in ("strong", "weak", "none")}
        if kind == "answerable":
            strong = [answer for answer in group if answer.match == "strong"]
            results = [is_right for answer in strong for grade, is_right in answer.hits if grade == "strong"]
            row["right_answers"] = _mean(any(is_right for _, is_right in answer.hits) for answer in strong)
            row["right_results"] = _mean(results)
        report.setdefault(name, {})[kind] = row
    return report


def _mean(values: Iterable[bool]) -> float:
    values = list(values)
    return sum(values) / max(1, len(values))
