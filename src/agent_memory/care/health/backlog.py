"""What waits to be done in the background for an agent, as the steps themselves say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.files.layout import folder_of
from agent_memory.knowledge.pipeline.ingestion_runner import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import EPISODE, RESOURCE

if TYPE_CHECKING:
    from agent_memory.knowledge.pipeline.stages import Backlog
    from agent_memory.memory import MemoryService


async def backlog_of(service: MemoryService) -> list[Backlog]:
    """Return the steps of which something waits or has failed; none for an agent that was given nothing.

    Raises:
        StorageError: What it was given cannot be read.
    """
    settings = service.settings
    if settings.backend == "server":
        return []
    folder = folder_of(service.agent_id, settings.storage_root)
    if not any((folder.path / each.journal).exists() for each in (RESOURCE, EPISODE)):
        return []
    knowledge = Knowledge(service.agent_id, settings)
    try:
        every = await runner_of(knowledge, service).backlog()
    finally:
        await knowledge.close()
    return [each for each in every if each.due or each.failed]
