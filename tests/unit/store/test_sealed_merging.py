"""Merging segments takes their vectors along, and leaves none behind."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.index.segment import open_chain
from agent_memory.index.segment_vectors import PieceVectors, folder_name
from agent_memory.models import MEMORY, Listing
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store.segment_builder import seal_up
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.index.segment import Segment

EMBEDDER = HashEmbedder()


@pytest.fixture
def folder(tmp_path: Path) -> AgentFolder:
    return folder_of("bob", tmp_path)


async def stored(folder: AgentFolder, *texts: str, embedded: bool = True) -> None:
    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    await storage.store_many([memory_of(text) for text in texts])
    await storage.close()
    if embedded:
        embed(folder, *texts)


def embed(folder: AgentFolder, *texts: str) -> None:
    with closing(VectorCache(folder.vectors)) as cache:
        vectors = EMBEDDER.embed_documents(list(texts))
        assert cache.put_many(EMBEDDER.identity, dict(zip(map(text_hash, texts), vectors, strict=True)))


def sealed(folder: AgentFolder) -> tuple[Segment, ...]:
    """Seal what there is; return the segments."""
    seal_up(folder, MEMORY, EMBEDDER.identity, least=1)
    return open_chain(folder.segments("memory"), "memory").segments


def vectors_of(segment: Segment) -> PieceVectors:
    return PieceVectors(segment.folder / folder_name(str(EMBEDDER.identity)))


def assert_embedded(segment: Segment, *texts: str) -> None:
    hashes = [row.tobytes() for row in segment.columns["piece.hash"]]
    assert hashes == [text_hash(text) for text in texts]
    expected = EMBEDDER.embed_documents(list(texts))
    found = vectors_of(segment)
    assert np.allclose(found.of(slice(None)), expected, atol=1e-3)
    assert [found.distances(vector)[at] for at, vector in enumerate(expected)] == [0] * len(texts)


async def test_a_merge_takes_vectors_from_the_segments_and_not_from_the_cache(folder: AgentFolder) -> None:
    await stored(folder, "one tea", "two teas")
    (first,) = sealed(folder)
    assert_embedded(first, "one tea", "two teas")

    with closing(VectorCache(folder.vectors)) as cache:
        cache.forget([text_hash("one tea"), text_hash("two teas")])
    await stored(folder, "three cups")

    (merged,) = sealed(folder)
    assert_embedded(merged, "one tea", "two teas", "three cups")


async def test_a_merge_leaves_out_the_vectors_of_what_was_deleted(folder: AgentFolder) -> None:
    await stored(folder, "one tea", "two teas", "three cups")
    sealed(folder)
    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    (gone,) = [memory.id async for memory in storage.iter_all() if memory.content == "two teas"]
    await storage.delete(gone)
    await storage.close()
    await stored(folder, "four pots")

    (merged,) = sealed(folder)
    assert_embedded(merged, "one tea", "three cups", "four pots")


async def test_deletions_alone_are_merged_too(folder: AgentFolder) -> None:
    await stored(folder, "one tea", "two teas")
    sealed(folder)
    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    (gone,) = [memory.id async for memory in storage.iter_all() if memory.content == "two teas"]
    await storage.delete(gone)
    await storage.close()

    (merged,) = sealed(folder)
    assert_embedded(merged, "one tea")


async def test_a_segment_with_vectors_waits_for_those_of_the_next_one(folder: AgentFolder) -> None:
    await stored(folder, "one tea", "two teas")
    sealed(folder)
    await stored(folder, "three cups", embedded=False)

    first, second = sealed(folder)
    assert_embedded(first, "one tea", "two teas")
    assert not list(second.folder.glob("*vectors-*")), "nothing of the attempt is left"

    embed(folder, "three cups")
    (merged,) = sealed(folder)
    assert_embedded(merged, "one tea", "two teas", "three cups")


async def test_segments_that_never_get_vectors_do_not_become_ever_more(folder: AgentFolder) -> None:
    for number in range(14):
        await stored(folder, f"number {number}", embedded=number % 2 == 0)
        assert len(sealed(folder)) < 12


async def test_accesses_count_as_what_is_to_be_sealed(folder: AgentFolder) -> None:
    await stored(folder, *(f"number {number}" for number in range(5)))
    sealed(folder)
    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    every = [memory.id async for memory in storage.iter_all()]
    await storage.touch(every[:3])
    await storage.touch(every[:3])
    assert storage.opened.state.unsealed_count == 3
    await storage.close()

    assert not seal_up(folder, MEMORY, None, least=4)
    assert seal_up(folder, MEMORY, None, least=3)


async def test_more_accesses_than_a_column_counts_do_not_keep_a_record_from_being_sealed(folder: AgentFolder) -> None:
    often = memory_of("often", access_count=2**40)
    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    await storage.store_many([often, memory_of("never")])
    await storage.close()
    sealed(folder)

    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    listed = await storage.browse(Listing("accessed"))
    assert storage.opened.state.table.records == {}
    assert [memory.access_count for memory in listed.records] == [2**40, 0]
    await storage.close()


async def test_accesses_that_are_sealed_alone_leave_the_moment_of_the_last_change(folder: AgentFolder) -> None:
    await stored(folder, "one", "two")
    sealed(folder)
    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    expected = await storage.last_change()
    await storage.touch([memory.id async for memory in storage.iter_all()])
    await storage.close()
    sealed(folder)

    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    assert expected is not None
    assert await storage.last_change() == expected
    await storage.close()


async def test_few_rows_are_one_segment_however_they_came(folder: AgentFolder) -> None:
    await stored(folder, *(f"number {number}" for number in range(30)))
    sealed(folder)
    await stored(folder, "one more")

    (merged,) = sealed(folder)
    assert len(merged) == 31
