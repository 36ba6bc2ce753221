"""How well `answer_confidence` tells questions that memory answers from those that it does not.

    python -m benchmarks.confidence --locomo FILE --jsonl benchmarks/data/facts.jsonl FILE ... [--vectors FILE.sqlite3]

Beside the questions of each set (see `benchmarks.retrieval`; those whose `gold` is empty have no answer) it asks ones
that have none: those of `data/unanswerable.json`, written for these sets, and those of the set's next group, with the
names of its people in place of the others'. All is measured through the product: what a search finds is the evidence.

Prints, for each set and kind of unanswerable questions, how often an answerable one has the higher confidence of two
(AUC), and the share of the unanswerable below what 90 % of the answerable reach: as shipped, and with constants fitted
on all sets of other files alone. Then the constants fitted on all, which are those of `retrieval/confidence.py`, and
the reliability diagram of answers and hits, out of fold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.embeddings import LocalEmbedder
from agent_memory.models import Memory, SearchRequest
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks._confidence_fit import balanced, bins, fitted, probability
from benchmarks._retrieval_data import has_speakers, load_jsonl, load_locomo
from benchmarks._retrieval_forms import NAME, OBSERVATIONS
from benchmarks._retrieval_metrics import auc, rejected
from benchmarks._retrieval_vectors import KeptVectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from agent_memory.retrieval.confidence import Support
    from benchmarks._retrieval_data import Group

_OWN: Final = Path(__file__).parent / "data" / "unanswerable.json"
_FORMS: Final = (NAME, "none", OBSERVATIONS)
_HITS: Final = 5
_MOST_OF_NEXT: Final = 60


@dataclass(frozen=True)
class Asked:
    """One question and what was found.

    Attributes:
        file: Its set's.
        set: The file and the form.
        kind: Of an unanswerable one where it comes from; `answerable`.
        support: What speaks for the answer.
        hits: What speaks for each of the first hits, and whether it is an answer.
        said: The product's own confidence.
        not_known: What the product says with its default.
    """

    file: str
    set: str
    kind: str
    support: Support
    hits: tuple[tuple[Support, bool], ...]
    said: float
    not_known: bool


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.confidence", description=__doc__.partition("\n")[0])
    parser.add_argument("--locomo", type=Path, metavar="FILE")
    parser.add_argument("--jsonl", type=Path, metavar="FILE", nargs="+", default=[])
    parser.add_argument("--vectors", type=Path, metavar="FILE.sqlite3", help="keeps what was embedded for the next run")
    parser.add_argument("--embedder", choices=("local", "none"), default="local", help="none: by words alone")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="the reliability diagram; needs matplotlib")
    args = parser.parse_args()
    embedder = KeptVectors(LocalEmbedder(), args.vectors) if args.embedder == "local" else None
    try:
        asked = [one for name, file, groups in _sets(args) for one in asyncio.run(_asked(name, file, groups, embedder))]
    finally:
        if embedder is not None:
            embedder.close()
    if not asked:
        parser.error("a set is needed: --locomo FILE or --jsonl FILE")
    report = _report(asked)
    print(json.dumps(report, indent=2) if args.json else _text(report))
    if args.plot:
        _plot(report, args.plot)
    return 0


def _sets(args: argparse.Namespace) -> Iterator[tuple[str, str, list[Group]]]:
    for form in _FORMS if args.locomo else ():
        yield f"{args.locomo.stem} {form}", args.locomo.stem, load_locomo(args.locomo, [], "turn", form)
    for path in args.jsonl:
        for form in _FORMS[:2] if has_speakers(path) else ("",):
            yield f"{path.stem} {form}".strip(), path.stem, load_jsonl(path, form or NAME)


async def _asked(name: str, file: str, groups: list[Group], embedder: KeptVectors | None) -> list[Asked]:
    own = json.loads(_OWN.read_text("utf-8"))
    settings, found = ServiceSettings.model_validate({} if embedder else {"embedder": "none"}), []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # what seals ends a moment later
        for number, group in enumerate(groups):
            storage = FileStorage(f"bench-{number}", folder, settings=settings, embedder=embedder)
            try:
                keys = await _stored(storage, group)
                for kind, text, gold, now in _questions(group, groups[(number + 1) % len(groups)], own):
                    request = SearchRequest(text, _HITS, now or group.now)
                    found.append(_one(name, file, kind, await storage.answer(request), {keys[one] for one in gold}))
            finally:
                await storage.close()
    return found


async def _stored(storage: FileStorage, group: Group) -> dict[str, str]:
    memories = [
        Memory(agent_id=storage.agent_id, content=item.text, timestamp=item.when, created_by_session=item.session)
        for item in group.items
    ]
    await storage.store_many(memories)
    await storage.prepare()
    return {item.key: memory.id for item, memory in zip(group.items, memories, strict=True)}


def _questions(group: Group, following: Group, own: dict[str, Any]) -> Iterator[tuple[str, str, Sequence[str], Any]]:
    """Yield the kind, the text, the answers and the moment of each question."""
    for query in group.queries:
        yield "answerable", query.text, query.gold, query.now
    for query in group.unanswerable:
        yield "of the set", query.text, (), query.now
    names, theirs = own["talks"].get(group.name, ()), own["talks"].get(following.name, ())
    frames = [frame.format(*names) for frame in own["about_a_talk"]] if names else own["of"].get(group.name, ())
    for text in frames:
        yield "own", text, (), None
    if {item.text for item in group.items} != {item.text for item in following.items}:
        every = following.queries
        for query in every[:: max(1, len(every) // _MOST_OF_NEXT)]:
            yield "next group", _renamed(query.text, theirs, names), (), None


def _renamed(text: str, theirs: Iterable[str], ours: Iterable[str]) -> str:
    for their, our in zip(theirs, ours, strict=False):
        text = re.sub(rf"\b{re.escape(their)}\b", our, text, flags=re.IGNORECASE)
    return text


def _one(name: str, file: str, kind: str, answer: Any, gold: set[str]) -> Asked:
    ranking = answer.ranking
    hits = tuple((hit.support, hit.id in gold) for hit in ranking.hits if hit.support is not None)
    return Asked(file, name, kind, ranking.support, hits, ranking.confidence, ranking.not_known)


def _features(supports: Iterable[Support]) -> NDArray[np.float64]:
    rows = [[each.nearness or 0.0, each.covered, each.name_only, each.is_foreign] for each in supports]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


@dataclass(frozen=True)
class _Table:
    """Rows to fit: features, what is true of each, whose file and set it is, and whether its question has an answer."""

    features: NDArray[np.float64]
    true: NDArray[np.bool_]
    files: NDArray[np.str_]
    sets: NDArray[np.str_]
    answerable: NDArray[np.bool_]

    def fit(self, chosen: NDArray[np.bool_]) -> list[float]:
        """Return the constants of some rows."""
        weights = balanced(self.sets[chosen], self.answerable[chosen])
        return fitted(self.features[chosen], self.true[chosen], weights)

    def reliability(self) -> list[dict[str, float]]:
        """Return the reliability diagram, out of fold."""
        return bins(self.out_of_fold(), self.true, balanced(self.sets, self.answerable))

    def out_of_fold(self) -> NDArray[np.float64]:
        """Return the probability of each row, by constants fitted on the rows of other files alone."""
        found = np.full(len(self.true), np.nan)
        rows = np.column_stack([np.ones(len(self.true)), self.features])
        for file in sorted(set(self.files.tolist())):
            others = self.files != file
            if self.true[others].any() and not self.true[others].all():
                found[~others] = probability(rows[~others], np.array(self.fit(others)))
        return found


def _report(asked: list[Asked]) -> dict[str, Any]:
    answers = _table([(one, one.support, one.kind == "answerable") for one in asked])
    hits = _table([(one, support, gold) for one in asked for support, gold in one.hits])
    predicted = answers.out_of_fold()
    said = np.array([one.said for one in asked])
    kinds = np.array([one.kind for one in asked])
    silent = np.array([one.not_known for one in asked])
    sets = {}
    for name in sorted(set(answers.sets.tolist())):
        here = answers.sets == name
        ours = here & answers.true
        sets[name] = {
            kind: {
                "count": int((chosen := here & (kinds == kind)).sum()),
                "not_known": round(float(silent[chosen].mean()), 3),
                **({} if kind == "answerable" else _told(said, predicted, ours, chosen)),
            }
            for kind in ("answerable", *sorted(set(kinds[here].tolist()) - {"answerable"}))
        }
    return {
        "sets": sets,
        "constants": {
            name: [round(value, 2) for value in part.fit(np.ones(len(part.true), dtype=bool))]
            for name, part in (("answer", answers), ("hit", hits))
        },
        "reliability": {"answer": answers.reliability(), "hit": hits.reliability()},
    }


def _table(rows: list[tuple[Asked, Support, bool]]) -> _Table:
    return _Table(
        _features(support for _, support, _ in rows),
        np.array([true for _, _, true in rows], dtype=bool),
        np.array([one.file for one, _, _ in rows]),
        np.array([one.set for one, _, _ in rows]),
        np.array([one.kind == "answerable" for one, _, _ in rows], dtype=bool),
    )


def _told(
    said: NDArray[np.float64], predicted: NDArray[np.float64], ours: NDArray[np.bool_], theirs: NDArray[np.bool_]
) -> dict[str, float]:
    found = {}
    for name, values in (("shipped", said), ("left_out", predicted)):
        found[f"auc_{name}"] = round(auc(values[ours].tolist(), values[theirs].tolist()), 3)
        found[f"rejected_{name}"] = round(rejected(values[ours].tolist(), values[theirs].tolist()), 3)
    return found


def _text(report: dict[str, Any]) -> str:
    lines = [f"{'set':28}{'questions':>12}{'':4}{'n':>5}{'not_known':>11}{'AUC':>14}{'rejected at 90 %':>19}"]
    lines.append(f"{'':60}{'shipped / left out':>14}{'shipped / left out':>19}")
    for name, parts in report["sets"].items():
        for kind, part in parts.items():
            line = f"{name:28}{kind:>12}{'':4}{part['count']:>5}{part['not_known']:>11.2f}"
            if kind != "answerable":
                line += f"{part['auc_shipped']:>8.3f} /{part['auc_left_out']:.3f}"
                line += f"{part['rejected_shipped']:>10.2f} / {part['rejected_left_out']:.2f}"
            lines.append(line)
    for name, values in report["constants"].items():
        lines.append(f"\nconstants, {name}: {', '.join(f'{value:+.2f}' for value in values)}")
    for name, found in report["reliability"].items():
        lines += ["", f"reliability out of fold, {name}:", f"{'said':>8}{'was':>8}{'n':>8}"]
        lines += [f"{one['said']:>8.2f}{one['was']:>8.2f}{one['count']:>8}" for one in found]
    return "\n".join(lines)


def _plot(report: dict[str, Any], path: Path) -> None:
    try:
        import matplotlib.pyplot as plt  # only for people who want a picture
    except ImportError:
        raise SystemExit("--plot needs matplotlib: pip install matplotlib") from None
    figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
    for name, found in report["reliability"].items():
        axes.plot([one["said"] for one in found], [one["was"] for one in found], marker="o", label=name)
    axes.set_xlabel("answer_confidence")
    axes.set_ylabel("share that was an answer")
    axes.legend(loc="upper left", frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    raise SystemExit(main())
