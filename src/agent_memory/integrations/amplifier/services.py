"""Open services of this process, shared within a root session.

With the sessions in `session.py` this is the only state that is not of one session.
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

ServiceKey = tuple[str, str, str]
"""ID of the root session, storage root, name of the agent."""


@dataclass(slots=True)
class _SharedService:
    service: MemoryService
    users: int = 0


_OPEN: Final[dict[ServiceKey, _SharedService]] = {}
_LOCK: Final = threading.Lock()


class ServiceShare:
    """Share of one session in its agent's service; the last closes it."""

    def __init__(self) -> None:
        self.service: MemoryService | None = None
        self._key: ServiceKey | None = None
        self._opening = asyncio.Lock()

    async def open(
        self, root_session: str, agent_id: str, settings: ServiceSettings, begin: Callable[[MemoryService], object]
    ) -> MemoryService:
        """Return the service of an agent, opened if another one was used.

        Args:
            root_session: ID of the root session.
            agent_id: Name of the agent.
            settings: Settings of the service.
            begin: Receives a service that this session did not have before.

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
                    shared = opened or _OPEN.setdefault(key, _SharedService(create_service(agent_id, settings)))
                    shared.users += 1
                self._key, self.service = key, shared.service
                if opened is None:
                    await finish_purges(shared.service)
                begin(self.service)
            return self.service

    async def close(self) -> None:
        """Release the service; its last user closes it."""
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
