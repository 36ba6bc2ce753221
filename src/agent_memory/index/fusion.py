"""Arithmetic of a ranking, from raw evidence to one number in 0..1.

Pure functions, without an index or a clock. Constants that decide an order are here; those that a user may set, in
`results.RankingSettings`. Figures are frac@10 / MRR over the 760 questions of the five tuning conversations (standard
error .016); reproduce the end result with `python -m benchmarks.retrieval`. The ranking profile `weighted` is here,
too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from agent_memory.index.terms import is_day_term
from agent_memory.language.words import query_terms
from agent_memory.times import Period, read_periods

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from agent_memory.index.results import RankingSettings

RECENT_SIMILARITY: Final = 0.5
"""Similarity of a document to a query without words: neither a hit nor a miss, so that age decides."""
ENOUGH_WORDS: Final = 0.7
"""Share of a question's words that count as all of them. At 0 (the best of the answer is always full) one common word
weighs as much as the best cosine: MRR on facts.jsonl .898, at 0.7 .928, at 1 .935; whole sessions
want it the other way round, all@5 .841, .834, .830."""
SESSION_BEST: Final = 3
"""A talk is as relevant as the mean of its three best turns; one or five differ by less than the error."""
FULL_LENGTH: Final = 25
"""Terms from which a turn counts as a full one: a longer one is no likelier to hold an answer."""
LOW_TRUST: Final = 0.5
"""Factor of a score of low trust: such words have to match twice as well as those of others.

