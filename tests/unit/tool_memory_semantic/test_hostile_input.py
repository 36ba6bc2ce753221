"""Whatever comes into a tool, a ToolResult goes out: an error that names message, code and recovery."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core import ToolResult
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_memory.settings import TOOL_NAMES
from tests.support import lines_of, plan, scale_examples

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = "mem-000000000000"


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = {"d": value} if level % 2 else [value]
    return {"deep": value}


CYCLIC: dict[str, Any] = {}
CYCLIC["self"] = CYCLIC


def assert_carriable(value: Any) -> None:
    """Fail on what the host's JSON cannot carry: odd types, NaN, lone surrogates."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    text.encode()

    def walk(item: Any) -> None:
        if isinstance(item, dict):
            assert all(isinstance(key, str) for key in item)
            for inner in item.values():
                walk(inner)
        elif isinstance(item, list):
            for inner in item:
                walk(inner)
        elif isinstance(item, float):
            assert math.isfinite(item)
        else:
            assert item is None or isinstance(item, str | int | bool), type(item)

    walk(value)


def assert_refused(result: Any) -> None:
    assert isinstance(result, ToolResult)
    assert result.success is False
    assert result.error is not None
    assert set(result.error) == {"message", "code", "recovery"}
    assert all(isinstance(text, str) and text for text in result.error.values())
    assert_carriable(result.error)


@pytest.mark.parametrize("name", TOOL_NAMES)
@pytest.mark.parametrize(
    "given_input", [{}, None, [], "text", 5, True, [{}], {"nonsense": 1}, {5: 5}, {None: None}, set(), object()]
)
async def test_what_is_no_call_at_all_is_refused(tools: dict[str, Any], name: str, given_input: Any) -> None:
    result = await tools[name].execute(given_input)
    if isinstance(given_input, dict) and name in {
        "memory_search",
        "memory_list_recent",
        "memory_status",
        "memory_suspects",
    }:
        assert result.success, "nothing is required that has a sensible default"
        return
    assert_refused(result)


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("memory_store", {"content": "", "category": "note"}),
    ("memory_store", {"content": "   ", "category": "note"}),
    ("memory_store", {"content": "x" * 10_001, "category": "note"}),
    ("memory_store", {"content": "half \ud800", "category": "note"}),
    ("memory_store", {"content": "nul \0", "category": "note"}),
    ("memory_store", {"content": "x", "category": "note", "metadata": {"\x01" * 256: 1}}),
    ("memory_search", {"query": "x" * 10_001}),
    ("memory_search", {"query": "\ud800"}),
    ("memory_search", {"query": "x", "filters": {"category": "nonsense"}}),
    ("memory_search", {"query": "x", "filters": {"tags": ["t"] * 10_000}}),
    ("memory_search", {"query": "x", "filters": {"min_access_count": -1}}),
    ("memory_search", {"query": "x", "filters": {"date_range": {"start": "2026-99-99"}}}),
    ("memory_search", {"query": "x", "filters": {"date_range": {"start": "2026-02-30", "end": "\0"}}}),
    ("memory_search", {"query": "x", "filters": {"date_range": {"start": "2026-02-02", "end": "2026-02-01"}}}),
    ("memory_search", {"query": "x", "filters": {"date_range": {"start": "0001-01-01T00:00:00+14:00"}}}),
    ("memory_search", {"query": "x", "filters": {"date_range": {"start": 5}}}),
    ("memory_search", {"query": "x", "filters": {"taggs": ["x"]}}),
    ("memory_promote", {"memory_id": UNKNOWN}),
    ("memory_promote", {"memory_id": ""}),
    ("memory_promote", {"memory_id": "../../etc/passwd"}),
    ("memory_promote", {"memory_id": "\ud800"}),
    ("memory_promote", {"memory_id": "x" * 101}),
    ("memory_promote", {"memory_id": ["x"]}),
    ("memory_update", {"memory_id": UNKNOWN, "pinned": True}),
    ("memory_update", {"memory_id": UNKNOWN}),
    ("memory_update", {"memory_id": "$known"}),
    ("memory_update", {"memory_id": "$known", "content": ""}),
    ("memory_update", {"memory_id": "$known", "content": "x" * 10_001}),
    ("memory_update", {"memory_id": "$known", "content": "\ud800"}),
    ("memory_update", {"memory_id": "$known", "tags": ["t"] * 10_000}),
    ("memory_update", {"memory_id": "$known", "category": "nonsense"}),
    ("memory_update", {"memory_id": "$known", "expires_at": "some day"}),
    ("memory_update", {"memory_id": "$known", "expires_at": "2026-99-99T99:99"}),
    ("memory_update", {"memory_id": "$known", "expires_at": "0001-01-01T00:00:00+14:00"}),
    ("memory_update", {"memory_id": "$known", "expires_at": 5}),
    ("memory_update", {"memory_id": "$known", "pinned": "perhaps"}),
    ("memory_update", {"memory_id": "$known", "trust": "high"}),
    ("memory_forget", {"memory_id": UNKNOWN}),
    ("memory_forget", {"memory_id": "*"}),
    ("memory_forget", {"memory_id": None}),
    ("memory_activate", {"agent_id": "../bob"}),
    ("memory_activate", {"agent_id": "a/b"}),
    ("memory_activate", {"agent_id": "CON"}),
    ("memory_activate", {"agent_id": "x" * 65}),
    ("memory_activate", {"agent_id": ""}),
    ("memory_activate", {"agent_id": " "}),
    ("memory_activate", {"agent_id": "nul\0"}),
    ("memory_activate", {"agent_id": "\ud800"}),
    ("memory_activate", {"agent_id": "alice"}),
]

