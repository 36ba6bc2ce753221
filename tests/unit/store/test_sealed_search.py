"""A search answers alike, scores included, whatever part of the journal is sealed."""

from __future__ import annotations

import contextlib
import random
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("numpy")

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import StorageError
from agent_memory.files.names import VECTORS
from agent_memory.memory.scratchpad_entries import Selection
from agent_memory.models import MEMORY, Memory
from agent_memory.storage import FileStorage
from agent_memory.store.segment_builder import seal_up
from tests.support import NOON, FrozenClock, memory_of, scale_examples

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.embeddings import EmbedderIdentity
    from agent_memory.models import SearchResults

WORDS = [f"word{number}" for number in range(30)]
QUESTIONS = [*WORDS[:4], " ".join(WORDS[4:8]), " ".join(WORDS[:4]), f"does Kate {WORDS[0]}", f"does Rita {WORDS[1]}"]
QUESTIONS += ["", "what is it?", f"{WORDS[2]}?", "\U0001f680 \u6570\u636e"]
OPERATIONS = ("store", "store", "store", "update", "delete", "touch", "seal", "seal without vectors", "compact", "open")
LONG_AGO = timedelta(days=60)
"""Beyond the grace time of a compaction."""

EMBEDDER = HashEmbedder(dimension=8192)
"""Four different words make numbers of one half, which halves of floats hold exactly: so all cosines are the same."""


Told = tuple[str, float, str, float | None]
"""What is compared of a hit: its id, its score, how it was found, how sure it is; at the end, of the whole answer."""


def opened(root: Path, clock: FrozenClock) -> FileStorage:
    return FileStorage("bob", root, clock=clock, embedder=EMBEDDER)


async def answers(root: Path, clock: FrozenClock, **filters: Any) -> list[list[Told]]:
    """Return what a session finds that begins now."""
    storage = opened(root, clock)
    await storage.prepare(None)
    found = [await storage.search(question, 8, filters) for question in QUESTIONS]
    await storage.close()
    return [_told(results) for results in found]


def _told(found: SearchResults) -> list[Told]:
    hits = [(hit.memory.id, hit.relevance_score, hit.match_type, hit.answer_confidence) for hit in found]
    every = [*hits, ("", 0, found.match or "", found.answer_confidence)]
    return [(one, round(score, 9), said, None if sure is None else round(sure, 9)) for one, score, said, sure in every]


async def replayed(root: Path, clock: FrozenClock, **filters: Any) -> list[list[Told]]:
    """Return what `answers` does where nothing is sealed."""
    copy = root.with_name("copy")
    # A child that seals goes on after its session is closed: what it writes appears and goes while this copies.
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("derived", f"{VECTORS}*"))
    return await answers(copy, clock, **filters)


class Session:
    """Does one thing after another, at random.

    Args:
        root: Of the storage.
        clock: The present.
        seed: Of what is chosen.
    """

    def __init__(self, root: Path, clock: FrozenClock, seed: int) -> None:
        self.choose = random.Random(seed)
        self._root, self._clock = root, clock
        self._storage = opened(root, clock)
        self._ids: list[str] = []

    def _text(self) -> str:
        if self.choose.random() < 0.1:
            return f"{self.choose.choice(WORDS)}?"
        *words, last = self.choose.sample(WORDS, 4)
        return f"{' '.join(words)}{self.choose.choice([f' {last}', ', Kate?'])}"

    async def _store(self) -> None:
        stored = self._clock() - timedelta(minutes=self.choose.randrange(10_000))
        older = self.choose.choice(self._ids) if self._ids and self.choose.random() < 0.2 else None
        memory = Memory(
            agent_id="bob",
            content=self._text(),
            timestamp=stored,
            supersedes=older,
            created_by_session=self.choose.choice(["", "talk"]),
            trust=self.choose.choice(["low", "medium", "medium", "high"]),
        )
        await self._storage.store(memory)
        self._ids.append(memory.id)

    async def do(self, operation: str) -> None:
        """Do one of `OPERATIONS`; where there is nothing to change yet, store."""
        if operation.startswith("seal"):
            await self._storage.prepare(None)
            identity = EMBEDDER.identity if operation == "seal" else None
            with contextlib.suppress(StorageError):  # a compaction behind the answer removes what is unfinished
                seal_up(self._storage.folder, MEMORY, identity, least=1)
        elif operation == "compact":
            await self._storage.compact()
        elif operation == "open":
            await self.close()
            self._storage = opened(self._root, self._clock)
        elif operation == "store" or not self._ids:
            await self._store()
        else:
            await self._change(operation, self.choose.choice(self._ids))

    async def _change(self, operation: str, memory_id: str) -> None:
        if operation == "update":
            await self._storage.update(memory_id, {"content": self._text()})
        elif operation == "touch":
            await self._storage.touch([memory_id])
        else:
            for gone in [memory_id, *await self._storage.older_versions(memory_id)]:
                self._ids.remove(gone)
            await self._storage.delete(memory_id)

    async def close(self) -> None:
        await self._storage.close()


