"""What was replaced may be found, behind what replaced it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.retrieval import Hit, Ranking
from agent_memory.storage import FileStorage
from agent_memory.storage.answer import current_first
from tests.support import FrozenClock, memory_of

if TYPE_CHECKING:
    from pathlib import Path


@given(st.lists(st.floats(0, 1), max_size=12), st.dictionaries(st.integers(0, 11), st.integers(0, 11)))
def test_no_memory_stands_before_the_one_that_replaced_it(scores: list[float], newer: dict[int, int]) -> None:
    newer = {old: new for old, new in newer.items() if new > old}  # nothing replaces itself
    hits = tuple(Hit(str(number), score, "keyword") for number, score in enumerate(sorted(scores, reverse=True)))

    def replaced_by(memory_id: str) -> str | None:
        return str(newer[int(memory_id)]) if int(memory_id) in newer else None

    found = current_first(Ranking(hits, len(hits), "keyword"), replaced_by).hits
    order = [hit.id for hit in found]
    assert sorted(order) == sorted(hit.id for hit in hits)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    for old, new in newer.items():
        if str(old) in order and str(new) in order:
            assert order.index(str(new)) < order.index(str(old))


async def test_the_present_comes_first_even_when_the_past_matches_better(root: Path, clock: FrozenClock) -> None:
    storage = FileStorage("bob", root, clock=clock, embedder=HashEmbedder())
    old = memory_of("the database is MySQL, the database of all databases")
    await storage.store(old)
    await storage.store(memory_of("use PostgreSQL as a database from now on", supersedes=old.id))
    found = await storage.search("the database is", include_superseded=True)
    assert [result.memory.supersedes for result in found] == [old.id, None]
    assert found[0].relevance_score >= found[1].relevance_score
    (best,) = await storage.search("the database is", limit=1, include_superseded=True, explain=True)
    assert best.memory.supersedes == old.id
    await storage.close()
