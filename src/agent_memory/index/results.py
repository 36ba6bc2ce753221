"""Values of a search: settings, documents, a question, and hits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from agent_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.models import Document, Match, MatchType, SearchMode
    from agent_memory.times import Period

UNREAD: Final = -1
"""The number of a document whose words are not read yet."""

RejectionReason = Literal["below_floor", "filtered", "beyond_limit"]
"""Why a document that was looked at is not in the answer."""


class RowStatistics(NamedTuple):
    """Sums over the rows of a part that are alive.

    Attributes:
        documents: Number of rows.
        length: Terms of all rows, repeats included.
        asking: Number of rows that hold a question.
    """

    documents: int
    length: int
    asking: int


class LengthNorm(NamedTuple):
    """Weights of a document's length: a constant, and one for each term."""

    flat: float
    steepness: float


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """Constants of a ranking that a user may set.

    Every other one is in `fusion` with its reason.

    Attributes:
        freshness_decay_rate: Per day; 0.1 halves the decaying part of a score after ten days (the seed's value).
        freshness_floor: Share of the score that age cannot take, 0..1. The seed's formula is 0.
        access_boost_rate: Gain per recorded access (the seed's value).
        access_cap: Accesses counted at most, so that a habit cannot outrank an answer.
        similarity_threshold: Least raw cosine of a hit found by its embedding alone; None takes the embedder's own.
        k1: BM25 term frequency saturation.
        b: BM25 length normalisation, 0..1.

    Raises:
        ConfigurationError: A value is outside its range.
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
        raise ConfigurationError(f"{name} must be between {low} and {high}, got {value}")


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of what a search reads closely.

    The rest is left out by cheaper means, or estimated.

    Attributes:
        pool: Best of each list whose evidence is gathered: 40 to 300 differ by .003 frac@10, 60 takes half the time of
            100.
        with_neighbours: Best of each list whose neighbours in a talk are looked at too: all of them win nothing.
        in_period: Best of each list of what was stored in a period that is asked about.
        excerpted: Best hits with the cosines of the pieces of their texts.
        doubtful: Nearest among which those above low trust are looked for, if most are not.
        compared: Postings read to find what is like a text, the rarest words' first: ten thousand take one millisecond,
            and a word that more documents hold tells none of them apart.
        rejections: Of each reason, in an explanation: it is read by a person or paid for in tokens.
        counted: Documents of one list that are read for a count; a larger count is estimated from these. Five hundred
            take about half a millisecond, and the error of such a share is below five percent of the list (two standard
            errors).
        few: Documents up to which comparing each is cheaper than reading the nearest until enough have passed.
        sampled: Documents, about, whose cosines are read to estimate how many of a long list are near as well.
        arrays_from: Postings of a query from which numpy adds them up: half a millisecond without it, a fifth of that
            with it; below, setting up costs more.
    """

    pool: int = 60
    with_neighbours: int = 10
    in_period: int = 30
    excerpted: int = 10
    doubtful: int = 600
    compared: int = 10_000
    rejections: int = 50
    counted: int = 500
    few: int = 2_000
    sampled: int = 200
    arrays_from: int = 2_000


@dataclass(slots=True)
class IndexedDocument:
    """A document in an index.

    Attributes:
        document: What is indexed.
        arrival: Rises from one document to the next; a change does not change it.
        number: Number of its row in the parts of the index; `UNREAD` until its words are read, before any search.
        moment: `document.moment` in seconds.
        length_share: How near its length is to that of a full turn, 0..1.
        tells_time: True if the text contains a word for a time.
        asks: True if the text contains a question.
        length: How many terms it has, repeats included.
    """

    document: Document
    arrival: int
    number: int = UNREAD
    moment: float = 0.0
    length_share: float = 0.0
    tells_time: bool = False
    asks: bool = False
    length: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """The text of a request, read.

    Attributes:
        weights: Terms to look for, and how often each was said.
        speakers: Folded names of people who speak in remembered talks and are named here.
        asks_time: True if the answer is a point or span of time.
        embedded_text: The text to embed; empty when there is nothing to embed.
        identifiers: Terms of its identifiers.
        is_unlatin: True if most of it is in a script other than Latin, or has no letters.
        periods: Periods it names; the answer may be in any.
        dates: Terms of the days among them, which a text may hold.
        asks_for_period: True if it asks only for what happened in these periods.
        vector: Its embedding, shape (dimension,); None while it is not computed.
    """

    weights: dict[str, float]
    speakers: frozenset[str]
    asks_time: bool
    embedded_text: str
    identifiers: frozenset[str] = frozenset()
    is_unlatin: bool = False
    periods: tuple[Period, ...] = ()
    dates: frozenset[str] = frozenset()
    asks_for_period: bool = False
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of an answer.

    Attributes:
        id: Whose score this is.
        score: Rank score, finite, 0..1; comparable within one answer only.
        match_type: Which list found it.
        parts: Raw parts of the score, for people: `bm25`, `cosine`, `similarity`, `freshness`, `access`, ...
        match: Grade of the match; None if nothing was asked.
        strength: Share of the question's words or cosine, whichever is larger, 0..1; None if nothing was asked.
        pieces: The cosine of each piece of a text that is embedded in several; empty for any other, or not known.
    """

    id: str
    score: float
    match_type: MatchType
    parts: dict[str, float] = field(default_factory=dict)
    match: Match | None = None
    strength: float | None = None
    pieces: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedHit:
    """One document that was looked at and left out, and why."""

    id: str
    reason: RejectionReason
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranking:
    """An answer: hits best first.

    Attributes:
        hits: At most `limit`, best first.
        total_found: Documents above the floor that met the filters, shown or not.
        mode: How results were found: with embeddings, or by words only.
        rejected: Only when asked to explain.
        match: Best grade among the first ten hits, "none" without a hit; None if nothing was asked.
        strength: Largest strength among these hits, 0..1; None if nothing was asked.
        words: The question's terms, each with how much it tells.
    """

    hits: tuple[Hit, ...]
    total_found: int
    mode: SearchMode
    rejected: tuple[RejectedHit, ...] = ()
    match: Match | None = None
    strength: float | None = None
    words: Mapping[str, float] = field(default_factory=dict)
