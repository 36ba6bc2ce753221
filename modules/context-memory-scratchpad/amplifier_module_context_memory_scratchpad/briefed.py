"""`Briefed`: the briefing of one session, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.integrations.amplifier.messages import text_of_content
from agent_memory.memory.briefing_result import Briefing

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.memory import MemoryService
    from agent_memory.memory.session_briefing import SessionBriefing


class Briefed:
    """What a session was told before its first answer.

    Args:
        session: The memory of the session.
        inner: The context manager that keeps its conversation.
        tokens: How many it may take; None makes no briefing.

    Attributes:
        now: What it was told; empty before that, and once it is not true any more.
    """

    def __init__(self, session: MemorySession, inner: Any, tokens: int | None) -> None:
        self._session, self._inner = session, inner
        self._tokens = None if session.is_child else tokens
        self._is_made = False
        self._briefings: SessionBriefing | None = None
        self.now = Briefing()

    async def make_once(self, service: MemoryService, known: Collection[str]) -> None:
        """Make it for what the user said last, the first time alone.

        One that cannot be made then is not made later: the work has begun.

        Args:
            service: The agent's memory.
            known: Ids of what the model reads already.

        Raises:
            StorageError: What is stored cannot be read.
        """
        if self._is_made:
            return
        self._is_made = True
        if self._tokens is not None:
            from agent_memory.memory.session_briefing import SessionBriefing  # reads and ranks, for the first prompt

            self._briefings = SessionBriefing(service, self._tokens)
            self.now = await self._briefings.make(await self._prompt(), self._session.caller, known)

    async def stands(self) -> bool:
        """Return True if the turns it quotes still say so; whoever asks looks at its memories.

        Raises:
            StorageError: They cannot be read.
        """
        return self._briefings is None or await self._briefings.turns_stand(self.now)

    def drop(self) -> None:
        """Say nothing any more."""
        self.now = Briefing()

    async def close(self) -> None:
        """Close what it was made of."""
        if self._briefings is not None:
            await self._briefings.close()

    async def _prompt(self) -> str:
        """Return what the user said last."""
        messages = await self._inner.get_messages()
        said = [message for message in messages if message.get("role") == "user" and not message.get("metadata")]
        return text_of_content(said[-1].get("content")) if said else ""
