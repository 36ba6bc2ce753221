"""BM25: weights, scores, removal, and equality of an index in one part, in several, and built again."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agent_memory.index.parts import PartList, WordScorer
from agent_memory.index.results import IndexedDocument, RankingSettings
from agent_memory.index.segment import Chain, Segment, SegmentInfo
from agent_memory.index.segment_part import SealedCorpus
from agent_memory.index.segment_writer import Row, seal, searched_fields
from agent_memory.models import Document, SearchFilters
from tests.rows import check_rows

if TYPE_CHECKING:
    from pathlib import Path

_WORDS = ["ledger", "database", "cart", "mail", "backup", "friday"]
_STORED = datetime(2026, 1, 30, tzinfo=UTC)
_EVERYTHING = SearchFilters(include_items=True)
_PLAIN = 10**9
_SETTINGS = RankingSettings()


def _document(number: int, words: list[str]) -> Document:
    return Document(f"mem-{number}", " ".join(words), (), _STORED, _STORED)


def _put(parts: PartList, number: int, words: list[str]) -> IndexedDocument:
    entry = IndexedDocument(_document(number, words), number)
    parts.buffer.entries[entry.document.id] = entry
    parts.buffer.add(entry)
    return entry


def _scorer(texts: list[list[str]], arrays_from: int = _PLAIN, sealed: SealedCorpus | None = None) -> WordScorer:
    parts = PartList(sealed, arrays_from)
    for number, words in enumerate(texts, len(sealed.chain) if sealed is not None else 0):
        _put(parts, number, words)
    return WordScorer(parts, _SETTINGS, items=True)


def _sealed(folder: Path, texts: list[list[str]], parts: int) -> SealedCorpus:
    """Seal texts in segments of equal size."""
    segments = []
    for place in range(parts):
        rows = [
            Row(id=document.id, seq=1, data=b"{}", text_hash=bytes(32), arrival=number, **searched_fields(document))
            for number, words in list(enumerate(texts))[place * len(texts) // parts : (place + 1) * len(texts) // parts]
            for document in [_document(number, words)]
        ]
        (folder / str(place)).mkdir()
        seal(folder / str(place), rows, SegmentInfo("memory", place + 1, place + 1, 0, 0, 0))
        segments.append(Segment(folder / str(place)))
    return SealedCorpus(Chain(segments), [None] * parts)


def _best(scorer: WordScorer, weights: dict[str, float], count: int = 10**6) -> list[tuple[float, str]]:
    parts = scorer.parts
    best = parts.best(scorer.gains(weights), scorer.norm, count, parts.masks(_EVERYTHING))
    return [(score, parts.get_id(number)) for score, number in best]


def _best_ids(scorer: WordScorer, weights: dict[str, float], count: int) -> list[str]:
    return [record_id for _, record_id in _best(scorer, weights, count)]


def _count(scorer: WordScorer, weights: dict[str, float]) -> int:
    parts = scorer.parts
    return parts.how_many(scorer.gains(weights), parts.masks(_EVERYTHING))


def test_best_rare_term_outweighs_common_one() -> None:
    scorer = _scorer([["cart", "mail"], ["cart"], ["cart"], ["mail", "ledger"]])
    assert _best_ids(scorer, {"cart": 1.0, "ledger": 1.0}, 1) == ["mem-3"]


def test_best_shorter_document_scores_higher() -> None:
    (first, second) = _best(_scorer([["cart"] + ["filler"] * 20, ["cart", "filler"]]), {"cart": 1.0})
    assert (first[1], second[1]) == ("mem-1", "mem-0")
    assert first[0] > second[0]


def test_best_documents_without_term_are_left_out() -> None:
    assert _best_ids(_scorer([["cart"], ["mail"]]), {"mail": 1.0}, 9) == ["mem-1"]


def test_best_empty_index_scores_nothing() -> None:
    scorer = _scorer([])
    assert (_count(scorer, {"cart": 1.0}), _best(scorer, {"cart": 1.0})) == (0, [])


@check_rows("arrays_from", [0, _PLAIN])
def test_scores_after_removals_equal_those_of_new_index(arrays_from: int) -> None:
    choose, weights = random.Random(7), {"cart": 1.0, "mail": 2.0}
    texts = [choose.choices(_WORDS, k=choose.randint(1, 8)) for _ in range(600)]
    scorer, dead = _scorer(texts, arrays_from), set(choose.sample(range(600), 450))
    buffer = scorer.parts.buffer
    for number in dead:
        buffer.drop(buffer.entries.pop(f"mem-{number}"))
    parts = PartList(None, arrays_from)
    for number in range(600):
        if number not in dead:
            _put(parts, number, texts[number])
    assert _best(scorer, weights) == _best(WordScorer(parts, _SETTINGS, items=True), weights)
    assert scorer.documents == 150


@pytest.mark.parametrize("parts", [1, 3, 9])
@pytest.mark.parametrize("arrays_from", [0, _PLAIN])
def test_best_in_any_parts_is_the_same(tmp_path: Path, parts: int, arrays_from: int) -> None:
    """Of equal rows, of which six words make many, the later comes first in each part and across parts."""
    choose = random.Random(8)
    texts = [choose.choices(_WORDS, k=choose.randint(1, 3)) for _ in range(500)]
    whole = _scorer(texts)
    split = _scorer(texts[400:], arrays_from, _sealed(tmp_path, texts[:400], parts))
    for weights in ({"cart": 1.0, "mail": 2.0}, {"friday": 1.0}, {"ledger": 1.0, "backup": 1.0, "zebra": 1.0}):
        assert (split.gains(weights), split.norm) == (whole.gains(weights), whole.norm)
        assert _count(split, weights) == _count(whole, weights)
        for count in (1, 7, 60, 999):
            assert _best(split, weights, count) == _best(whole, weights, count)
        assert split.compute_scores(weights, range(500)) == whole.compute_scores(weights, range(500))
        windows = {number: (number - 1, number, number + 1) for number in range(1, 499, 7)}
        assert split.window_scores(weights, windows) == whole.window_scores(weights, windows)


def test_drop_last_document_of_term_removes_term() -> None:
    scorer = _scorer([["cart"], ["mail"]])
    scorer.parts.buffer.drop(scorer.parts.buffer.entries.pop("mem-0"))
    assert scorer.idf("cart") == 0.0
    assert _count(scorer, {"cart": 1.0}) == 0


def test_add_after_drop_takes_new_row() -> None:
    scorer = _scorer([["cart"]])
    parts = scorer.parts
    parts.buffer.drop(parts.buffer.entries.pop("mem-0"))
    assert _put(parts, 0, ["cart"]).number == 1


def test_window_of_one_scores_like_its_document() -> None:
    scorer = _scorer([["cart", "mail"], ["mail"], ["ledger"]])
    weights = {"cart": 1.0, "mail": 1.0}
    assert scorer.window_scores(weights, {0: (0,)}) == pytest.approx(scorer.compute_scores(weights, [0]))


def test_window_joins_words_of_its_documents() -> None:
    scorer = _scorer([["cart"], ["mail"], ["ledger"], ["mail"]])
    scores = scorer.window_scores({"cart": 1.0, "mail": 1.0}, {0: (0, 1), 2: (2, 3)})
    assert scores[0] > scores[2] > 0


def test_full_score_is_that_of_average_document() -> None:
    scorer = _scorer([["cart", "mail"], ["ledger", "backup"]])
    weights = {"cart": 1.0, "mail": 1.0}
    assert scorer.compute_scores(weights, [0])[0] == pytest.approx(scorer.full_score(weights))
