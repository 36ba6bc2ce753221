"""The benchmark of `MemoryStore`, in small."""

from __future__ import annotations

import pytest

from benchmarks.memory_store import BUDGETS, kept, measured

pytestmark = pytest.mark.deep


async def test_it_measures_storing_and_retrieving() -> None:
    report = await measured(60, 3, "none")
    assert report["bulk"]["per_second"] > 0
    assert report.keys() == {"bulk", *BUDGETS}


def test_a_budget_that_is_missed_is_told() -> None:
    report = {"bulk": {"per_second": 200.0}, **{name: {"p95_ms": budget} for name, budget in BUDGETS.items()}}
    assert kept(report)
    assert not kept(report | {"bulk": {"per_second": 99.0}})
    assert not kept(report | {"simple": {"p95_ms": 51.0}})
