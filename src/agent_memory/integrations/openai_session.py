"""`AgentMemorySession`: a session of the OpenAI Agents SDK; needs the extra `openai-agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from agents.memory import SessionABC, SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from agent_memory.memory.loop_thread import LoopThread
from agent_memory.memory.verbatim_storage import VerbatimStorage, load_value

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from agents import TResponseInputItem

T = TypeVar("T")
_ADAPTER: Final = "openai"


class AgentMemorySession(SessionABC):
    """Items of one conversation, in the memory folder of an agent.

    Several objects and processes may use one session at the same time.

    Args:
        session_id: Name of the conversation.
        agent_id: Name of the agent whose folder has the items.
        root: Folder of all agents; that of the command line when omitted.
        refuse_secrets: True to raise `ValidationError` for a secret instead of replacing it by a marker.
        session_settings: Number of items that `get_items` returns by default.
    """

    def __init__(
        self,
        session_id: str,
        agent_id: str = "me",
        *,
        root: str | Path | None = None,
        refuse_secrets: bool = False,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self._storage = VerbatimStorage(agent_id, _ADAPTER, root, refuse_secrets=refuse_secrets)
        self._loop = LoopThread()
        self._is_closed = False

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the latest items in the order of adding.

        Args:
            limit: Number of items at most; that of the session's settings when omitted.
        """
        most = resolve_session_limit(limit, self.session_settings)
        records = await self._run(self._storage.list_in((self.session_id,), None if most is None else max(0, most)))
        return [load_value(record) for record in records]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items as one change.

        Raises:
            TypeError: An item has something that is not JSON; nothing was added.
            ValidationError: An item is too long, or has a secret that may not be redacted; nothing was added.
        """

        async def add() -> None:
            if drafts := [self._storage.draft((self.session_id,), item) for item in items]:
                await self._storage.put(drafts)

        await self._run(add())

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the latest item, or None."""
        record = await self._run(self._storage.pop_last((self.session_id,)))
        return None if record is None else load_value(record)

    async def clear_session(self) -> None:
        """Remove all items."""
        await self._run(self._storage.clear((self.session_id,)))

    def close(self) -> None:
        """Close the files. Can be called more than once."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.wait_for(self._storage.close())
            self._loop.stop()

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._is_closed:
            work.close()
            raise RuntimeError(f"{type(self).__name__} is closed")
        return await self._loop.run(work)
