"""Configurations as people write them, mounted on the host's kernel: each works, or says what is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import amplifier_module_context_memory_scratchpad as scratchpad
import amplifier_module_hooks_memory_capture as capture
import amplifier_module_tool_memory_semantic as semantic
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

HERE = Path(__file__).resolve().parents[2]
PAGE = (HERE / "docs" / "reference" / "configuration.md").read_text()
EXAMPLES = [yaml.safe_load(found) for found in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)]
MODULES = {"tool-memory-semantic": semantic, "context-memory-scratchpad": scratchpad, "hooks-memory-capture": capture}

EVERYTHING = {
    "tool-memory-semantic": {
        "default_search_limit": 5,
        "similarity_threshold": 0.75,
        "embedding_model": "text-embedding-3-small",
        "embedding_dimensions": 1536,
        "migration_threshold": 5000,
        "auto_migrate": False,
        "migration_batch_size": 100,
        "enable_caching": True,
        "cache_ttl_seconds": 300,
        "freshness_decay_rate": 0.1,
        "access_boost_rate": 0.05,
    },
    "context-memory-scratchpad": {
        "token_budget": 2000,
        "max_scratchpad_entries": 50,
        "promotion_access_threshold": 3,
        "include_timestamps": True,
        "include_categories": True,
        "include_tags": True,
        "exclude_categories": [],
    },
    "hooks-memory-capture": {
        "capture_patterns": [r"\b(remember|important|decided to|learned that)\b", r"\b(TODO|FIXME|NOTE):\s"],
        "min_confidence": 0.5,
        "observe_tool_outputs": True,
        "observe_turn_completions": True,
        "observe_session_end": False,
        "min_content_length": 10,
        "max_content_length": 10000,
        "max_captures_per_session": 100,
        "async_capture": True,
    },
}


def parts_of(example: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the session part of an example, and what it configures by module."""
    modules = {name: entry.get("config") for name, entry in example.get("overrides", {}).items()}
    for kind in ("tools", "hooks"):
        modules |= {entry["module"]: entry.get("config") for entry in example.get(kind, [])}
    return example.get("session", {}), modules


Mounted = "Callable[[dict[str, Any], dict[str, Any]], Awaitable[dict[str, Any]]]"


@pytest.fixture
async def status_of(root: Path) -> AsyncIterator[Callable[..., Awaitable[dict[str, Any]]]]:
    """Return a function that mounts the three modules and returns what `memory_status` answers."""
    cleanups = []

    async def mounted(session: dict[str, Any], modules: dict[str, Any]) -> dict[str, Any]:
        capabilities = {"agent_identity": "bob", **session.get("capabilities", {})}
        coordinator = coordinator_of(config={"session": {"capabilities": capabilities}})
        for name, module in MODULES.items():
            config = {"storage_root": str(root), **(modules.get(name) or {})}
            cleanups.append(await module.mount(coordinator, config))
        status: dict[str, Any] = (await coordinator.get("tools")["memory_status"].execute({"detail": "short"})).output
        return status

    yield mounted
    for cleanup in reversed(cleanups):
        await cleanup()


def test_the_page_has_examples_of_each_place() -> None:
    assert {key for example in EXAMPLES for key in example} == {"session", "tools", "hooks", "overrides"}


@pytest.mark.parametrize("example", EXAMPLES, ids="-".join)
async def test_an_example_of_the_page_works_without_a_warning(example: dict[str, Any], status_of: Any) -> None:
    status = await status_of(*parts_of(example))
    assert (status["enabled"], status["agent_id"]) == (True, "bob")
    assert "warnings" not in status


async def test_every_setting_may_be_given_at_once_and_only_the_one_without_effect_is_named(status_of: Any) -> None:
    session = {"capabilities": {"agent_identity": "bob", "memory": {"enabled": True, "mode": "autonomous"}}}
    status = await status_of(session, EVERYTHING)
    assert (status["enabled"], status["embedder"]["kind"]) == (True, "openai")
    (warning,) = status["warnings"]
    assert "cache_ttl_seconds" in warning


async def test_values_of_two_modules_that_contradict_each_other_switch_memory_off_and_are_named(status_of: Any) -> None:
    modules = {
        "tool-memory-semantic": {"embedding_model": "text-embedding-3-small"},
        "hooks-memory-capture": {"embedder": "local"},
    }
    status = await status_of({}, modules)
    assert status["enabled"] is False
    assert "'embedding_model: text-embedding-3-small' is a model of OpenAI's" in status["reason"]


@pytest.mark.parametrize("memory", [{"enabled": "no"}, {"enabled": "${MEMORY_ON:false}"}, {"enable": False}])
async def test_a_switch_that_says_no_in_any_words_is_off(status_of: Any, memory: dict[str, Any]) -> None:
    status = await status_of({"capabilities": {"memory": memory}}, {})
    assert status["enabled"] is False
    assert "enabled to true" in status["what_to_do"]
    assert len(status["warnings"]) == 1


async def test_without_caching_no_file_of_vectors_is_made(root: Path) -> None:
    from agent_memory.embeddings.testing import HashEmbedder
    from agent_memory.settings import ServiceSettings
    from agent_memory.storage import FileStorage
    from tests.support import memory_of

    for enabled in (True, False):
        storage = FileStorage(
            "bob" if enabled else "eve", root, settings=ServiceSettings(enable_caching=enabled), embedder=HashEmbedder()
        )
        await storage.store(memory_of("Use PostgreSQL for the ledger", agent_id=storage.agent_id))
        await storage.prepare(None)
        assert (await storage.search("ledger")).mode == "hybrid"
        await storage.close()
    assert (root / "bob" / "embeddings.sqlite3").exists()
    assert not (root / "eve" / "embeddings.sqlite3").exists()
