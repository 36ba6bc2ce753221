"""Searching, listing, status; and what still works when the journal cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import StorageError, ValidationError

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Listener, Services


def break_journal(folder: Path) -> None:
    """Put a folder in the journal's place: it is there and cannot be read."""
    (folder / "memories.yaml").unlink()
    (folder / "memories.yaml").mkdir()


async def test_a_hit_that_is_shown_is_not_used_yet(service: MemoryService) -> None:
    memory = (await service.store({"content": "peppermint tea"})).memory
    found = await service.search("peppermint")
    await service.settle()
    assert found.latency_ms >= 0
    assert (await service.get(memory.id)).access_count == 0


async def test_what_is_asked_for_by_its_id_is_used_behind_the_answer(
    service: MemoryService, clock: FrozenClock
) -> None:
    memory = (await service.store({"content": "peppermint tea"})).memory
    now = clock.advance(hours=1)
    assert (await service.open(memory.id)).content == "peppermint tea"
    await service.settle()
    after = await service.get(memory.id)
    assert (after.access_count, after.last_accessed) == (1, now)


async def test_a_search_for_an_id_answers_with_that_memory_and_uses_it(service: MemoryService) -> None:
    old = (await service.store({"content": "peppermint tea"})).memory
    new = (await service.store({"content": "green tea", "supersedes": old.id})).memory
    found = await service.search(f" {old.id} ")
    assert [hit.memory.id for hit in found] == [old.id]
    assert found.replaced == {old.id: new.id}
    assert (found.results.answer_confidence, found.results.not_known) == (1, False)
    await service.settle()
    assert [(await service.get(each)).access_count for each in (old.id, new.id)] == [1, 0]


async def test_a_search_for_an_unknown_id_is_a_search(service: MemoryService) -> None:
    await service.store({"content": "peppermint tea"})
    assert list(await service.search("mem-0123456789ab")) == []


async def test_search_reports_match_and_old_limit(service: MemoryService) -> None:
    await service.store({"content": "peppermint tea"})
    assert (await service.search("peppermint tea")).match == "strong"
    assert (await service.search("capital of Mongolia")).match == "none"
    assert (await service.search("peppermint plant", min_answer_confidence=1)).not_known
    with pytest.raises(ValidationError):
        await service.search("tea", min_answer_confidence=2)


async def test_the_default_limit_is_a_setting(make_service: Services) -> None:
    service = make_service(default_search_limit=2)
    for number in range(4):
        await service.store({"content": f"tea {number}"})
    assert len((await service.search("tea")).results) == 2
    assert len((await service.search("tea", 3)).results) == 3


async def test_wrong_questions_are_refused(service: MemoryService) -> None:
    for question in (("x" * 10_001,), ("x", 101), ("x", 0), ("x", -1), ("x", 5, {"nonsense": 1})):
        with pytest.raises(ValidationError):
            await service.search(*question)


async def test_when_the_journal_cannot_be_read_the_last_pad_is_searched_and_that_is_said(
    service: MemoryService, listener: Listener, folder: Path
) -> None:
    tea = (await service.store({"content": "peppermint tea", "category": "preference", "tags": ["hot"]})).memory
    await service.store({"content": "peppermint soap"})
    await service.settle()
    break_journal(folder)
    found = await service.search("Peppermint tea", caller=listener.caller)
    assert [r.memory.content for r in found.results] == ["peppermint tea", "peppermint soap"]
    assert {r.match_type for r in found.results} == {"scratchpad"}
    assert "memories.yaml" in found.degraded
    assert found.results.total_found == 2
    (told,) = listener.of("memory:degraded")
    assert told["component"] == "storage"
    await service.search("Peppermint tea", caller=listener.caller)
    assert len(listener.of("memory:degraded")) == 1, "told when it begins"
    filtered = await service.search("peppermint", filters={"category": "preference", "tags": ["hot"]})
    assert [r.memory.id for r in filtered.results] == [tea.id], "filters hold in the fallback, too"
    with pytest.raises(ValidationError):
        await service.search("peppermint", filters={"category": "No form"})


async def test_an_unreadable_journal_is_part_of_the_status_and_an_error_with_nothing_to_fall_back_on(
    service: MemoryService, folder: Path
) -> None:
    (folder / "memories.yaml").mkdir(parents=True)
    with pytest.raises(StorageError):
        await service.search("tea")
    status = await service.status()
    assert status.health["status"] == "unreadable"
    assert status.health["recovery"]
    assert status.counts == {}


async def test_status_counts(make_service: Services, clock: FrozenClock, folder: Path) -> None:
    service = make_service(migration_threshold=3)
    old = (await service.store({"content": "Office in Berlin", "category": "decision"})).memory
    await service.store({"content": "Office in Lyon", "category": "decision", "supersedes": old.id, "pinned": True})
    assert (await service.status()).suggestions == []
    await service.store({"content": "Read somewhere", "trust": "low"})
    status = await service.status()
    assert status.counts == {
        "memories": 3,
        "superseded": 1,
        "expired": 0,
        "scratchpad": 1,
        "pinned": 1,
        "by_category": {"decision": 2, "note": 1},
        "by_trust": {"medium": 2, "low": 1},
    }
    assert (status.agent_id, status.backend, status.last_write) == ("bob", "file", "2026-03-01T12:00:00Z")
    assert status.folder == str(folder)
    assert status.health == {"status": "ok"}
    assert status.embedder["status"] == "off"
    assert len(status.suggestions) == 1


async def test_the_last_write_is_the_last_change_and_no_access(make_service: Services, clock: FrozenClock) -> None:
    service = make_service()
    assert (await service.status()).last_write is None
    memory = (await service.store({"content": "peppermint tea", "timestamp": "2020-01-01T00:00:00Z"})).memory
    written = [(await service.status()).last_write]
    clock.advance(minutes=1)
    await service.update(memory.id, {"content": "green tea"})
    written.append((await service.status()).last_write)
    clock.advance(minutes=1)
    await service.search("green")
    await service.settle()
    written.append((await service.status()).last_write)
    await service.forget(memory.id)
    written.append((await service.status()).last_write)
    assert [moment and moment[11:16] for moment in written] == ["12:00", "12:01", "12:01", "12:02"]


async def test_closing_finishes_what_was_begun_and_may_be_repeated(service: MemoryService, folder: Path) -> None:
    memory = (await service.store({"content": "peppermint tea"})).memory
    await service.open(memory.id)
    await service.close()
    await service.close()
    assert memory.id in (folder / "scratchpad.yaml").read_text()
    assert b'"op": "touch"' in (folder / "memories.yaml").read_bytes()
    assert (folder / "events.jsonl").exists()
