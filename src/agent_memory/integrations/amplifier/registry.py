"""The services open in this process, shared by a root session and its children, counted, closed by the last user.

The only state of this package that outlives a session, and it is keyed by session.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.memory import MemoryService
    from agent_memory.settings import ServiceSettings

Key = tuple[str, str, str]
"""Root session, storage root, agent."""


@dataclass(slots=True)
class _Shared:
    service: MemoryService
    users: int = 0


_OPEN: Final[dict[Key, _Shared]] = {}
_LOCK: Final = threading.Lock()


class ServiceShare:
    """One session's share of the service of its agent: one per root session, storage root and agent."""

    def __init__(self) -> None:
        self.service: MemoryService | None = None
        self._key: Key | None = None
        self._opening = asyncio.Lock()

    async def opened(
        self, root_session: str, agent_id: str, settings: ServiceSettings, begin: Callable[[MemoryService], object]
    ) -> MemoryService:
        """Return the service of an agent; of another than before, that one is given back and `begin` receives this one.

        Raises:
            ValidationError, ConfigurationError, StorageError: It cannot be opened.
        """
        from agent_memory.integrations.amplifier.service_opener import (  # loads every layer
            create_service,
            finish_purges,
            unlock_files,
        )

        async with self._opening:
            if self.service is None or self.service.agent_id.lower() != agent_id.lower():
                await self.close()
                key = (root_session, settings.storage_root, agent_id)
                if settings.backend != "server":
                    await asyncio.to_thread(unlock_files, agent_id, settings)
                with _LOCK:
                    opened = _OPEN.get(key)
                    shared = opened or _OPEN.setdefault(key, _Shared(create_service(agent_id, settings)))
                    shared.users += 1
                self._key, self.service = key, shared.service
                if opened is None:
                    await finish_purges(shared.service)
                begin(self.service)
            return self.service

    async def close(self) -> None:
        """Give the service back, if one is open; its last user closes it."""
        key, self._key, self.service = self._key, None, None
        if key is None:
            return
        with _LOCK:
            shared = _OPEN[key]
            shared.users -= 1
            if shared.users:
                return
            del _OPEN[key]
        await shared.service.close()
