"""A service on real files, a listener that keeps its events, and a secret that no repository scanner mistakes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.memory import AuditLog, Caller, MemoryService
from agent_memory.memory.scratchpad import ServiceLimits
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.support import FrozenClock

    Services = Callable[..., MemoryService]


@dataclasses.dataclass
class Listener:
    """A session that hears events: `caller` goes into calls, `events` is what came."""

    events: list[tuple[str, dict[str, Any]]] = dataclasses.field(default_factory=list)

    @property
    def caller(self) -> Caller:
        return Caller("session-1", self.hear)

    async def hear(self, event: str, data: dict[str, Any]) -> None:
        self.events.append((event, data))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [data for event, data in self.events if event == name]

    def names(self) -> list[str]:
        return [event for event, _ in self.events]


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def secret() -> str:
    """Return something that looks like a live token, put together here."""
    return "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.fixture
async def make_service(root: Path, clock: FrozenClock) -> AsyncIterator[Services]:
    """Return a function that opens bob's memory with some settings; all are closed at the end."""
    opened: list[MemoryService] = []

    def make(limits: ServiceLimits | None = None, **settings: Any) -> MemoryService:
        chosen = ServiceSettings(embedder="none", storage_root=str(root), **settings)
        storage = FileStorage("bob", settings=chosen, clock=clock)
        service = MemoryService(
            storage, chosen, audit=AuditLog(storage.folder.audit), clock=clock, limits=limits or ServiceLimits()
        )
        opened.append(service)
        return service

    yield make
    for service in opened:
        await service.close()


@pytest.fixture
def service(make_service: Services) -> MemoryService:
    return make_service()


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "bob"
