"""Other orders of what the product has found: the profile `weighted`, and the default with importance as a factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.index.fusion import WeightedQuestion
from agent_memory.lifecycle import importance_of
from benchmarks.retrieval.rivals import RankedKeys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent_memory.models import SearchResults

WEIGHTED: Final = "weighted"
IMPORTANT: Final = "important"
_RATE: Final = 0.1
"""1 + .1 (importance - .5): .95 to 1.05."""


class ProfiledRankings(NamedTuple):
    """The hits of one answer in the orders of the profiles, and the relevance of each, by its key, in `weighted`."""

    rankings: dict[str, RankedKeys]
    relevance: dict[str, float]


def profiled(query: str, found: SearchResults, key_of: Mapping[str, str], now: datetime) -> ProfiledRankings:
    """Return one answer in other orders; no memory was given an importance, so all have that of the formula.

    Args:
        query: What was asked.
        found: The product's answer.
        key_of: The key of each memory by its id.
        now: The moment of asking.
    """
    asked = WeightedQuestion(query, found.words, now)
    weighted: dict[str, float] = {}
    important: dict[str, float] = {}
    for hit in found:
        memory = hit.memory
        key, matters = key_of[memory.id], importance_of(memory, now)
        moment = memory.observed_at or memory.timestamp
        weighted[key] = asked.weigh(memory.content, hit.parts, moment, matters).relevance
        important[key] = hit.relevance_score * (1 + _RATE * (matters - 0.5))
    return ProfiledRankings({WEIGHTED: _ordered(weighted), IMPORTANT: _ordered(important)}, weighted)


def _ordered(scores: Mapping[str, float]) -> RankedKeys:
    best = sorted(scores, key=scores.__getitem__, reverse=True)
    return RankedKeys(best, scores[best[0]] if best else 0.0)
