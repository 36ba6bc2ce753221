"""Tool that makes statements of the passages of documents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent_memory.knowledge.digest.digest_tool import DESCRIPTION, NAME, PROPERTIES, DigestInput, run_digest
from agent_memory.tools.consent import check_not_stopped, hold_for_yes
from agent_memory.tools.knowledge_access import KnowledgeTool

if TYPE_CHECKING:
    from agent_memory.knowledge import MemoryManager


class DigestTool(KnowledgeTool[DigestInput]):
    """digest."""

    name = NAME
    description = DESCRIPTION
    properties = PROPERTIES
    required = ["document"]  # noqa: RUF012 - part of a schema
    failure = "Failed to digest: "

    async def _write_text(self, manager: MemoryManager, args: DigestInput) -> str:
        service = await self.session.require()
        check_not_stopped(self.session)
        hold = partial(hold_for_yes, self.session, service)
        text, passages = await run_digest(manager, args, self.session.caller, hold)
        self.session.note_returned(passages)
        return text
