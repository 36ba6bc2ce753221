"""When a migration is suggested, what is told about one, and what is told when it fails or is undone."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.index_maintenance import IndexOptions
from agent_memory.errors import ConfigurationError, MigrationError
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import MigratableStorage
from agent_memory.store.protocols import Built
from agent_memory.store.shards import Shards
from tests.support import raises

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent_memory.storage import AgentFolder
    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Listener, Services

THRESHOLD = 3


async def all_ended() -> None:
    """Wait for what goes on behind the answers, a migration that nobody asked for among it."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


@pytest.fixture
async def growing(root: Path, clock: FrozenClock, builds: list[str]) -> AsyncIterator[Services]:
    """Return a function that opens bob's memory so that it can be moved, by default by the instant builds."""
    opened: list[MemoryService] = []
    instant = partial(_built, builds)

    def make(build: Callable[..., Awaitable[Built]] = instant, **settings: Any) -> MemoryService:
        chosen = ServiceSettings(storage_root=str(root), migration_threshold=THRESHOLD, **settings)
        storage = MigratableStorage(
            "bob", settings=chosen, clock=clock, embedder=HashEmbedder(), options=IndexOptions(build=build)
        )
        opened.append(MemoryService(storage, chosen, audit=AuditLog(storage.folder.audit), clock=clock))
        return opened[-1]

    yield make
    for service in opened:
        await service.close()


@pytest.fixture
def builds() -> list[str]:
    """Return the agents that instant builds were asked for; `fail` among them makes the next one fail."""
    return []


async def _built(
    asked: list[str],
    folder: AgentFolder,
    _kind: object,
    _identity: object,
    *,
    activate: bool,
    batch: int,
    progress: Any,
) -> Built:
    if "fail" in asked:
        raise MigrationError("No room.")
    if progress is None:  # the upkeep finds nothing there and has it built anew
        raise MigrationError("Only once.")
    asked.append(folder.agent_id)
    Shards(folder).switch("vector", "abc123")
    for stage, done in (("load", 1), ("load", 2), ("load", 3), ("index", 0), ("check", 0), ("switch", 3)):
        await progress(stage, done, 3)
    assert activate
    assert batch == 100
    return Built("abc123", 3, 3)


async def stored(service: MemoryService, listener: Listener, count: int) -> None:
    for number in range(count):
        await service.store({"content": f"fact {number}"}, listener.caller)
    await service.settle()


async def test_past_the_threshold_it_is_suggested_once_a_session(
    growing: Services, listener: Listener, builds: list[str]
) -> None:
    service = growing()
    await stored(service, listener, THRESHOLD - 1)
    assert "memory:migration_suggested" not in listener.names()
    await stored(service, listener, 1)
    await service.store({"content": "one more"}, listener.caller)
    await service.search("fact", caller=listener.caller)
    await service.settle()
    (told,) = listener.of("memory:migration_suggested")
    assert (told["memory_count"], told["threshold"], told["auto_migrate"]) == (THRESHOLD, THRESHOLD, False)
    assert told["estimated_cost_usd"] == 0
    assert 0 < told["estimated_duration_seconds"] < 10
    assert builds == []


async def test_a_session_that_only_asks_is_told_too(growing: Services, listener: Listener) -> None:
    first = growing()
    for number in range(THRESHOLD):
        await first.store({"content": f"fact {number}"})
    await first.settle()
    second = growing()
    await second.search("fact", caller=listener.caller)
    await second.settle()
    assert len(listener.of("memory:migration_suggested")) == 1


@pytest.mark.parametrize("settings", [{"backend": "file"}, {"backend": "vector"}])
async def test_who_chose_a_backend_is_not_asked(
    growing: Services, listener: Listener, builds: list[str], settings: dict[str, Any]
) -> None:
    await stored(growing(**settings), listener, THRESHOLD + 1)
    assert "memory:migration_suggested" not in listener.names()
    assert builds == []


