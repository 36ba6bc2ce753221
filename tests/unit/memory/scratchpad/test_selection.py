"""Which memories are in the scratchpad, and in what order."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agent_memory.scratchpad import Selection
from tests.rows import check_rows
from tests.support import NOON, memory_of

if TYPE_CHECKING:
    from agent_memory.models import Memory

HOUR = timedelta(hours=1)


def chosen(*memories: Memory, max_entries: int = 50) -> list[str]:
    return [m.content for m in Selection(max_entries, 3).choose(memories)]


def at(content: str, hours: float, **fields: Any) -> Memory:
    return memory_of(content, timestamp=NOON + hours * HOUR, **fields)


def test_pinned_ones_come_first_and_then_the_newest() -> None:
    assert chosen(at("old", 0), at("pinned", -5, pinned=True), at("new", 1)) == ["pinned", "new", "old"]


def test_among_equal_moments_the_last_stored_comes_first() -> None:
    assert chosen(at("a", 0), at("b", 0), at("c", 0)) == ["c", "b", "a"]


def test_a_promotion_moves_a_memory_up() -> None:
    assert chosen(at("old", -9, promoted_at=NOON + 2 * HOUR), at("new", 1)) == ["old", "new"]


@check_rows(("count", "expected"), [(2, ["new", "old"]), (3, ["old", "new"]), (4, ["old", "new"])])
def test_frequent_access_moves_a_memory_up(count: int, expected: list[str]) -> None:
    assert chosen(at("old", -9, access_count=count, last_accessed=NOON + 2 * HOUR), at("new", 1)) == expected


def test_no_more_than_the_limit_pinned_ones_included() -> None:
    pinned = [at(f"pinned {n}", n, pinned=True) for n in range(3)]
    assert chosen(*pinned, at("new", 9), max_entries=2) == ["pinned 2", "pinned 1"]
    assert chosen(*pinned, at("new", 9), max_entries=4)[-1] == "new"


def test_low_trust_is_never_shown_not_even_pinned() -> None:
    assert chosen(at("a", 0, trust="low"), at("b", 0, trust="low", pinned=True)) == []


def test_what_a_person_took_out_stays_out_until_something_brings_it_back() -> None:
    out = {"evicted_at": NOON + HOUR}
    assert chosen(at("gone", 0, **out)) == []
    assert chosen(at("promoted", 0, promoted_at=NOON + 2 * HOUR, **out)) == ["promoted"]
    assert chosen(at("used", 0, access_count=3, last_accessed=NOON + 2 * HOUR, **out)) == ["used"]
    assert chosen(at("hardly used", 0, access_count=1, last_accessed=NOON + 2 * HOUR, **out)) == []
    assert chosen(at("pinned", 0, pinned=True, **out)) == ["pinned"]
