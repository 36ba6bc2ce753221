"""Deletion of a memory wherever it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.care.archive import Archive, archive_exists
from agent_memory.models import get_duplicate_key

if TYPE_CHECKING:
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory


async def forget_memory(service: MemoryService, memory: Memory, caller: Caller) -> None:
    """Forget a memory, and archived ones with its ID or text.

    Raises:
        UnknownIdError: It does not exist any more.
        ValidationError: The caller may not forget it.
        StorageError: What was forgotten before stays forgotten.
    """
    await service.forget(memory.id, caller)
    if not archive_exists(service.agent_id, service.settings):
        return
    archive, text = Archive(service), get_duplicate_key(memory.content)
    try:
        for archived in await archive.everything():
            is_same_text = get_duplicate_key(archived.content) == text and archived.belongs_to == memory.belongs_to
            if archived.id == memory.id or is_same_text:
                await archive.forget(archived.id, caller)
    finally:
        await archive.close()
