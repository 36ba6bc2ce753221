"""Use all agent tools without a host: `amplifier_core` and `agent_memory.integrations.amplifier` are absent.

python -m tests.tools_run ROOT
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.absent_package import AbsentPackage

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService


class PlainSession:
    """Session of a program with one user, whose words are not known."""

    def __init__(self, service: MemoryService) -> None:
        from agent_memory.memory import Caller
        from agent_memory.memory.consent import ConsentState

        self.session_id = "plain-1"
        self.warnings: list[str] = []
        self.counters: dict[str, Any] = {}
        self.caller = Caller(self.session_id, trust="medium")
        self.proposals = self.caller.proposals
        self.turn = SimpleNamespace(prompt="", is_heard=False, stored=[])
        self.conversation = SimpleNamespace(of_user=self.turn)
        self.consent = SimpleNamespace(is_stopped=False)
        self.taint = SimpleNamespace(by=None, note=lambda _by: None)
        self.returned: list[str] = []
        self.current_identity = SimpleNamespace(consent=ConsentState())
        self._service = service

    def note_returned(self, memories: Any) -> None:
        self.returned += [memory.id for memory in memories]

    def project(self) -> str:
        return ""

    def group(self) -> str:
        return ""

    async def require(self) -> MemoryService:
        return self._service

    async def activate(self, agent_id: str) -> Any:
        return SimpleNamespace(agent_id=agent_id, previous=None, is_new=False, known=())

    def identity(self) -> Any:
        return self.current_identity

    def folder(self) -> str:
        return ""


WORKSPACE = """
workspace: talks
tables:
  talks: {key: number, columns: {number: {type: integer, required: true}, summary: text}}
phases:
  - {name: analyse, over: talks, reads: own, agents: [{agent: analyst, produces: [summary]}]}
"""
DOCUMENT = "# Contacts\n\nTobias Reuter is on call in odd weeks."


async def use_memory_tools(call: Any) -> str:
    """Use each memory tool; return the ID of the memory that is stored."""
    stored = await call("memory_store", content="The build takes nine minutes.", category="note")
    memory_id: str = stored["memory_id"]
    await call("memory_search", query="how long does the build take")
    await call("memory_list_recent", limit=5)
    await call("memory_promote", memory_id=memory_id)
    await call("memory_update", memory_id=memory_id, content="The build takes ten minutes.")
    await call("memory_suspects", limit=5)
    await call("memory_status", detail="short")
    await call("memory_activate", agent_id="bob")
    await call("memory_forget", ids=[memory_id])
    return memory_id


async def use_knowledge_tools(call: Any) -> None:
    """Use each knowledge tool."""
    due = (await call("digest", document="runbook"))["text"]
    statement = {"passage": due[due.index("mem-") :][:16], "quote": "Tobias Reuter is on call in odd weeks"}
    await call("digest", document="", statements=[{**statement, "text": statement["quote"]}])
    await call("remember", content="Ann prefers tea.", category="drinks")
    await call("recall", query="what does Ann prefer")
    await call("list_categories", limit=5)
    await call("get_category", name="drinks")


async def use_workspace_tools(folder: Path) -> dict[str, Any]:
    """Do a step of a workspace; return the answers by tool, and the names of the events."""
    from agent_memory.workspace import SessionToolset, Workspace
    from agent_memory.workspace.toolset.session_toolset import WorkspaceToolSettings

    (folder / "talks.yaml").write_text(WORKSPACE)
    workspace = Workspace.create(folder / "talks", folder / "talks.yaml")
    workspace.tables.save("talks", {"number": 1})
    workspace.close()
    events: list[str] = []

    async def emit(event: str, _data: dict[str, Any]) -> None:
        events.append(event)

    toolset = SessionToolset(
        "plain-1", WorkspaceToolSettings, lambda: folder / "talks", emit, lambda: False, lambda _by: None
    )
    answers: dict[str, Any] = {"tools": sorted(toolset.list_tools())}
    answers["next_steps"] = await toolset.call("next_steps", {"limit": 5})
    answers["claim_step"] = await toolset.call("claim_step", {"step": "next"})
    await toolset.close()
    return {**answers, "events": events}


async def run(root: str) -> dict[str, Any]:
    """Use each tool; return the last answers by tool."""
    from agent_memory.knowledge import MemoryManager
    from agent_memory.memory import open_service
    from agent_memory.settings import ServiceSettings
    from agent_memory.tools import ALL_KNOWLEDGE_TOOLS, ALL_TOOLS, KnowledgeAccess

    service = open_service("bob", ServiceSettings(storage_root=root, embedder="none"))
    manager = MemoryManager(service=service)
    resource = await manager.store_resource(DOCUMENT, "document", {"title": "runbook.md"})
    await manager.extract_and_store(resource.resource_id)
    await manager.close()
    session = PlainSession(service)
    access = KnowledgeAccess(session)
    tools = {tool.name: tool(session) for tool in ALL_TOOLS} | {tool.name: tool(access) for tool in ALL_KNOWLEDGE_TOOLS}
    schemas = {name: tool.input_schema for name, tool in tools.items()}
    answers: dict[str, Any] = {}

    async def call(name: str, /, **arguments: Any) -> dict[str, Any]:
        answer = await tools[name].answer(arguments)
        answers[name] = answer.error or answer.output
        return answer.output or {}

    memory_id = await use_memory_tools(call)
    await use_knowledge_tools(call)
    wrong = {name: (await tool.answer({"limit": object()})).error for name, tool in tools.items()}
    await access.close()
    await service.close()
    report = {"answers": answers, "returned": session.returned, "memory_id": memory_id}
    workspace = await use_workspace_tools(Path(root))
    return {**report, "schemas": schemas, "wrong": wrong, "workspace": workspace}


def main() -> None:
    """Block the host, use the tools, print one JSON line."""
    for package in ("amplifier_core", "agent_memory.integrations.amplifier"):
        sys.meta_path.insert(0, AbsentPackage(package))
    report = asyncio.run(run(sys.argv[1]))
    sys.stdout.write(f"{json.dumps(report, default=str)}\n")


if __name__ == "__main__":
    main()
