"""Uses a field `shop` of memories by tools and commands, and prints what they answered; see test_a_new_field."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from typer.testing import CliRunner

from agent_memory.cli.app import build
from amplifier_module_tool_memory_semantic import mount
from tests.support import coordinator_of

SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


async def by_tools(root: str) -> dict[str, Any]:
    coordinator = coordinator_of()
    close = await mount(coordinator, {"agent_id": "bob", "storage_root": root, "embedder": "none"})
    tools = coordinator.get("tools")

    async def answer(name: str, **arguments: Any) -> Any:
        result = await tools[name].execute(arguments)
        return result.output or result.error

    schema = tools["memory_store"].input_schema["properties"].get("shop")
    baked = await answer("memory_store", content="We bake at dawn", category="note", shop="bakery")
    await answer("memory_store", content="We bake no bread", category="note", shop=f"mill {SECRET}")
    await answer("memory_store", content="They bake cakes", category="note")
    moved = await answer("memory_update", memory_id=baked["memory_id"], shop="mill")
    found = await answer("memory_search", query="bake", filters={"shop": "mill"})
    every = await answer("memory_search", query="bake")
    await close()
    return {
        "schema": schema,
        "changed": moved.get("fields"),
        "found": [hit["content"] for hit in found.get("results", ())],
        "shown": sorted(hit.get("shop", "-") for hit in every["results"]),
    }


def by_commands(root: str) -> dict[str, Any]:
    def run(*arguments: str) -> str:
        return CliRunner().invoke(build(), [*arguments, "--agent", "bob", "--root", root]).stdout

    run("store", "We grind at noon", "--shop", "mill")
    listed = json.loads(run("list", "--shop", "mill", "--json"))["memories"]
    run("update", listed[0]["id"], "--shop", "bakery")
    return {
        "listed": [memory["content"] for memory in listed],
        "found": [hit["content"] for hit in json.loads(run("search", "bake", "--shop", "mill", "--json"))["results"]],
        "shown": run("show", listed[0]["id"]).splitlines(),
        "help": run("search", "--help"),
    }


if __name__ == "__main__":
    answers = {"tools": asyncio.run(by_tools(sys.argv[1])), "commands": by_commands(sys.argv[1])}
    sys.stdout.write(json.dumps(answers))
