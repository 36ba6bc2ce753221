"""The instructions that the default bundle puts into the system prompt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from agent_memory.settings import OFFERED_TOOLS
from agent_memory.tools import ALL_TOOLS
from scripts.prices import INSTRUCTIONS, count_tokens
from tests.rows import check_rows

REPOSITORY = Path(__file__).parents[3]
TEXT = INSTRUCTIONS.read_text(encoding="utf-8")
AGENT = (REPOSITORY / "agents" / "memory-assistant.md").read_text(encoding="utf-8")


def read_bundle(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((REPOSITORY / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


def list_context(name: str) -> list[str]:
    """Return the context files of a bundle and of what it includes."""
    bundle = read_bundle(name)
    own = bundle.get("context", {}).get("include", [])
    included = [item["bundle"].partition(":")[2] for item in bundle.get("includes", [])]
    return [*own, *(path for name in included for path in list_context(name))]


@check_rows("name", ["bundle", "behaviors/memory-semantic", "behaviors/memory-openai"])
def test_bundle_with_tools_includes_instructions_once(name: str) -> None:
    assert list_context(name) == ["agent-memory:context/memory.md"]
    assert INSTRUCTIONS == REPOSITORY / "context" / "memory.md"


def test_instructions_cost_at_most_350_tokens() -> None:
    assert 250 < count_tokens(TEXT) <= 350


@check_rows("text", [TEXT, AGENT], ids=["instructions", "memory-assistant"])
def test_prompts_name_only_existing_tools(text: str) -> None:
    named = set(re.findall(r"\bmemory_[a-z_]+", text))
    assert named
    assert named <= {*OFFERED_TOOLS, "memory_suspects", "memory_id"}


def test_instructions_name_only_existing_arguments() -> None:
    fields = {tool.name: tool.arguments_model.model_fields for tool in ALL_TOOLS}
    calls = re.findall(r"`(memory_[a-z_]+)\(([^`]*)\)`", TEXT)
    assert len(calls) >= 2
    for name, arguments in calls:
        assert set(re.findall(r"(\w+)=", arguments)) <= fields[name].keys()
