"""What works less well than it could is told once: in the answer, as an event, in the status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings import WorkerLimits, worker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import EmbeddingError, StorageError
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.memory.scratchpad import ServiceLimits
from agent_memory.scratchpad import ScratchpadManager
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, MigratableStorage
from tests.engines import made_index, options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.embeddings import Embedder
    from agent_memory.engines.shard_process import EngineClient
    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Listener, Services


class DownApi(HashEmbedder):
    """An API that cannot be reached until `failure` is None."""

    def __init__(self) -> None:
        super().__init__()
        self.failure = EmbeddingError("No answer from the model", code="embedder_unreachable", recovery="Check it.")


@pytest.fixture
async def open_service(root: Path, clock: FrozenClock) -> AsyncIterator[Services]:
    opened: list[MemoryService] = []

    def make(model: Embedder | None = None, patience: float | None = None, **settings: Any) -> MemoryService:
        chosen = ServiceSettings(storage_root=str(root), **settings)
        storage = FileStorage("bob", settings=chosen, clock=clock, embedder=model)
        audit, limits = AuditLog(storage.folder.audit), ServiceLimits(search_patience=patience)
        opened.append(MemoryService(storage, chosen, audit=audit, clock=clock, limits=limits))
        return opened[-1]

    yield make
    for service in opened:
        await service.close()


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LIMITS", WorkerLimits(failures=1))


async def _searched(service: MemoryService, listener: Listener) -> tuple[str, str | None]:
    found = await service.search("which database", caller=listener.caller)
    return found.results.mode, found.degraded


async def test_a_failing_embedder_is_told_in_one_answer_one_event_and_the_status(
    open_service: Services, listener: Listener
) -> None:
    embedder = DownApi()
    service = open_service(embedder)
    await service.store({"content": "Use PostgreSQL as the database"}, listener.caller)
    mode, told = await _searched(service, listener)
    assert mode == "keyword"
    assert told == "Search by meaning does not work: model not loaded (No answer from the model). Check it."
    assert await _searched(service, listener) == ("keyword", None)
    (event,) = listener.of("memory:degraded")
    assert (event["component"], event["code"]) == ("embedder", "embedder_unreachable")
    status = await service.status()
    assert status.health["status"] == "attention"
    assert "No answer from the model" in status.health["degraded"]["embedder"]
    assert told in status.suggestions


async def test_what_worked_in_between_is_told_again(
    open_service: Services, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LIMITS", WorkerLimits(rest_seconds=0.01))
    embedder = DownApi()
    service = open_service(embedder)
    await service.store({"content": "Use PostgreSQL as the database"}, listener.caller)
    await _searched(service, listener)
    down, embedder.failure = embedder.failure, None
    await service.storage.prepare(10)
    while (await _searched(service, listener)) != ("hybrid", None):
        await service.storage.prepare(10)
    assert (await service.status()).health["status"] == "ok"
    embedder.failure = down
    found = await service.search("another question", caller=listener.caller)
    assert found.degraded is not None
    assert len(listener.of("memory:degraded")) == 2


async def test_an_embedder_that_is_not_installed_is_told(open_service: Services, listener: Listener) -> None:
    service = open_service()
    stored = await service.store({"content": "Use PostgreSQL as the database"}, listener.caller)
    assert "not installed" in str(stored.degraded)
    (event,) = listener.of("memory:degraded")
    assert (event["component"], event["code"]) == ("embedder", "no_embedder")
    assert await _searched(service, listener) == ("keyword", None), "once is enough"
    assert "not installed" in str((await service.storage.search("which database")).degraded)
    assert (await service.status()).health["status"] == "attention"


async def test_words_alone_by_choice_are_nothing_to_tell(open_service: Services, listener: Listener) -> None:
    service = open_service(embedder="none")
    await service.store({"content": "Use PostgreSQL as the database"}, listener.caller)
    assert await _searched(service, listener) == ("keyword", None)
    assert listener.of("memory:degraded") == []
    assert (await service.status()).health == {"status": "ok"}


async def test_an_answer_before_the_vectors_says_that_a_second_try_finds_more(
    open_service: Services, listener: Listener
) -> None:
    embedder = HashEmbedder()
    embedder.gate.clear()
    service = open_service(embedder, patience=0.05)
    await service.store({"content": "Use PostgreSQL as the database"}, listener.caller)
    _, told = await _searched(service, listener)
    assert "Searching again in a moment finds more." in str(told)
    assert "1 text is" in str((await _searched(service, listener))[1]), "each answer says how many wait"
    assert listener.of("memory:degraded") == [], "a model that is being loaded is no trouble"
    embedder.gate.set()
    await service.storage.prepare(10)
    assert await _searched(service, listener) == ("hybrid", None)


async def test_an_engine_in_trouble_is_an_event_and_in_the_status(
    root: Path, clock: FrozenClock, listener: Listener
) -> None:
    def refuse(*_: object) -> EngineClient:
        raise StorageError("there is no process to be had")

    embedder = HashEmbedder()
    made_index(root, embedder.identity)
    settings = ServiceSettings(storage_root=str(root))
    storage = MigratableStorage("bob", settings=settings, clock=clock, embedder=embedder, options=options(start=refuse))
    service = MemoryService(storage, settings, clock=clock)
    await service.store({"content": "Use PostgreSQL as the database"}, listener.caller)
    await storage.prepare(None)
    assert not await storage.caught_up(0.5)
    assert await _searched(service, listener) == ("hybrid", None), "the answer is as good, it only takes longer"
    (event,) = listener.of("memory:degraded")
    assert event["component"] == "engine"
    status = await service.status()
    assert (status.health["status"], list(status.health["degraded"])) == ("attention", ["engine"])
    await service.close()


async def test_an_audit_log_that_cannot_be_written_is_told_once(
    open_service: Services, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = open_service(embedder="none")

    def refuse(*_: object) -> None:
        raise StorageError("events.jsonl is no file")

    monkeypatch.setattr(AuditLog, "append_all", refuse)
    for content in ("one", "two"):
        await service.store({"content": content}, listener.caller)
        await service.settle()
    (event,) = listener.of("memory:degraded")
    assert event["component"] == "audit"
    assert "not noted in the audit log" in (await service.status()).health["degraded"]["audit"]
    monkeypatch.undo()
    await service.store({"content": "three"}, listener.caller)
    await service.settle()
    assert (await service.status()).health == {"status": "ok"}


async def test_a_store_that_is_on_disk_is_no_failure_because_the_scratchpad_cannot_be_read(
    open_service: Services, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_manager: ScratchpadManager, _recent: object) -> None:
        raise StorageError("The disk does not answer.", code="unreadable")

    service = open_service(embedder="none")
    monkeypatch.setattr(ScratchpadManager, "choose", failing)
    stored = await service.store({"content": "Tea at four"}, listener.caller)
    assert await service.get(stored.memory.id) == stored.memory
    assert stored.in_scratchpad is False
    assert "The change is on disk" in stored.degraded
    assert [event["component"] for event in listener.of("memory:degraded")] == ["scratchpad"]
    monkeypatch.undo()
