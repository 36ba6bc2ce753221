"""What belongs to one group of an agent's people is found, counted and explained to nobody of another one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from agent_memory.index import buffer_part
from agent_memory.index.terms import document_terms
from agent_memory.models import GROUP, Document, SearchFilters, SearchRequest, group_facets, sees
from tests.unit.index.test_items_apart import items, make, mixed
from tests.unit.index.test_sealed_search import NOW, QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.index import SearchIndex

__all__ = ["make"]
GROUPS = ("acme:one", "acme:two", "beta:one", "tiny:one")


def grouped() -> list[Document]:
    """Return notes, and items of which most belong to a group; of the last there are very few."""
    random_, own = random.Random(3), {document.id for document in items()}
    chosen = [*random_.choices([*GROUPS[:-1], ""], k=len(mixed()) - 3), *[GROUPS[-1]] * 3]
    random_.shuffle(chosen)
    return [
        document._replace(facets=(*document.facets, *group_facets(group if document.id in own else "")))
        for document, group in zip(mixed(), chosen, strict=True)
    ]


@pytest.mark.parametrize("sealed_share", [0, 0.5, 1])
@pytest.mark.parametrize("numpy", [True, False])
def test_a_search_sees_its_own_group_and_what_belongs_to_none(
    make: Callable[..., SearchIndex],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sealed_share: float,
    numpy: bool,
) -> None:
    if not numpy:
        monkeypatch.setattr(buffer_part, "numpy_if_there", lambda: None)
    every = grouped()
    by_id = {document.id: document for document in every}
    index = make(every, tmp_path, int(sealed_share * len(every))) if sealed_share else make(every)
    for group in (*GROUPS, "", "nobody:ever"):
        there = {one for one, document in by_id.items() if sees(group, document.facets)}
        for question in (*QUESTIONS, ""):
            for explain in (False, True):
                filters = SearchFilters(include_items=True, group=group)
                found = index.search(SearchRequest(question, 12, NOW, filters, explain=explain))
                assert {hit.id for hit in found.hits} <= there
                assert {each.id for each in found.rejected} <= there
                assert found.total_found <= len(there)
                assert found.hits or question == QUESTIONS[-1]


def test_the_best_of_a_group_are_chosen_among_its_own(make: Callable[..., SearchIndex]) -> None:
    known = next(document for document in grouped() if (GROUP, GROUPS[-1]) in document.facets)
    own = known._replace(text="Rita: the zeppelin is moored at noon.")
    crowd = [
        replace_id(own, number)._replace(facets=(*own.facets[:1], *group_facets(GROUPS[0]))) for number in range(2_000)
    ]
    index = make([*(each for each in grouped() if each.id != own.id), own, *crowd])
    filters = SearchFilters(include_items=True, group=GROUPS[-1])
    found = index.search(SearchRequest("When is the zeppelin moored?", 3, NOW, filters))
    assert found.hits[0].id == own.id


def replace_id(document: Document, number: int) -> Document:
    """Return the same words as another record of another time."""
    return document._replace(id=f"mem-{number + 0xF00000:012x}")


def test_the_name_of_a_group_is_no_word_of_what_belongs_to_it() -> None:
    one = next(document for document in grouped() if (GROUP, GROUPS[-1]) in document.facets)
    plain = one._replace(facets=tuple(facet for facet in one.facets if facet[0] != GROUP))
    assert document_terms(one) == document_terms(plain)
