"""A segment and the buffer answer each question about the same documents alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from numpy import array, uint64

from agent_memory.index import buffer_part
from agent_memory.index.parts import PartList, WordScorer
from agent_memory.index.results import IndexedDocument, RankingSettings
from agent_memory.index.segment import hash_id
from agent_memory.models import GROUP, SearchFilters, group_facets
from tests.unit.index.test_items_apart import mixed
from tests.unit.index.test_sealed_search import WORDS, sealed

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.models import Document

GONE = range(3, 500, 7)
FILTERS = [
    {},
    {"include_items": True},
    {"tags": ["db", "garden"]},
    {"all_tags": ["home"], "include_items": True},
    {"only_items": True, "include_items": True},
    {"date_range": {"start": "2026-01-01", "end": "2026-01-20"}},
    {"min_access_count": 2},
    {GROUP: "acme:one", "include_items": True},
]


def _documents() -> list[Document]:
    """Return notes and items, every fifth of them of a group and every sixth of low trust."""
    groups = {0: group_facets("acme:one"), 5: group_facets("beta:two")}
    return [
        document._replace(
            facets=(*document.facets, *groups.get(place % 10, ())), trust="low" if place % 6 == 0 else "medium"
        )
        for place, document in enumerate(mixed())
    ]


@pytest.fixture(params=["arrays", "lists", "no numpy"])
def parts(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[PartList, PartList]:
    """Return the same documents in a segment and in a buffer; of both some died."""
    documents = _documents()
    corpus = sealed(tmp_path, [documents], embedded=False)
    corpus.chain.hide(array([hash_id(documents[place].id.encode()) for place in GONE], uint64))
    buffered = PartList(None, 0 if request.param == "arrays" else 10**9)
    if request.param == "no numpy":
        monkeypatch.setattr(buffer_part, "numpy_if_there", lambda: None)
    for place, document in enumerate(documents):
        buffered.buffer.entries[document.id] = entry = IndexedDocument(document, place)
        buffered.buffer.add(entry)
    for place in GONE:
        buffered.buffer.drop(buffered.buffer.entries.pop(documents[place].id))
    return PartList(corpus, 10**9), buffered


def _masks(found: PartList, filters: dict[str, Any]) -> Any:
    return found.masks(SearchFilters.model_validate(filters))


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_masks_of_both_parts_are_the_same(parts: tuple[PartList, PartList], filters: dict[str, Any]) -> None:
    first, second = ([list(map(bool, mask)) for mask in _masks(found, filters)] for found in parts)
    assert first[0] == second[0]
    assert any(second[0])
    counts = [found.count(_masks(found, filters)) for found in parts]
    above = [found.count(found.above_low_trust(_masks(found, filters))) for found in parts]
    assert counts[0] == counts[1] > above[0] == above[1]
    latest = [[entry.document.id for entry in found.latest(400, _masks(found, filters))] for found in parts]
    assert set(latest[0]) == set(latest[1])


@pytest.mark.parametrize("items", [True, False])
def test_words_of_both_parts_are_the_same(parts: tuple[PartList, PartList], *, items: bool) -> None:
    weights = dict.fromkeys([*WORDS[:4], "holiday", "zebra"], 1.0)
    answers = []
    for found in parts:
        scorer, masks = WordScorer(found, RankingSettings(), items=items), _masks(found, {"include_items": items})
        gains, alive = scorer.gains(weights), [number for number in range(500) if number not in GONE]
        best = found.best(gains, scorer.norm, 40, masks)
        held = {term: sorted(pairs) for term, pairs in scorer.held(weights, alive).items()}
        scores = scorer.compute_scores(weights, alive)
        counts = (found.how_many(gains, masks), found.sample(gains, masks, 1))
        answers.append((scorer.documents, scorer.norm, gains, best, counts, held, scores))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("items", [True, False])
def test_talks_of_both_parts_are_the_same(parts: tuple[PartList, PartList], *, items: bool) -> None:
    alive = [number for number in range(500) if number not in GONE]
    answers = []
    for found in parts:
        part, _ = found.place(0)
        sessions = part.get_sessions(alive)
        standing = {
            session: sorted(rows)
            for session, rows in part.list_session_rows(sorted(set(sessions)), 500, items=items).items()
        }
        calls = [part.calls(word, items=items) for word in ("kate", "ann", "nobody")]
        speakers = [part.speaker(row) for row in alive]
        answers.append((sessions, standing, calls, speakers, part.statistics(items=items), part.lengths(alive)))
    assert answers[0] == answers[1]


def test_entries_of_both_parts_are_the_same(parts: tuple[PartList, PartList]) -> None:
    sealed_entry, entry = (found.entry(1) for found in parts)
    document = entry.document._replace(text="", facets=(), session="")
    assert sealed_entry.document == document
    assert replace(sealed_entry, document=entry.document) == entry