@pytest.mark.parametrize("seed", range(scale_examples(8)))
async def test_a_search_finds_the_same_with_the_same_scores_whatever_is_sealed(tmp_path: Path, seed: int) -> None:
    clock = FrozenClock(NOON - LONG_AGO)
    session = Session(tmp_path / "root", clock, seed)
    for at in range(30):
        if at == 15:
            clock.advance(days=60)
        await session.do(session.choose.choice(OPERATIONS))
    await session.do("store")
    await session.close()

    assert await answers(tmp_path / "root", clock) == await replayed(tmp_path / "root", clock)


@pytest.mark.parametrize("sealed", [0.5, 1.0])
async def test_hundreds_are_found_in_the_same_order_as_surely_whatever_is_sealed(
    tmp_path: Path, clock: FrozenClock, sealed: float
) -> None:
    choose, root = random.Random(7), tmp_path / "root"
    trusts, sessions = ("low", "medium", "high"), ("", "first", "second")
    memories = [
        memory_of(
            f"{' '.join(choose.sample(WORDS, 4))}{choose.choice(['', '?'])}",
            timestamp=clock() - timedelta(minutes=number // 3),  # some were stored in the same moment
            trust=choose.choice(trusts),
            tags=choose.choice([[], ["blue"]]),
            created_by_session=choose.choice(sessions),
        )
        for number in range(240)  # fewer than a child would seal meanwhile
    ]
    storage, cut = opened(root, clock), int(sealed * 240)
    await storage.store_many(memories[:cut])
    await storage.prepare(None)
    folder = storage.folder
    await storage.close()
    assert seal_up(folder, MEMORY, EMBEDDER.identity, least=1)
    storage = opened(root, clock)
    await storage.store_many(memories[cut:])
    await storage.close()

    assert await answers(root, clock) == await replayed(root, clock)
    shutil.rmtree(tmp_path / "copy")
    assert await answers(root, clock, tags=["blue"]) == await replayed(root, clock, tags=["blue"])


@pytest.mark.parametrize("identity", [None, EMBEDDER.identity], ids=["held vectors", "sealed vectors"])
async def test_what_a_person_said_is_found_among_hundreds_of_a_strangers_copies(
    tmp_path: Path, clock: FrozenClock, identity: EmbedderIdentity | None
) -> None:
    question = " ".join(WORDS[:4])
    said = memory_of(f"{question} is in Lisbon")
    copies = [memory_of(f"{question} {question}", trust="low", timestamp=clock()) for _ in range(240)]  # as above
    storage = opened(tmp_path, clock)
    await storage.store_many([said, *copies])
    await storage.prepare(None)
    folder = storage.folder
    await storage.close()
    assert seal_up(folder, MEMORY, identity, least=1)
    storage = opened(tmp_path, clock)
    await storage.prepare(None)
    found = await storage.search(question)
    await storage.close()

    assert found[0].memory.id == said.id
    assert not found.not_known


async def test_sealed_memories_without_vectors_have_them_once_a_storage_is_prepared(
    tmp_path: Path, clock: FrozenClock
) -> None:
    storage = opened(tmp_path, clock)
    await storage.store(memory_of("the parser needs Redis"))
    folder = storage.folder
    await storage.close()
    assert seal_up(folder, MEMORY, None, least=1)

    storage = opened(tmp_path, clock)
    assert await storage.prepare(None)
    (hit,) = await storage.search("parser")
    await storage.close()

    assert hit.match_type == "hybrid"
    assert hit.parts["cosine"] == pytest.approx(0.5)


async def test_memories_whose_vectors_are_sealed_later_are_found_once(tmp_path: Path, clock: FrozenClock) -> None:
    embedder = HashEmbedder(dimension=8192, synonyms={"automobile": "car"})
    storage = FileStorage("bob", tmp_path, clock=clock, embedder=embedder)
    await storage.store_many([memory_of(f"car {word}") for word in WORDS])
    folder = storage.folder
    await storage.close()
    assert seal_up(folder, MEMORY, None, least=1)

    storage = FileStorage("bob", tmp_path, clock=clock, embedder=embedder)
    assert await storage.prepare(None)
    held = await storage.search("automobile", limit=100)
    assert seal_up(folder, MEMORY, embedder.identity, least=1)
    assert storage.opened.upkeep.opening().adopt(storage.opened)  # type: ignore[attr-defined]
    sealed = await storage.search("automobile", limit=100)
    await storage.close()

    assert {hit.memory.id for hit in held} == {hit.memory.id for hit in sealed}
    assert held.total_found == sealed.total_found == len(WORDS)


async def test_an_access_leaves_a_memory_its_vector_beside_segments(tmp_path: Path, clock: FrozenClock) -> None:
    storage = opened(tmp_path, clock)
    await storage.store(memory_of("the parser needs Redis"))
    folder = storage.folder
    await storage.close()
    assert seal_up(folder, MEMORY, None, least=1)

    storage = opened(tmp_path, clock)
    later = memory_of("the ledger is in Lisbon")
    await storage.store(later)
    for question in ("parser", "ledger"):
        for _ in range(3):
            assert await storage.prepare(None)
            (hit,) = await storage.search(question)
            assert hit.match_type == "hybrid"
            await storage.touch([hit.memory.id])
    await storage.close()


async def test_the_last_moment_that_there_is_can_be_sealed(tmp_path: Path, clock: FrozenClock) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    storage = opened(tmp_path, clock)
    memory = memory_of("the parser needs Redis", timestamp=last, observed_at=last, expires_at=last)
    await storage.store(memory)
    folder = storage.folder
    await storage.close()
    assert seal_up(folder, MEMORY, None, least=1)

    storage = opened(tmp_path, clock)
    await storage.recent(Selection(3, 2))
    await storage.touch([memory.id])
    (hit,) = await storage.search("parser")
    await storage.close()
    assert (hit.memory.expires_at, hit.memory.observed_at) == (last, last)
    assert seal_up(folder, MEMORY, None, least=1)
    storage = opened(tmp_path, clock)
    assert [hit.memory for hit in await storage.search("parser")] == [hit.memory]
    await storage.close()


async def test_a_filter_finds_sealed_memories_whose_vectors_are_not_sealed_yet(
    tmp_path: Path, clock: FrozenClock
) -> None:
    storage = opened(tmp_path / "root", clock)
    await storage.store(memory_of("word0 word1", tags=["blue"]))
    folder = storage.folder
    await storage.close()
    assert seal_up(folder, MEMORY, None, least=1)
    storage = opened(tmp_path / "root", clock)
    await storage.store(memory_of("word1 word2 word3 word4 word5 word6", tags=["blue"]))
    await storage.close()

    found = await answers(tmp_path / "root", clock, tags=["blue"])
    assert [len(each) - 1 for each in found[:3]] == [1, 2, 1]
    assert found == await replayed(tmp_path / "root", clock, tags=["blue"])
