"""How sure it is that memory answers a question: from raw evidence to one number in 0..1. Pure functions.

Other than a rank score it does not depend on the other hits of the answer, so that answers can be compared with each
other, and with a least that a caller asks for. The constants come from `python -m benchmarks.confidence`, which fits
them and measures them on sets left out; docs/search.md has the figures.
"""

from __future__ import annotations

import math
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.retrieval.dates import day_terms, is_day_term

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

FIRST: Final = 3
"""Hits that are read together: what one of them does not say of the question, another one may."""

DEFAULT_LEAST: Final = 0.2
"""Below it an answer says `not_known`, unless the caller or the settings name another number."""


LIKELY_NONE: Final = 0.15
"""At most so sure is an answer where `is_asked_of_none` holds."""

ALIKE: Final = 10
"""Memories that are looked at to tell whether many are alike."""
_CROWD: Final = 0.16
_NEAR: Final = 0.8
_KNOWN: Final = 0.5
_TOGETHER: Final = 0.74
_MOST_WORDS: Final = 9
_ECHOED: Final = 0.5
_LABELS: Final = len(day_terms(date(1970, 1, 1))) + 1
"""Terms of a document that its text has no part in: its day's, and its category."""


class Support(NamedTuple):
    """What speaks for an answer, or for one hit.

    Attributes:
        nearness: The cosine, 0..1 between the embedder's floor and 1; None without an embedder.
        covered: Share of the question's words that is found, each counted by how rare it is, 0..1.
        name_only: Whether nothing but a proper name is shared with the question: much is near it that tells of the same
            person or product, and answers nothing.
        is_foreign: Whether the question is in another language than English: its words are not expected to be found.
    """

    nearness: float | None
    covered: float
    name_only: bool = False
    is_foreign: bool = False


class Words(NamedTuple):
    """What is known of a question's words in a memory of many notes that are alike.

    Attributes:
        crowd: The nearness of the tenth nearest memory, as in `Support`.
        nearest: That of the nearest.
        known: Share of the words that any memory holds, each counted by how rare it is, 0..1.
        together: Share that one of the first ten holds by itself, 0..1.
        asked: How many there are.
    """

    crowd: float
    nearest: float
    known: float
    together: float
    asked: int


def is_asked_of_none(words: Words) -> bool:
    """Tell whether memory likely knows the words of a question and not what is asked.

    Where many notes are about like things, each is near a question about any of them, so that nearness tells nothing.
    Its words do: the subject stands in one note, what is asked in others, and no note has both. Chosen on worlds of
    such notes (docs/truth.md); a long question is held by no single note, whatever it asks.
    """
    return (
        words.crowd >= _CROWD
        and words.nearest < _NEAR
        and words.known >= _KNOWN
        and words.together < _TOGETHER
        and words.asked <= _MOST_WORDS
    )


def is_echo(length: int, said: int, covered: float) -> bool:
    """Tell whether a document that holds a question says nothing but what it is asked: that is no answer to it.

    Args:
        length: How many terms it is indexed under, repeats included.
        said: How many of them are words of the question.
        covered: The share of the question's words that it holds, each counted by how rare it is, 0..1.
    """
    return covered >= _ECHOED and length - said <= _LABELS


class Weights(NamedTuple):
    """Log odds: a base, and what each part of a `Support` adds."""

    base: float
    nearness: float
    covered: float
    name_only: float
    is_foreign: float


ANSWER: Final = Weights(-3.01, 6.12, 2.45, -1.34, 1.94)
ANSWER_BY_WORDS: Final = Weights(-1.72, 0.0, 3.80, -0.42, 1.42)
HIT: Final = Weights(-4.42, 3.81, 3.05, -0.33, 1.31)
HIT_BY_WORDS: Final = Weights(-3.84, 0.0, 4.56, 0.0, 1.12)


def of_answer(support: Support) -> float:
    """Return how sure it is that memory answers a question, where half of all questions are answered; 0..1."""
    return _probability(ANSWER_BY_WORDS if support.nearness is None else ANSWER, support)


def of_hit(support: Support) -> float:
    """Return how sure it is that this one answers the question, 0..1."""
    return _probability(HIT_BY_WORDS if support.nearness is None else HIT, support)


def _probability(weights: Weights, support: Support) -> float:
    values = (1.0, support.nearness or 0.0, support.covered, float(support.name_only), float(support.is_foreign))
    return 1 / (1 + math.exp(-math.fsum(weight * value for weight, value in zip(weights, values, strict=True))))


class Coverage:
    """What a question's words weigh, and which of them are found where.

    Args:
        weights: The question's terms, and how often each is said.
        full_score: Tells how rare such terms are, also one that no document holds.
        names: Those that belong to proper names.
        holding: Which of the terms each document that matters holds, by its id.
    """

    def __init__(
        self,
        weights: Mapping[str, float],
        full_score: Callable[[Mapping[str, float]], float],
        names: Collection[str],
        holding: Mapping[str, Collection[str]],
    ) -> None:
        words = {term: weight for term, weight in weights.items() if not is_day_term(term)}
        self._weights = {term: full_score({term: weight}) for term, weight in words.items()}
        self._all = sum(self._weights.values())
        self._names = names
        self._holding = holding

    def of(self, record_ids: Iterable[str]) -> float:
        """Return the share of the question's words that some documents hold together; 0 if it has none."""
        found = {term for one in record_ids for term in self._holding.get(one, ())}
        return sum(self._weights.get(term, 0.0) for term in found) / self._all if self._all > 0 else 0.0

    def __len__(self) -> int:
        return len(self._weights)

    @property
    def weights(self) -> Mapping[str, float]:
        """How much each word of the question tells."""
        return self._weights

    def share(self, is_known: Callable[[str], bool]) -> float:
        """Return the share of the question's words that are known; 0 if it has none."""
        return sum(weight for term, weight in self._weights.items() if is_known(term)) / (self._all or 1.0)

    def is_name_only(self, record_id: str) -> bool:
        """Tell whether a document shares nothing but proper names with a question that asks for more."""
        shared = self._weights.keys() & set(self._holding.get(record_id, ()))
        return bool(shared) and shared <= set(self._names) and len(self._weights) > len(shared)
