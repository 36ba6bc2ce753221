"""A question is embedded once, whoever asks it at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from agent_memory.compat.leonidas_records import QueryCache
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.lifecycle import MemoryEntry, MemoryStore, MemoryStoreConfig

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.embeddings.protocol import Vector


class Counting(HashEmbedder):
    """Counts questions."""

    cost = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed_query(self, text: str) -> Vector:
        self.asked.append(text)
        return super().embed_query(text)


def test_many_threads_that_ask_the_same_ask_the_embedder_once() -> None:
    embedder = Counting()
    once = QueryCache(embedder)
    with ThreadPoolExecutor(4) as threads:
        vectors = list(threads.map(once.embed_query, ["ferry"] * 8))
    assert embedder.asked == ["ferry"]
    assert all(np.array_equal(each, HashEmbedder().embed_query("ferry")) for each in vectors)
    once.embed_query("boat")
    once.embed_query("ferry")
    assert embedder.asked == ["ferry", "boat", "ferry"]


def test_all_else_is_that_of_the_embedder() -> None:
    embedder = Counting()
    once = QueryCache(embedder)
    assert (once.identity, once.dimension, once.cost) == (embedder.identity, embedder.dimension, 0.5)
    assert once.similarity_threshold == embedder.similarity_threshold
    assert np.array_equal(once.embed_documents(["a", "b"]), embedder.embed_documents(["a", "b"]))


async def test_a_store_embeds_a_question_once_for_memories_and_once_for_all_others(root: Path) -> None:
    embedder = Counting()
    async with MemoryStore(MemoryStoreConfig(storage_path=str(root)), embedder=embedder) as store:
        for entry_type in ("insight", "interaction", "context"):
            await store.store_entry(
                MemoryEntry(entry_type=entry_type, content={"text": f"The ferry, an {entry_type}."})
            )
        await store.retrieve_relevant("ferry")
        embedder.asked.clear()
        await store.retrieve_relevant("where is the boat")
    assert embedder.asked == ["where is the boat"] * 2
