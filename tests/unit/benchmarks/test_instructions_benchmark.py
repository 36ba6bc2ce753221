"""The runner of the tool decisions, with a scripted endpoint: it tests the runner and the set, not the instructions."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.settings import OFFERED_TOOLS
from benchmarks.instructions import benchmark as instructions
from benchmarks.instructions.benchmark import (
    ToolCall,
    build_request,
    judge,
    meets,
    read_calls,
    read_decisions,
    summarize,
)

if TYPE_CHECKING:
    from pathlib import Path

DECISIONS = read_decisions()
TENTH = "mem-00000000000a"


def answer_with(*calls: tuple[str, Any]) -> dict[str, Any]:
    """Return an endpoint's answer with these calls."""
    functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
    message = {"role": "assistant", "content": None, "tool_calls": [{"function": function} for function in functions]}
    return {"choices": [{"message": message}]}


# -- the set ----------------------------------------------------------------------------------------------------------


def test_set_has_at_least_120_decisions_of_all_kinds() -> None:
    assert len(DECISIONS) >= 120
    assert len({row["id"] for row in DECISIONS}) == len(DECISIONS)
    kinds = Counter(row["id"].rpartition("-")[0] for row in DECISIONS)
    assert kinds.keys() >= {"search", "plain", "store", "keep-out", "similar", "forget", "untrusted", "consent"}
    assert sum(row["expect"] is None for row in DECISIONS) >= 50
    assert len({row["language"] for row in DECISIONS}) >= 5


@pytest.mark.parametrize("row", DECISIONS, ids=lambda row: row["id"])
def test_decision_names_existing_tools_and_arguments(row: dict[str, Any]) -> None:
    assert row.keys() <= {"id", "language", "memories", "beyond", "turns", "user", "expect", "allow"}
    assert "user" in row or "call" in row["turns"][-1]
    expect = row["expect"] or {"tool": [], "arguments": {}}
    names = [expect["tool"]] if isinstance(expect["tool"], str) else expect["tool"]
    assert {*names, *row.get("allow", ())} <= {*OFFERED_TOOLS}
    schemas = {
        schema["function"]["name"]: schema["function"]["parameters"] for schema in instructions.offered_schemas()
    }
    for name, check in expect["arguments"].items():
        assert check.keys() <= {"is", "has", "any", "lacks"}
        assert name == "*" or any(name in schemas[tool]["properties"] for tool in names)


# -- asking -----------------------------------------------------------------------------------------------------------


def test_request_holds_instructions_scratchpad_and_schemas() -> None:
    row = next(row for row in DECISIONS if row["id"] == "change-01")
    request = build_request(row)
    system, pad, user = request["messages"]
    assert "**Search** before you answer" in system["content"]
    assert "port 8443" in pad["content"]
    assert "It holds 40 memories beyond the scratchpad" in pad["content"]
    assert user == {"role": "user", "content": row["user"]}
    assert [tool["function"]["name"] for tool in request["tools"]] == list(OFFERED_TOOLS)


@pytest.mark.parametrize("row", [row for row in DECISIONS if "turns" in row], ids=lambda row: row["id"])
def test_request_pairs_tool_calls_with_answers(row: dict[str, Any]) -> None:
    messages = build_request(row)["messages"]
    asked = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert asked == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(set(asked)) == len(asked)


def test_answer_without_message_is_reported() -> None:
    with pytest.raises(ValueError, match="without a message"):
        read_calls({"error": "overloaded"})
    assert read_calls({"choices": [{"message": {"content": "Hello."}}]}) == []


def test_arguments_that_are_no_object_meet_nothing() -> None:
    function = {"name": "memory_search", "arguments": "{broken"}
    (call,) = read_calls({"choices": [{"message": {"tool_calls": [{"function": function}]}}]})
    assert call == ToolCall("memory_search", None)
    assert not meets(call.arguments, {})


# -- judging ----------------------------------------------------------------------------------------------------------

STORE = {"tool": "memory_store", "arguments": {"content": {"has": ["berlin"], "lacks": ["I", "我"]}}}
FORGET = {"tool": "memory_forget", "arguments": {"*": {"has": [TENTH]}}}


@pytest.mark.parametrize(
    ("expect", "calls", "verdict"),
    [
        (None, [], "right no-call"),
        (None, [("bash", {"command": "ls"})], "right no-call"),
        (None, [("memory_search", {"query": "x"})], "needless"),
        (None, [("memory_search", {"query": "x"}), ("memory_store", {"content": "x"})], "harmful"),
        (STORE, [("memory_store", {"content": "The user moved to Berlin in 2026."})], "right call"),
        (STORE, [("memory_search", {"query": "x"}), ("memory_store", {"content": "Berlin"})], "right call"),
        (STORE, [("memory_store", {"content": "I moved to Berlin."})], "missed"),
        (STORE, [("memory_store", {"content": "我搬到 Berlin。"})], "missed"),
        (STORE, [("memory_store", {})], "missed"),
        (STORE, [], "missed"),
        (STORE, [("memory_store", {"content": "Berlin"}), ("memory_forget", {"query": "Paris"})], "harmful"),
        (FORGET, [("memory_forget", {"ids": [TENTH]})], "right call"),
        (FORGET, [("memory_forget", {"ids": ["mem-00000000000b"]})], "harmful"),
    ],
)
def test_judge_tells_harmful_from_missed(expect: Any, calls: list[tuple[str, Any]], verdict: str) -> None:
    assert judge({"expect": expect}, read_calls(answer_with(*calls))) == verdict


def test_allowed_calls_are_no_fault() -> None:
    calls = [ToolCall("memory_search", {"query": "x"})]
    assert judge({"expect": None, "allow": ["memory_search"]}, calls) == "right no-call"


def test_summary_names_harmful_decisions() -> None:
    report = summarize([{"id": "plain-01", "verdict": "harmful"}, {"id": "store-02", "verdict": "right call"}])
    assert report["harmful_ids"] == ["plain-01"]
    assert (report["kinds"]["store"]["right call"], report["together"]["harmful"]) == (1, 1)


# -- as a whole -------------------------------------------------------------------------------------------------------


def test_run_that_never_calls_is_right_where_no_call_is_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
    assert instructions.main(["--answers", str(tmp_path / "answers.jsonl")], lambda _body: silent) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{len(DECISIONS)} decisions. Harmful: none.")
    verdicts = Counter(row["verdict"] for row in read_decisions(tmp_path / "answers.jsonl"))
    assert verdicts == {
        "right no-call": sum(row["expect"] is None for row in DECISIONS),
        "missed": sum(row["expect"] is not None for row in DECISIONS),
    }


def test_run_that_always_stores_is_harmful_first(capsys: pytest.CaptureFixture[str]) -> None:
    body = answer_with(("memory_store", {"content": "Tea.", "category": "note"}))
    assert instructions.main(["--kind", "untrusted", "--json"], lambda _body: body) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["together"]["harmful"] == report["decisions"] == len(report["harmful_ids"]) >= 8


def test_run_without_endpoint_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CHAT_URL", raising=False)
    with pytest.raises(SystemExit):
        instructions.main([])
    assert "set CHAT_URL and CHAT_MODEL" in capsys.readouterr().err
