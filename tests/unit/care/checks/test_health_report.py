"""All checks of an agent on real files."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.checks import health_report
from agent_memory.care.checks.codes import CHECKS, AgentHealth, Level
from agent_memory.care.checks.health_report import health_of
from agent_memory.errors import StorageError
from agent_memory.files.layout import folder_of
from agent_memory.settings import HealthSettings
from tests.support import NOON, FrozenClock

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from agent_memory.memory import MemoryService

LIMITS = HealthSettings(disk_warning_mb=1e-6, disk_critical_mb=1e-6)


async def _health(service: MemoryService, seconds: float = 0.001, **limits: Any) -> AgentHealth:
    ticks = count(0, seconds)
    settings = HealthSettings(**{**LIMITS.model_dump(), **limits})
    return await health_of(service, settings, NOON, timer=lambda: next(ticks))


def _levels(health: AgentHealth) -> dict[str, Level]:
    return {check.code: check.level for check in health.checks if check.level}


async def test_a_sound_memory_is_well_by_every_check(service: MemoryService) -> None:
    await service.store("Use PostgreSQL for the ledger.")
    health = await _health(service)
    assert _levels(health) == {}
    assert [check.code for check in health.checks] == [code for code in CHECKS if code != "doctor"]
    assert all(check.sentence for check in health.checks)


async def test_looking_changes_no_file(service: MemoryService, root: Path) -> None:
    await service.store("Use PostgreSQL for the ledger.")
    await service.settle()
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    await _health(service)
    await service.settle()
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


async def test_an_agent_without_a_memory_is_well(service: MemoryService) -> None:
    health = await _health(service)
    assert _levels(health) == {}
    assert "disk" not in [check.code for check in health.checks]  # there is no folder yet


async def test_slow_searches_are_a_warning(service: MemoryService) -> None:
    await service.store("Use PostgreSQL for the ledger.")
    health = await _health(service, seconds=0.6)
    assert _levels(health) == {"speed": Level.WARNING}
    assert health.checks[0].value == 600


async def test_a_damaged_line_is_critical(service: MemoryService, root: Path) -> None:
    await service.store("Use PostgreSQL for the ledger.")
    with (root / "bob" / "memories.yaml").open("a") as file:
        file.write("--- {broken\n")
    health = await _health(service)
    assert _levels(health) == {"journal": Level.CRITICAL}
    assert health.level is Level.CRITICAL


async def test_a_journal_that_cannot_be_opened_is_critical_and_the_files_are_told_all_the_same(
    service: MemoryService, root: Path
) -> None:
    (root / "bob" / "memories.yaml").mkdir(parents=True)
    (root / "bob").chmod(0o700)
    health = await _health(service)
    assert _levels(health) == {"journal": Level.CRITICAL}
    assert [check.code for check in health.checks] == ["journal", "disk", "files", "edits"]


async def test_a_log_that_cannot_be_read_is_unknown(service: MemoryService, root: Path) -> None:
    await service.store("Use PostgreSQL for the ledger.")
    (root / "bob" / "events.jsonl").mkdir()
    assert _levels(await _health(service)) == {"activity": Level.UNKNOWN}


async def test_the_age_of_the_newest_backup_is_told(service: MemoryService, root: Path) -> None:
    await service.store("Use PostgreSQL for the ledger.")
    create_backup(folder_of("bob", root), clock=FrozenClock(NOON - timedelta(days=8)))
    health = await _health(service)
    assert _levels(health) == {"backup": Level.WARNING}
    assert health.checks[0].value == 8
    assert "agent-memory backup create" in health.checks[0].advice


async def test_backups_that_cannot_be_listed_are_unknown(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StorageError("It cannot be listed.")

    await service.store("Use PostgreSQL for the ledger.")
    monkeypatch.setattr(health_report, "last_backup", refuse)
    assert _levels(await _health(service)) == {"backup": Level.UNKNOWN}
