"""Measure matching of records on four labelled sets.

    python -m benchmarks.deduplication --data DIR [--split valid] [--embedder none] [--json]

DIR holds `Structured/` and `Textual/` of Ditto's `data/er_magellan`. The second record of each pair is known, the first
is looked up. The rules have one set of constants, chosen by hand with the training parts in sight; nothing is fitted,
and none is changed from set to set. F1 counts merges and suggestions; what is merged is shown by itself.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.embeddings import LocalEmbedder
from agent_memory.knowledge.entities.matching import Matcher, normal_form
from agent_memory.knowledge.entities.matching.normal_forms import likeness
from benchmarks.deduplication.data import SETS, load
from benchmarks.harness import build_parser, get_percentile, get_wilson_interval, print_report, resample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.embeddings import Embedder
    from benchmarks.deduplication.data import LabelledSet

_RESAMPLES: Final = 1_000
_LEVENSHTEIN, _COSINE = 0.85, 0.80


class MatchCounts(NamedTuple):
    """Numbers of reported, right and existing matches."""

    said: int
    right: int
    there: int

    @property
    def precision(self) -> float:
        """Share of reported matches that are right; 1 without any."""
        return self.right / self.said if self.said else 1.0

    @property
    def recall(self) -> float:
        """Share of what is there that was said."""
        return self.right / self.there if self.there else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of the two."""
        return 2 * self.right / (self.said + self.there) if self.said + self.there else 1.0


def counted(said: Sequence[bool], labelled: LabelledSet) -> MatchCounts:
    """Count what was said of each pair."""
    labels = [pair.is_one for pair in labelled.pairs]
    return MatchCounts(sum(said), sum(one and label for one, label in zip(said, labels, strict=True)), sum(labels))


def f1_between(said: Sequence[bool], labelled: LabelledSet) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of F1, over pairs."""
    rows = [(is_said, pair.is_one) for is_said, pair in zip(said, labelled.pairs, strict=True)]

    def get_f1(sample: list[tuple[bool, bool]]) -> float:
        right, both = sum(is_said and is_one for is_said, is_one in sample), sum(map(sum, sample))
        return 2 * right / both if both else 1.0

    drawn = resample(rows, get_f1, _RESAMPLES, seed=0)
    return get_percentile(drawn, 0.025), get_percentile(drawn, 0.975)


def ways(labelled: LabelledSet, embedder: Embedder | None) -> dict[str, list[bool]]:
    """Return the decision of each way on each pair."""
    matcher = Matcher((str(number), their) for number, their in enumerate(labelled.theirs))
    matches = [matcher.match(labelled.ours[pair.ours], str(pair.theirs)) for pair in labelled.pairs]
    forms = [[normal_form(each.name) for each in side] for side in (labelled.ours, labelled.theirs)]
    named = [(forms[0][pair.ours], forms[1][pair.theirs]) for pair in labelled.pairs]
    share = sum(pair.is_one for pair in labelled.pairs) / len(labelled.pairs)
    chance = random.Random(0)
    said = {
        "rules": [match is not None for match in matches],
        "merged": [match is not None and match.decision == "merge" for match in matches],
        "exact": [one == other for one, other in named],
        f"Levenshtein ≥ {_LEVENSHTEIN:.2f}": [likeness(one, other) >= _LEVENSHTEIN for one, other in named],
        "random": [chance.random() < share for _ in named],
    }
    if embedder is not None:
        ours, theirs = (
            embedder.embed_documents([each.name for each in side]) for side in (labelled.ours, labelled.theirs)
        )
        cosines = [float(ours[pair.ours] @ theirs[pair.theirs]) for pair in labelled.pairs]
        said[f"cosine ≥ {_COSINE:.2f}"] = [cosine >= _COSINE for cosine in cosines]
    return said


def among_all(labelled: LabelledSet) -> dict[str, float]:
    """Return how often the right record is compared and found among all."""
    matcher = Matcher((str(number), their) for number, their in enumerate(labelled.theirs))
    partners: dict[int, set[str]] = {}
    for pair in labelled.pairs:
        if pair.is_one:
            partners.setdefault(pair.ours, set()).add(str(pair.theirs))
    compared = found = 0
    for ours, theirs in partners.items():
        described = labelled.ours[ours]
        compared += bool(theirs & set(matcher.candidates(described)))
        best = matcher.find(described)
        found += best is not None and best.id in theirs
    return {"looked up": len(partners), "compared": compared / len(partners), "found": found / len(partners)}


def measure(folder: Path, split: str, embedder: Embedder | None) -> dict[str, object]:
    """Measure all sets, and the merges of all of them together."""
    report: dict[str, object] = {}
    pooled: dict[str, list[MatchCounts]] = {}
    for name in SETS:
        labelled = load(folder, name, split)
        rows: dict[str, object] = {"pairs": len(labelled.pairs), **among_all(labelled)}
        for way, said in ways(labelled, embedder).items():
            count = counted(said, labelled)
            pooled.setdefault(way, []).append(count)
            rows[way] = {
                "said": count.said, "right": count.right, "there": count.there, "precision": count.precision,
                "recall": count.recall, "F1": count.f1, "F1 between": f1_between(said, labelled),
            }  # fmt: skip
        report[name] = rows
    together = {}
    for way, counts in pooled.items():
        said_to_be, right = sum(count.said for count in counts), sum(count.right for count in counts)
        together[way] = {
            "said": said_to_be,
            "right": right,
            "precision between": get_wilson_interval(right, said_to_be),
        }
    return {**report, "together": together}


def main() -> None:
    """Measure and print."""
    parser = build_parser("deduplication", __doc__, "--embedder", "--json")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="er_magellan of Ditto")
    parser.add_argument("--split", default="valid", choices=("train", "valid"), help="which part is measured")
    args = parser.parse_args()
    report = measure(args.data, args.split, LocalEmbedder() if args.embedder == "local" else None)
    print_report(report, as_json=args.json)
