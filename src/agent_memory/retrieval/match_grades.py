"""Match grades: whether a hit is a strong or a weak match for a question.

A grade is read from raw evidence: shared words, shared names and identifiers, and the cosine. It does not depend on
the other hits, so that hits of different answers can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.retrieval.dates import is_day_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.models import Match
    from agent_memory.retrieval.candidates import Search
    from agent_memory.retrieval.fusion import Evidence

STRONG_SHARE: Final = 0.5
"""Share of the question's content words from which a hit is a strong match."""

STRONG_COSINE: Final = 0.35
"""Cosine of the local model from which a hit is a strong match. `python -m benchmarks.match` measures both limits."""

LEAST_COSINE: Final = 0.05
"""Floor of the closest results, used if nothing shares a word with the question and nothing passes the embedder's."""

GRADED: Final = 10
"""Best hits that are graded, even if fewer are wanted: the grade of an answer does not depend on its limit."""


class MatchEvidence(NamedTuple):
    """Raw evidence that a hit matches a question.

    Attributes:
        share: Share of the question's content words in the hit, 0..1.
        cosine: Cosine between question and hit, -1..1; None without an embedding.
        has_name: True if the hit has a name or an identifier of the question.
    """

    share: float
    cosine: float | None = None
    has_name: bool = False

    @property
    def strength(self) -> float:
        """The larger of share and cosine, 0..1."""
        return max(self.share, min(1.0, self.cosine or 0.0))

    @property
    def match(self) -> Match:
        """The grade of the hit."""
        is_near = self.cosine is not None and self.cosine >= STRONG_COSINE
        return "strong" if self.has_name or self.share >= STRONG_SHARE or is_near else "weak"


def get_match_evidence(
    search: Search, evidence: Mapping[str, Evidence], record_ids: Iterable[str]
) -> dict[str, MatchEvidence]:
    """Return the raw evidence for each of `record_ids`."""
    question, corpus = search.question, search.corpus
    numbers = {corpus.documents[record_id].number: record_id for record_id in record_ids}
    words = {term for term in question.weights if not is_day_term(term)}
    shared: dict[str, set[str]] = {record_id: set() for record_id in numbers.values()}
    for term, postings in corpus.postings.held(words, numbers).items():
        for number, _ in postings:
            shared[numbers[number]].add(term)
    has_no_cosine = question.is_unlatin and search.latin_alone
    result = {}
    for record_id, terms in shared.items():
        hit = evidence[record_id]
        share = len(terms) / len(words) if words else 0.0
        if question.asks_for_period and hit.place == "within":
            share = 1.0
        cosine = None if has_no_cosine else hit.cosine
        result[record_id] = MatchEvidence(share, cosine, not terms.isdisjoint(question.names))
    return result


def get_answer_match(matches: Sequence[MatchEvidence]) -> Match:
    """Return the best grade among `matches`, or "none" if there are none."""
    return max((hit.match for hit in matches), key=("weak", "strong").index, default="none")


def weigh_words(search: Search) -> dict[str, float]:
    """Return each content word of the question with its inverse document frequency."""
    full_score = search.corpus.postings.full_score
    weights = search.question.weights.items()
    return {term: full_score({term: weight}) for term, weight in weights if not is_day_term(term)}
