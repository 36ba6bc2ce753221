"""What is suggested, why, in which order, and what stays."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agent_memory.care.importance import importance_of
from agent_memory.care.tidying.cleanup_rules import LifecycleSettings
from agent_memory.care.tidying.suggestions import SuggestionBuilder, TidyBudget, TidySuggestion, within
from agent_memory.models import SUSPECT, ArchivedMemory, Link, Memory
from tests.rows import check_rows
from tests.support import NOON, memory_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_count = 0


def old(content: str = "", *, days: int = 94, **fields: Any) -> Memory:
    global _count  # noqa: PLW0603 - texts that differ
    _count += 1
    given = {"category": "question", "timestamp": NOON - timedelta(days=days), **fields}
    return memory_of(content or f"What does number {_count} mean", **given)


def suggested(
    *memories: Memory,
    archived: Sequence[ArchivedMemory] = (),
    replaced: dict[str, str] | None = None,
    **settings: Any,
) -> list[TidySuggestion]:
    chosen = LifecycleSettings.model_validate(settings)
    return SuggestionBuilder(memories, replaced or {}, chosen, NOON, importance_of).all(archived)


def actions(suggestions: Sequence[TidySuggestion]) -> list[tuple[str, str]]:
    return [(each.action, each.memory.id) for each in suggestions]


def test_what_is_old_not_used_and_not_important_is_archived_and_a_sentence_says_why() -> None:
    memory = old()
    (found,) = suggested(memory)
    assert (found.action, found.rule, found.memory) == ("archive", "unused", memory)
    assert found.why == "not used for 94 days, importance 0.23, category question"


@check_rows(
    "differing",
    [
        {"days": 59},
        {"days": 300, "last_accessed": NOON - timedelta(days=89)},
        {"category": "insight"},
        {"importance": 0.3},
        {"importance": 0.99},
        {"pinned": True},
        {"promoted_at": NOON - timedelta(days=80)},
        {"source": {"kind": "extraction"}},
        {"access_count": 10},
        {"category": "preference"},
    ],
)
def test_what_is_young_used_important_or_kept_by_somebody_stays(differing: dict[str, Any]) -> None:
    assert suggested(old(**differing)) == []


def test_a_preference_of_a_stranger_and_one_that_a_rule_names_do_not_stay() -> None:
    assert suggested(old(category="preference", trust="low"))
    assert suggested(old(category="preference"), retention=[{"category": "preference", "archive_after_days": 90}])


def test_what_was_opened_longer_ago_is_not_in_use_any_more() -> None:
    assert suggested(old(days=300, last_accessed=NOON - timedelta(days=90)))


def test_a_rule_of_a_sort_counts_use_by_its_own_days() -> None:
    rules = [{"category": "question", "archive_after_days": 30}]
    opened = old(days=300, last_accessed=NOON - timedelta(days=31))
    (found,) = suggested(opened, retention=rules)
    assert found.why == "not used for 31 days; category question is archived after 30"
    assert suggested(old(days=300, last_accessed=NOON - timedelta(days=29)), retention=rules) == []


def test_what_was_opened_lately_is_merged_into_nothing() -> None:
    kept, other = old("Maria likes tea.", days=1), old("Maria likes tea", days=2, last_accessed=NOON)
    assert suggested(kept, other) == []


def test_what_left_the_scratchpad_again_is_kept_by_nobody() -> None:
    promoted = {"promoted_at": NOON - timedelta(days=80), "evicted_at": NOON - timedelta(days=70)}
    assert suggested(old(**promoted))


def test_an_importance_that_was_given_wins_over_the_formula() -> None:
    (found,) = suggested(old(category="insight", importance=0.1))
    assert found.importance == 0.1


def test_what_something_that_counts_is_linked_to_stays() -> None:
    target = old()
    assert suggested(target, old(days=1, links=[Link(rel="derived_from", id=target.id)])) == []
    assert suggested(target, old(days=1, links=[Link(rel="_note", id=target.id)]))
    expired = old(days=1, links=[Link(rel="needs", id=target.id)], expires_at=NOON - timedelta(hours=1))
    assert ("archive", target.id) in actions(suggested(target, expired))


def test_a_pair_that_waits_for_a_decision_stays() -> None:
    older = old()
    assert suggested(older, old(days=93, links=[Link(rel=SUSPECT, id=older.id)])) == []


def test_a_replaced_one_goes_with_what_replaced_it_or_stays_with_it() -> None:
    first = old(days=200)
    second = old(days=100, supersedes=first.id, importance=0.1)
    (found,) = suggested(first, second, replaced={first.id: second.id})
    assert (found.memory, found.older, found.size) == (second, (first,), 2)
    young = second.model_copy(update={"timestamp": NOON})
    assert suggested(first, young, replaced={first.id: second.id}) == []
    pinned = first.model_copy(update={"pinned": True})
    assert suggested(pinned, second, replaced={first.id: second.id}) == []


def test_what_expired_is_archived_unless_it_is_pinned() -> None:
    over = {"expires_at": NOON - timedelta(days=2), "days": 3}
    memory = old(category="insight", **over)
    (found,) = suggested(memory, old(pinned=True, **over))
    assert (found.action, found.memory, found.why) == ("expire", memory, "its time was over on 2026-02-27")


def test_of_two_that_say_the_same_one_is_merged_into_the_other() -> None:
    kept, other = old("Maria likes tea.", days=1), old("Maria likes tea", days=2)
    (found,) = suggested(kept, other)
    assert (found.action, found.memory, found.into) == ("merge", other, kept)
    assert found.why == f"says the same as {kept.id}, which is newer"
    assert suggested(kept, other, cleanup={"merge_duplicates": False}) == []
    linking = old(days=1, links=[Link(rel="needs", id=other.id)])
    assert suggested(kept, other, linking) == []


def test_what_another_one_is_merged_into_stays_for_this_run() -> None:
    kept, other = old("Maria likes tea."), old("Maria likes tea", days=99)
    assert actions(suggested(kept, other)) == [("merge", other.id)]
    assert actions(suggested(kept, other, cleanup={"max_entries": 1})) == [("merge", other.id)]


def test_a_rule_of_a_sort_goes_before_age_and_importance_but_not_before_pins() -> None:
    rules = [{"category": "insight", "archive_after_days": 30}, {"tag": "keep"}]
    short, kept = old(days=31, category="insight"), old(tags=["keep"])
    (found,) = suggested(short, kept, retention=rules)
    assert (found.memory, found.rule) == (short, "retention")
    assert found.why == "not used for 31 days; category insight is archived after 30"
    assert suggested(old(days=31, category="insight", pinned=True), retention=rules) == []
    assert suggested(old(days=31, category="insight", importance=0.9), retention=rules) == []


def test_the_first_rule_that_fits_decides() -> None:
    rules = [{"tag": "keep"}, {"category": "note", "archive_after_days": 1}]
    assert suggested(old(category="note", tags=["keep"]), retention=rules) == []


def test_of_too_many_the_least_important_that_were_not_used_go() -> None:
    least, more = old(days=40, category="insight"), old(days=40, category="insight", access_count=9)
    used = old(days=40, last_accessed=NOON)
    (found,) = suggested(more, least, used, cleanup={"max_entries": 2})
    assert (found.memory, found.rule) == (least, "too_many")
    assert found.why.startswith("there are more than 2 memories; not used for 40 days")
    assert suggested(more, least, used, cleanup={"max_entries": 3}) == []
    assert suggested(more, least, used, cleanup={"max_entries": 2}, retention=[{"category": "insight"}]) == []


def test_the_order_is_what_expired_then_what_is_said_twice_then_by_importance_strangers_first() -> None:
    over = old(days=3, expires_at=NOON - timedelta(days=1))
    kept, twice = old("Maria likes tea.", days=1), old("Maria likes tea", days=2)
    small, large = old(days=100), old(days=100, access_count=3)
    stranger = old(days=100, access_count=3, trust="low")
    wanted = [over.id, twice.id, stranger.id, small.id, large.id]
    for order in ([large, small, stranger, twice, kept, over], [over, kept, twice, stranger, small, large]):
        assert [each.memory.id for each in suggested(*order)] == wanted


def archived(memory: Memory, *, days: int = 40, rule: str = "unused") -> ArchivedMemory:
    return ArchivedMemory.of(memory, archived_at=NOON - timedelta(days=days), rule=rule)


def test_what_lay_in_the_archive_long_enough_is_proposed_for_deletion() -> None:
    known = archived(old(days=95))
    (found,) = suggested(archived=[known])
    assert (found.action, found.memory, found.rule) == ("delete", known, "old")
    assert found.why == "in the archive for 40 days, not used for 95 days"


@check_rows(
    "known",
    [
        archived(old(days=89)),
        archived(old(days=95), days=29),
        archived(old(days=95, last_accessed=NOON - timedelta(days=80))),
        archived(old(days=95, pinned=True)),
        archived(old(days=95, importance=0.5)),
        archived(old(days=95), rule="asked"),
    ],
)
def test_what_is_young_or_was_put_there_by_hand_is_not(known: ArchivedMemory) -> None:
    assert suggested(archived=[known]) == []


def test_older_versions_leave_the_archive_with_what_replaced_them() -> None:
    first = archived(old(days=200))
    second = archived(old(days=100, supersedes=first.id))
    (found,) = suggested(archived=[first, second])
    assert (found.memory, found.older) == (second, (first,))


@check_rows(("memories", "most"), [(5, 10), (100, 10), (350, 35), (5_000, 100), (100_000, 100)])
def test_a_run_moves_a_tenth_at_least_ten_at_most_a_hundred(memories: int, most: int) -> None:
    assert TidyBudget.of(memories) == TidyBudget(most)
    assert TidyBudget.of(memories, 3) == TidyBudget(3)


def test_the_budget_counts_older_versions_and_goes_on_behind_what_does_not_fit() -> None:
    first = old(days=200)
    wide = TidySuggestion("archive", old(supersedes=first.id), "", "unused", 0.1, (first,))
    small = TidySuggestion("archive", old(), "", "unused", 0.2)
    assert within([small, wide, small], TidyBudget(2)) == ([small, small], 2)
    assert within([wide, small], TidyBudget(1)) == ([wide], 1), "else it would wait forever"
    assert within([], TidyBudget(1)) == ([], 0)
