"""A session is told what turns bad while it lasts, by the limits of its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.checks.health_checks import watch
from agent_memory.memories import FileStorage
from agent_memory.memory import AuditLog, Caller, MemoryService
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock

LIMITS = {"disk_warning_mb": 1e-6, "disk_critical_mb": 1e-6, "activity_least": 2}


def _open(root: Path, clock: FrozenClock, **health: Any) -> MemoryService:
    values: Any = {"storage_root": str(root), "embedder": "none", "health": {**LIMITS, **health}}
    settings = ServiceSettings(**values)
    storage = FileStorage("bob", settings=settings, clock=clock)
    service = MemoryService(storage, settings, audit=AuditLog(storage.folder.audit), clock=clock)
    watch(service, clock)
    return service


async def _checks(service: MemoryService, group: str | None = None) -> list[str]:
    told: list[dict[str, Any]] = []

    async def hear(event: str, data: dict[str, Any]) -> None:
        told.extend([data] if event == "memory:alert" else [])

    caller = Caller("session-1", hear, group=group)
    await service.settle()
    await service.status(caller)
    return [data["check"] for data in told]


async def test_a_folder_that_does_not_exist_yet_is_no_trouble(root: Path, clock: FrozenClock) -> None:
    service = _open(root, clock)
    assert await _checks(service) == []
    await service.close()


async def test_an_open_folder_is_told(root: Path, clock: FrozenClock) -> None:
    service = _open(root, clock)
    await service.store("Use PostgreSQL for the ledger.")
    await service.settle()
    clock.advance(minutes=10)
    (root / "bob").chmod(0o755)
    assert await _checks(service) == ["files"]
    await service.close()


async def test_the_limits_are_those_of_the_settings(root: Path, clock: FrozenClock) -> None:
    service = _open(root, clock, disk_warning_mb=1e12)
    await service.store("Use PostgreSQL for the ledger.")
    await service.settle()
    clock.advance(minutes=10)
    assert (await service.status()).health["alerts"][0]["check"] == "disk"
    await service.close()


@pytest.mark.parametrize(("group", "told"), [(None, ["activity"]), ("acme:support", [])])
async def test_much_forgetting_is_told_but_not_to_one_of_many_groups(
    root: Path, clock: FrozenClock, group: str | None, told: list[str]
) -> None:
    service = _open(root, clock)
    stored = [(await service.store(f"Number {place} is odd: {'x' * place}")).memory.id for place in range(3)]
    for memory_id in stored:
        await service.forget(memory_id)
    await service.settle()
    clock.advance(minutes=10)
    assert await _checks(service, group) == told
    await service.close()
