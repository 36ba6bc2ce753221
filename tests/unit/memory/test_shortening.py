"""What is shown of an answer: the hits near the best, each in the sentences that matter."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from agent_memory.memory import Caller
from agent_memory.memory.searcher import rank_by_project
from agent_memory.memory.views import LINKS, ROOM, TITLE, WHOLE, get_title, list_shown_links, shorten
from agent_memory.models import LinkedRecord, Memory, MemorySearchResult, SearchFilters, SearchResults, Surroundings
from tests.rows import check_rows


def hit(score: float, content: str = "tea", sure: float = 0.1, links: int = 0) -> MemorySearchResult:
    around = tuple(LinkedRecord("about", f"mem-{number:012x}", "x" * 200) for number in range(links))
    return MemorySearchResult(
        memory=Memory(agent_id="bob", content=content),
        relevance_score=score,
        match_type="hybrid",
        answer_confidence=sure,
        surroundings=Surroundings(around),
    )


def answer(
    *hits: MemorySearchResult, sure: float | None = 0.5, explain: bool = False, found: int = 40
) -> SearchResults:
    match = None if sure is None else "strong"
    results = SearchResults(list(hits), match=match, answer_confidence=sure, total_found=found)
    results.words = {"tea": 1.0}
    shorten(results, explain=explain)
    return results


def long_text(number: int = 0) -> str:
    return "\n".join([f"Line {each} of note {number} tells of tea." for each in range(60)])


def test_what_is_far_below_the_best_is_not_near() -> None:
    assert [each.is_near for each in answer(hit(0.9), hit(0.5), hit(0.2, sure=0.05))] == [True, True, False]


def test_the_surer_the_best_is_the_nearer_others_have_to_be() -> None:
    assert [each.is_near for each in answer(hit(0.9, sure=0.9), hit(0.5))] == [True, False]


def test_what_is_as_sure_as_the_best_is_near() -> None:
    assert [each.is_near for each in answer(hit(0.9, sure=0.6), hit(0.1, sure=0.6))] == [True, True]


def test_instruction_in_its_place_is_near() -> None:
    placed = hit(0.2, sure=0.05).model_copy(update={"parts": {"instruction": 5.0}})
    assert [each.is_near for each in answer(hit(0.9), placed, hit(0.2, sure=0.05))] == [True, True, False]


@pytest.mark.parametrize(("project", "is_near"), [("harbour", True), ("", True), ("garden", False)])
def test_instruction_of_another_project_is_not_near_by_its_place(project: str, is_near: bool) -> None:
    memory = Memory(agent_id="bob", content="tabs", category="convention", project=project)
    changes = {"parts": {"instruction": 5.0}, "memory": memory}
    results = SearchResults([hit(0.9), hit(0.2, sure=0.05).model_copy(update=changes)], total_found=40, match="strong")
    rank_by_project(results, 5, SearchFilters(), Caller(project="harbour"))
    shorten(results)
    assert [each.is_near for each in results] == [True, is_near]


@check_rows(
    ("match", "change", "is_near"),
    [
        ("weak", {}, True),
        ("strong", {}, False),
        ("weak", {"trust": "low"}, False),
        ("weak", {"category": "note"}, False),
        ("weak", {"match_type": "keyword"}, False),
        ("weak", {"project": "garden"}, False),
    ],
)
def test_instruction_near_in_meaning_is_near_in_a_weak_answer(
    match: Literal["strong", "weak"], change: dict[str, Any], is_near: bool
) -> None:
    fields: dict[str, Any] = {"category": "preference"} | {
        name: value for name, value in change.items() if name != "match_type"
    }
    memory = Memory(agent_id="bob", content="tea", **fields)
    far = hit(0.2, sure=0.05).model_copy(update={"memory": memory, "match_type": change.get("match_type", "vector")})
    results = SearchResults([hit(0.9, sure=0.9), far, far, far, far], match=match, total_found=40)
    rank_by_project(results, 5, SearchFilters(), Caller(project="harbour"))
    shorten(results)
    assert [shown.is_near for shown in results] == [True, *[is_near] * 3, False]


@check_rows(("length", "found", "are_near"), [(100, 3, True), (400, 3, False), (100, 4, False)])
def test_of_little_that_was_found_nothing_is_left_out(length: int, found: int, are_near: bool) -> None:
    results = answer(hit(0.9, sure=0.9), *[hit(0.1, "x" * length, sure=0.05)] * 2, found=found)
    assert [each.is_near for each in results] == [True, are_near, are_near]


def test_behind_the_first_five_only_what_is_as_good_is_near() -> None:
    near = [each.is_near for each in answer(*[hit(0.9)] * 4, hit(0.7), hit(0.7), hit(0.85))]
    assert near == [True] * 5 + [False, True]


def test_what_was_found_without_evidence_is_all_near() -> None:
    assert all(each.is_near for each in answer(hit(1.0), hit(0.01), sure=None))
    assert not answer()


def test_what_is_not_near_is_told_to_who_wants_an_explanation() -> None:
    assert answer(hit(0.9), hit(0.1, sure=0.01)).rejected == []
    results = answer(hit(0.9), hit(0.1, sure=0.01), explain=True)
    assert [(each["id"], each["reason"]) for each in results.rejected] == [(results[1].memory.id, "not_near")]


def test_a_short_text_is_whole_and_a_long_one_an_excerpt() -> None:
    short, long = answer(hit(0.9, "x" * WHOLE), hit(0.9, long_text()))
    assert short.excerpt is None
    assert long.excerpt is not None
    assert long.excerpt.startswith("Line 0 of note 0 tells of tea.")
    assert len(long.excerpt) < ROOM


def test_the_first_has_most_room_and_all_have_some() -> None:
    results = answer(*[hit(0.9, long_text(number)) for number in range(5)])
    sizes = [len(each.excerpt or "") for each in results]
    assert sizes[0] > 2 * sizes[2]
    assert min(sizes) > 30
    assert sum(sizes) < 1.5 * ROOM


def test_what_short_ones_leave_others_take() -> None:
    alone = len(answer(hit(0.9, long_text()))[0].excerpt or "")
    after_short = len(answer(hit(0.9, "tea"), hit(0.9, long_text()))[1].excerpt or "")
    assert after_short > 0.9 * alone


def test_what_an_excerpt_leaves_the_next_one_takes() -> None:
    little = "\n".join(["Bob likes tea.", *[f"Line {number} of it says nothing." for number in range(90)]])
    plain, after_little = answer(*[hit(0.9, long_text())] * 2), answer(hit(0.9, little), hit(0.9, long_text()))
    assert len(after_little[1].excerpt or "") > len(plain[1].excerpt or "") + 100


def test_titles_of_links_take_room_and_few_are_shown() -> None:
    linked = hit(0.9, long_text(), links=6)
    assert len(list_shown_links(linked)) == LINKS
    assert len(answer(linked)[0].excerpt or "") < len(answer(hit(0.9, long_text()))[0].excerpt or "")


@check_rows(
    ("text", "title"),
    [
        ("Bob likes tea.\nMore of it.", "Bob likes tea."),
        ("  \n Bob \x1b[31m likes tea", "Bob  [31m likes tea"),
        ("word " * 40, ("word " * 40)[: TITLE - 1].rstrip() + "…"),
    ],
)
def test_a_title_is_the_beginning_of_the_first_line(text: str, title: str) -> None:
    assert get_title(text) == title
