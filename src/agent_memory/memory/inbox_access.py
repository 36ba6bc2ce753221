"""Access to an agent's inbox; loads it at its first use."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.layout import folder_of
from agent_memory.logs import get_logger
from agent_memory.models import CANDIDATE, is_memory_id
from agent_memory.models.memory import MAX_ACT_IDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from agent_memory.memory.caller import Caller, ProposedAct
    from agent_memory.memory.inbox import Inbox
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import Kind, Memory
    from agent_memory.settings import ServiceSettings


log = get_logger(__name__)


def has_journal(agent_id: str, settings: ServiceSettings, kind: Kind[Any]) -> bool:
    """Return True if an agent has a file of a kind."""
    if settings.backend == "server":
        return False
    return (folder_of(agent_id, settings.storage_root).path / kind.journal).exists()


@contextlib.asynccontextmanager
async def opened_inbox(service: MemoryService) -> AsyncIterator[Inbox]:
    """Open the inbox of an agent for the block; see `Inbox`."""
    from agent_memory.memory.inbox import Inbox  # for those who have one

    inbox = Inbox(service)
    try:
        yield inbox
    finally:
        await inbox.close()


async def drop_stored(service: MemoryService, memory: Memory, caller: Caller) -> None:
    """Remove the texts of a stored memory from the inbox."""
    if has_journal(service.agent_id, service.settings, CANDIDATE):
        async with opened_inbox(service) as inbox:
            await inbox.drop_stored(memory, caller)


async def count_waiting(service: MemoryService) -> int:
    """Return the number of waiting candidates.

    0 also for an inbox that cannot be read, which the doctor explains.
    """
    if has_journal(service.agent_id, service.settings, CANDIDATE):
        with contextlib.suppress(StorageError):
            async with opened_inbox(service) as inbox:
                return len(await inbox.waiting())
    return 0


class HeldProposals:
    """Proposed acts in an agent's inbox.

    Args:
        service: Service of the agent's memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def hold(self, act: ProposedAct, caller: Caller) -> bool:
        """Add an act to the inbox; return False on failure."""
        if len(act.memory_ids) > MAX_ACT_IDS:
            return False
        try:
            async with opened_inbox(self._service) as inbox:
                await inbox.hold_act(act, caller)
        except AgentMemoryError as error:
            log.warning("proposal_not_held", proposal=act.proposal, code=error.code, error=error.message)
            return False
        return True

    async def settle(self, proposal: str, caller: Caller) -> None:
        """Remove an act that was done after the user's yes."""
        if has_journal(self._service.agent_id, self._service.settings, CANDIDATE):
            with contextlib.suppress(StorageError):  # `review` shows it still
                async with opened_inbox(self._service) as inbox:
                    await inbox.settle(proposal, caller)


async def carry_out(service: MemoryService, proposal: str, caller: Caller) -> None:
    """Carry out an act that a person agreed to.

    Args:
        service: Service of the agent's memory.
        proposal: ID that the person named; an unknown one is ignored.
        caller: The person's session.

    Raises:
        AgentMemoryError: It cannot be done any more; it still waits.
    """
    if has_journal(service.agent_id, service.settings, CANDIDATE):
        async with opened_inbox(service) as inbox:
            await inbox.accept_proposal(proposal, caller.as_person())


class InboxWithdrawal:
    """Removes forgotten texts from the inbox.

    Args:
        service: Service of the agent's memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def withdraw(self, memory_ids: Collection[str], caller: Caller) -> None:
        """Remove texts of forgotten memories, and acts on reworded ones.

        A person agrees to an act on the text that was shown.
        """
        storage, ids = self._service.storage, set(filter(is_memory_id, memory_ids))
        gone = await storage.forgotten_of(ids - (await storage.texts_of(ids)).keys())
        texts = [memory.content for memory in gone.values()]
        async with opened_inbox(self._service) as inbox:
            await inbox.drop_saying(texts, caller, ids)

    async def close(self) -> None:
        """Close nothing: the inbox is open only while texts are removed."""
