"""Reports of the retrieval benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from benchmarks.retrieval.metrics import interval, measure, table
from benchmarks.retrieval.rivals import BM25
from benchmarks.retrieval.run import PRODUCT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.retrieval.data import QuestionGroup
    from benchmarks.retrieval.metrics import AnswerRanks
    from benchmarks.retrieval.run import RetrievalRun

Report = dict[str, Any]


def report_of(run: RetrievalRun, groups: Sequence[QuestionGroup], about: dict[str, str], ks: Sequence[int]) -> Report:
    """Return all figures of a run; `about` says what was measured."""
    tables = {name: table(outcomes, ks) for name, outcomes in run.outcomes.items()}
    product, rivals = tables[PRODUCT], {name: each for name, each in tables.items() if name != PRODUCT}
    differences = {name: _summary(_differences(product, each)) for name, each in rivals.items()}
    asked = run.outcomes[PRODUCT]
    times = sorted(run.milliseconds)
    return {
        **about,
        "modes": dict(run.modes),
        "groups": [group.name for group in groups],
        "memories": sum(len(group.items) for group in groups),
        "queries": len(asked),
        "skipped": sum(group.skipped for group in groups),
        "cut": sum(group.cut for group in groups),
        "product": _summary(product),
        **{name.lower(): _summary(each) for name, each in rivals.items()},
        "difference": differences[BM25],
        "differences": differences,
        "by_category": _parts([one.category for one in asked], run, ks),
        "by_group": _parts(run.groups, run, ks),
        "search_ms": {"p50": _at(times, 0.5), "p95": _at(times, 0.95)},
    }


def _differences(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> dict[str, list[float]]:
    return {name: [a - b for a, b in zip(ours[name], theirs[name], strict=True)] for name in ours}


def _summary(metrics: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    found = {name: interval(values) for name, values in metrics.items()}
    return {
        name: {"mean": round(mean, 4), "low": round(low, 4), "high": round(high, 4)}
        for name, (mean, low, high) in found.items()
    }


def _parts(labels: Sequence[str], run: RetrievalRun, ks: Sequence[int]) -> dict[str, dict[str, Any]]:
    """Return the means of the questions of each label."""
    found: dict[str, dict[str, Any]] = {}
    for label in sorted(set(labels)):
        chosen = [number for number, each in enumerate(labels) if each == label]
        means = {name.lower(): _means([each[at] for at in chosen], ks) for name, each in run.outcomes.items()}
        found[label] = {"queries": len(chosen), **means}
    return found


def _means(outcomes: Sequence[AnswerRanks], ks: Sequence[int]) -> dict[str, float]:
    rows = [measure(outcome, ks) for outcome in outcomes]
    return {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in rows[0]}


def _at(ordered: Sequence[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)


_SHOWN: Final = ("frac@10", "MRR", "any@5")


def overview(reports: Sequence[Report], ks: Sequence[int]) -> str:
    """Return a table of each figure that matters, a line for each set and form, that with the worst figure first."""
    known = [name for name in _SHOWN if name in reports[0]["product"]] or [f"frac@{ks[-1]}", "MRR"]
    return "\n\n".join(_figure(reports, name) for name in known)


def _figure(reports: Sequence[Report], figure: str) -> str:
    rivals = list(reports[0]["differences"])
    head = f"{figure:30}{'n':>5}{'product':>9}" + "".join(f"{name:>10}" for name in rivals)
    lines = [head + "".join(f"{'- ' + name + ', 95 % interval':>32}" for name in rivals)]
    for report in sorted(reports, key=lambda each: float(each["product"][figure]["mean"])):
        label = " ".join([report["set"].partition(".")[0], report["form"]])
        means = "".join(f"{report[name.lower()][figure]['mean']:10.3f}" for name in rivals)
        gains = "".join(_gain(report["differences"][name][figure]) for name in rivals)
        lines.append(f"{label:30}{report['queries']:5}{report['product'][figure]['mean']:9.3f}{means}{gains}")
    return "\n".join(lines)


def _gain(gain: dict[str, float]) -> str:
    return f"{gain['mean']:+14.3f} {gain['low']:+8.3f}..{gain['high']:+.3f}"


def details(report: Report, ks: Sequence[int]) -> str:
    """Return all figures of one set in one form."""
    modes = ", ".join(f"{mode} {count}" for mode, count in report["modes"].items())
    rivals = list(report["differences"])
    lines = [
        (
            f"{report['set']}, {report['form']}: {report['memories']} memories, {report['queries']} questions, "
            f"{report['skipped']} more without evidence left out; answered by {modes}"
        ),
        "",
        f"{'':10}{'product':>9} {'95 % interval':>15}" + "".join(f"{name:>10}" for name in rivals),
    ]
    for name in [f"{kind}@{k}" for k in ks for kind in ("any", "frac", "all")] + ["MRR"]:
        ours = report["product"][name]
        theirs = "".join(f"{report[rival.lower()][name]['mean']:10.3f}" for rival in rivals)
        lines.append(f"{name:10}{ours['mean']:9.3f}   {ours['low']:.3f}-{ours['high']:.3f}  {theirs}")
    shown = [f"any@{ks[-1]}", f"frac@{ks[-1]}", "MRR"]
    for title, field in (("category", "by_category"), ("group", "by_group")):
        if len(report[field]) > 1:
            lines += ["", f"{title:26}{'questions':>10}" + "".join(f"{name:>20}" for name in shown)]
            lines += [_part(label, part, shown) for label, part in report[field].items()]
    took = report["search_ms"]
    return "\n".join([*lines, "", f"search, 100 results: p50 {took['p50']} ms, p95 {took['p95']} ms (product / BM25)"])


def _part(label: str, part: dict[str, Any], shown: Sequence[str]) -> str:
    pairs = "".join(f"{part['product'][name]:>13.3f} /{part['bm25'][name]:.3f}" for name in shown)
    return f"{label:26}{part['queries']:>10}{pairs}"
