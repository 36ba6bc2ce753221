"""Moving an agent's memory from a program: asked, done and undone by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import agent_memory
from agent_memory import VectorStorage, memories
from agent_memory import storage as package
from agent_memory.embeddings import PROVIDERS, EmbeddingService, Provider
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, MigrationProgress, detect_storage, rollback_migration, should_migrate
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("qdrant_edge")


@pytest.fixture
def with_embedder(monkeypatch: pytest.MonkeyPatch) -> HashEmbedder:
    """Let the default embedder be one without a model."""
    embedder = HashEmbedder(synonyms={"db": "database"})
    monkeypatch.setitem(PROVIDERS, "local", Provider(make=lambda _: embedder))
    return embedder


async def test_a_program_asks_moves_and_goes_back(root: Path, with_embedder: HashEmbedder) -> None:
    settings = ServiceSettings(migration_threshold=3)
    source = FileStorage("bob", root, settings=settings)
    for number in range(2):
        await source.store(memory_of(f"decision {number}: PostgreSQL is the database"))
    assert not should_migrate("bob", root, settings=settings)
    await source.store(memory_of("releases go out on Tuesdays"))
    assert should_migrate("bob", root, settings=settings)
    assert not should_migrate("bob", root, settings=ServiceSettings(backend="file", migration_threshold=3))
    moved = VectorStorage("bob", root, settings=settings, wanted=False)
    progress = await moved.migrate_from_file(source)
    assert progress == MigrationProgress(3, 3)
    assert (progress.is_complete, progress.percent_complete) == (True, 100.0)
    assert not should_migrate("bob", root, settings=settings)
    found = await moved.search("db")
    assert (found.mode, len(found)) == ("hybrid", 2)
    await moved.close()
    await source.close()
    detected = detect_storage("bob", root, settings=settings)
    assert isinstance(detected, VectorStorage)
    await detected.close()
    assert await rollback_migration("bob", root, settings=settings)
    assert not await rollback_migration("bob", root, settings=settings)
    back = detect_storage("bob", root, settings=settings)
    assert (back.backend, await back.count()) == ("file", 3)
    await back.close()


async def test_what_lies_elsewhere_is_taken_over(root: Path, tmp_path: Path, with_embedder: HashEmbedder) -> None:
    source, moved = FileStorage("bob", tmp_path / "old"), VectorStorage("bob", root, wanted=False)
    await source.store(memory_of("tea"))
    assert (await moved.migrate_from_file(source)).total == 1
    assert [memory.content async for memory in moved.iter_all()] == ["tea"]
    assert await source.count() == 1
    carol = FileStorage("carol", tmp_path / "old")
    await carol.store(memory_of("coffee", agent_id="carol"))
    with pytest.raises(ValidationError):
        await moved.migrate_from_file(carol)
    for storage in (source, moved, carol):
        await storage.close()


def test_progress_of_nothing_is_complete() -> None:
    assert MigrationProgress(0, 0).percent_complete == 100
    assert MigrationProgress(1, 3).percent_complete == 33.3
    assert not MigrationProgress(1, 3).is_complete


async def test_a_model_is_chosen_by_its_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not a real one")
    storage = VectorStorage("bob", root, embedding_model="text-embedding-3-small")
    assert isinstance(storage.opened.embeddings, EmbeddingService)
    assert storage.opened.embeddings.identity().model == "text-embedding-3-small"
    await storage.close()
    with pytest.raises(ConfigurationError):
        VectorStorage("bob", root, embedding_model="no-such-model")


def test_the_names_are_those_of_one_place() -> None:
    assert agent_memory.VectorStorage is memories.VectorStorage is package.VectorStorage is VectorStorage
