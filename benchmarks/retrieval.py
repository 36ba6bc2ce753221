"""How well the product finds what answers a question, measured through its own `store` and `search`.

    python -m benchmarks.retrieval --locomo FILE [--conversations conv-26,conv-30] [--unit turn|session]
    python -m benchmarks.retrieval --jsonl benchmarks/data/facts.jsonl
    python -m benchmarks.retrieval ... --sealed all|mixed

LoCoMo (ten long conversations with questions) is `data/locomo10.json` of the project snap-research/locomo on GitHub;
its licence is CC BY-NC 4.0, so it is not part of this project. A set of one's own is JSON lines, see `load_jsonl`.

Each conversation (or group) is an agent of its own in a temporary folder. A memory is `Speaker: text [image caption]`
with the conversation session's date as its timestamp and that session as its origin; nothing else is told to the
product, which adds the date to what it indexes by itself. Searches have the shipped defaults and do not count as
access. "Now" is the last session plus one day. Questions are those of categories 1 to 4. `any@k`, `frac@k`, `all@k` and
MRR are defined in `_retrieval_metrics.measure`; beside them in the same run stands rank-bm25 with Snowball stems and
the same stop words, and the paired bootstrap interval of the difference.

With `--sealed all` everything is sealed in segments before it is searched; with `mixed` two thirds are, in three
segments, and some of these were changed or forgotten since, such that the memories are the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory import storage as backends
from agent_memory.settings import ServiceSettings
from benchmarks._retrieval_data import Group, load_jsonl, load_locomo
from benchmarks._retrieval_metrics import DEPTH, Outcome, Reference, interval, outcome, table
from benchmarks._retrieval_sealed import WAYS, filled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.storage import FileStorage, MemoryStorage


@dataclass
class Run:
    """What was measured: outcomes question by question, and how the product answered."""

    product: list[Outcome] = field(default_factory=list)
    reference: list[Outcome] = field(default_factory=list)
    modes: Counter[str] = field(default_factory=Counter)
    milliseconds: list[float] = field(default_factory=list)


def main() -> int:
    """Measure and print; 2 when the arguments make no sense."""
    parser = _parser()
    args = parser.parse_args()
    try:
        ks = sorted({int(k) for k in args.k.split(",")})
        groups = _groups(args)
    except (OSError, ValueError, KeyError) as error:
        parser.error(str(error))
    if not ks or ks[0] < 1 or ks[-1] > DEPTH:
        parser.error(f"--k: numbers from 1 to {DEPTH}")
    if not any(group.queries for group in groups):
        parser.error("there is no question whose answer is among the memories")
    if args.backend == "vector" and not hasattr(backends, "VectorStorage"):
        parser.error("this version has no vector backend")
    if args.sealed != "none" and args.backend != "file":
        parser.error("--sealed: the vector backend does not search segments")
    run = asyncio.run(_measure(groups, args))
    report = _report(run, groups, args, ks)
    print(json.dumps(report, indent=2) if args.json else _text(report, ks))
    if args.plot:
        _plot(report, ks, args.plot)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__.partition("\n")[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--locomo",
        type=Path,
        metavar="FILE",
        help="data/locomo10.json of the project snap-research/locomo on GitHub (CC BY-NC 4.0)",
    )
    source.add_argument("--jsonl", type=Path, metavar="FILE", help="any set of memories and queries, one a line")
    parser.add_argument("--conversations", default="", help="names, with commas between; all when omitted")
    parser.add_argument("--unit", choices=("turn", "session"), default="turn", help="what one memory is")
    parser.add_argument("--backend", choices=("file", "vector"), default="file")
    parser.add_argument("--embedder", choices=("local", "none"), default="local", help="none: by words alone")
    parser.add_argument("--sealed", choices=WAYS, default="none", help="what is sealed before the first question")
    parser.add_argument("--k", default="1,5,10", help="cut-offs, with commas between")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="for people; needs matplotlib")
    return parser


def _groups(args: argparse.Namespace) -> list[Group]:
    if args.jsonl:
        return load_jsonl(args.jsonl)
    return load_locomo(args.locomo, [name for name in args.conversations.split(",") if name], args.unit)


async def _measure(groups: list[Group], args: argparse.Namespace) -> Run:
    run = Run()
    with tempfile.TemporaryDirectory() as folder:
        for number, group in enumerate(groups):
            opened = partial(_storage, f"bench-{number}", folder, args, group)
            storage, key_of = await filled(opened, group.items, args.sealed, args.embedder)
            try:
                await _measure_group(run, storage, group, key_of)
            finally:
                await storage.close()
    return run


def _storage(agent_id: str, folder: str, args: argparse.Namespace, group: Group) -> FileStorage:
    settings = ServiceSettings.model_validate({"embedder": args.embedder})
    # By name: the vector backend comes with the engine.
    kind: type[FileStorage] = getattr(backends, "FileStorage" if args.backend == "file" else "VectorStorage")
    return kind(agent_id, folder, settings=settings, clock=lambda: group.now)


async def _measure_group(run: Run, storage: MemoryStorage, group: Group, key_of: Mapping[str, str]) -> None:
    reference = Reference(group.items)
    for query in group.queries:
        began = time.perf_counter()
        found = await storage.search(query.text, limit=DEPTH)
        run.milliseconds.append(1000 * (time.perf_counter() - began))
        run.modes[found.mode] += 1
        run.product.append(outcome([key_of[one.memory.id] for one in found], query.gold, query.category))
        run.reference.append(outcome(reference.search(query.text), query.gold, query.category))


def _report(run: Run, groups: list[Group], args: argparse.Namespace, ks: list[int]) -> dict[str, Any]:
    product, reference = table(run.product, ks), table(run.reference, ks)
    times = sorted(run.milliseconds)
    return {
        "set": str((args.locomo or args.jsonl).name),
        "unit": args.unit if args.locomo else "line",
        "backend": args.backend,
        "embedder": args.embedder,
        "sealed": args.sealed,
        "modes": dict(run.modes),
        "groups": [group.name for group in groups],
        "memories": sum(len(group.items) for group in groups),
        "queries": len(run.product),
        "skipped": sum(group.skipped for group in groups),
        "cut": sum(group.cut for group in groups),
        "product": _summary(product),
        "bm25": _summary(reference),
        "difference": _summary(
            {
                name: [ours - theirs for ours, theirs in zip(product[name], reference[name], strict=True)]
                for name in product
            }
        ),
        "by_category": {
            category: {
                "queries": sum(one.category == category for one in run.product),
                "product": _means([one for one in run.product if one.category == category], ks),
                "bm25": _means([one for one in run.reference if one.category == category], ks),
            }
            for category in sorted({one.category for one in run.product})
        },
        "search_ms": {"p50": _at(times, 0.5), "p95": _at(times, 0.95)},
    }


def _summary(metrics: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    found = {name: interval(values) for name, values in metrics.items()}
    return {
        name: {"mean": round(mean, 4), "low": round(low, 4), "high": round(high, 4)}
        for name, (mean, low, high) in found.items()
    }


def _means(outcomes: list[Outcome], ks: list[int]) -> dict[str, float]:
    return {name: round(sum(values) / len(values), 4) for name, values in table(outcomes, ks).items()}


def _at(ordered: list[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)


def _text(report: dict[str, Any], ks: list[int]) -> str:
    names = [f"{kind}@{k}" for k in ks for kind in ("any", "frac", "all")] + ["MRR"]
    modes = ", ".join(f"{mode} {count}" for mode, count in report["modes"].items())
    lines = [
        (
            f"{report['set']}: {report['memories']} memories ({report['unit']}), {report['queries']} questions, "
            f"{report['skipped']} more without evidence left out; backend {report['backend']}, "
            f"sealed {report['sealed']}, answered by {modes}"
        ),
        "",
        f"{'':10}{'product':>9} {'95 % interval':>15}{'bm25':>9}{'difference':>12} {'95 % interval':>17}",
    ]
    for name in names:
        ours, theirs, gain = (report[part][name] for part in ("product", "bm25", "difference"))
        lines.append(
            f"{name:10}{ours['mean']:9.3f} {ours['low']:7.3f}-{ours['high']:.3f}  {theirs['mean']:8.3f}"
            f"{gain['mean']:+12.3f} {gain['low']:+9.3f}..{gain['high']:+.3f}"
        )
    lines += ["", f"{'category':10}{'questions':>10}" + "".join(f"{name:>16}" for name in names[-4:])]
    for category, part in report["by_category"].items():
        pairs = "".join(f"{part['product'][name]:>9.3f} /{part['bm25'][name]:.3f}" for name in names[-4:])
        lines.append(f"{category:10}{part['queries']:>10}{pairs}")
    took = report["search_ms"]
    return "\n".join([*lines, "", f"search, 100 results: p50 {took['p50']} ms, p95 {took['p95']} ms (product / bm25)"])


def _plot(report: dict[str, Any], ks: list[int], path: Path) -> None:
    try:
        import matplotlib.pyplot as plt  # only for people who want a picture
    except ImportError:
        sys.exit("--plot needs matplotlib: pip install matplotlib")
    names = [f"frac@{k}" for k in ks] + ["MRR"]
    figure, axes = plt.subplots(figsize=(1.6 * len(names) + 2, 4), layout="constrained")
    for offset, part, label in ((-0.2, "product", "agent-memory"), (0.2, "bm25", "BM25")):
        found = [report[part][name] for name in names]
        means = [one["mean"] for one in found]
        reach = [[one["mean"] - one["low"] for one in found], [one["high"] - one["mean"] for one in found]]
        axes.bar([at + offset for at in range(len(names))], means, 0.38, yerr=reach, capsize=3, label=label)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(0, 1)
    axes.set_title(f"{report['set']}, {report['queries']} questions, memory = {report['unit']}")
    axes.legend(loc="upper left", frameon=False, ncols=2)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    raise SystemExit(main())
