"""Three ways to find items: by rules (RAG), by a language model among candidates (LLM), by both (HYBRID).

How well an answer matches is `match` of the search (docs/search.md).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import pstdev
from typing import TYPE_CHECKING, Final, Protocol

from agent_memory.errors import RetrievalError, StorageError, ValidationError
from agent_memory.knowledge.facade.shapes import item_of
from agent_memory.knowledge.llm.language_model import Asking, ModelFailure
from agent_memory.language.words import query_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.embeddings import Embedder
    from agent_memory.knowledge.facade.layers import ItemLayer
    from agent_memory.knowledge.facade.shapes import Importance, MemoryItem
    from agent_memory.models import Match, MemorySearchResult

MAX_K: Final = 100
MAX_QUERY: Final = 10_000
_FACTORS: Final[dict[Importance, float]] = {"low": 0.97, "normal": 1.0, "high": 1.03}
"""1 + 0.1 * (importance - 0.5): what is important comes first among what answers about equally well, and no further."""
_LEAST_COSINE: Final = 0.2
"""Floor below which the vectors of a sentence embedder tell nothing."""
_READ_TOGETHER: Final = 3
_COMPLEX: Final = re.compile(
    r"\b(why|compare|compared|difference|differ|versus|vs|trade-?offs?|relationship|relate[sd]?|pattern|patterns|trend"
    r"|trends|because|cause[sd]?|implications?|summari[sz]e|contradict\w*|if .{0,400} then)\b",
    re.IGNORECASE,
)


class RetrievalMode(StrEnum):
    """How items are found."""

    RAG = "rag"
    LLM = "llm"
    HYBRID = "hybrid"


@dataclass(slots=True)
class RetrievalResult:
    """What was found.

    Attributes:
        items: Best first.
        mode_used: How they were found in the end.
        total_found: How many matched, shown or not; about how many where there are many.
        search_time_ms: Time taken, milliseconds.
        confidence_scores: Raw evidence of each item, 0..1: share of the query's words or cosine; or what a language
            model said.
        escalated: Whether a language model was asked because rules were not sure.
        confidence: Raw evidence of the best item, 0..1.
        match: Best grade of the items, "none" without an item.
        degraded: Why the answer is weaker than was asked for, in a sentence; None when it is not.
    """

    items: list[MemoryItem]
    mode_used: RetrievalMode
    total_found: int
    search_time_ms: float
    confidence_scores: list[float] = field(default_factory=list)
    escalated: bool = False
    confidence: float | None = None
    match: Match | None = None
    degraded: str | None = None

    @property
    def not_known(self) -> bool:
        """True if nothing matches. For programs of earlier versions; read `match`."""
        return self.match == "none"


def check_query(query: object, k: object) -> None:
    """Refuse what is no query, or no number of items.

    Raises:
        ValidationError: Names the bound.
    """
    if not isinstance(query, str) or not 1 <= len(query) <= MAX_QUERY:
        raise ValidationError(f"A query is a text of 1 to {MAX_QUERY:,} characters.")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
        raise ValidationError(f"k is a whole number from 1 to {MAX_K}, got {k!r}.")


class Retriever(Protocol):
    """One way to find items."""

    async def retrieve(self, query: str, k: int = 5, *, category_filter: str | None = None) -> RetrievalResult:
        """Return the best `k`, of those in the category alone if one is named."""


class ConfidenceScorer:
    """Score results by the similarity of the best and the share of the query's words in the first three.

    The score is the mean of both. The spread of the scores is left to the caller that escalates.

    Args:
        least: The similarity that tells nothing.
    """

    def __init__(self, least: float = _LEAST_COSINE) -> None:
        self._least = least

    def score(self, results: Sequence[tuple[MemoryItem, float]], query: str) -> float:
        """Return a number in 0..1; 0 without results.

        Args:
            results: Items with their similarity, best first.
            query: What was asked.
        """
        if not results:
            return 0.0
        nearness = max(0.0, min(1.0, (results[0][1] - self._least) / (1 - self._least)))
        wanted = set(query_terms(query))
        held = {term for item, _ in results[:_READ_TOGETHER] for term in query_terms(item.content)}
        return (nearness + (len(wanted & held) / len(wanted) if wanted else 0.0)) / 2


class RAGRetriever:
    """Finds items by words and by meaning, without a language model.

    Args:
        item_layer: Where they are.
        embedding_service: The layer's own embedder; named for programs that hand it over.
        similarity_threshold: Least cosine of what shares no word with the query; None takes the embedder's own.
    """

    def __init__(
        self,
        item_layer: ItemLayer,
        embedding_service: Embedder | None = None,
        similarity_threshold: float | None = None,
    ) -> None:
        self.item_layer, self.embedding_service = item_layer, embedding_service
        self._threshold = similarity_threshold

    async def retrieve(self, query: str, k: int = 5, category_filter: str | None = None) -> RetrievalResult:
        """Return the best `k` of those that are in the category, if one is named.

        Raises:
            ValidationError: The query or `k` is wrong.
            RetrievalError: Nothing can be read.
        """
        check_query(query, k)
        began = time.perf_counter()
        try:
            found = await self.item_layer.search(query, k, category_filter)
        except StorageError as error:
            raise RetrievalError(f"{error.message} Nothing was found.", recovery=error.recovery) from error
        hits = sorted(filter(self._reaches, found.results), key=_rank, reverse=True)
        return RetrievalResult(
            [item_of(hit.memory) for hit in hits],
            RetrievalMode.RAG,
            found.results.total_found,
            1000 * (time.perf_counter() - began),
            [hit.relevance_score if hit.answer_confidence is None else hit.answer_confidence for hit in hits],
            confidence=found.results.answer_confidence,
            match=found.results.match,
            degraded=found.degraded or found.results.degraded,
        )

    def _reaches(self, hit: MemorySearchResult) -> bool:
        cosine = hit.parts.get("cosine")
        return self._threshold is None or cosine is None or cosine >= self._threshold or hit.parts.get("bm25", 0) > 0


class LLMRetriever:
    """Has a language model choose among what rules find; without one, or where it fails, the rules' answer stands.

    Args:
        item_layer: Where the items are.
        model: Answers prompts: a callable, or an `Asking` with retries; None for none.
        max_candidates: How many it reads.
    """

    def __init__(self, item_layer: ItemLayer, model: Asking | None = None, max_candidates: int = 50) -> None:
        self._asking = model or Asking()
        self._most = max(1, min(max_candidates, MAX_K))
        self._rules = RAGRetriever(item_layer)

    @property
    def has_model(self) -> bool:
        """True if there is a model to ask."""
        return self._asking.model is not None

    async def retrieve(self, query: str, k: int = 5, category_filter: str | None = None) -> RetrievalResult:
        """Return what the model chose, with its confidences.

        Raises:
            ValidationError: The query or `k` is wrong.
            RetrievalError: Nothing can be read.
        """
        check_query(query, k)
        began = time.perf_counter()
        found = await self._rules.retrieve(query, max(k, self._most if self.has_model else k), category_filter)
        choice = await self._asking.choose(query, [item.content for item in found.items[: self._most]], k)
        spent = 1000 * (time.perf_counter() - began)
        if isinstance(choice, ModelFailure):
            items, scores = found.items[:k], found.confidence_scores[:k]
            return replace(found, items=items, confidence_scores=scores, search_time_ms=spent, degraded=choice.sentence)
        scores = [score for _, score in choice]
        return replace(
            found,
            items=[found.items[place] for place, _ in choice],
            confidence_scores=scores,
            mode_used=RetrievalMode.LLM,
            search_time_ms=spent,
            confidence=max(scores, default=0.0),
            match="strong" if choice else "none",
        )


class HybridRetriever:
    """Answers by rules, and asks a language model where that is not sure.

    Args:
        rag_retriever: The rules.
        llm_retriever: The model.
        escalation_threshold: Least confidence of an answer that is not escalated, 0..1.
        variance_threshold: Spread of the items' confidences (standard deviation) above which an answer whose second
            item is no worse than its first is escalated, too.
    """

    def __init__(
        self,
        rag_retriever: RAGRetriever,
        llm_retriever: LLMRetriever,
        escalation_threshold: float = 0.6,
        variance_threshold: float = 0.15,
    ) -> None:
        self._rules, self._model = rag_retriever, llm_retriever
        self._least, self._spread = escalation_threshold, variance_threshold
        self._scorer = ConfidenceScorer()

    async def retrieve(
        self, query: str, k: int = 5, escalation_threshold: float | None = None, category_filter: str | None = None
    ) -> RetrievalResult:
        """Return the rules' answer where it is sure, else the model's.

        If the model chooses nothing, the rules' results remain, as weak matches.

        Raises:
            ValidationError: The query or `k` is wrong.
            RetrievalError: Nothing can be read.
        """
        found = await self._rules.retrieve(query, k, category_filter)
        least = self._least if escalation_threshold is None else escalation_threshold
        if not self._is_unsure(found, query, least):
            return found
        chosen = await self._model.retrieve(query, k, category_filter)
        spent = found.search_time_ms + chosen.search_time_ms
        if not chosen.items and found.items:  # a model only adds
            return replace(found, match="weak", search_time_ms=spent, escalated=True)
        return replace(chosen, search_time_ms=spent, escalated=chosen.mode_used is RetrievalMode.LLM)

    def _is_unsure(self, found: RetrievalResult, query: str, least: float) -> bool:
        sure = found.confidence
        if sure is None:
            sure = self._scorer.score(list(zip(found.items, found.confidence_scores, strict=True)), query)
        scores = found.confidence_scores
        is_ambiguous = len(scores) > 1 and pstdev(scores) > self._spread and scores[1] >= scores[0]
        return sure < least or is_ambiguous or (self._model.has_model and _COMPLEX.search(query) is not None)


def _rank(hit: MemorySearchResult) -> float:
    return hit.relevance_score * _FACTORS[item_of(hit.memory).importance]
