"""What `FileStorage` does beyond the contract: laziness, its thread, its notes on disk, compaction by itself."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings import EmbeddingWorker, VectorCache, WorkerLimits, text_hash, worker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import EmbeddingError, StorageError, ValidationError
from agent_memory.files.lock import folder_lock
from agent_memory.journal import Journal
from agent_memory.journal.format import add_checksum
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store import change_log
from agent_memory.store.worker import Worker
from tests.support import FrozenClock, lines_of, memory_of

if TYPE_CHECKING:
    from pathlib import Path


def test_making_one_opens_nothing(root: Path) -> None:
    before = threading.active_count()
    FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    assert threading.active_count() == before
    assert not root.exists()


async def test_reading_creates_nothing(storage: FileStorage, root: Path) -> None:
    await storage.search("tea")
    await storage.list_recent()
    await storage.health()
    await storage.was_forgotten("tea")
    assert not root.exists()


async def test_the_first_store_leaves_a_note_for_people(storage: FileStorage) -> None:
    await storage.store(memory_of("tea"))
    note = json.loads(storage.folder.metadata.read_text())
    assert (note["schema"], note["backend"], note["journal"]) == (1, "file", "memories.yaml")


async def test_calls_run_in_their_order(storage: FileStorage) -> None:
    await asyncio.gather(*(storage.store(memory_of(str(number))) for number in range(10)))
    assert [m.content async for m in storage.iter_all()] == [str(number) for number in range(10)]


async def test_a_closed_storage_opens_again_when_asked(storage: FileStorage) -> None:
    await storage.store(memory_of("tea"))
    await storage.close()
    assert await storage.count() == 1


async def test_without_an_embedder_search_goes_by_words_and_says_so(storage: FileStorage) -> None:
    await storage.store(memory_of("tea"))
    assert await storage.prepare() is False
    assert storage.embedding_status()["status"] == "off"
    assert (await storage.search("tea")).mode == "keyword"


async def test_accesses_are_folded_once_they_are_many(
    storage: FileStorage, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "_COMPACT_AT", 5)
    memory_id = await storage.store(memory_of("tea"))
    for _ in range(7):
        await storage.touch([memory_id])
    assert (await storage.get(memory_id)).access_count == 7
    assert await storage.folds()
    assert len(lines_of(storage.folder.journal)) < 7


async def test_a_compaction_that_fails_behind_an_access_costs_the_access_nothing(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(change_log, "_COMPACT_AT", 2)
    memory_id = await storage.store(memory_of("tea"))

    def fails(*_: object, **__: object) -> None:
        raise StorageError("the disk is tired")

    monkeypatch.setattr(Journal, "prepare_compaction", fails)
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            await storage.touch([memory_id])
        assert (await storage.get(memory_id)).access_count == 4
        assert await storage.folds() == 0
    assert "background_work_failed" in caplog.text
    assert "tea" not in caplog.text


async def test_the_worker_passes_on_results_and_errors() -> None:
    worker = Worker()

    def fails() -> None:
        raise StorageError("no")

    assert await worker.run(lambda: 5) == 5
    names = await asyncio.gather(*(worker.run(lambda: threading.current_thread().name) for _ in range(5)))
    assert {name.rpartition("_")[0] for name in names} == {"agent-memory-store"}
    with pytest.raises(StorageError):
        await worker.run(fails)
    worker.close()
    worker.close()
    assert await worker.run(max, 1, 2) == 2
    worker.close()


async def test_a_forgotten_texts_versions_are_all_known_as_forgotten(storage: FileStorage) -> None:
    memory_id = await storage.store(memory_of("tea"))
    await storage.update(memory_id, {"content": "coffee"})
    await storage.delete(memory_id)
    assert await storage.was_forgotten("coffee")


async def test_replacing_a_broken_record_by_a_deleted_one_leaves_nothing(storage: FileStorage) -> None:
    """A foreign program deletes a memory and puts nonsense under its id, all before the next look."""
    memory_id = await storage.store(memory_of("tea"))
    moment = {"at": "2026-03-01T12:00:00Z", "kind": "memory", "id": memory_id}
    with storage.folder.journal.open("ab") as file:
        for seq, change in ((2, {"op": "delete"}), (3, {"op": "put", "data": {"content": ""}})):
            file.write(add_checksum(b"--- " + json.dumps({"seq": seq, **moment, **change}).encode() + b"\n"))
    assert await storage.get(memory_id) is None
    assert await storage.count() == 0
    assert list(await storage.search("tea")) == []
    assert (await storage.health())["problems"] == 1


async def test_forgetting_drops_the_vectors_of_what_is_gone_and_of_nothing_else(root: Path) -> None:
    embedder = HashEmbedder()
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), embedder=embedder)
    ids = [await storage.store(memory_of(text)) for text in ("tea", "coffee", "milk", "Milk")]
    await storage.store(memory_of("milk", id="mem-00000000000a"))
    newer = await storage.store(memory_of("coffee with milk", supersedes=ids[1]))
    assert await storage.prepare(None)
    for gone in (ids[0], newer, ids[2]):
        await storage.delete(gone)
    await storage.count()
    cache = VectorCache(storage.folder.vectors)
    known = cache.get_many(
        embedder.identity, {text_hash(text) for text in ("tea", "coffee", "coffee with milk", "milk", "Milk")}
    )
    cache.close()
    assert known.keys() == {text_hash("milk"), text_hash("Milk")}
    await storage.close()


async def test_a_read_does_not_wait_for_a_write_that_waits_for_the_lock(storage: FileStorage) -> None:
    await storage.store(memory_of("tea"))
    with folder_lock(storage.folder.path):
        waiting = asyncio.ensure_future(storage.store(memory_of("coffee")))
        await asyncio.sleep(0)
        assert await storage.count() == 1
        assert not waiting.done()
    await waiting
    assert await storage.count() == 2


async def test_the_first_search_waits_for_meaning_and_says_when_it_could_not(root: Path) -> None:
    embedder = HashEmbedder(synonyms={"db": "database"})
    storage = FileStorage("bob", root, embedder=embedder)
    await storage.store(memory_of("the database is PostgreSQL"))
    found = await storage.search("db")
    assert (found.mode, len(found), found.degraded) == ("hybrid", 1, None)
    embedder.gate.clear()
    await storage.store(memory_of("the database was MySQL"))
    late = await storage.search("db", patience=0.01)
    assert late.degraded == (
        "Some memories were searched by words alone: 1 text is still to be read by meaning. "
        "Searching again in a moment finds more."
    )
    at_once = await storage.search("db", patience=0)
    assert at_once.degraded == late.degraded
    unlimited = await storage.search("db")  # no patience named: the model is loaded, and texts are not waited for
    assert unlimited.degraded == late.degraded
    embedder.gate.set()
    await storage.prepare()
    assert len(await storage.search("db")) == 2
    await storage.close()


async def test_an_embedder_that_failed_keeps_no_later_search_waiting(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LIMITS", WorkerLimits(failures=1))
    embedder = HashEmbedder()
    embedder.failure = EmbeddingError("no answer")
    storage = FileStorage("bob", root, embedder=embedder)
    await storage.store(memory_of("tea"))
    assert "no answer" in str((await storage.search("tea")).degraded)
    waits: list[float | None] = []
    monkeypatch.setattr(EmbeddingWorker, "drain", lambda _, seconds: waits.append(seconds))
    assert (await storage.search("tea")).mode == "keyword"
    assert waits == []
    await storage.close()


@pytest.mark.parametrize("field", ["gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12", 5, None])
async def test_fields_that_cannot_be_changed_are_named_without_secrets(storage: FileStorage, field: Any) -> None:
    memory_id = await storage.store(memory_of("tea"))
    with pytest.raises(ValidationError, match=r"cannot be changed: .*id") as refused:
        await storage.update(memory_id, {field: "x", "id": "y"})
    assert "ghp_" not in refused.value.message
