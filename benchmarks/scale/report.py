"""Budgets of the scale benchmark, how figures grow, and both for people."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.scale.figures import points_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.scale.figures import BenchmarkFigure


class FigureBudget(NamedTuple):
    """Budget of a figure, for its 95th percentile if it has one.

    Attributes:
        what: The figure.
        up_to: The most memories this is for; of several the one for the fewest counts.
        limit: In the unit of the figure.
        is_least: The figure must reach the limit, instead of staying below.
    """

    what: str
    up_to: float
    limit: float
    is_least: bool = False


def _of(what: str, limits: dict[float, float]) -> list[FigureBudget]:
    return [FigureBudget(what, size, limit) for size, limit in limits.items()]


ANY: Final = math.inf
BUDGETS: Final = (
    *_of("first answer, by words", {5_000: 30, 100_000: 60, 1_000_000: 200}),
    *_of("first answer, hybrid, model loaded", {5_000: 60, 100_000: 120, 1_000_000: 1_000}),
    *_of("search, words", {100_000: 10, 1_000_000: 60}),
    *_of("search, meaning", {100_000: 6, 1_000_000: 30}),
    *_of("search, hybrid", {100_000: 10, 1_000_000: 100}),
    *_of("memory without a model, private", {100_000: 90, 1_000_000: 150}),
    *_of("memory with the model, private", {100_000: 300, 1_000_000: 360}),
    *_of("memory with two models, private", {100_000: 420, 1_000_000: 900}),
    *_of("store alone, processor time", {ANY: 5}),
    *_of("stores of 8 callers, processor time each", {ANY: 1.5}),
    FigureBudget("stores of 8 callers, a second", ANY, 600, is_least=True),
    *_of("8 stores that wait for a sync, journal syncs", {ANY: 1}),
    FigureBudget("store_many, memories a second", ANY, 5_000, is_least=True),
    *_of("compaction, lock held", {100_000: 50}),
    *_of("compaction, longest store of another process", {100_000: 150}),
    *_of("first prompt of a session, processor time", {100_000: 50}),
)


def budget_of(figure: BenchmarkFigure) -> FigureBudget | None:
    """Return the budget of a figure, or None."""
    fitting = [each for each in BUDGETS if each.what == figure.what and figure.size <= each.up_to]
    return min(fitting, key=lambda each: each.up_to, default=None)


def is_kept(figure: BenchmarkFigure) -> bool:
    """Return True if a figure keeps its budget, or has none."""
    budget = budget_of(figure)
    if budget is None:
        return True
    return figure.p50 >= budget.limit if budget.is_least else figure.p95 <= budget.limit


def exponents(figures: Sequence[BenchmarkFigure]) -> dict[str, float]:
    """Return the exponent of growth by figure.

    Least squares over logarithms: 0 does not grow, 1 grows as the number of memories. Needs two sizes.
    """
    exponents_by_figure = {}
    for what in dict.fromkeys(figure.what for figure in figures):
        points = [(math.log(size), math.log(p50)) for size, p50 in points_of([*figures], what) if p50 > 0]
        middle = sum(x for x, _ in points) / max(1, len(points))
        spread = sum((x - middle) ** 2 for x, _ in points)
        if spread:
            exponents_by_figure[what] = round(sum((x - middle) * y for x, y in points) / spread, 2)
    return exponents_by_figure


def table(figures: Sequence[BenchmarkFigure]) -> str:
    """Return a table of medians and 95th percentiles by figure and size."""
    sizes, powers = sorted({figure.size for figure in figures}), exponents(figures)
    lines = [f"{'what':<52}{'unit':>5}" + "".join(f"{size:>20,}" for size in sizes) + f"{'exponent':>10}  budget"]
    for what in dict.fromkeys(figure.what for figure in figures):
        row = {figure.size: figure for figure in figures if figure.what == what}
        cells = "".join(f"{_cell(row.get(size)):>20}" for size in sizes)
        power = f"{powers[what]:.2f}" if what in powers else ""
        unit = next(iter(row.values())).unit
        line = f"{what:<52}{unit:>5}{cells}{power:>10}  {_limits(what)}".rstrip()
        lines.append(line if all(map(is_kept, row.values())) else f"{line}  MISSED")
    return "\n".join(lines)


def document(figures: Sequence[BenchmarkFigure]) -> dict[str, Any]:
    """Return all that is known, for machines."""
    rows = []
    for figure in figures:
        budget = budget_of(figure)
        held = {"budget": None if budget is None else budget.limit, "kept": is_kept(figure)}
        rows.append({**asdict(figure), **held})
    return {"figures": rows, "exponents": exponents(figures), "kept": all(map(is_kept, figures))}


def _cell(figure: BenchmarkFigure | None) -> str:
    if figure is None:
        return ""
    return _number(figure.p50) if figure.p50 == figure.p95 else f"{_number(figure.p50)} / {_number(figure.p95)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _limits(what: str) -> str:
    budgets = [budget for budget in BUDGETS if budget.what == what]
    if len(budgets) == 1 and budgets[0].up_to == ANY:
        return f"{'>=' if budgets[0].is_least else '<='} {budgets[0].limit:,g}"
    return ", ".join(f"{budget.limit:,g} to {_size(budget.up_to)}" for budget in budgets)


def _size(count: float) -> str:
    return f"{count / 1_000_000:g}M" if count >= 1_000_000 else f"{count / 1_000:g}k"
