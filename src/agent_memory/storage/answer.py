"""From a ranking of ids to an answer of memories. Pure functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_memory.models import MemorySearchResult, SearchResults

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_memory.models import Memory
    from agent_memory.retrieval.results import Hit, Ranking

LOOKED_AT: Final = 60
"""Hits among which replacements are looked for, as many as a ranking looks at closely."""


def answer_of(ranking: Ranking, memories: Mapping[str, Memory], limit: int, *, explain: bool) -> SearchResults:
    """Return the best `limit` hits with their memories; what is cut here is among `rejected` if asked to explain."""
    results = [
        MemorySearchResult(
            memory=memories[hit.memory_id], relevance_score=hit.score, match_type=hit.match_type, parts=hit.parts
        )
        for hit in ranking.hits[:limit]
    ]
    cut = ranking.hits[limit:] if explain else ()
    rejected = [{"id": hit.memory_id, "reason": "beyond_limit", "parts": hit.parts} for hit in cut]
    rejected += [{"id": each.memory_id, "reason": each.reason, "parts": each.parts} for each in ranking.rejected]
    return SearchResults(results, total_found=ranking.total_found, mode=ranking.mode, rejected=rejected)


def current_first(ranking: Ranking, replaced_by: Callable[[str], str | None]) -> Ranking:
    """Return the ranking with every memory behind the one that replaced it, if that was found too.

    What is no longer true may be asked for; it is never the better answer.
    """
    found = {hit.memory_id: hit for hit in ranking.hits}

    def ranked(hit: Hit) -> tuple[float, int]:
        score, newer = hit.score, replaced_by(hit.memory_id)
        passed: set[str] = set()
        while newer is not None and newer not in passed:
            passed.add(newer)
            score = min(score, found[newer].score) if newer in found else score
            newer = replaced_by(newer)
        return -score, len(passed)

    hits: Sequence[Hit] = sorted(ranking.hits, key=ranked)  # stable, and the scores stay in order
    return replace(ranking, hits=tuple(replace(hit, score=-ranked(hit)[0]) for hit in hits))