Chosen, not fitted: a page can be stored many times over in the words of likely questions, and must not push out what a
person said; at half it stays in sight where nothing else answers."""
Place = Literal["within", "before", "outside"]
"""Place of a document in the time that a question names. `before`: from before a time that is over, in which it may
still have been true."""
PLACES: Final[dict[Place, float]] = {"within": 1.0, "before": 0.9, "outside": 0.8}
"""Factor of a similarity, by place."""
_SECONDS_A_DAY: Final = 86_400.0
# How much each kind of evidence counts where documents are in sessions: halves, moved by .2 or .3 where five sets
# gain (turns with and without names of two corpora, facts drawn from one). What leaving one out costs, frac@10 / MRR,
# turns without names of the tuning conversations, then facts drawn from them:
WORDS: Final = 0.5  # its own BM25: +.001 / -.016, +.001 / -.015
DENSE: Final = 1.0  # cosine: -.014 / +.02, -.034 / -.031
SEMANTIC, KEYWORD, TEMPORAL, IMPORTANCE = 0.4, 0.3, 0.2, 0.1
THRESHOLD: Final = 0.6
"""Least relevance by the contract of `MemoryStore`."""
EXPONENT: Final = 0.32
"""Bends the scale such that nine of ten labelled hits reach `THRESHOLD`: .59 to .61 on LoCoMo, an agent's notes and
plain facts (`python -m benchmarks.retrieval --details`)."""


class TalkEvidence(NamedTuple):
    """Evidence from a document's session, each in 0..1.

    A document without a session is one of its own, where others have one.
    """

    window: float
    session: float
    length: float
    speaker: float
    time: float


TALK: Final = TalkEvidence(
    window=0.7,  # BM25 of it read together with those before and after: -.032 / -.045, -.016 / -.012
    session=0.5,  # relevance of its session: -.011 / -.004, +.002 / +.01
    length=0.5,  # "Thanks!" answers nothing: -.004 / -.012, +.001 / -.001
    speaker=0.8,  # said by whom the question names: 0, 0; turns with names -.026 / -.073
    time=0.5,  # a word of time when the question asks when: -.007 / -.017, +.001 / +.005
)


_ALL: Final = WORDS + DENSE + sum(TALK)


@dataclass(slots=True)
class RankEvidence:
    """Evidence of one document for one question.

    All but the raw parts are in 0..1.

    Attributes:
        bm25: Raw score of its own words.
        cosine: Raw cosine; None while it has no vector, or without an embedder.
        words: `bm25` against the best of the answer.
        share: `bm25` against what a document of average length with most of the question's words would have
            (`ENOUGH_WORDS`), or against the best of the answer where that is more.
        dense: `cosine` between the embedder's floor and the best of the answer; None as `cosine`.
        place: Its place in the time that the question names; None if it names none.
        alone: True if only that time is asked for.
        talk: Evidence from the talk around a turn; None if no candidate is a turn.
        moved_to: Place that it took as a standing instruction, from 1; 0 for its own.
    """

    bm25: float = 0.0
    cosine: float | None = None
    words: float = 0.0
    share: float = 0.0
    dense: float | None = None
    talk: TalkEvidence | None = None
    place: Place | None = None
    alone: bool = False
    moved_to: int = 0


def similarity(evidence: RankEvidence) -> float:
    """Return the similarity of a document to the question, 0..1.

    The time that the question names is included.
    """
    timeless = _whatever_the_time(evidence)
    return timeless if evidence.place is None else in_period(timeless, evidence.place, alone=evidence.alone)


def _whatever_the_time(evidence: RankEvidence) -> float:
    """Return the similarity of a document without its time, 0..1.

    Without an embedder its cosine does not count.

    A plain fact's is the mean of what its words and its embedding cover of the question.
    """
    if evidence.talk is None:
        # Words count by the share of the question they hold, see `ENOUGH_WORDS`, not against the answer's best.
        return evidence.share if evidence.dense is None else (evidence.share + evidence.dense) / 2
    score = sum(map(mul, TALK, evidence.talk), WORDS * evidence.share)
    return score / (_ALL - DENSE) if evidence.dense is None else (score + DENSE * evidence.dense) / _ALL


def base(evidence: RankEvidence) -> float:
    """Return the similarity of a turn without its talk, 0..1.

    The mean of its two lists.

    Fitted weights come out equal (5.1 to 5.3) and win nothing: .699 / .529. Reciprocal ranks lose .05 to .07.
    """
    return evidence.words if evidence.dense is None else (evidence.words + evidence.dense) / 2


def session_relevance(bases: Iterable[float]) -> float:
    """Return the relevance of a talk from the `base` of its turns.

    The mean of the best three, missing ones as 0.
    """
    return sum(sorted(bases, reverse=True)[:SESSION_BEST]) / SESSION_BEST


def length_share(terms: int) -> float:
    """Return 0..1 for the length of a turn.

    Logarithmic, full at `FULL_LENGTH` terms.
    """
    return min(1.0, math.log1p(terms) / math.log1p(FULL_LENGTH))


def speaker_share(speaker: str | None, named: frozenset[str]) -> float:
    """Return 1 for a turn by a named person, 0 by another.

    ½ if the question names no person or the text is not a turn.
    """
    if speaker is None or not named:
        return 0.5
    return 1.0 if speaker in named else 0.0


def scale(score: float, least: float, greatest: float) -> float:
    """Return the place of `score` between two bounds, 0..1.

    Equal bounds give 1 at or above them.
    """
    if greatest <= least:
        return 1.0 if score >= greatest else 0.0
    return min(1.0, max(0.0, (score - least) / (greatest - least)))


def freshness(age_seconds: float, settings: RankingSettings) -> float:
    """Return the factor of an age, `floor`..1.

    A moment in the future counts as now.
    """
    days = max(0.0, age_seconds) / _SECONDS_A_DAY
    floor = settings.freshness_floor
    return floor + (1 - floor) / (1 + settings.freshness_decay_rate * days)


def weigh_trust(trust: str) -> float:
    """Return the factor of a trust."""
    return LOW_TRUST if trust == "low" else 1.0


def in_period(similarity: float, place: Place, *, alone: bool) -> float:
    """Multiply a similarity by the factor of its place in time, 0..1.

    Args:
        similarity: Similarity to the question, whatever the time.
        place: Place in the time that the question names.
        alone: True if only that time is asked for: then all that is within comes first.
    """
    if alone:
        return (similarity + (place == "within")) / 2
    return similarity * PLACES[place]


def classify_time(moment: float, periods: Collection[Period], now: float) -> Place:
    """Return the place of a moment in the periods of a question.

    Args:
        moment: Moment of what a document tells, in seconds.
        periods: Periods, any of which will do; without one, everything is within.
        now: Moment of asking, in seconds.
    """
    bounds = [
        (
            -math.inf if period.start is None else period.start.timestamp(),
            math.inf if period.end is None else period.end.timestamp(),
        )
        for period in periods
    ]
    if not bounds or any(start <= moment < end for start, end in bounds):
        return "within"
    return "before" if all(moment < end <= now for _, end in bounds) else "outside"


def access(count: int, settings: RankingSettings) -> float:
    """Return the gain by use, 1 or more."""
    return 1 + settings.access_boost_rate * min(count, settings.access_cap)


class WeightedScore(NamedTuple):
    """Weighted values of one hit, each in 0..1.

    Attributes:
        semantic: Its cosine; None where it has no vector.
        keyword: The share of the question's words that it holds, each by how much it tells.
        temporal: 1 if it is in the time that the question names; None if that names none.
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
        values_known = [(weight, value) for weight, value in values if value is not None]
        return sum(weight * value for weight, value in values_known) / sum(weight for weight, _ in values_known)

    @property
    def relevance(self) -> float:
        """The mean on the scale of thresholds, 0..1, in the same order."""
        return float(self.raw**EXPONENT)


class WeightedQuestion:
    """A question of the ranking profile `weighted`.

    The profile orders hits by raw evidence, each kind with a fixed weight, on one scale for all questions and kinds of
    records, so that a threshold means the same everywhere. The default ranking orders better (docs/benchmarks.md) and
    has no such scale. Weights and threshold are those of the contract of `MemoryStore`.

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

    def weigh(self, text: str, parts: Mapping[str, float], moment: datetime, importance: float) -> WeightedScore:
        """Return the weighted values of a hit.

        Args:
            text: Text of the hit.
            parts: Raw parts of its score; `cosine` counts.
            moment: When what it says was so.
            importance: How important it is, 0..1.
        """
        held = self._words.keys() & query_terms(text)
        keyword = sum(self._words[term] for term in held) / self._all if self._all > 0 else 0.0
        temporal = None
        if self.periods:
            temporal = float(classify_time(moment.timestamp(), self.periods, self._now) == "within")
        cosine = parts.get("cosine")
        semantic = None if cosine is None else max(0.0, min(1.0, cosine))
        return WeightedScore(semantic, min(1.0, keyword), temporal, importance)
