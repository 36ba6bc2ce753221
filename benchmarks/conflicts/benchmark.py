"""Measure which conflicts of ordinary notes are reported.

    python -m benchmarks.conflicts [FILE] [--agent FILE.jsonl --replaced FILE] [--embedder local|none] [--json]

A line of FILE (by default conflicts.jsonl) is a note, `{"type": "note", "set", "id", "text"}`, with
`contradicts: [ids]` if it replaces or denies older ones; lines of other types are skipped. `--agent` adds a set of
`benchmarks.retrieval`, `--replaced` a text that says `new > old` of its IDs.

The notes of a set are stored in one memory in their order, as the tools store them. Prints the pairs that were reported
by mistake, the missed pairs, then by set: precision, recall, and recall with the similar memories that the store lists.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.settings import ServiceSettings
from benchmarks.drift.product import ProductSystem
from benchmarks.harness import build_parser, open_scratch, print_report, read_jsonl, read_replacements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CASES: Final = Path(__file__).with_name("conflicts.jsonl")
_BEGIN: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)

NotePair = tuple[str, str]
"""Keys of two notes, the newer first."""


@dataclass(frozen=True)
class NoteSet:
    """Notes of one memory by key, and the pairs that conflict."""

    name: str
    texts: dict[str, str]
    conflicts: frozenset[NotePair]


@dataclass(frozen=True)
class SetReport:
    """Outcome of one set, or of all.

    Attributes:
        name: Name of the set.
        notes: Number of notes.
        conflicts: Number of labelled pairs.
        wrong: Reported pairs that are not conflicts.
        right: Reported pairs that are.
        listed: Missed pairs whose older note is among the similar memories of the newer.
        missed: Missed pairs that are not listed either.
        similar: Number of similar memories that the stores listed.
    """

    name: str
    notes: int
    conflicts: int
    wrong: tuple[NotePair, ...]
    right: tuple[NotePair, ...]
    listed: tuple[NotePair, ...]
    missed: tuple[NotePair, ...]
    similar: int

    @property
    def figures(self) -> dict[str, float | None]:
        """Precision, recall, and recall with similar memories; None without a pair."""
        total, reported = self.conflicts, len(self.right) + len(self.wrong)
        return {
            "precision": round(len(self.right) / reported, 3) if reported else None,
            "recall": round(len(self.right) / total, 3) if total else None,
            "recall_with_similar": round((len(self.right) + len(self.listed)) / total, 3) if total else None,
        }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = build_parser("conflicts", __doc__, "--embedder", "--json")
    parser.add_argument("file", type=Path, nargs="?", default=CASES, metavar="FILE")
    parser.add_argument("--agent", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--replaced", type=Path, metavar="FILE")
    args = parser.parse_args(argv)
    if (args.agent is None) != (args.replaced is None):
        parser.error("--agent and --replaced go together")
    sets = list(load_sets(args.file))
    if args.agent:
        sets.append(load_agent_set(args.agent, args.replaced))
    reports = [asyncio.run(measure(notes, args.embedder)) for notes in sets]
    reports.append(add_reports(reports))
    texts = {key: text for notes in sets for key, text in notes.texts.items()}
    figures = [{**asdict(report), **report.figures} for report in reports]
    print_report(figures, render_reports(reports, texts), as_json=args.json)
    return 0


def load_sets(path: Path) -> Iterator[NoteSet]:
    """Yield the sets of a file."""
    texts: defaultdict[str, dict[str, str]] = defaultdict(dict)
    conflicts: defaultdict[str, set[NotePair]] = defaultdict(set)
    for row in read_jsonl(path):
        if row["type"] == "note":
            texts[row["set"]][row["id"]] = row["text"]
            conflicts[row["set"]].update((row["id"], older) for older in row.get("contradicts", ()))
    for name, notes in texts.items():
        yield NoteSet(name, notes, frozenset(conflicts[name]))


def load_agent_set(path: Path, replaced: Path) -> NoteSet:
    """Return a set of `benchmarks.retrieval` with its replaced pairs."""
    texts = {row["id"]: row["text"] for row in read_jsonl(path) if row["type"] == "memory"}
    return NoteSet(path.stem, texts, frozenset(read_replacements(replaced, texts)))


async def measure(notes: NoteSet, embedder: str) -> SetReport:
    """Store the notes of a set; return the reported pairs."""
    settings = ServiceSettings.model_validate({"embedder": embedder})
    similar: dict[str, tuple[str, ...]] = {}
    with open_scratch() as folder:
        product = ProductSystem(folder, settings, (_BEGIN + timedelta(days=365)).timestamp())
        try:
            for number, (key, text) in enumerate(notes.texts.items()):
                written = await product.store(key, {"content": text}, _BEGIN + timedelta(hours=number))
                similar[key] = written.similar
                await product.settle()
            reported = {(pair.a, pair.b) for pair in await product.suspects()}
        finally:
            await product.service.close()
    absent = notes.conflicts - reported
    listed = {(newer, older) for newer, older in absent if older in similar[newer]}
    return SetReport(
        notes.name,
        len(notes.texts),
        len(notes.conflicts),
        wrong=tuple(sorted(reported - notes.conflicts)),
        right=tuple(sorted(reported & notes.conflicts)),
        listed=tuple(sorted(listed)),
        missed=tuple(sorted(absent - listed)),
        similar=sum(map(len, similar.values())),
    )


def add_reports(reports: Sequence[SetReport]) -> SetReport:
    """Return the report of all sets together."""
    return SetReport(
        "all",
        sum(report.notes for report in reports),
        sum(report.conflicts for report in reports),
        wrong=tuple(pair for report in reports for pair in report.wrong),
        right=tuple(pair for report in reports for pair in report.right),
        listed=tuple(pair for report in reports for pair in report.listed),
        missed=tuple(pair for report in reports for pair in report.missed),
        similar=sum(report.similar for report in reports),
    )


def render_reports(reports: Sequence[SetReport], texts: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a report, wrong pairs first."""
    total = reports[-1]
    for title, pairs in (
        ("reported by mistake", total.wrong),
        ("not reported, listed as similar", total.listed),
        ("not reported, not listed", total.missed),
    ):
        yield f"{title}: {len(pairs)}"
        yield from (f"  {newer}: {texts[newer]} / {older}: {texts[older]}" for newer, older in pairs)
    for report in reports:
        rates = "  ".join(f"{name} {'-' if rate is None else rate}" for name, rate in report.figures.items())
        counts = f"{report.notes} notes, {report.conflicts} conflicts, {report.similar} similar"
        yield f"{report.name}: {len(report.wrong)} wrong of {counts}  {rates}"
