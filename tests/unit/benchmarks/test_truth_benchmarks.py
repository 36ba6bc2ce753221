"""Forgetting by request, and facts that change: readers, rules, and small runs through the service."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks import changed, forgetting

DATA = Path(forgetting.__file__).parent / "data"


def case_of(**changes: Any) -> dict[str, Any]:
    return {
        "id": "x", "category": "prefix", "facts": ["Ann's badge is K-12.", "Bob's bike is red."],
        "mutations": [{"op": "purge", "query": "Ann's badge"}], "probe": "badge, bike", "must": ["RED"],
        "must_not": ["k-12"], **changes,
    }  # fmt: skip


async def outcome_of(case: dict[str, Any]) -> forgetting.Outcome:
    (outcome,) = await forgetting.run([case], "none")
    return outcome


async def test_a_case_is_passed_when_what_must_go_is_gone_and_the_rest_is_shown() -> None:
    assert (await outcome_of(case_of())).passed


async def test_what_is_still_shown_fails_a_case() -> None:
    outcome = await outcome_of(case_of(mutations=[]))
    assert (outcome.passed, outcome.leaked) == (False, ("k-12",))


async def test_what_went_with_it_is_told_from_what_was_only_not_shown() -> None:
    everything = {"op": "purge", "query": "everything about Ann"}
    both = await outcome_of(case_of(facts=["Ann's badge is K-12 and her bike is red."], mutations=[everything]))
    assert (both.missing, both.lost) == (("RED",), ("RED",))
    unasked = await outcome_of(case_of(probe="wholly unrelated"))
    assert (unasked.missing, unasked.lost) == (("RED",), ())


async def test_a_new_text_replaces_what_was_asked_for() -> None:
    mutation = {"op": "supersede", "query": "Ann's badge", "new": "Ann's badge is K-99."}
    assert (await outcome_of(case_of(mutations=[mutation], probe="badge", must=["K-99"]))).passed


def test_shares_are_of_a_hundred_and_by_category() -> None:
    good = forgetting.Outcome("1", "a", (), (), ())
    lost = forgetting.Outcome("2", "b", ("x",), ("x",), ())
    hidden = forgetting.Outcome("3", "b", ("x",), (), ())
    report = forgetting.summary([good, lost, hidden, good])
    assert (report["score"], report["passed"], report["over_deletion"], report["not_shown"]) == (50, 2, 25, 25)
    assert report["by_category"] == {"a": 100, "b": 0}


def test_a_line_without_a_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('\n{"id": "x"}', "utf-8")
    with pytest.raises(ValueError, match=r"line 2.*must_not"):
        forgetting.load(path)


def test_the_cases_of_this_project_are_ten_of_each_kind_and_can_be_passed() -> None:
    cases = forgetting.load(DATA / "forgetting.jsonl")
    assert set(Counter(case["category"] for case in cases).values()) == {10}
    assert len({case["category"] for case in cases}) == 10
    assert len({case["id"] for case in cases}) == 100
    for case in cases:
        told = [*case["facts"], *(mutation.get("new", "") for mutation in case["mutations"])]
        for text in (*case["must"], *case["must_not"]):
            assert any(text.lower() in each.lower() for each in told), case["id"]


def test_forgetting_prints_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(case_of()), "utf-8")
    assert forgetting.main([str(path), "--embedder", "none", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"score", "passed", "by_category", "over_deletion"} <= report.keys()


# -- facts that change ------------------------------------------------------------------------------------------------


def test_the_changed_facts_of_this_project_are_many_and_unlinked() -> None:
    facts = changed.load(changed.CASES)
    kinds = Counter(question.kind for question in facts.questions)
    assert kinds["history"] >= 60
    assert kinds["current, said so"] + kinds["current, in other words"] == kinds["history"]
    assert len({note.text for note in facts.notes}) == len(facts.notes)
    order = {note.key: at for at, note in enumerate(facts.notes)}
    assert all(order[old] < order[new] for new, old in facts.changes)


def test_a_list_of_replacements_may_break_its_lines(tmp_path: Path) -> None:
    rows = [{"type": "memory", "id": key, "date": "2026-05-20", "text": key} for key in ("a1", "a2", "b1")]
    rows.append({"type": "query", "text": "?", "gold": ["a2"], "stale": ["a1"]})
    rows.append({"type": "query", "text": "never mind", "gold": ["b1"]})
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "list.md").write_text("Which replaces which (new > old): a2 >\na1, gone > b1.", "utf-8")
    facts = changed.load(tmp_path / "set.jsonl", tmp_path / "list.md")
    assert facts.changes == {("a2", "a1")}
    assert [question.text for question in facts.questions] == ["?"]


def facts_of() -> changed.Facts:
    when = datetime(2026, 1, 1, 9, tzinfo=UTC)
    notes = [
        changed.Note("old", "The gate opens at six.", when),
        changed.Note("new", "The gate opens at seven.", when.replace(day=2)),
        changed.Note("else", "The lamp is green.", when.replace(day=3)),
    ]
    asked = [changed.Question("when does the gate open?", frozenset({"new"}), frozenset({"old"}), "current")]
    return changed.Facts(notes, asked, {("new", "old")})


async def test_changed_facts_run_through_the_service() -> None:
    report = await changed.measure(facts_of(), "none")
    assert (report["notes"], report["questions"], report["current_shown"]) == (3, 1, 1)
    assert report["notes_that_update_nothing"] == 2


@pytest.mark.parametrize(("keys", "above"), [(["new", "old"], 1), (["old", "new"], 0), (["old"], 0), (["new"], 1)])
def test_current_stands_above_stale_or_alone(keys: list[str], above: float) -> None:
    facts = facts_of()
    report = changed.report_of(facts, [(facts.questions[0], keys)], set(), set())
    assert report["current_above_stale"] == above


def test_false_pairs_and_wrong_supersessions_are_told_from_changes() -> None:
    raised = {frozenset({"new", "old"}), frozenset({"new", "else"})}
    report = changed.report_of(facts_of(), [], raised, {("else", "old")})
    assert (report["noticed"], report["false_pairs_per_100"], report["wrong_supersessions"]) == (1, 33.3, 1)
