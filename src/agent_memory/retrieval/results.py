"""What a ranking is made of: settings in, hits and rejections out. Values only, no behaviour worth a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from agent_memory.errors import ConfigurationError

MatchKind = Literal["keyword", "vector", "hybrid"]
"""How one hit was found: by its words, by its meaning, or by both."""

RejectionReason = Literal["below_floor", "filtered", "beyond_limit"]
"""Why a memory that was looked at is not in the answer."""

Mode = Literal["keyword", "hybrid"]


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """The constants of a ranking that a user may set; every other one stands in `fusion` with its reason.

    Attributes:
        freshness_decay_rate: Per day; 0.1 halves the decaying part of a score after ten days (the seed's value).
        freshness_floor: Share of the score that age cannot take, 0..1. The seed's formula is 0.
        access_boost_rate: Gain per recorded access (the seed's value).
        access_cap: Accesses counted at most, so that a habit cannot outrank an answer.
        similarity_threshold: Least raw cosine of a hit found by meaning alone; None takes the embedder's own.
        k1: BM25 term frequency saturation.
        b: BM25 length normalisation, 0..1.

    Raises:
        ConfigurationError: A value lies outside its range.
    """

    freshness_decay_rate: float = 0.1
    # frac@10 / MRR on the five tuning conversations, half a year each, where age says nothing about an answer: floor 0
    # .162 / .118, 0.5 .686 / .455, 0.8 .803 / .614, 0.9 .809 / .626, 0.95 .813 / .630, 1 .814 / .629. 0.9 is the
    # lowest within the error of no decay at all, and still lets the newer of two like facts win.
    freshness_floor: float = 0.9
    access_boost_rate: float = 0.05
    access_cap: int = 10
    similarity_threshold: float | None = None
    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        _check("freshness_decay_rate", self.freshness_decay_rate, 0, 1_000)
        _check("freshness_floor", self.freshness_floor, 0, 1)
        _check("access_boost_rate", self.access_boost_rate, 0, 100)
        _check("access_cap", self.access_cap, 0, 1_000_000)
        _check("similarity_threshold", self.similarity_threshold or 0.0, -1, 1)
        _check("k1", self.k1, 0, 100)
        _check("b", self.b, 0, 1)


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also catches NaN
        raise ConfigurationError(f"{name} must lie between {low} and {high}, got {value}")


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory of an answer.

    Attributes:
        memory_id: Whose score this is.
        score: Rank score, finite, 0..1; comparable within one answer only.
        match_type: Which list found it.
        parts: Raw parts of the score, for people: `bm25`, `cosine`, `similarity`, `freshness`, `access`, ...
    """

    memory_id: str
    score: float
    match_type: MatchKind
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejected:
    """One memory that was looked at and left out, and why."""

    memory_id: str
    reason: RejectionReason
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranking:
    """An answer: hits best first.

    Attributes:
        hits: At most `limit`, best first.
        total_found: Memories above the floor that met the filters, shown or not.
        mode: Whether meaning took part, or words alone.
        rejected: Only when asked to explain.
    """

    hits: tuple[Hit, ...]
    total_found: int
    mode: Mode
    rejected: tuple[Rejected, ...] = ()
