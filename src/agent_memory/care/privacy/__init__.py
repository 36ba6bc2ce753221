"""Privacy: purge, encryption and stored secrets; unfinished purges are finished when a memory is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import AgentMemoryError
from agent_memory.journal import PurgeList
from agent_memory.late import offer as _offer
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService

log = get_logger(__name__)


async def go_on_with_purges(service: MemoryService) -> MemoryService:
    """Finish interrupted purges and return the service; takes microseconds without any.

    What cannot be finished now, such as next to a process that always writes, is logged, reported by `health` and the
    doctor, and tried again by the next.
    """
    folder = service.folder
    if folder is None:
        return service
    try:
        if PurgeList(folder.path).list_unfinished():
            from agent_memory.care.privacy.purge import Purging  # only for those who have some

            await Purging(service).finish()
    except AgentMemoryError as error:
        log.warning("purge_unfinished", error=error.message, code=error.code)
    return service


__getattr__, __dir__ = _offer(__name__)
