"""`EmbeddingGenerator`, the public face."""

import pytest

from agent_memory.embeddings import EmbeddingGenerator
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import EmbeddingError


@pytest.fixture
def generator() -> EmbeddingGenerator:
    return EmbeddingGenerator("hash", embedder=HashEmbedder(dimension=16))


async def test_one_text_gives_one_list_of_floats(generator: EmbeddingGenerator) -> None:
    vector = await generator.generate("Prefer PostgreSQL")
    assert len(vector) == generator.dimension == 16
    assert all(isinstance(number, float) for number in vector)


async def test_a_batch_keeps_its_order(generator: EmbeddingGenerator) -> None:
    texts = [f"text {number}" for number in range(25)]
    vectors = await generator.generate_batch(texts, batch_size=10)
    assert vectors == [await generator.generate(text) for text in texts]


async def test_an_empty_batch_is_empty(generator: EmbeddingGenerator) -> None:
    assert await generator.generate_batch([]) == []


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_a_blank_text_is_refused(generator: EmbeddingGenerator, text: str) -> None:
    with pytest.raises(EmbeddingError, match="text 1 is blank"):
        await generator.generate_batch(["fine", text])


async def test_a_batch_size_below_one_is_refused(generator: EmbeddingGenerator) -> None:
    with pytest.raises(EmbeddingError, match="batch_size"):
        await generator.generate_batch(["x"], batch_size=0)


def test_local_work_costs_nothing() -> None:
    assert EmbeddingGenerator().estimate_cost(["x" * 1000]) == 0


def test_remote_work_is_estimated_by_list_price() -> None:
    generator = EmbeddingGenerator("text-embedding-3-small")
    assert generator.dimension == 1536
    assert generator.estimate_cost(["x" * 4000] * 1000) == pytest.approx(0.02)


def test_an_unknown_model_is_refused_with_the_known_names() -> None:
    with pytest.raises(EmbeddingError) as caught:
        EmbeddingGenerator("word2vec")
    assert "all-MiniLM-L6-v2" in caught.value.recovery


async def test_the_same_text_is_embedded_once() -> None:
    embedder = HashEmbedder(dimension=16)
    generator = EmbeddingGenerator("hash", embedder=embedder, cache_size=2)
    first = await generator.generate("tea")
    assert await generator.generate_batch(["tea", "coffee", "tea"]) == [
        first,
        await generator.generate("coffee"),
        first,
    ]
    assert embedder.embedded == ["tea", "coffee"]
    first.clear()
    assert len(await generator.generate("tea")) == 16, "what is handed out is the caller's own"
    await generator.generate("water")
    await generator.generate("coffee")
    assert embedder.embedded == ["tea", "coffee", "water", "coffee"], "the one used longest ago has made room"


async def test_a_local_model_costs_nothing(generator: EmbeddingGenerator) -> None:
    await generator.generate("tea")
    assert generator.cost == 0
