"""From a ranking of ids to an answer of records. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic

from agent_memory.models.kind import R
from agent_memory.retrieval import Rejected
from agent_memory.storage.replacements import path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_memory.models import SearchRequest
    from agent_memory.retrieval import Hit, Ranking

LOOKED_AT: Final = 60
"""Hits among which replacements are looked for, as many as a ranking looks at closely."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """A ranking, and the record of each hit."""

    ranking: Ranking
    records: tuple[R, ...]


def answer_of(ranking: Ranking, records: Mapping[str, R], request: SearchRequest) -> Answer[R]:
    """Return the best `request.limit` hits with their records; the rest are rejected if asked to explain."""
    hits, cut = ranking.hits[: request.limit], ranking.hits[request.limit :] if request.explain else ()
    late = tuple([Rejected(hit.id, "beyond_limit", hit.parts) for hit in cut])
    ranking = replace(ranking, hits=hits, rejected=late + ranking.rejected)
    return Answer(ranking, tuple([records[hit.id] for hit in hits]))


def current_first(ranking: Ranking, replaced_by: Callable[[str], str | None]) -> Ranking:
    """Return the ranking with every record behind the one that replaced it, if that was found too.

    What is no longer true may be asked for; it is never the better answer.
    """
    found = {hit.id: hit for hit in ranking.hits}

    def ranked(hit: Hit) -> tuple[float, int]:
        newer = dict.fromkeys(path(hit.id, replaced_by)[1:])
        return -min([hit.score, *(found[each].score for each in newer if each in found)]), len(newer)

    hits: Sequence[Hit] = sorted(ranking.hits, key=ranked)  # stable, and the scores stay in order
    return replace(ranking, hits=tuple(replace(hit, score=-ranked(hit)[0]) for hit in hits))