async def test_with_auto_migrate_it_begins_by_itself_and_tells_each_step(
    growing: Services, listener: Listener, builds: list[str]
) -> None:
    service = growing(auto_migrate=True)
    await stored(service, listener, THRESHOLD)
    await all_ended()
    assert builds == ["bob"]
    names = [name for name in listener.names() if name.startswith("memory:migration")]
    assert names[:2] == ["memory:migration_suggested", "memory:migration_started"]
    assert names[-1] == "memory:migration_completed"
    assert set(names[2:-1]) == {"memory:migration_progress"}
    (completed,) = listener.of("memory:migration_completed")
    assert (completed["memory_count"], completed["backend"], completed["cost_usd"]) == (3, "vector", 0)
    steps = [(told["stage"], told["memories_processed"]) for told in listener.of("memory:migration_progress")]
    assert [step for step in steps if step[0] != "embed"] == [
        ("load", 1), ("load", 3), ("index", 0), ("check", 0), ("switch", 3)
    ]  # fmt: skip


async def test_a_migration_pauses_with_the_session_and_the_next_one_resumes_it(
    growing: Services, listener: Listener
) -> None:
    begun = asyncio.Event()

    async def endless(*_args: object, **_options: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    service = growing(endless, auto_migrate=True)
    await stored(service, listener, THRESHOLD)
    await begun.wait()
    assert not any("agent-memory migrate" in each for each in (await service.status()).suggestions), "it is under way"
    await service.close()
    (paused,) = listener.of("memory:migration_paused")
    assert (paused["texts_left"], paused["memory_count"]) == (0, THRESHOLD)
    assert "memory:migration_completed" not in listener.names()
    listener.events.clear()
    later = growing(auto_migrate=True)
    await later.search("fact", caller=listener.caller)
    await later.settle()
    await all_ended()
    names = [name for name in listener.names() if name.startswith("memory:migration") and "progress" not in name]
    assert names == ["memory:migration_resumed", "memory:migration_completed"]
    assert not await later.storage.migration_begun(), "the next one begins anew"


async def test_a_failure_is_told_with_what_is_true_now(
    growing: Services, listener: Listener, builds: list[str]
) -> None:
    service = growing()
    await stored(service, listener, 1)
    builds.append("fail")
    with pytest.raises(MigrationError):
        await service.monitor.migration.migrate(listener.caller)
    (failed,) = listener.of("memory:migration_failed")
    assert (failed["code"], failed["error"], failed["rolled_back"]) == ("migration", "No room.", True)
    (back,) = listener.of("memory:migration_rolled_back")
    assert (back["to_backend"], back["reason"]) == ("file", "failed")
    assert service.storage.backend == "file"


async def test_a_defect_in_a_migration_that_nobody_asked_for_is_told(growing: Services, listener: Listener) -> None:
    async def broken(*_args: object, **_options: object) -> None:
        raise ZeroDivisionError

    service = growing(broken, auto_migrate=True)
    await stored(service, listener, THRESHOLD)
    await all_ended()
    (failed,) = listener.of("memory:migration_failed")
    assert (failed["code"], failed["rolled_back"]) == ("migration", True)
    assert "ZeroDivisionError" in failed["error"]


async def test_a_migration_is_in_the_audit_log_and_going_back_is_told_once(
    growing: Services, listener: Listener, builds: list[str], folder: Path
) -> None:
    service = growing()
    await stored(service, listener, 1)
    await service.monitor.migration.migrate(listener.caller)
    await service.settle()
    log = (folder / "events.jsonl").read_text()
    assert "memory:migration_started" in log
    assert "memory:migration_completed" in log
    assert "memory:migration_progress" not in log
    assert await service.monitor.migration.rollback(listener.caller)
    assert not await service.monitor.migration.rollback(listener.caller)
    (back,) = listener.of("memory:migration_rolled_back")
    assert (back["from_backend"], back["to_backend"], back["reason"]) == ("vector", "file", "requested")


async def test_the_status_suggests_it_until_it_is_done(
    growing: Services, listener: Listener, builds: list[str]
) -> None:
    service = growing()
    await stored(service, listener, THRESHOLD)
    assert any("migrate" in line for line in (await service.status()).suggestions)
    await service.monitor.migration.migrate(listener.caller)
    assert not any("migrate" in line for line in (await service.status()).suggestions)


async def test_a_memory_that_cannot_be_moved_says_why(service: MemoryService, listener: Listener) -> None:
    with raises(ConfigurationError, "cannot_migrate"):
        await service.monitor.migration.migrate(listener.caller)
