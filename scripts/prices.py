"""Tokens of each tool in every request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import yaml

from agent_memory.settings import OFFERED_TOOLS
from agent_memory.tools import ALL_TOOLS

ENCODING: Final = "o200k_base"
_HERE: Final = Path(__file__).resolve().parents[1]
_AGENT: Final = _HERE / "agents" / "memory-assistant.md"
INSTRUCTIONS: Final = _HERE / "context" / "memory.md"
_BEGIN: Final = "<!-- prices -->"
_END: Final = "<!-- end of prices -->"


def count_tokens(text: str) -> int:
    """Return the tokens of a text (o200k_base)."""
    import bpe_openai  # reads every encoding it knows when it is imported

    return len(bpe_openai.get_encoding(ENCODING).encode(text))


def tool_prices() -> dict[str, int]:
    """Return tokens of each tool offered by default, and of the memory-assistant.

    Counted are name, description and schema as JSON, and the line of the memory-assistant in a tool that delegates.
    """
    prices = {}
    for tool in (kind(None) for kind in ALL_TOOLS if kind.name in OFFERED_TOOLS):  # type: ignore[arg-type]  # a schema needs no session
        schema = {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        prices[tool.name] = count_tokens(json.dumps(schema))
    agent = yaml.safe_load(_AGENT.read_text(encoding="utf-8").split("---")[1])["meta"]
    return {**prices, agent["name"]: count_tokens(f"  - agent-memory:{agent['name']}: {agent['description']}")}


def insert_prices(page: str) -> str:
    """Return the page with the list of tokens between its markers."""
    prices = tool_prices()
    rows = [f"- `{name}`: {price}" for name, price in prices.items()]
    rows += [f"- together: {sum(prices.values())}"]
    rows += [f"- instructions: {count_tokens(INSTRUCTIONS.read_text(encoding='utf-8'))}"]
    before, _, rest = page.partition(_BEGIN)
    listed = "\n".join(rows)
    return f"{before}{_BEGIN}\n\n{listed}\n\n{_END}{rest.partition(_END)[2]}"
