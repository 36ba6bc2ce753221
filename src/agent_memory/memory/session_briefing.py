"""`SessionBriefing`: the briefing of one session, over the agent's memory and the conversations that are kept."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agent_memory.files.layout import folder_of
from agent_memory.memory import NOBODY
from agent_memory.memory.briefing import TOKENS, Briefer
from agent_memory.models import EPISODE
from agent_memory.registry import KNOWLEDGE

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.knowledge.items.forgotten_texts import ForgottenTexts
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.memory.briefing_result import Briefing


class SessionBriefing:
    """Makes the briefing of a session once, and tells whether it may be shown on.

    Args:
        service: The agent's memory.
        tokens: How many it has at most.
    """

    def __init__(self, service: MemoryService, tokens: int = TOKENS) -> None:
        self._service, self._tokens = service, tokens
        self._knowledge: Knowledge | None = None
        self._forgotten: ForgottenTexts | None = None

    async def make(self, asked: str, caller: Caller = NOBODY, known: Collection[str] = ()) -> Briefing:
        """Return a briefing; see `Briefer.brief`. It is told to the session, without its words.

        Raises:
            StorageError: What is stored cannot be read.
        """
        begun = time.perf_counter()
        self._knowledge = self._knowledge or self._conversations()
        if self._knowledge is not None:
            self._forgotten = KNOWLEDGE.load("forgotten_texts")(self._knowledge, self._service)
        episodes = None if self._knowledge is None else self._knowledge.episodes
        briefer = Briefer(self._service, episodes=episodes, forgotten=self._forgotten, tokens=self._tokens)
        made = await briefer.brief(asked, caller, known)
        if not made.turns:
            await self.close()  # nothing of what was said has to be looked at again
        milliseconds = round((time.perf_counter() - begun) * 1000, 3)
        counts = {"memories": len(made.memories), "turns": len(made.turns), "tokens": made.tokens}
        await self._service.report("memory:briefed", caller, **counts, latency_ms=milliseconds)
        return made

    async def turns_stand(self, briefing: Briefing) -> bool:
        """Return True if all turns that a briefing quotes still say so; memories: see `Pad.still_true`.

        Raises:
            StorageError: They cannot be read.
        """
        if not briefing.turns:
            return True
        if self._knowledge is None or self._forgotten is None:
            return False
        shown = await self._forgotten.filter_turns(briefing.turns)
        return len(shown) == len(briefing.turns) and await self._knowledge.episodes.still_true(briefing.turns)

    def _conversations(self) -> Knowledge | None:
        settings = self._service.settings
        if settings.backend == "server" or not KNOWLEDGE.is_installed:
            return None
        if not (folder_of(self._service.agent_id, settings.storage_root).path / EPISODE.journal).exists():
            return None
        knowledge: Knowledge = KNOWLEDGE.load("records")(self._service.agent_id, settings)
        return knowledge

    async def close(self) -> None:
        """Close the conversations. May be called more than once."""
        knowledge, self._knowledge, self._forgotten = self._knowledge, None, None
        if knowledge is not None:
            await knowledge.close()
