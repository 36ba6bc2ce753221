"""Use the tools and hooks of the main modules on a real coordinator, with some packages absent from the start.

python -m tests.core_run ROOT [PACKAGE…]
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import Any

from tests.absent_package import AbsentPackage

MAIN_MODULES = (
    "amplifier_module_tool_memory_semantic",
    "amplifier_module_context_memory_scratchpad",
    "amplifier_module_hooks_memory_capture",
)


async def run(root: str) -> dict[str, Any]:
    """Mount the modules, use each tool once, answer a prompt; return what the tools answered."""
    from tests.support import coordinator_of

    host = coordinator_of("root-1")
    config = {"storage_root": root, "embedder": "none"}
    ends = [await importlib.import_module(name).mount(host, dict(config)) for name in MAIN_MODULES]
    tools, context, answers = host.get("tools"), host.get("context"), {}

    async def call(name: str, **values: Any) -> Any:
        result = await tools[name].execute(values)
        answers[name] = result.error or True
        return result.output or {}

    await host.hooks.emit("prompt:submit", {"prompt": "We decided to paint the gate blue.", "session_id": "root-1"})
    await context.add_message({"role": "user", "content": "We decided to paint the gate blue."})
    await context.get_messages_for_request(token_budget=None, provider=None)
    stored = await call("memory_store", content="The build takes nine minutes.", category="note")
    found = await call("memory_search", query="how long does the build take")
    await call("memory_list_recent")
    await call("memory_promote", memory_id=stored["memory_id"])
    await call("memory_update", memory_id=stored["memory_id"], content="The build takes ten minutes.")
    await call("memory_status")
    await call("memory_forget", memory_ids=[stored["memory_id"]])
    await host.hooks.emit("prompt:complete", {"response": "Noted.", "session_id": "root-1"})
    await host.hooks.emit("session:end", {"session_id": "root-1"})
    for end in reversed(ends):
        await end()
    return {"answers": answers, "found": len(found["results"])}


def main() -> None:
    """Block the packages, use the modules, print one JSON line."""
    root, *packages = sys.argv[1:]
    for package in packages:
        sys.meta_path.insert(0, AbsentPackage(package))
    report = asyncio.run(run(root))
    sys.stdout.write(f"{json.dumps(report, default=str)}\n")


if __name__ == "__main__":
    main()
