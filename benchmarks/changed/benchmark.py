"""Facts that change: is the current one shown above the old one, is the old one found when its history is asked for?

    python -m benchmarks.changed [FILE] [--json] [--embedder local|none]
    python -m benchmarks.changed FILE --replaces LIST [--agent correct|first]

FILE is changed-facts.jsonl when omitted: lines `{"type": "case", "id", "says_so", "first", "changed",
"question", "history"}` and `{"type": "other", "text"}`. All are stored in one memory, the first facts and the others a
day apart, later the changed ones, in other words and without a link; `says_so` tells that the words themselves speak of
a change. Else FILE has memories and queries in the format of `benchmarks.retrieval` whose queries may name what is
`stale`, and LIST is a text in which `new > old` says which memory replaces which.

Everything goes through the service as the tools use it: five results a question, a question for the history with what
was replaced. `current_above_stale`: the current fact is shown and no outdated one above it. `history_found`: the first
fact is shown. `noticed`: changes that became a suspect or a supersession by themselves. `false_pairs_per_100`: suspects
that are no change, for 100 notes. `wrong_supersessions`: notes that replaced one without being its change.

`--agent` plays a model that reads `similar`: `correct` replaces what LIST says, in a turn in which the user typed the
new fact; `first` always replaces the first similar note, in a turn about something else. The user stated every note;
`stated_hidden` counts those that `first` hid.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models import Source
from agent_memory.settings import ServiceSettings
from benchmarks.drift.product import ProductSystem
from benchmarks.harness import build_parser, print_report, read_jsonl, read_replacements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.memory import Found
    from benchmarks.drift.system import SuspectPair

CASES: Final = Path(__file__).with_name("changed-facts.jsonl")
_UNRELATED_PROMPT: Final = "Thanks, please run the tests again."
RESULTS: Final = 5
"""How many `memory_search` shows unless told otherwise."""
_BEGIN: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)


@dataclass(frozen=True)
class FactNote:
    """Something to store."""

    key: str
    text: str
    when: datetime
    category: str = "note"


@dataclass(frozen=True)
class FactQuestion:
    """Something to ask: `gold` is right, `stale` must not stand above it; of a `kind`."""

    text: str
    gold: frozenset[str]
    stale: frozenset[str]
    kind: str


@dataclass
class ChangedFacts:
    """A set of notes in the order of storing, questions, and which note replaces which."""

    notes: list[FactNote] = field(default_factory=list)
    questions: list[FactQuestion] = field(default_factory=list)
    changes: set[tuple[str, str]] = field(default_factory=set)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 2 when the arguments make no sense."""
    parser = build_parser("changed", __doc__, "--json", "--embedder")
    parser.add_argument("file", type=Path, nargs="?", default=CASES, metavar="FILE")
    parser.add_argument("--replaces", type=Path, metavar="LIST", help="a text that says which memory replaces which")
    parser.add_argument("--agent", choices=("correct", "first"), help="a scripted model; none ignores `similar`")
    args = parser.parse_args(argv)
    try:
        facts = load(args.file, args.replaces)
    except (OSError, ValueError, KeyError) as error:
        parser.error(str(error))
    report = asyncio.run(measure(facts, args.embedder, args.agent))
    print_report(report, [f"{name:36}{figure}" for name, figure in report.items()], as_json=args.json)
    return 0


def load(path: Path, replaces: Path | None = None) -> ChangedFacts:
    """Read a set of either format."""
    rows = read_jsonl(path)
    if any(row["type"] == "case" for row in rows):
        return _of_cases(rows)
    facts = ChangedFacts()
    for row in rows:
        if row["type"] == "memory":
            when = datetime.fromisoformat(row["date"]).replace(hour=9, tzinfo=UTC)
            facts.notes.append(FactNote(row["id"], row["text"], when, row.get("category", "note")))
        elif row.get("stale"):
            facts.questions.append(
                FactQuestion(row["text"], frozenset(row["gold"]), frozenset(row["stale"]), "current")
            )
    if replaces is not None:
        facts.changes = read_replacements(replaces, {note.key for note in facts.notes})
    return facts


