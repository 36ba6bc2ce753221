"""Settings: defaults, checks, what two modules may say together, and what an error never shows."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

import pytest

from agent_memory.errors import ConfigurationError
from agent_memory.settings import (
    OFFERED_TOOLS,
    CaptureSettings,
    HealthSettings,
    ScratchpadSettings,
    ServiceSettings,
    ToolSettings,
    build_settings,
    merge_shared,
    parse_module_config,
)
from tests.architecture.test_layers import parsed, sources
from tests.rows import check_rows
from tests.support import raises

MODULE = "tool-memory-semantic"


def test_nothing_given_is_the_defaults() -> None:
    for raw in (None, {}):
        own, shared, warnings = parse_module_config(MODULE, ToolSettings, raw)
        assert (own, shared, warnings) == (ToolSettings(), {}, [])
    assert ServiceSettings().embedder == "local"
    assert ServiceSettings().storage_root == "~/.amplifier/memory"


def test_a_modules_own_values_are_parted_from_the_shared_ones() -> None:
    own, shared, warnings = parse_module_config(
        MODULE, ScratchpadSettings, {"token_budget": "500", "default_search_limit": 7, "agent_id": None}
    )
    assert own.token_budget == 500
    assert shared == {"default_search_limit": 7}
    assert warnings == []


@check_rows(
    ("key", "hint"), [("token_bugdet", "'token_budget'"), ("storage-root", "'storage_root'"), ("xyzzy", ""), (5, "")]
)
def test_an_unknown_key_is_a_warning_with_the_near_name(key: Any, hint: str) -> None:
    _, _, (warning,) = parse_module_config(MODULE, ScratchpadSettings, {key: 1})
    assert MODULE in warning
    assert str(key) in warning
    assert hint in warning
    assert ("did you mean" in warning) is bool(hint)


@check_rows(
    ("kind", "raw", "key"),
    [
        (ToolSettings, {"tools": ["memory_serch"]}, "tools"),
        (ToolSettings, {"tools": "memory_search"}, "tools"),
        (ScratchpadSettings, {"token_budget": 0}, "token_budget"),
        (ScratchpadSettings, {"token_budget": "much"}, "token_budget"),
        (ScratchpadSettings, {"exclude_categories": 5}, "exclude_categories"),
        (CaptureSettings, {"min_confidence": 2}, "min_confidence"),
        (CaptureSettings, {"min_confidence": float("nan")}, "min_confidence"),
        (CaptureSettings, {"capture_patterns": ["("]}, "capture_patterns"),
        (CaptureSettings, {"capture_patterns": 5}, "capture_patterns"),
        (CaptureSettings, {"max_content_length": 10_001}, "max_content_length"),
        (ToolSettings, {"agent_id": "../x"}, "agent_id"),
        (ToolSettings, {"health": {"disk_warning_mb": -1}}, "health"),
        (ToolSettings, {"health": {"disk_warning_gb": 1}}, "health"),
        (ToolSettings, {"health": {"slow_warning_ms": 9, "slow_critical_ms": 3}}, "health"),
        (ToolSettings, {"health": {"disk_warning_mb": 3, "disk_critical_mb": 9}}, "health"),
        (ToolSettings, {"backend": "cloud"}, "backend"),
        (ToolSettings, {"default_search_limit": 0}, "default_search_limit"),
        (ToolSettings, {"storage_root": ""}, "storage_root"),
        (ToolSettings, {"freshness_decay_rate": float("inf")}, "freshness_decay_rate"),
        (ToolSettings, {"max_scratchpad_entries": 101}, "max_scratchpad_entries"),
    ],
)
def test_a_wrong_value_names_module_and_key(kind: Any, raw: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_module_config(MODULE, kind, raw)
    assert MODULE in refused.value.message
    assert f"'{key}" in refused.value.message


@check_rows("raw", [[], ["x"], "text", 5, True])
def test_what_is_no_mapping_is_refused(raw: Any) -> None:
    with pytest.raises(ConfigurationError, match="not a mapping"):
        parse_module_config(MODULE, ToolSettings, raw)


def test_an_address_is_never_shown() -> None:
    address = "https://user:" + "pass" + "word@example.test"
    settings = build_settings(MODULE, ServiceSettings, {"qdrant_url": address})
    assert "word@" not in repr(settings)
    assert "word@" not in str(settings)
    for key in ("qdrant_url", "embedding_base_url"):
        with pytest.raises(ConfigurationError) as refused:
            merge_shared({"one": {key: address}, "two": {key: address + "/x"}})
        assert "word@" not in str(refused.value.as_dict())
    with pytest.raises(ConfigurationError) as refused:
        parse_module_config(MODULE, ToolSettings, {"qdrant_url": {"secret": address}})
    assert "word@" not in str(refused.value.as_dict())


def test_the_same_value_twice_is_no_conflict() -> None:
    merged = merge_shared(
        {"one": {"agent_id": "bob"}, "two": {"agent_id": "bob", "default_search_limit": 9}, "three": {}}
    )
    assert (merged.agent_id, merged.default_search_limit) == ("bob", 9)


def test_two_values_are_a_conflict_that_names_both_modules_and_values() -> None:
    with raises(ConfigurationError, "conflicting_settings") as refused:
        merge_shared({"one": {"agent_id": "bob"}, "two": {"agent_id": "alice"}})
    for named in ("one", "two", "'bob'", "'alice'", "agent_id"):
        assert named in refused.value.message


def test_the_tools_setting_lists_each_tool_once() -> None:
    assert ToolSettings(tools=("memory_search", "memory_search")).tools == ("memory_search",)
    assert ToolSettings().tools == OFFERED_TOOLS


def test_a_bare_capture_pattern_is_a_rule() -> None:
    (rule,) = CaptureSettings.model_validate({"capture_patterns": ["we agreed .+"]}).capture_patterns
    assert (rule.pattern, rule.category) == ("we agreed .+", "note")


def test_a_setting_without_effect_is_accepted_and_says_why() -> None:
    _, shared, (warning,) = parse_module_config(MODULE, ToolSettings, {"cache_ttl_seconds": 300})
    assert shared == {}
    assert "'cache_ttl_seconds' has no effect: " in warning


def test_a_model_of_openais_chooses_its_embedder() -> None:
    settings = ServiceSettings(embedding_model="text-embedding-3-small", embedding_dimensions=1536)
    assert (settings.embedder, settings.embedding_model) == ("openai", "text-embedding-3-small")
    assert ServiceSettings(embedding_model="all-MiniLM-L6-v2").embedding_model is None


@check_rows(
    ("values", "words"),
    [
        ({"embedder": "local", "embedding_model": "text-embedding-3-small"}, "a model of OpenAI's"),
        ({"embedding_model": "text-embedding-3-smal"}, "'./text-embedding-3-smal'"),
        ({"embedding_dimensions": 1536}, "'embedding_dimensions' is for 'embedder: openai'"),
        ({"embedding_model": "./mine", "embedding_dimensions": 384}, "'embedding_dimensions' is for"),
        ({"embedding_base_url": "http://localhost:1"}, "'embedding_base_url' is for 'embedder: openai'"),
        ({"embedder": "openai", "embedding_model": "bge-m3"}, "set 'embedding_dimensions'"),
        ({"backend": "vector", "enable_caching": False}, "'enable_caching: false' forbids"),
    ],
)
def test_values_that_contradict_each_other_are_refused_by_name(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        merge_shared({MODULE: values})
    assert words in refused.value.message
    assert refused.value.message.startswith(f"{MODULE}: '") or refused.value.message.startswith(f"{MODULE}: the")
    with pytest.raises(ValueError, match=re.escape(words)):
        ServiceSettings(**values)


@check_rows(
    "values",
    [
        {"embedder": "openai", "embedding_model": "bge-m3", "embedding_dimensions": 1024},
        {"embedding_model": "~/models/mine"},
        {"embedding_dimensions": 384},
        {"embedder": "none", "embedding_model": "text-embedding-3-small"},
    ],
)
def test_values_that_fit_together_may_come_from_two_modules(values: dict[str, Any]) -> None:
    parts = {f"module-{key}": {key: value} for key, value in values.items()}
    for module, part in parts.items():
        parse_module_config(module, ToolSettings, part)
        merge_shared({module: part}, partial=True)
    assert merge_shared(parts) == ServiceSettings(**values)


def are_settings(node: ast.expr) -> bool:
    """Return True if an expression is named `…settings`, called without arguments or not."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node = node.func
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lower().endswith("settings")


@cache
@cache
def find_settings_read() -> set[str]:
    """Return the names of attributes that the sources read from settings."""
    return {
        node.attr
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and are_settings(node.value)
    }


@check_rows("kind", [ServiceSettings, HealthSettings, ToolSettings, ScratchpadSettings, CaptureSettings])
def test_every_setting_has_a_reader_and_says_what_it_is(kind: Any) -> None:
    assert set(kind.model_fields) - find_settings_read() == set()
    assert all(field.description for field in kind.model_fields.values())
