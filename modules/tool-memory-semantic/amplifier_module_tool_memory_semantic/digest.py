"""The tool `digest`, for agents that were given documents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_memory.integrations.amplifier.consent import check_not_stopped, hold_for_yes
from agent_memory.knowledge.digest.digest_tool import DESCRIPTION, NAME, PROPERTIES, DigestInput, run_digest
from amplifier_module_tool_memory_semantic import inputs
from amplifier_module_tool_memory_semantic.tools import MemoryTool

if TYPE_CHECKING:
    from agent_memory.integrations.amplifier import MemorySession


class DigestArguments(DigestInput, inputs.Input):
    """Arguments of digest, read as those of the other tools."""


class DigestTool(MemoryTool[DigestArguments]):
    """digest."""

    name = NAME
    description = DESCRIPTION

    def __init__(self, session: MemorySession) -> None:
        super().__init__(session)
        self.input_schema = {"type": "object", "properties": PROPERTIES, "required": ["document"]}

    async def _run(self, args: DigestArguments) -> dict[str, Any]:
        from agent_memory.knowledge import MemoryManager  # only for those who ask

        self.session.group()
        service = await self.session.require()
        check_not_stopped(self.session)
        manager = MemoryManager(service=service, caller=lambda: self.session.caller)
        try:
            hold = partial(hold_for_yes, self.session, service)
            text, passages = await run_digest(manager, args, self.session.caller, hold)
        finally:
            await manager.close()
        self.session.note_returned(passages)
        return {"text": text}
