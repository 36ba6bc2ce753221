"""The importance of entries and memories: the printed formula, and what wins over it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from agent_memory.lifecycle import ImportanceCalculator, ImportanceLevel, MemoryEntryType, importance_of
from agent_memory.models import Episode, Link, Memory, Resource
from tests.rows import check_rows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEIGHTS = {
    "correction": "0.9", "insight": "0.8", "learning": "0.7", "interaction": "0.6", "context": "0.5", "pattern": "0.7",
    "preference": "0.6", "knowledge": "0.8", "error": "0.5", "success": "0.5", "something_else": "0.5",
}  # fmt: skip


@dataclass
class Entry:
    """What an importance is calculated of."""

    entry_type: str
    timestamp: datetime
    access_count: int = 0
    content: Any = None
    related_entries: list[str] = field(default_factory=list)
    pinned: bool = False


def generated(count: int) -> list[Entry]:
    """Return entries of all types, ages from none to a year, lengths to 1,600, and counts beyond each bound."""
    chance = random.Random(4)
    return [
        Entry(
            chance.choice(list(WEIGHTS)),
            NOW - timedelta(days=chance.choice([0, 1, 5, 26, 27, 28, 30, 31, 365]), seconds=chance.randrange(86_400)),
            chance.randrange(14),
            chance.choice([None, {}, {"text": "x" * chance.randrange(1, 1600)}, {"text": "words", "n": 3}]),
            [f"mem-{number:012x}" for number in range(chance.randrange(8))],
        )
        for _ in range(count)
    ]


def exactly(entry: Entry) -> Fraction:
    """Return the sum of the formula, unclipped, without a float."""
    days = Fraction((NOW - entry.timestamp) // timedelta(days=1))
    terms = [
        (Fraction("0.4"), Fraction(WEIGHTS[entry.entry_type])),
        (Fraction("0.25"), max(Fraction("0.1"), 1 - days / 30)),
        (Fraction("0.2"), min(Fraction(1), Fraction(entry.access_count, 10))),
        (Fraction("0.1"), min(Fraction(1), Fraction(len(str(entry.content)) if entry.content else 0, 1000))),
        (Fraction("0.15"), min(Fraction(1), Fraction(len(entry.related_entries), 5))),
    ]
    return sum((weight * value for weight, value in terms), Fraction(0))


async def test_equals_the_printed_formula_of_two_hundred_entries() -> None:
    entries = generated(200)
    printed, normalised = (
        ImportanceCalculator(clock=lambda: NOW),
        ImportanceCalculator(normalised=True, clock=lambda: NOW),
    )
    assert {entry.entry_type for entry in entries} == set(WEIGHTS)
    for entry in entries:
        total = exactly(entry)
        assert await printed.calculate_importance(entry) == pytest.approx(float(min(total, Fraction(1))), abs=5e-7)
        divided = float(total / Fraction("1.1"))
        assert await normalised.calculate_importance(entry) == pytest.approx(divided, abs=5e-7)
        assert await printed.calculate_importance(entry, normalised=True) == pytest.approx(divided, abs=5e-7)


async def test_clips_what_is_best_in_everything_unless_it_is_normalised() -> None:
    best = Entry("correction", NOW, 10, {"text": "x" * 1000}, ["a", "b", "c", "d", "e"])
    calculator = ImportanceCalculator(clock=lambda: NOW)
    assert exactly(best) > 1
    assert await calculator.calculate_importance(best) == 1
    assert await calculator.calculate_importance(best, normalised=True) == pytest.approx(1.06 / 1.1)


async def test_what_is_pinned_weighs_as_critical() -> None:
    entry = Entry(MemoryEntryType.CONTEXT, NOW)
    calculator = ImportanceCalculator(clock=lambda: NOW)
    assert await calculator.calculate_importance(entry) == pytest.approx(0.5 * 0.4 + 0.25)
    entry.pinned = True
    assert await calculator.calculate_importance(entry) == pytest.approx(1.0 * 0.4 + 0.25)


async def test_takes_a_naive_moment_as_local_time_and_one_to_come_as_now() -> None:
    calculator = ImportanceCalculator(clock=lambda: NOW)
    naive = Entry("context", (NOW - timedelta(days=15)).astimezone().replace(tzinfo=None))
    assert await calculator.calculate_importance(naive) == pytest.approx(0.2 + 0.125)
    assert await calculator.calculate_importance(Entry("context", NOW + timedelta(days=9))) == pytest.approx(0.45)


def memory(**fields: Any) -> Memory:
    return Memory(**{"agent_id": "bob", "content": "x" * 100, "timestamp": NOW - timedelta(days=3)} | fields)


def test_is_the_formula_of_a_memory_by_its_category_age_use_length_and_links() -> None:
    links = [Link(rel="related", id="mem-000000000001"), Link(rel="_beside", id="mem-000000000002")]
    expected = 0.8 * 0.4 + 0.9 * 0.25 + 0.2 * 0.2 + 0.1 * 0.1 + 0.2 * 0.15
    given = memory(category="insight", access_count=2, links=links)
    assert importance_of(given, NOW) == pytest.approx(expected)
    assert importance_of(given, NOW, related=5) == pytest.approx(expected + 0.8 * 0.15)
    assert importance_of(given, NOW, normalised=True) == pytest.approx(expected / 1.1)


def test_when_it_was_said_counts_and_not_when_it_was_stored() -> None:
    assert importance_of(memory(observed_at=NOW - timedelta(days=90)), NOW) < importance_of(memory(), NOW)


def test_what_was_said_of_it_and_a_pin_win_over_the_formula() -> None:
    assert importance_of(memory(importance=0.2), NOW) == ImportanceLevel.MINIMAL
    assert importance_of(memory(importance=0.2, pinned=True), NOW) == ImportanceLevel.CRITICAL
    computed = importance_of(memory(importance=0.2), NOW, explicit=False)
    assert computed == importance_of(memory(), NOW)
    assert computed != ImportanceLevel.MINIMAL


@check_rows(
    ("record", "weight"),
    [
        (memory(category="preference"), 0.6),
        (memory(category="pattern"), 0.7),
        (memory(category="discovery"), 0.7),
        (memory(category="note"), 0.8),
        (memory(category="decision"), 0.8),
        (memory(category="task"), 0.5),
        (memory(category="bugfix"), 0.5),
        (memory(category="discovery", metadata={"outcome": "success"}), 0.5),
        (memory(category="preference", supersedes="mem-000000000001"), 0.9),
        (Episode(agent_id="bob", content="x" * 100, timestamp=NOW - timedelta(days=3)), 0.6),
        (Resource(agent_id="bob", content="x" * 100, timestamp=NOW - timedelta(days=3)), 0.5),
    ],
)
def test_each_kind_of_statement_has_the_weight_of_its_entry_type(record: Memory, weight: float) -> None:
    assert importance_of(record, NOW) == pytest.approx(weight * 0.4 + 0.9 * 0.25 + 0.1 * 0.1)


def test_a_long_text_counts_by_its_whole_length() -> None:
    whole = Resource(agent_id="bob", content="x" * 100, chars=2000, timestamp=NOW)
    assert importance_of(whole, NOW) == pytest.approx(0.2 + 0.25 + 0.1)
