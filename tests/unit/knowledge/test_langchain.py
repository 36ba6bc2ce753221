"""The four tools as plain functions, and as LangChain's where that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge import MemoryManager
from agent_memory.knowledge.langchain import functions_of, tools_of
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[MemoryManager]:
    one = MemoryManager(tmp_path, settings=ServiceSettings(embedder="none"))
    yield one
    await one.close()


async def test_the_functions_print_what_the_tools_print(manager: MemoryManager) -> None:
    recall, remember, list_categories, get_category = functions_of(manager)
    assert (await remember("Ann prefers tea.", "drinks")).startswith("Remembered: mem-")
    assert (await remember("Ann prefers tea.", "Not A Name")).startswith("Failed to remember: ")
    assert "1. [" in await recall("what does Ann prefer", 99)
    assert await recall("zeppelin") == "No relevant memories found for: zeppelin"
    assert await list_categories() == ("Memory Categories (1):\n\n1. drinks\n   What is known of drinks.\n   Items: 1")
    assert (await get_category("drinks")).startswith("# Drinks")
    assert await get_category("food") == "Category 'food' not found.\n\nAvailable categories: drinks"
    assert all(each.__doc__ for each in functions_of(manager))


async def test_langchain_takes_them_as_tools(manager: MemoryManager) -> None:
    pytest.importorskip("langchain_core")
    tools = {tool.name: tool for tool in tools_of(manager)}
    assert sorted(tools) == ["get_category", "list_categories", "recall", "remember"]
    assert set(tools["recall"].args) == {"query", "k", "mode", "category"}
    assert await tools["recall"].ainvoke({"query": "zeppelin"}) == "No relevant memories found for: zeppelin"
