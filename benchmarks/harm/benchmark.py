"""Measure wrong acts on ordinary texts, and right acts done or offered.

    python -m benchmarks.harm [FILE...] [--area NAME ...] [--cases FOLDER [--only PREFIX ...]] [--json] [--quiet]

A FILE (by default each of `benchmarks/harm/sets`) is a set in JSON lines. The first line says its name, its area, who
wrote it and what its inputs mean, and may list background notes. Each other line is an input with its right answer. The
product is asked as users ask it: through the service, the command line and ingestion, with settings as shipped.

An act is wrong if it does what the right answer rules out: another memory is forgotten or ranked first, another day is
assigned, two things are merged, a text is dropped, a known answer denied, a harmless pair reported. Where the right
answer wants an act, the act counts as done, as offered (the user or agent can choose it in one step) or as missed; a
wrong act is missed.

`--cases` also runs the script of each folder below FOLDER and counts exit codes.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harm.areas import RUNNERS, HarmFinding, open_product
from benchmarks.harness import build_parser, print_report, read_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SETS: Final = Path(__file__).parent / "sets"
AREAS: Final = ("forgotten", "first", "dated", "merged", "dropped", "denied", "reported")
_HEADER: Final = frozenset({"set", "area", "author", "about"})
_SCORE: Final = re.compile(r"(\d+) of (\d+) right\s*$")
_CASE_SECONDS: Final = 600


@dataclass(frozen=True)
class HarmSet:
    """A set of inputs with right answers.

    Attributes:
        name: Its name, which selects the runner.
        area: One of `AREAS`.
        author: Who wrote it, and when.
        inputs: One object each, with the header's background notes if it has any.
    """

    name: str
    area: str
    author: str
    inputs: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class CaseResult:
    """Result of one case script.

    Attributes:
        name: Name of its folder.
        code: Exit code, 124 if it took too long.
        right: Right inputs that it printed, 0 if none.
        total: All inputs that it printed, 0 if none.
    """

    name: str
    code: int
    right: int = 0
    total: int = 0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if an act was wrong."""
    parser = build_parser("harm", __doc__, "--json")
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="sets; all shipped ones if omitted")
    parser.add_argument("--area", nargs="+", choices=AREAS, default=AREAS, help="only these areas")
    parser.add_argument("--cases", type=Path, metavar="FOLDER", help="also run the scripts of this folder")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX", help="only cases with such a name")
    parser.add_argument("--quiet", action="store_true", help="do not list the wrong and missed acts")
    args = parser.parse_args(argv)
    try:
        sets = [harm_set for path in args.files or sorted(SETS.glob("*.jsonl")) for harm_set in [load(path)]]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    reports = [run(harm_set) for harm_set in sets if harm_set.area in args.area]
    cases = run_cases(args.cases, args.only) if args.cases else []
    lines = [*render(reports, quiet=args.quiet), *render_cases(cases)]
    print_report({"sets": reports, "cases": [vars(case) for case in cases]}, lines, as_json=args.json)
    return int(any(report["wrong"] for report in reports))


def load(path: Path) -> HarmSet:
    """Return the set of a file.

    Raises:
        ValueError: The file has no header, or no runner or area has its name.
    """
    head, *inputs = read_jsonl(path) or [{}]
    if absent := _HEADER - head.keys():
        raise ValueError(f"{path}: the first line is without {', '.join(sorted(absent))}")
    if head["set"] not in RUNNERS or head["area"] not in AREAS:
        raise ValueError(f"{path}: no runner {head['set']!r} or no area {head['area']!r}")
    shared = {"background": head["background"]} if "background" in head else {}
    return HarmSet(head["set"], head["area"], head["author"], tuple(shared | row for row in inputs))


def run(harm_set: HarmSet) -> dict[str, Any]:
    """Return the counts of a set, and its wrong and missed acts."""
    findings = asyncio.run(_run(harm_set))
    acts = Counter("missed" if finding.act and finding.wrong else finding.act for finding in findings)
    return {
        "set": harm_set.name,
        "area": harm_set.area,
        "author": harm_set.author,
        "inputs": len(findings),
        "wrong": sum(bool(finding.wrong) for finding in findings),
        "wanted": len(findings) - acts[""],
        **{act: acts[act] for act in ("done", "offered", "missed")},
        "wrong_acts": [f"{finding.subject}: {finding.wrong}" for finding in findings if finding.wrong],
        "missed_acts": [finding.subject for finding in findings if finding.act == "missed" and not finding.wrong],
    }


async def _run(harm_set: HarmSet) -> list[HarmFinding]:
    runner, findings = RUNNERS[harm_set.name], []
    for row in harm_set.inputs:
        async with open_product() as product:
            findings.append(await runner(product, row))
    return findings


def render(reports: Sequence[dict[str, Any]], *, quiet: bool = False) -> list[str]:
    """Return the report as lines, wrong acts first."""
    lines = [f"{'':22}{'wrong':>6}{'inputs':>8}{'done':>7}{'offered':>9}{'missed':>8}{'right':>7}"]
    for area in AREAS:
        rows = [report for report in reports if report["area"] == area]
        if rows:
            lines.append(_render_row(area, _sum_up(rows)))
            lines += [_render_row(f"  {row['set']}", row) for row in rows]
    if reports:
        lines.append(_render_row("all", _sum_up(reports)))
    for name in () if quiet else ("wrong_acts", "missed_acts"):
        lines += ["", name.replace("_", " ") + ":"]
        lines += [f"  {report['set']}: {text}" for report in reports for text in report[name]]
    lines += ["", *(f"{report['set']}: written by {report['author']}" for report in reports)]
    return lines


def _sum_up(reports: Iterable[dict[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update({name: report[name] for name in ("inputs", "wrong", "wanted", "done", "offered", "missed")})
    return counts


def _render_row(name: str, row: dict[str, Any] | Counter[str]) -> str:
    share = f"{(row['done'] + row['offered']) / row['wanted']:.2f}" if row["wanted"] else "-"
    counts = f"{row['wrong']:6}{row['inputs']:8}{row['done']:7}{row['offered']:9}{row['missed']:8}"
    return f"{name:22}{counts}{share:>7}"


def run_cases(folder: Path, only: Sequence[str]) -> list[CaseResult]:
    """Run the case scripts of a folder against this checkout."""
    scripts = sorted(path for path in folder.glob("*/run.py") if path.parent.name.startswith(tuple(only)))
    return [_run_case(script) for script in scripts]


def _run_case(script: Path) -> CaseResult:
    environment = {**os.environ, "PRODUCT": str(Path(__file__).parents[2])}
    command = [sys.executable, str(script.resolve())]
    try:
        process = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_CASE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return CaseResult(script.parent.name, 124)
    score = _SCORE.search(process.stdout)
    right, total = (int(score[1]), int(score[2])) if score else (0, 0)
    return CaseResult(script.parent.name, process.returncode, right, total)


def render_cases(cases: Sequence[CaseResult]) -> list[str]:
    """Return the results of the case scripts as lines."""
    if not cases:
        return []
    lines = [f"{case.code:4} {case.name}: {case.right} of {case.total} right" for case in cases if case.code]
    right, total = sum(case.right for case in cases), sum(case.total for case in cases)
    passed = sum(not case.code for case in cases)
    return ["", *lines, f"cases: {passed} of {len(cases)} passed, {right} of {total} inputs right"]