def _of_cases(rows: list[dict[str, Any]]) -> ChangedFacts:
    cases = [row for row in rows if row["type"] == "case"]
    others = [row for row in rows if row["type"] == "other"]
    texts = [(f"{row['id']}-first", row["first"]) for row in cases]
    texts += [(f"other-{number}", row["text"]) for number, row in enumerate(others)]
    texts += [(f"{row['id']}-changed", row["changed"]) for row in cases]
    facts = ChangedFacts([FactNote(key, text, _BEGIN + timedelta(days=day)) for day, (key, text) in enumerate(texts)])
    for row in cases:
        first, changed = f"{row['id']}-first", f"{row['id']}-changed"
        kind = "current, said so" if row["says_so"] else "current, in other words"
        facts.questions.append(FactQuestion(row["question"], frozenset({changed}), frozenset({first}), kind))
        facts.questions.append(FactQuestion(row["history"], frozenset({first}), frozenset(), "history"))
        facts.changes.add((changed, first))
    return facts


async def measure(facts: ChangedFacts, embedder: str = "local", agent: str | None = None) -> dict[str, Any]:
    """Return the shares and counts; shares of 1. `agent` names a scripted model."""
    settings = ServiceSettings.model_validate({"embedder": embedder})
    last = max(note.when for note in facts.notes) + timedelta(days=1)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        product = ProductSystem(Path(folder), settings, last.timestamp())
        try:
            raised = await _store(product, facts, agent)
            shown = [(question, await _ask(product, question)) for question in facts.questions]
            replaced = await product.replaced()
        finally:
            await product.close()
    report = report_of(facts, shown, raised, replaced)
    return report | {"stated_hidden": len(replaced)} if agent == "first" else report


async def _store(product: ProductSystem, facts: ChangedFacts, agent: str | None) -> set[frozenset[str]]:
    raised: list[SuspectPair] = []
    source = {"source": Source(kind="user")} if agent else {}
    for note in facts.notes:
        values = {"content": note.text, "category": note.category, **source}
        written = await product.store(note.key, values, note.when)
        raised += [pair for pair in written.suspects if not pair.is_similar]
        if agent == "first" and written.similar:
            await product.replace(note.key, written.similar[0], _UNRELATED_PROMPT)
        for older in written.similar if agent == "correct" else ():
            if (note.key, older) in facts.changes:
                await product.replace(note.key, older, note.text)
    await product.settle()
    raised += await product.suspects()
    return {frozenset((pair.a, pair.b)) for pair in raised}


async def _ask(product: ProductSystem, question: FactQuestion) -> list[str]:
    history = question.kind == "history"
    found: Found = await product.service.search(question.text, RESULTS, include_superseded=history)
    return [product.key_of(hit.memory.id) for hit in found]


def report_of(
    facts: ChangedFacts,
    shown: list[tuple[FactQuestion, list[str]]],
    raised: set[frozenset[str]],
    replaced: set[tuple[str, str]],
) -> dict[str, Any]:
    """Return the shares and counts from what was shown for each question, the suspects, and what replaced what."""
    current = [(question, _above(question, keys)) for question, keys in shown if question.kind != "history"]
    history = [bool(question.gold & set(keys)) for question, keys in shown if question.kind == "history"]
    changes = {frozenset(pair) for pair in facts.changes}
    noticed = [change in raised or change in {frozenset(pair) for pair in replaced} for change in changes]
    updating = {new for new, _ in facts.changes}
    report: dict[str, Any] = {
        "notes": len(facts.notes),
        "questions": len(facts.questions),
        "current_above_stale": _share([above for _, above in current]),
        **{kind: _share([above for question, above in current if question.kind == kind]) for kind in _kinds(current)},
        "current_shown": _share([bool(q.gold & set(keys)) for q, keys in shown if q.kind != "history"]),
        "history_found": _share(history),
    }
    if changes:
        report |= {
            "noticed": _share(noticed),
            "false_pairs_per_100": round(100 * len(raised - changes) / len(facts.notes), 1),
            "wrong_supersessions": len(replaced - facts.changes),
            "notes_that_update_nothing": len({note.key for note in facts.notes} - updating),
        }
    return {name: said for name, said in report.items() if said is not None}


def _above(question: FactQuestion, keys: list[str]) -> bool:
    """Return True if a right note is shown above all outdated ones."""
    first = next((number for number, key in enumerate(keys) if key in question.gold), None)
    return first is not None and not question.stale & set(keys[:first])


def _kinds(current: list[tuple[FactQuestion, bool]]) -> list[str]:
    kinds = sorted({question.kind for question, _ in current})
    return kinds if len(kinds) > 1 else []


def _share(passed: list[bool]) -> float | None:
    return round(sum(passed) / len(passed), 3) if passed else None
