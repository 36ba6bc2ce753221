"""Standing instructions in an answer: which places they may take, and from which results."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typing_extensions import override

from agent_memory.embeddings import EmbeddingWorker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.index import DenseIndex, SearchIndex
from agent_memory.models import MEMORY, Memory, SearchFilters, SearchRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.index.results import Ranking

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)
REQUEST = "plan supper friends music garden candles"
WORDS = REQUEST.split()
NOUNS = ("tent", "roof", "loom", "barn", "ship", "lamp", "gate", "rail", "mill", "desk", "wall", "yard", "path", "pond")
NOTES = tuple(f"{WORDS[number % len(WORDS)]} {noun}" for number, noun in enumerate(NOUNS))
BEST = "plan supper"
VEGAN = "vegan only"


class CosineEmbedder(HashEmbedder):
    """Embedder with given cosines of documents to each question: 0.6 for the best note, 0.25 for others."""

    def __init__(self, cosines: dict[str, float]) -> None:
        super().__init__(dimension=2)
        self.similarity_threshold = 0.15
        self._cosines = cosines

    @override
    def embed_query(self, text: str) -> Vector:
        return np.array([1, 0], np.float32)

    @override
    def _row(self, text: str) -> list[float]:
        cosine = self._cosines.get(text, 0.6 if text == BEST else 0.25)
        return [cosine, math.sqrt(1 - cosine**2)]


class FilledIndex:
    """Index with notes that share a word with the request, and records that share none.

    Args:
        notes: Texts of the notes after the best one, each with the cosine of 0.25.
        cosines: Cosines of other texts.
        low_trust: Text of low trust among these.
        fields: Fields of the other records of these texts.
    """

    def __init__(self, notes: tuple[str, ...], cosines: dict[str, float], low_trust: str = "", **fields: Any) -> None:
        self._worker = EmbeddingWorker(CosineEmbedder(cosines))
        self.index = SearchIndex(vectors=DenseIndex(self._worker))
        notes = (BEST, *notes)
        self.others = [text for text in cosines if text not in notes]
        for number, text in enumerate([*notes, *self.others]):
            memory = {"agent_id": "bob", "id": f"mem-{number:012x}", "content": text, "timestamp": NOW}
            if text == low_trust:
                memory["trust"] = "low"
            elif text in self.others:
                memory |= fields
            self.index.put(MEMORY.document(Memory.model_validate(memory)))
        self._first = len(notes)
        self.index.warm()
        assert self._worker.drain(10)

    def close(self) -> None:
        """End the thread of the embedder."""
        self._worker.close()

    def search(self, limit: int = 10, text: str = REQUEST, **filters: Any) -> Ranking:
        """Return the answer to a request."""
        return self.index.search(SearchRequest(text, limit, NOW, SearchFilters.model_validate(filters)))

    def list_places(self, limit: int = 10, text: str = REQUEST) -> dict[str, int]:
        """Return the place of each record that is not a note, from 1."""
        numbers = [int(hit.id[4:], 16) for hit in self.search(limit, text).hits]
        placed = [(number - self._first, place) for place, number in enumerate(numbers, 1) if number >= self._first]
        return {self.others[number]: place for number, place in placed}


@pytest.fixture
def opened() -> Iterator[list[FilledIndex]]:
    indexes: list[FilledIndex] = []
    yield indexes
    for index in indexes:
        index.close()


@pytest.fixture
def fill(opened: list[FilledIndex]) -> Any:
    def build(notes: tuple[str, ...], cosines: dict[str, float], low_trust: str = "", **fields: Any) -> FilledIndex:
        opened.append(FilledIndex(notes, cosines, low_trust, **fields))
        return opened[-1]

    return build


@pytest.mark.parametrize("category", ["preference", "pattern", "convention", "instruction"])
def test_instruction_without_shared_word_takes_fifth_place(fill: Any, category: str) -> None:
    filled = fill(NOTES, {VEGAN: 0.27}, category=category)
    assert filled.list_places() == filled.list_places(limit=5) == {VEGAN: 5}
    assert filled.search().hits[4].parts["instruction"] == 5
    assert filled.search().match == "weak"


def test_placed_instruction_keeps_order_of_others(fill: Any) -> None:
    plain = fill(NOTES, {VEGAN: 0.27}).search(limit=20).hits
    hits = fill(NOTES, {VEGAN: 0.27}, category="preference").search(limit=20).hits
    assert [hit.id for hit in hits] == [hit.id for hit in (*plain[:4], plain[15], *plain[4:15])]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all("instruction" not in hit.parts for hit in plain)


def test_nearest_instructions_take_three_places_of_ten(fill: Any) -> None:
    cosines = {"vegan only": 0.27, "no nuts": 0.3, "seated outside": 0.28, "before eight": 0.26}
    filled = fill(NOTES, cosines, category="preference")
    assert filled.list_places() == {"no nuts": 5, "seated outside": 9, "vegan only": 10}


def test_instruction_of_low_trust_keeps_its_place(fill: Any) -> None:
    assert fill(NOTES, {VEGAN: 0.27}, category="preference", trust="low").list_places() == {}


def test_strong_match_keeps_its_place(fill: Any) -> None:
    strong = tuple(f"{REQUEST} {number}" for number in range(10))
    assert fill(strong + NOTES, {VEGAN: 0.27}, category="preference").list_places() == {}


def test_strong_match_stays_among_ten(fill: Any) -> None:
    strong = f"{REQUEST} tonight"
    near = dict.fromkeys(NOTES[:8], 0.34)
    filled = fill(NOTES[:8], near | {VEGAN: 0.34, strong: 0.15}, category="preference", low_trust=strong)
    assert [hit.match for hit in filled.search().hits] == ["weak"] * 9 + ["strong"]
    assert filled.list_places() == {strong: 10}


@pytest.mark.parametrize(("cosine", "places"), [(0.29, {VEGAN: 5}), (0.27, {})])
def test_nearer_match_keeps_its_place(fill: Any, cosine: float, places: dict[str, int]) -> None:
    near = dict.fromkeys(NOTES[:10], 0.33)
    assert fill(NOTES[:10], near | {VEGAN: cosine}, category="preference").list_places() == places


def test_instruction_beyond_the_nearest_keeps_its_place(fill: Any) -> None:
    near = dict.fromkeys(NOTES[:12], 0.28)
    assert fill(NOTES, near | {VEGAN: 0.26}, category="preference").list_places() == {}


def test_short_answer_is_not_changed(fill: Any) -> None:
    filled = fill(NOTES[:2], {VEGAN: 0.27}, category="preference")
    assert filled.list_places() == {VEGAN: 4}
    assert "instruction" not in filled.search().hits[3].parts


def test_instruction_in_first_five_keeps_its_place(fill: Any) -> None:
    filled = fill(NOTES, {VEGAN: 0.7}, category="preference")
    assert filled.list_places() == {VEGAN: 2}
    assert "instruction" not in filled.search().hits[1].parts


def test_hit_of_named_time_keeps_its_place(fill: Any) -> None:
    fields = {"category": "preference", "timestamp": NOW - timedelta(days=90)}
    assert fill(NOTES, {VEGAN: 0.27}, **fields).list_places(text=f"{REQUEST} today") == {}
    assert fill(NOTES, {VEGAN: 0.27}, **fields).list_places() == {VEGAN: 5}


def test_answer_by_words_alone_is_not_changed() -> None:
    index = SearchIndex()
    for number, text in enumerate((*NOTES, "plan vegan")):
        memory = {"agent_id": "bob", "id": f"mem-{number:012x}", "content": text, "category": "preference"}
        index.put(MEMORY.document(Memory.model_validate(memory)))
    hits = index.search(SearchRequest(REQUEST, 20, NOW)).hits
    assert len(hits) == 15
    assert all("instruction" not in hit.parts for hit in hits)
