"""Forgetting by request: reader, rules, and small runs through the service."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forgetting import benchmark as forgetting

WORLD: list[dict[str, Any]] = [
    {"world": "a", "id": "m1", "memory": "My bike is red."},
    {"world": "a", "id": "m2", "memory": "My sister's car is blue."},
    {"world": "b", "id": "m3", "memory": "Tea is at four."},
]


def make_request(request: str, *right: str, **changes: Any) -> dict[str, Any]:
    return {"world": "a", "id": "r", "language": "en", "request": request, "right": list(right), **changes}


async def run_request(request: dict[str, Any]) -> forgetting.RequestOutcome:
    (outcome,) = await forgetting.run([*WORLD, request], "none")
    return outcome


async def test_right_memory_of_its_owner_is_forgotten_without_a_choice() -> None:
    outcome = await run_request(make_request("my bike", "m1"))
    assert (outcome.candidates[0], outcome.forgotten) == ("m1", "m1")
    assert (outcome.is_wrong, outcome.is_found, outcome.is_first) == (False, True, True)


async def test_memory_that_was_not_asked_for_is_a_wrong_act() -> None:
    assert (await run_request(make_request("my bike"))).is_wrong


async def test_another_owner_is_listed_and_not_forgotten() -> None:
    outcome = await run_request(make_request("my car"))
    assert (outcome.candidates, outcome.forgotten, outcome.is_wrong) == (("m2",), None, False)


def test_report_counts_wrong_acts_before_shares() -> None:
    def make(right: str, candidates: tuple[str, ...], forgotten: str | None = None, language: str = "en") -> Any:
        return forgetting.RequestOutcome("x", language, frozenset(right), candidates, forgotten, stored=True)

    outcomes = [make("a", ("a",), "a"), make("b", ("a", "b"), "a", "de"), make("c", ("a",)), make("", ("a",))]
    report = forgetting.summarize(outcomes)
    assert (report["requests"], report["without_right"]) == (4, 1)
    assert (report["wrongly_forgotten"], report["rightly_forgotten"]) == (1, 1)
    assert (report["recall_at_5"], report["recall_at_1"]) == (0.667, 0.333)
    assert (report["recall_at_5_not_english"], report["recall_at_1_not_english"]) == (1.0, 0.0)
    assert list(report).index("wrongly_forgotten") < list(report).index("recall_at_5")


def test_line_without_a_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('\n{"id": "x", "request": "y"}', "utf-8")
    with pytest.raises(ValueError, match=r"line 2.*right"):
        forgetting.load(path)


def test_requests_of_this_project_name_memories_of_their_world() -> None:
    lines = forgetting.load(forgetting.CASES)
    memories = {(line["world"], line["id"]) for line in lines if "memory" in line}
    requests = [line for line in lines if "request" in line]
    assert len(requests) >= 60
    assert len({request["id"] for request in requests}) == len(requests)
    assert {(request["world"], key) for request in requests for key in request["right"]} <= memories
    assert sum(not request["right"] for request in requests) >= len(requests) * 0.15
    assert sum(request["language"] != "en" for request in requests) >= len(requests) * 0.2


async def test_requests_of_this_project_forget_no_other_memory() -> None:
    outcomes = await forgetting.run(forgetting.load(forgetting.CASES), "none")
    assert [outcome.request for outcome in outcomes if outcome.is_wrong] == []


def test_forgetting_prints_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, [*WORLD, make_request("my bike", "m1")])), "utf-8")
    assert forgetting.main([str(path), "--embedder", "none", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["wrongly_forgotten"], report["recall_at_1"]) == (0, 1.0)
