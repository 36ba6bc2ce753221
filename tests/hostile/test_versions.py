"""Two versions of this package on one folder: the older one reads on, writes nothing it cannot, drops nothing."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import TYPE_CHECKING

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import ReadOnlyError
from agent_memory.journal.format import encode_line
from agent_memory.memories import MigratableStorage
from tests.hostile.trouble import refusal, reopened
from tests.support import memory_of, raises, resealed

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


async def test_a_journal_of_a_newer_format_is_read_and_not_written(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("peppermint tea"))
    journal = storage.folder.journal
    first, _, rest = journal.read_bytes().partition(b"\n")
    journal.write_bytes(resealed(encode_line({**json.loads(first[4:]), "min_reader": 3, "generation": "later"})) + rest)
    before = journal.read_bytes()
    assert len(await storage.search("peppermint")) == 1
    for attempt in (storage.store(memory_of("coffee")), storage.compact()):
        with raises(ReadOnlyError, "newer_format") as refused:
            await attempt
        assert "upgrade" in refused.value.recovery.lower()
    assert journal.read_bytes() == before


LATER = {"at": "2026-03-01T12:00:00Z"}


async def test_a_newer_format_is_told_by_status(service: MemoryService, root: Path, clock: FrozenClock) -> None:
    await service.store({"content": "peppermint tea"})
    await service.settle()
    make_newer(root / "bob" / "memories.yaml")
    assert [hit.memory.content for hit in (await service.search("peppermint")).results] == ["peppermint tea"]
    health = (await service.status()).health
    assert health["status"] != "damaged"
    assert health["notes"] == ["memories.yaml was written by a newer version of agent-memory, so it is only read here."]
    assert (await refusal(service.store({"content": "coffee"})))["code"] == "newer_format"
    assert (await service.scratchpad()).entries[0].content == "peppermint tea"


async def test_a_session_notices_that_a_newer_version_took_over(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    """The other version compacts, as an upgrade does, while this session runs; then it is taken back."""
    await storage.store(memory_of("before"))
    journal = storage.folder.journal
    old = journal.read_bytes()
    make_newer(journal)
    assert (await refusal(storage.store(memory_of("refused"))))["code"] == "newer_format"
    journal.write_bytes(old)
    await storage.store(memory_of("after the downgrade"))
    assert await reopened(root, clock) == ["before", "after the downgrade"]


async def test_what_a_newer_version_wrote_survives_updates_and_compactions_of_this_one(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    memory_id = await storage.store(memory_of("tea"))
    journal = storage.folder.journal
    lines = [
        {"seq": 2, **LATER, "op": "patch", "kind": "memory", "id": memory_id, "data": {"mood": "calm"}},
        {"seq": 3, **LATER, "op": "weave", "kind": "memory", "id": memory_id, "data": {"into": "cloth"}},
        {"seq": 4, **LATER, "op": "put", "kind": "dream", "id": "dream-1", "data": {"of": "sheep"}},
    ]
    with journal.open("ab") as file:
        file.write(resealed(b"".join(map(encode_line, lines))))
    await storage.update(memory_id, {"content": "green tea"})
    clock.advance(days=60)
    await storage.compact()
    content = journal.read_text()
    for kept in ('"mood": "calm"', '"into": "cloth"', '"of": "sheep"'):
        assert kept in content
    assert (await storage.health())["status"] == "ok"
    assert await reopened(root, clock) == ["green tea"]


async def test_a_newer_description_of_the_folder_keeps_its_fields(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("fact number 1"))
    note = {"schema": 2, "backend": "constellation", "stars": 7}
    storage.folder.metadata.write_text(json.dumps(note))
    again = MigratableStorage("bob", root, embedder=HashEmbedder())
    assert again.backend == "file"
    assert len(await again.search("fact")) == 1
    await again.migrate()
    after = json.loads(storage.folder.metadata.read_text())
    assert (after["schema"], after["stars"], after["backend"]) == (2, 7, "vector")
    await again.close()
    await storage.close()


async def test_vectors_of_a_newer_version_are_left_to_it_and_searches_go_by_meaning_all_the_same(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("fact number 1"))
    await storage.prepare(None)
    await storage.close()
    with contextlib.closing(sqlite3.connect(storage.folder.vectors)) as database, database:
        database.execute("PRAGMA user_version = 7")
    before = storage.folder.vectors.read_bytes()
    again = MigratableStorage("bob", root, embedder=HashEmbedder())
    await again.prepare(None)
    assert (await again.search("fact")).mode == "hybrid"
    assert "newer version" in again.embedding_status()["problem"]
    await again.close()
    assert storage.folder.vectors.read_bytes() == before
    assert list(storage.folder.path.glob("*.broken")) == []


async def test_an_index_of_a_newer_version_is_built_anew(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("fact number 1"))
    built = await storage.migrate()
    await storage.close()
    state = storage.folder.index / built.shard / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "format": 9, "orbit": "low"}))
    again = MigratableStorage("bob", root, embedder=HashEmbedder())
    await again.prepare(None)
    assert await again.caught_up(30)
    assert (await again.search("fact")).mode == "hybrid"
    await again.close()


def make_newer(journal: Path) -> None:
    """Do to the header what a version that this one must not write for would do."""
    first, _, rest = journal.read_bytes().partition(b"\n")
    header = {**json.loads(first[4:]), "format": 3, "min_reader": 3, "generation": "later"}
    last = max(json.loads(line[4:])["seq"] for line in rest.splitlines())
    journal.write_bytes(resealed(encode_line({**header, "last_seq": last})) + rest)
