"""All agent tools work in a process in which no host is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_memory.settings import KNOWLEDGE_TOOLS, TOOL_NAMES
from tests.concurrency.processes import environment

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("home")
    process = subprocess.run(
        [sys.executable, "-m", "tests.tools_run", str(home / "agents")],
        env={**environment(), "HOME": str(home)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stderr == ""
    report: dict[str, Any] = json.loads(process.stdout)
    return report


def test_tools_without_host_answer_calls(report: dict[str, Any]) -> None:
    assert set(report["answers"]) == {*TOOL_NAMES, *KNOWLEDGE_TOOLS}
    assert [name for name, answer in report["answers"].items() if "code" in answer] == []


def test_memory_tools_without_host_share_memories(report: dict[str, Any]) -> None:
    answers, memory_id = report["answers"], report["memory_id"]
    assert answers["memory_search"]["results"][0]["id"] == memory_id
    assert answers["memory_forget"]["memories"] == [{"id": memory_id, "content": "The build takes ten minutes."}]
    assert memory_id in report["returned"]


def test_knowledge_tools_without_host_share_topics(report: dict[str, Any]) -> None:
    answers = report["answers"]
    assert answers["digest"]["text"].startswith("Stored mem-")
    assert "Ann prefers tea." in answers["recall"]["text"]
    assert "Ann prefers tea." in answers["get_category"]["text"]


def test_tools_without_host_have_schemas(report: dict[str, Any]) -> None:
    for name, schema in report["schemas"].items():
        assert schema["type"] == "object", name
        assert set(schema["required"]) <= schema["properties"].keys(), name


def test_tools_without_host_explain_wrong_arguments(report: dict[str, Any]) -> None:
    errors = {name: error for name, error in report["wrong"].items() if error is not None}
    assert {"memory_store", "memory_update", "memory_activate", "recall", "remember", "get_category"} <= set(errors)
    assert [name for name, error in errors.items() if not error["message"] or not error["recovery"]] == []


def test_workspace_tools_without_host_claim_a_step(report: dict[str, Any]) -> None:
    workspace = report["workspace"]
    assert {"next_steps", "claim_step", "finish_step"} <= set(workspace["tools"])
    assert (workspace["next_steps"]["count"], workspace["claim_step"]["status"]) == (1, "claimed")
    assert workspace["events"] != []
