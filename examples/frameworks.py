"""Three frameworks store in one agent's folder: `python -m examples.frameworks [FOLDER]`.

Each example needs the extra of its framework (`pip install '.[anthropic,langgraph,openai-agents]'`), and no key.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile


def use_memory_tool(root: str) -> None:
    """Store and view a file with Anthropic's memory tool."""
    from agent_memory.integrations.anthropic_memory import AgentMemoryTool

    tool = AgentMemoryTool("bob", root=root)
    tool.call({"command": "create", "path": "/memories/plan.md", "file_text": "Ship on Friday"})
    print("Anthropic memory tool:", tool.call({"command": "view", "path": "/memories/plan.md"}))
    tool.close()


def use_store(root: str) -> None:
    """Store and find an item with a store of LangGraph."""
    from agent_memory.integrations.langgraph_store import AgentMemoryStore

    store = AgentMemoryStore("bob", root=root)
    store.put(("users", "kate"), "diet", {"kind": "vegan"})
    print("LangGraph store:", [item.key for item in store.search(("users",), filter={"kind": "vegan"})])
    store.close()


async def use_session(root: str) -> None:
    """Store the items of a session of the OpenAI Agents SDK."""
    from agent_memory.integrations.openai_session import AgentMemorySession

    session = AgentMemorySession("chat-1", "bob", root=root)
    await session.add_items([{"role": "user", "content": "Hi"}])
    print("OpenAI Agents session:", await session.get_items())
    session.close()


def main(root: str) -> None:
    """Run the three examples in a folder of all agents."""
    use_memory_tool(root)
    use_store(root)
    asyncio.run(use_session(root))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
