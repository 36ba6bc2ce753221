"""Measure how a memory handles stale, contradicting, replaced and forgotten notes.

    python -m benchmarks.drift FILE... [--json] [--embedder local|none]

A FILE is a world in the format of KnowledgeDrift v2 (the project techtheist/knowledgedrift on GitHub, MIT), `.json` or
`.json.gz`; `benchmarks.reword` writes one in other words. Each world is stored in an empty memory through the service,
as the tools use it, and graded by `grade`; what counts as shown is the text that `memory_search` answers. The
same run grades tf-idf over titles.

The product is graded twice on the same answers: with reported conflicts alone as alarms, and with every memory that is
listed as similar to a note as an alarm, too, right or false. An answer whose match is `weak` or `none` counts as
declined. `--json` prints one object a FILE, one a line; else the worst world is first.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.settings import ServiceSettings
from benchmarks.drift.baselines import TfIdf
from benchmarks.drift.grade import COLUMNS, DriftGrade, grade
from benchmarks.drift.product import ProductSystem
from benchmarks.drift.system import replay
from benchmarks.harness import build_parser, open_scratch
from benchmarks.reword.benchmark import read_world

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; 2 when the arguments make no sense."""
    parser = build_parser("drift", __doc__, "--json", "--embedder")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    args = parser.parse_args(argv)
    reports = []
    for path in args.files:
        try:
            world = read_world(path)
            report = asyncio.run(measure(world, args.embedder))
        except (OSError, ValueError, KeyError) as error:
            parser.error(f"{path}: {error}")
        reports.append({"file": str(path), **report})
        if args.json:
            print(json.dumps(reports[-1]), flush=True)
    if not args.json:
        print("\n\n".join(table(each) for each in sorted(reports, key=lambda one: one["score"])))
    return 0


async def measure(world: dict[str, Any], embedder: str = "local") -> dict[str, Any]:
    """Return the rounded points of product and baselines on a world."""
    product, with_similar = await product_on(world, embedder)
    rival = TfIdf()
    baseline = grade(world, await replay(world, rival), rival.can)
    return {
        **_summarize(product),
        "with_similar": _summarize(with_similar),
        "tfidf": _summarize(baseline),
    }


def _summarize(graded: DriftGrade) -> dict[str, Any]:
    return {
        "score": round(graded.score, 1),
        "columns": _rounded(graded.columns),
        "false_pairs_per_100": round(graded.false_pairs_per_100, 1),
        "details": {name: round(share, 3) for name, share in graded.details.items()},
    }


async def product_on(world: dict[str, Any], embedder: str) -> tuple[DriftGrade, DriftGrade]:
    """Store a world and grade it, without and with similar memories."""
    settings = ServiceSettings.model_validate({"embedder": embedder})
    with open_scratch() as folder:
        product = ProductSystem(folder, settings, world["spec"]["base_ts"])
        try:
            replies = await replay(world, product)
            replies.standing_tokens = await product.standing_tokens()
        finally:
            await product.close()
    conflicts = [pair for pair in replies.queue if not pair.is_similar]
    return grade(world, replace(replies, queue=conflicts), product.can), grade(world, replies, product.can)


def table(report: dict[str, Any]) -> str:
    """Return the points of one world as a table."""
    lines = [report["file"], f"{'':14}{'score':>7}" + "".join(f"{name[:9]:>10}" for name in COLUMNS) + f"{'false':>8}"]
    for name, row in {
        "agent-memory": report,
        "with similar": report["with_similar"],
        "tf-idf": report["tfidf"],
    }.items():
        points = "".join(f"{row['columns'][column]:10.1f}" for column in COLUMNS)
        lines.append(f"{name:14}{row['score']:7.1f}{points}{row['false_pairs_per_100']:8.1f}")
    return "\n".join([*lines, "false: pairs suspected that are none, for 100 notes"])


def _rounded(columns: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 1) for name, value in columns.items()}
