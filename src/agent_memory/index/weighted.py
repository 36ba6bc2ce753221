"""The ranking profile `weighted`: meaning, words, time and importance, each by a fixed weight. Pure functions.

It orders what a search has found by its raw evidence, on one scale for all questions and kinds of records, so that a
threshold means the same everywhere. The default ranking (`fusion`) orders better (docs/lifecycle.md) and has no such
scale. Weights and threshold are those of the contract of `MemoryStore`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.index.day_terms import is_day_term
from agent_memory.index.fusion import place_of
from agent_memory.language.words import query_terms
from agent_memory.times import read_periods

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent_memory.times import Period

SEMANTIC, KEYWORD, TEMPORAL, IMPORTANCE = 0.4, 0.3, 0.2, 0.1
THRESHOLD: Final = 0.6
"""The contract's least relevance."""
EXPONENT: Final = 0.32
"""Bends the scale such that nine of ten labelled hits reach `THRESHOLD`: .59 to .61 on LoCoMo, an agent's notes and
plain facts (`python -m benchmarks.retrieval --details`)."""


class Weighed(NamedTuple):
    """What the profile weighs of one hit, each in 0..1.

    Attributes:
        semantic: Its cosine; None where it has no vector.
        keyword: The share of the question's words that it holds, each by how much it tells.
        temporal: Whether it lies in the time that the question names; None where it names none.
        importance: How important it is.
    """

    semantic: float | None
    keyword: float
    temporal: float | None
    importance: float

    @property
    def raw(self) -> float:
        """The weighted mean of what is known, 0..1."""
        values = zip((SEMANTIC, KEYWORD, TEMPORAL, IMPORTANCE), self, strict=True)
        known = [(weight, value) for weight, value in values if value is not None]
        return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)

    @property
    def relevance(self) -> float:
        """The mean on the scale of thresholds, 0..1; the order is the same."""
        return float(self.raw**EXPONENT)


class Asked:
    """A question as the profile weighs it.

    Args:
        query: What was asked.
        words: Its terms, each with how much it tells, as a search returns them.
        now: The moment of asking.
    """

    def __init__(self, query: str, words: Mapping[str, float], now: datetime) -> None:
        self._words = {term: weight for term, weight in words.items() if not is_day_term(term)}
        self._all = sum(self._words.values())
        self._now = now.timestamp()
        self.periods: tuple[Period, ...] = read_periods(query, now).periods

    def weigh(self, text: str, parts: Mapping[str, float], moment: datetime, importance: float) -> Weighed:
        """Return what is weighed of a hit.

        Args:
            text: Its words.
            parts: Raw parts of its score, of which `cosine` counts.
            moment: When what it says was so.
            importance: How important it is, 0..1.
        """
        held = self._words.keys() & query_terms(text)
        keyword = sum(self._words[term] for term in held) / self._all if self._all > 0 else 0.0
        temporal = None
        if self.periods:
            temporal = float(place_of(moment.timestamp(), self.periods, self._now) == "within")
        cosine = parts.get("cosine")
        semantic = None if cosine is None else max(0.0, min(1.0, cosine))
        return Weighed(semantic, min(1.0, keyword), temporal, importance)
