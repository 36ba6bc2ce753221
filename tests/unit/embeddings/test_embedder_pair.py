"""A pair of embedders: joined vectors, of which each model has rows and columns of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from agent_memory.embeddings import EmbedderIdentity, EmbeddingWorker, VectorCache, text_hash
from agent_memory.embeddings.embedder_pair import ENGLISH_SHARE, FOREIGN_SHARE, EmbedderPair
from agent_memory.embeddings.testing import HashEmbedder

if TYPE_CHECKING:
    from pathlib import Path

GERMAN = {"katze": "cat", "schläft": "sleeps"}


@pytest.fixture
def pair() -> EmbedderPair:
    return EmbedderPair(HashEmbedder(), HashEmbedder(96, GERMAN, model="foreign"))


def embed_all(worker: EmbeddingWorker, texts: list[str]) -> None:
    worker.submit({text_hash(text): text for text in texts})
    assert worker.drain(20)
    worker.close()


def test_pair_vectors_are_unit_vectors(pair: EmbedderPair) -> None:
    rows = pair.embed_documents(["The cat sleeps.", "A house"])
    assert rows.shape == (2, 64 + 96) == (2, pair.dimension)
    assert np.linalg.norm([*rows, pair.embed_query("Wo schläft die Katze?")], axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("question", "share"),
    [
        ("Who sleeps with the cat?", ENGLISH_SHARE),
        ("Кто спит?", FOREIGN_SHARE),
        ("Für wen spielte John Elway im Super Bowl?", FOREIGN_SHARE),
    ],
)
def test_pair_query_favours_the_model_of_its_language(pair: EmbedderPair, question: str, share: float) -> None:
    lengths = [np.linalg.norm(part) for part in np.split(pair.embed_query(question), [64])]
    assert lengths[1] / sum(lengths) == pytest.approx(share)


def test_pair_identity_survives_json(pair: EmbedderPair) -> None:
    identity = pair.identity
    assert EmbedderIdentity.from_json(identity.to_json()) == identity
    assert [part.model for part in identity.members] == ["hash", "foreign"]
    assert json.loads(identity.parts[0].to_json())["parts"] == []


def test_pair_reuses_the_cached_vectors_of_one_model(tmp_path: Path, pair: EmbedderPair) -> None:
    path, texts = tmp_path / "embeddings.sqlite3", ["The cat sleeps.", "A house"]
    embed_all(EmbeddingWorker(HashEmbedder(), VectorCache(path)), texts)
    embed_all(EmbeddingWorker(pair, VectorCache(path)), texts)
    english, foreign = pair.parts
    assert isinstance(english, HashEmbedder)
    assert isinstance(foreign, HashEmbedder)
    assert english.embedded == []
    assert set(foreign.embedded) == set(texts)


def test_pair_vectors_are_cached_by_model(tmp_path: Path, pair: EmbedderPair) -> None:
    cache, text = VectorCache(tmp_path / "embeddings.sqlite3"), "The cat sleeps."
    worker = EmbeddingWorker(pair, cache)
    embed_all(worker, [text])
    key = text_hash(text)
    ((_, arrived),) = worker.collect()
    for part in pair.parts:
        assert cache.get_many(part.identity, [key])[key] == pytest.approx(part.embed_documents([text])[0], abs=0.01)
    assert (cache.get_many(pair.identity, [key])[key] == arrived).all()
    cache.close()


def test_pair_text_without_one_vector_is_unknown(tmp_path: Path, pair: EmbedderPair) -> None:
    cache, key = VectorCache(tmp_path / "embeddings.sqlite3"), text_hash("A house")
    cache.put_many(pair.parts[0].identity, {key: pair.parts[0].embed_documents(["A house"])[0]})
    assert cache.get_many(pair.identity, [key]) == {}
    cache.close()
