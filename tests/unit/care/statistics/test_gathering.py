"""The figures of an agent on real files."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.statistics import CaptureCounts, EmbeddedTexts, statistics_of
from agent_memory.embeddings import text_hash
from agent_memory.embeddings.cache import VectorCache
from agent_memory.embeddings.testing import HashEmbedder
from tests.support import NOON

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from tests.support import FrozenClock


async def test_an_empty_memory_has_no_figures(service: MemoryService) -> None:
    found = await statistics_of(service, NOON)
    assert (found.memories, found.weeks, found.most_used, found.never_used_share) == (0, (), (), None)


async def test_what_there_is_is_counted_by_what_it_is(service: MemoryService) -> None:
    first = await service.store({"content": "Use PostgreSQL for the ledger.", "category": "decision", "pinned": True})
    await service.store(
        {"content": "Maria likes tea.", "category": "preference", "group": "acme:support", "project": "desk"}
    )
    await service.store({"content": "Use MySQL for the ledger.", "category": "decision", "supersedes": first.memory.id})
    found = await statistics_of(service, NOON)
    assert (found.memories, found.superseded, found.pinned, found.items) == (3, 1, 1, 0)
    assert found.by_category == {"decision": 2, "preference": 1}
    assert found.by_source == {"assistant": 3}
    assert found.by_group == {"acme:support": 1}
    assert found.by_project == {"desk": 1}
    assert sum(found.by_trust.values()) == 3
    assert {"journals"} <= found.sizes.keys()


async def test_statistics_of_an_expired_memory_hide_its_text(service: MemoryService, clock: FrozenClock) -> None:
    memory = (
        await service.store({"content": "The sandbox closes soon.", "expires_at": clock() + timedelta(days=1)})
    ).memory
    await service.storage.touch([memory.id])
    assert len((await statistics_of(service, clock())).most_used) == 1
    found = await statistics_of(service, clock() + timedelta(days=2))
    assert (found.memories, found.most_used) == (1, ())


async def test_use_is_counted_and_the_most_used_come_first(service: MemoryService, clock: FrozenClock) -> None:
    ids = [(await service.store(f"Number {place} of the list is {'x' * place}")).memory.id for place in range(4)]
    clock.advance(days=7)
    for memory_id, times in zip(ids, (1, 3, 2, 0), strict=True):
        for _ in range(times):
            await service.open(memory_id)
            await service.settle()
    found = await statistics_of(service, clock(), most_used=2)
    assert (found.accesses, found.never_used, found.never_used_share) == (6, 1, 0.25)
    assert [(each.id, each.accesses) for each in found.most_used] == [(ids[1], 3), (ids[2], 2)]
    assert [(week.stored, week.used) for week in found.weeks] == [(4, 0), (0, 3)]


async def test_texts_with_a_vector_are_found_embedded(service: MemoryService, root: Path) -> None:
    texts = ["Use PostgreSQL for the ledger.", "Maria likes tea."]
    for text in texts:
        await service.store(text)
    assert (await statistics_of(service, NOON)).embedded == EmbeddedTexts(2, 0)
    embedder = HashEmbedder()
    cache = VectorCache(root / "bob" / "embeddings.sqlite3")
    cache.put_many(embedder.identity, {text_hash(texts[0]): embedder.embed_documents([texts[0]])[0]})
    cache.close()
    assert (await statistics_of(service, NOON)).embedded == EmbeddedTexts(2, 1)
    (root / "bob" / "embeddings.sqlite3").write_bytes(b"no database")
    assert (await statistics_of(service, NOON)).embedded == EmbeddedTexts(2, 0)


async def test_what_became_of_captures_is_told_from_the_log(service: MemoryService, root: Path) -> None:
    kept = (await service.store("Use PostgreSQL for the ledger.")).memory.id
    gone, lost = "mem-00000000000a", "mem-00000000000b"
    at = (NOON - timedelta(days=1)).isoformat()
    lines = [
        *({"at": at, "event": "memory:captured", "memory_id": each} for each in (kept, gone, lost)),
        {"at": at, "event": "memory:forgotten", "memory_id": gone},
        {"at": "soon", "event": "memory:forgotten", "memory_id": "mem-00000000000c"},
    ]
    log = root / "bob" / "events.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{torn")
    found = await statistics_of(service, NOON)
    assert found.captures == CaptureCounts(captured=3, kept=1, forgotten=1)
    assert found.weeks[-1].forgotten == 1
    log.unlink()
    log.mkdir()
    assert (await statistics_of(service, NOON)).captures == CaptureCounts()


@pytest.mark.parametrize("part", ["scratchpad", "journals", "others"])
async def test_files_are_told_by_what_they_hold(service: MemoryService, part: str) -> None:
    await service.store("Use PostgreSQL for the ledger.")
    await service.settle()
    assert (await statistics_of(service, NOON)).sizes[part] > 0