# Odd, but what is asked for is plain: done, and each change is named. Of a call that stores nothing is lost.
READ: list[tuple[str, dict[str, Any]]] = [
    ("memory_store", {"content": "x"}),
    ("memory_store", {"content": ["x"], "category": "note"}),
    ("memory_store", {"content": "x", "category": "nonsense"}),
    ("memory_store", {"content": "x", "category": "note", "tags": ["t"] * 10_000}),
    ("memory_store", {"content": "x", "category": "note", "tags": "t"}),
    ("memory_store", {"content": "x", "category": "note", "tags": [{}]}),
    ("memory_store", {"content": "x", "category": "note", "tags": ["t" * 65]}),
    ("memory_store", {"content": "x", "category": "note", "tags": ["\udfff"]}),
    ("memory_store", {"content": "x", "category": "note", "metadata": nested(17)}),
    ("memory_store", {"content": "x", "category": "note", "metadata": nested(1000)}),
    ("memory_store", {"content": "x", "category": "note", "metadata": nested(50_000)}),
    ("memory_store", {"content": "x", "category": "note", "metadata": CYCLIC}),
    ("memory_store", {"content": "x", "category": "note", "metadata": {"n": float("nan")}}),
    ("memory_store", {"content": "x", "category": "note", "metadata": {"n": float("-inf")}}),
    ("memory_store", {"content": "x", "category": "note", "metadata": {"n": "y" * 9_000}}),
    ("memory_store", {"content": "x", "category": "note", "metadata": {"n": 10**5000}}),
    ("memory_store", {"content": "x", "category": "note", "metadata": {"\ud800": 1}}),
    ("memory_store", {"content": "x", "category": "note", "metadata": {"k" * 257: 1}}),
    ("memory_store", {"content": "x", "category": "note", "metadata": {"o": object()}}),
    ("memory_store", {"content": "x", "category": "note", "metadata": []}),
    ("memory_store", {"content": "x", "category": "note", "supersedes": UNKNOWN}),
    ("memory_store", {"content": "x", "category": "note", "supersedes": "../x"}),
    ("memory_store", {"content": "x", "category": "note", "trust": "high"}),
    ("memory_store", {"content": "x", "category": "note", "agent_id": "alice"}),
    ("memory_search", {"query": 5}),
    ("memory_search", {"query": "x", "limit": 0}),
    ("memory_search", {"query": "x", "limit": 101}),
    ("memory_search", {"query": "x", "limit": "many"}),
    ("memory_search", {"query": "x", "limit": float("nan")}),
    ("memory_search", {"query": "x", "limit": 10**400}),
    ("memory_search", {"query": "x", "filters": []}),
    ("memory_search", {"query": "x", "filters": {"tags": "t"}}),
    ("memory_search", {"query": "x", "filters": {"date_range": "today"}}),
    ("memory_search", {"query": "x", "filters": {"date_range": {"start": "yesterday"}}}),
    ("memory_search", {"query": "x", "explain": "perhaps"}),
    ("memory_list_recent", {"limit": 0}),
    ("memory_list_recent", {"limit": 101}),
    ("memory_list_recent", {"limit": "x"}),
    ("memory_status", {"detail": "everything"}),
]


