"""Measure how well search finds the memories that answer a question.

    python -m benchmarks.retrieval --locomo FILE [--form all]
    python -m benchmarks.retrieval --jsonl benchmarks/retrieval/facts.jsonl [FILE ...] [--vectors FILE.sqlite3]

LoCoMo (ten long conversations with questions) is `data/locomo10.json` of the project snap-research/locomo on GitHub;
its licence is CC BY-NC 4.0, so it is not part of this project. A set of one's own is JSON lines, see `load_jsonl`.

Each conversation (or group) is an agent of its own in a temporary folder. A memory is a turn with its image's caption,
written in one of the forms of `forms` (or a fact that the makers of LoCoMo drew from turns), with the
conversation session's date as its timestamp and that session as its origin; nothing else is told to the product, which
adds the date to what it indexes by itself. Searches have the shipped defaults and do not count as access. "Now" is the
last session plus one day, or what a question says. Questions are those of categories 1 to 4. `any@k`, `frac@k`,
`all@k` and MRR are defined in `metrics.measure`; in the same run stand the rankings of `rivals`
(BM25, the cosine of the product's own model alone, and both joined by reciprocal ranks) and the paired bootstrap
interval of each difference. Sets and forms are listed worst first.

Embedding takes most of the time; `--vectors` keeps what was embedded in a file for the next run.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from benchmarks.harness import build_parser, open_embedder
from benchmarks.retrieval.data import has_speakers, load_jsonl, load_locomo
from benchmarks.retrieval.forms import FORMS, NAME, OBSERVATIONS
from benchmarks.retrieval.report import details, overview, report_of
from benchmarks.retrieval.run import measure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from benchmarks.retrieval.data import QuestionGroup

KS: Final = (1, 5, 10)
"""Cut-offs of the figures."""
_ALL: Final = "all"
_AS_IT_IS: Final = "as it is"


def main() -> int:
    """Measure and print; 2 when the arguments make no sense."""
    parser = _parser()
    args = parser.parse_args()
    try:
        sets = list(_sets(args))
    except (OSError, ValueError, KeyError) as error:
        parser.error(str(error))
    for about, groups in sets:
        if not any(group.queries for group in groups):
            parser.error(f"{about['set']}: there is no question whose answer is among the memories")
    with open_embedder(args.embedder, args.vectors) as embedder:
        reports = [report_of(asyncio.run(measure(groups, embedder)), groups, about, KS) for about, groups in sets]
    if args.json:
        print(json.dumps(reports[0] if len(reports) == 1 else {"sets": reports}, indent=2))
    else:
        parts = [details(report, KS) for report in reports] if args.details or len(reports) == 1 else []
        print("\n\n".join([overview(reports, KS), *parts]))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = build_parser("retrieval", __doc__, "--locomo", "--jsonl", "--embedder", "--vectors", "--json")
    forms = [*FORMS, OBSERVATIONS]
    parser.add_argument("--form", default=NAME, help=f"of turns, with commas between: {', '.join([*forms, _ALL])}")
    parser.add_argument("--details", action="store_true", help="all figures of each set, where there are several")
    return parser


def _sets(args: argparse.Namespace) -> Iterator[tuple[dict[str, str], list[QuestionGroup]]]:
    """Yield each set in each form, and what to say of it."""
    wanted = [*FORMS, OBSERVATIONS] if args.form == _ALL else args.form.split(",")
    unknown = set(wanted) - {*FORMS, OBSERVATIONS}
    if unknown:
        raise ValueError(f"--form: there is no {', '.join(sorted(unknown))}")
    if not (args.locomo or args.jsonl):
        raise ValueError("a set is needed: --locomo FILE or --jsonl FILE")
    for form in wanted if args.locomo else ():
        yield {"set": args.locomo.name, "form": form, "embedder": args.embedder}, load_locomo(args.locomo, form)
    for path in args.jsonl:
        if has_speakers(path):
            for form in (each for each in wanted if each != OBSERVATIONS):
                yield {"set": path.name, "form": form, "embedder": args.embedder}, load_jsonl(path, form)
        else:
            yield {"set": path.name, "form": _AS_IT_IS, "embedder": args.embedder}, load_jsonl(path)
