"""Measure matching of records on four labelled sets.

    python -m benchmarks.deduplication --data DIR [--embedder none] [--json]

DIR holds `Structured/` and `Textual/` of Ditto's `data/er_magellan`. The second record of each pair is known, the first
is looked up. The rules have one set of constants, chosen by hand with the training parts in sight; nothing is fitted,
and none is changed from set to set. F1 counts merges and suggestions; what is merged is shown by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.embeddings import LocalEmbedder
from agent_memory.knowledge.entities.matching import Matcher, normal_form
from benchmarks.deduplication.data import SETS, load
from benchmarks.harness import build_parser, get_percentile, print_report, resample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.embeddings import Embedder
    from benchmarks.deduplication.data import LabelledSet

_RESAMPLES: Final = 1_000
_COSINE: Final = 0.80


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
    said = {
        "rules": [match is not None for match in matches],
        "merged": [match is not None and match.decision == "merge" for match in matches],
        "exact": [one == other for one, other in named],
    }
    if embedder is not None:
        ours, theirs = (
            embedder.embed_documents([each.name for each in side]) for side in (labelled.ours, labelled.theirs)
        )
        cosines = [float(ours[pair.ours] @ theirs[pair.theirs]) for pair in labelled.pairs]
        said[f"cosine ≥ {_COSINE:.2f}"] = [cosine >= _COSINE for cosine in cosines]
    return said


def measure(folder: Path, embedder: Embedder | None) -> dict[str, object]:
    """Measure all sets, and the merges of all of them together."""
    report: dict[str, object] = {}
    for name in SETS:
        labelled = load(folder, name, "valid")
        rows: dict[str, object] = {"pairs": len(labelled.pairs)}
        for way, said in ways(labelled, embedder).items():
            count = counted(said, labelled)
            rows[way] = {
                "said": count.said, "right": count.right, "there": count.there, "precision": count.precision,
                "recall": count.recall, "F1": count.f1, "F1 between": f1_between(said, labelled),
            }  # fmt: skip
        report[name] = rows
    return report


def main() -> None:
    """Measure and print."""
    parser = build_parser("deduplication", __doc__, "--embedder", "--json")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="er_magellan of Ditto")
    args = parser.parse_args()
    report = measure(args.data, LocalEmbedder() if args.embedder == "local" else None)
    print_report(report, as_json=args.json)