@pytest.mark.parametrize("case", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_arguments_are_refused_and_change_nothing(
    tools: dict[str, Any], root: Path, case: tuple[str, dict[str, Any]]
) -> None:
    name, arguments = case
    stored = await tools["memory_store"].execute({"content": "tea", "category": "note"})
    journal = root / "bob" / "memories.yaml"
    before = lines_of(journal)
    known = stored.output["memory_id"]
    result = await tools[name].execute({key: known if value == "$known" else value for key, value in arguments.items()})
    assert_refused(result)
    assert lines_of(journal) == before


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
argument_names = st.sampled_from(
    [
        "query", "limit", "filters", "content", "category", "tags", "metadata", "supersedes", "memory_id", "pinned",
        "detail",
    ]
)  # fmt: skip


@pytest.mark.parametrize("case", READ, ids=range(len(READ)))
async def test_odd_arguments_are_read_and_reported(tools: dict[str, Any], case: tuple[str, dict[str, Any]]) -> None:
    name, arguments = case
    result = await tools[name].execute(arguments)
    assert result.success, result.error
    if arguments.get("filters") != [] and arguments.get("metadata") != []:
        assert result.output["warnings"]
    if name == "memory_store":
        kept = await tools[name].session.require()
        memory = await kept.get(result.output["memory_id"])
        assert (memory.trust, memory.agent_id, memory.supersedes) == ("medium", "bob", None)
    assert_carriable(result.output)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=scale_examples(60))
@given(name=st.sampled_from(TOOL_NAMES), arguments=st.dictionaries(argument_names, anything, max_size=5))
async def test_random_arguments_never_make_a_tool_raise(
    tools: dict[str, Any], name: str, arguments: dict[str, Any]
) -> None:
    result = await tools[name].execute(arguments)
    if result.success:
        assert_carriable(result.output)
    else:
        assert_refused(result)


@pytest.mark.parametrize("name", TOOL_NAMES)
async def test_tool_for_tenant_without_agent_says_how_to_name_one(mounted: Any, root: Path, name: str) -> None:
    config = {"storage_root": str(root), "embedder": "none", "tools": list(TOOL_NAMES)}
    tools = (await mounted(config, config=plan(tenant_id="acme"))).get("tools")
    arguments = {
        "memory_search": {"query": "x"},
        "memory_store": {"content": "x", "category": "note"},
        "memory_promote": {"memory_id": UNKNOWN},
        "memory_list_recent": {"limit": 1},
        "memory_update": {"memory_id": UNKNOWN, "pinned": True},
        "memory_forget": {"memory_id": UNKNOWN},
        "memory_status": {"detail": "short"},
        "memory_activate": {"agent_id": "../x"},
        "memory_suspects": {"limit": 1},
    }[name]
    result = await tools[name].execute(arguments)
    if name == "memory_status":
        assert result.output["enabled"] is False
        assert "start as" in result.output["what_to_do"]
    else:
        assert_refused(result)
        assert name == "memory_activate" or (result.error["code"], "start as" in result.error["recovery"]) == (
            "no_identity",
            True,
        )
    assert not root.exists()
