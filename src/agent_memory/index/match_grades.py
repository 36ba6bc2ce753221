"""Match grades: whether a hit is a strong or a weak match for a question.

A grade is read from raw evidence: shared words and identifiers, the rarity of words in the memory, and the cosine. It
does not depend on the other hits, so that hits of different answers can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.index.day_terms import is_day_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.index.candidates import Search
    from agent_memory.index.fusion import Evidence
    from agent_memory.models import Match

STRONG_SHARE: Final = 0.5
"""Share of the question's content words from which a hit is a strong match."""

STRONG_COSINE: Final = 0.35
"""Cosine of the local model from which a hit is a strong match. `python -m benchmarks.match` measures all limits."""

MAX_MISSING: Final = 0.3
"""Share of the question that a strong match may lack although other memories have it.

Chosen on one half of the questions of `benchmarks.match` and two worlds of `benchmarks.drift`: at .27 and .35
precision differs by less than .02."""

LEAST_COSINE: Final = 0.05
"""Floor of the closest results, used if nothing shares a word with the question and nothing passes the embedder's."""

GRADED: Final = 10
"""Best hits that are graded, even if fewer are wanted: the grade of an answer does not depend on its limit."""


class MatchEvidence(NamedTuple):
    """Raw evidence that a hit matches a question.

    Attributes:
        share: Share of the question's content words in the hit, 0..1.
        cosine: Cosine between question and hit, -1..1; None without an embedding.
        has_identifier: True if the hit has an identifier of the question.
        coverage: As `share`, each word weighted by its rarity; one that no memory has weighs as one of a single memory.
        missing: Weighted share of the question's words that other memories have and the hit lacks, 0..1.
    """

    share: float
    cosine: float | None = None
    has_identifier: bool = False
    coverage: float = 0.0
    missing: float = 0.0

    @property
    def strength(self) -> float:
        """The larger of share and cosine, 0..1."""
        return max(self.share, min(1.0, self.cosine or 0.0))

    @property
    def match(self) -> Match:
        """The grade of the hit."""
        if self.cosine is None:
            is_near = self.share >= STRONG_SHARE
        else:
            is_near = self.cosine >= STRONG_COSINE or self.coverage >= STRONG_SHARE
        return "strong" if (is_near or self.has_identifier) and self.missing <= MAX_MISSING else "weak"


def get_match_evidence(
    search: Search, evidence: Mapping[str, Evidence], record_ids: Iterable[str]
) -> dict[str, MatchEvidence]:
    """Return the raw evidence for each of `record_ids`."""
    question, words = search.question, search.corpus.words
    numbers = {search.corpus.parts[record_id].number: record_id for record_id in record_ids}
    frequencies = {term: words.frequency(term) for term in question.weights if not is_day_term(term)}
    weights = {term: words.compute_idf(max(1, frequency)) for term, frequency in frequencies.items()}
    shared: dict[str, set[str]] = {record_id: set() for record_id in numbers.values()}
    for term, documents in words.held(weights, numbers).items():
        for number, _ in documents:
            shared[numbers[number]].add(term)
    total = sum(weights.values()) or 1.0
    held_terms = {term for term, frequency in frequencies.items() if frequency}
    has_no_cosine = question.is_unlatin and search.latin_alone
    result = {}
    for record_id, terms in shared.items():
        hit = evidence[record_id]
        cosine = None if has_no_cosine else hit.cosine
        share, has_identifier = len(terms) / max(1, len(weights)), not terms.isdisjoint(question.identifiers)
        coverage = sum(weights[term] for term in terms) / total
        missing = sum(weights[term] for term in held_terms - terms) / total
        result[record_id] = MatchEvidence(share, cosine, has_identifier, coverage, missing)
        if question.asks_for_period and hit.place == "within":
            result[record_id] = MatchEvidence(1.0, cosine, coverage=1.0)
    return result


def get_answer_match(matches: Sequence[MatchEvidence]) -> Match:
    """Return the best grade among `matches`, or "none" if there are none."""
    return max((hit.match for hit in matches), key=("weak", "strong").index, default="none")


def weigh_words(search: Search) -> dict[str, float]:
    """Return each content word of the question with its inverse document frequency."""
    full_score = search.corpus.words.full_score
    weights = search.question.weights.items()
    return {term: full_score({term: weight}) for term, weight in weights if not is_day_term(term)}
