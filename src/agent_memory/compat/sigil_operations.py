"""Operations of the specification "sigil": events, consolidation, extraction, retrieval.

Items are found by rules (RAG), by a language model among candidates (LLM), or by both (HYBRID). No payload of an event
has content or a query.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import time
import uuid
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from statistics import pstdev
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.compat.sigil_layers import ItemLayer, MemoryItem, view_item
from agent_memory.errors import ConfigurationError, RetrievalError, StorageError, ValidationError
from agent_memory.knowledge.llm.language_model import Asking, LanguageModel, ModelFailure, choose_candidates
from agent_memory.language.words import query_terms
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from agent_memory.embeddings import Embedder
    from agent_memory.knowledge.tool_settings import Importance
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Match, MemorySearchResult

log = get_logger(__name__)
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


class MemoryEventType(StrEnum):
    """Types of events."""

    RESOURCE_STORED = "memory.resource_stored"
    ITEMS_EXTRACTED = "memory.items_extracted"
    CATEGORY_CREATED = "memory.category_created"
    CATEGORY_CONSOLIDATED = "memory.category_consolidated"
    RETRIEVAL_PERFORMED = "memory.retrieval_performed"
    RESOURCE_DELETED = "memory.resource_deleted"
    ITEM_DELETED = "memory.item_deleted"


@dataclass(frozen=True, slots=True)
class ResourceStoredPayload:
    """Of RESOURCE_STORED; `content_length` in characters."""

    resource_id: str
    resource_type: str
    content_length: int
    metadata_keys: list[str]


@dataclass(frozen=True, slots=True)
class ItemsExtractedPayload:
    """Of ITEMS_EXTRACTED; `by_model` of them are statements of a language model."""

    resource_id: str
    item_ids: list[str]
    item_count: int
    categories: list[str]
    extraction_time_ms: float
    by_model: int = 0


@dataclass(frozen=True, slots=True)
class CategoryCreatedPayload:
    """Of CATEGORY_CREATED."""

    category_id: str
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class CategoryConsolidatedPayload:
    """Of CATEGORY_CONSOLIDATED; `content_length` in characters, `by_model` is 0."""

    category_id: str
    name: str
    item_count: int
    content_length: int
    consolidation_time_ms: float
    by_model: int = 0


@dataclass(frozen=True, slots=True)
class RetrievalPerformedPayload:
    """Of RETRIEVAL_PERFORMED, with the SHA-256 of the query."""

    query_hash: str
    mode: str
    result_count: int
    search_time_ms: float
    escalated: bool


@dataclass(frozen=True, slots=True)
class ResourceDeletedPayload:
    """Of RESOURCE_DELETED; `cascade` tells whether its items went with it."""

    resource_id: str
    cascade: bool
    item_count: int


@dataclass(frozen=True, slots=True)
class ItemDeletedPayload:
    """Of ITEM_DELETED."""

    item_id: str


EVENT_TYPES: Final[dict[type, MemoryEventType]] = {
    ResourceStoredPayload: MemoryEventType.RESOURCE_STORED,
    ItemsExtractedPayload: MemoryEventType.ITEMS_EXTRACTED,
    CategoryCreatedPayload: MemoryEventType.CATEGORY_CREATED,
    CategoryConsolidatedPayload: MemoryEventType.CATEGORY_CONSOLIDATED,
    RetrievalPerformedPayload: MemoryEventType.RETRIEVAL_PERFORMED,
    ResourceDeletedPayload: MemoryEventType.RESOURCE_DELETED,
    ItemDeletedPayload: MemoryEventType.ITEM_DELETED,
}


@dataclass(frozen=True, slots=True)
class MemoryEvent:
    """One event as an event store gets it."""

    event_id: str
    event_type: MemoryEventType
    timestamp: datetime
    session_id: str
    correlation_id: str | None
    payload: dict[str, Any]


class EventStore(Protocol):
    """Store of events; awaitable results of `append` are awaited."""

    def append(self, event: MemoryEvent) -> object:
        """Keep an event."""


def query_hash(query: str) -> str:
    """Return the SHA-256 of a query, hexadecimal."""
    return hashlib.sha256(query.encode("utf-8", "replace")).hexdigest()


async def send_event(
    payload: Any, service: MemoryService, store: EventStore | None, now: datetime, caller: Caller
) -> None:
    """Send one event to a store and to the caller's session.

    `correlation_id` joins those of one resource or category.
    """
    kind, values = EVENT_TYPES[type(payload)], asdict(payload)
    if store is not None:
        joined = values.get("resource_id", values.get("category_id"))
        stored = store.append(MemoryEvent(str(uuid.uuid4()), kind, now, caller.session_id, joined, values))
        if inspect.isawaitable(stored):
            await stored
    fields = {name: value for name, value in values.items() if name not in {"description", "query_hash"}}
    await service.report(kind.value.replace(".", ":"), caller, **fields)


class Items(list[MemoryItem]):
    """Items with warnings.

    Attributes:
        warnings: Why there are not more of them, and what was left out, in a sentence each.
        degraded: Sentence that says why a language model gave no statements; None if it did, or was not asked.
        by_model: How many are its statements.
    """

    def __init__(self, items: Iterable[MemoryItem] = ()) -> None:
        super().__init__(items)
        self.warnings: list[str] = []
        self.degraded: str | None = None
        self.by_model = 0


class RetrievalMode(StrEnum):
    """Modes of retrieval."""

    RAG = "rag"
    LLM = "llm"
    HYBRID = "hybrid"


@dataclass(slots=True)
class RetrievalResult:
    """Result of a retrieval.

    Attributes:
        items: Items, best first.
        total_found: Number of matches, estimated if there are many.
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
    """Check a query and a number of items."""
    if not isinstance(query, str) or not 1 <= len(query) <= MAX_QUERY:
        raise ValidationError(f"A query is a text of 1 to {MAX_QUERY:,} characters.")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
        raise ValidationError(f"k is a whole number from 1 to {MAX_K}, got {k!r}.")


class ConfidenceScorer:
    """Scores results by the mean of similarity and share of words.

    Args:
        least: Similarity that counts as 0.
    """

    def __init__(self, least: float = _LEAST_COSINE) -> None:
        self._least = least

    def score(self, results: Sequence[tuple[MemoryItem, float]], query: str) -> float:
        """Return the score of items with similarities, 0 to 1."""
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
        """Return the best `k` items, of one category if named."""
        check_query(query, k)
        began = time.perf_counter()
        try:
            results = await self.item_layer.search(query, k, category_filter)
        except StorageError as error:
            raise RetrievalError(f"{error.message} Nothing was found.", recovery=error.recovery) from error
        hits = sorted(filter(self._reaches, results.results), key=_rank, reverse=True)
        left_out = len(results.results) - len(hits)
        degraded = f"All results are less similar than {self._threshold}." if left_out and not hits else None
        return RetrievalResult(
            [view_item(hit.memory) for hit in hits],
            RetrievalMode.RAG,
            results.results.total_found - left_out,
            1000 * (time.perf_counter() - began),
            [hit.relevance_score if hit.answer_confidence is None else hit.answer_confidence for hit in hits],
            confidence=results.results.answer_confidence,
            match=results.results.match,
            degraded=results.degraded or results.results.degraded or degraded,
        )

    def _reaches(self, hit: MemorySearchResult) -> bool:
        cosine = hit.parts.get("cosine")
        return self._threshold is None or cosine is None or cosine >= self._threshold or hit.parts.get("bm25", 0) > 0


class LLMRetriever:
    """Retrieves items that a language model chooses among candidates.

    Args:
        item_layer: Where the items are.
        model: Answers prompts: a callable, or an `Asking` with retries; None for none.
        max_candidates: How many it reads.

    Raises:
        ConfigurationError: `model` is not callable, such as a model's name.
    """

    def __init__(
        self, item_layer: ItemLayer, model: Asking | LanguageModel | None = None, max_candidates: int = 50
    ) -> None:
        if model is not None and not isinstance(model, Asking) and not callable(model):
            raise ConfigurationError(
                "A model is a function that answers a prompt; a model's name alone asks nobody.",
                recovery="Give `async def answer(prompt: str) -> str`, which asks your provider for that model.",
            )
        self._asking = model if isinstance(model, Asking) else Asking(model)
        self._most = max(1, min(max_candidates, MAX_K))
        self._rules = RAGRetriever(item_layer)

    @property
    def has_model(self) -> bool:
        """True if there is a model to ask."""
        return self._asking.model is not None

    async def retrieve(self, query: str, k: int = 5, category_filter: str | None = None) -> RetrievalResult:
        """Return the items that the model chose, with confidences."""
        check_query(query, k)
        began = time.perf_counter()
        result = await self._rules.retrieve(query, max(k, self._most if self.has_model else k), category_filter)
        choice = await choose_candidates(self._asking, query, [item.content for item in result.items[: self._most]], k)
        spent = 1000 * (time.perf_counter() - began)
        if isinstance(choice, ModelFailure):
            items, scores = result.items[:k], result.confidence_scores[:k]
            return replace(
                result, items=items, confidence_scores=scores, search_time_ms=spent, degraded=choice.sentence
            )
        scores = [score for _, score in choice]
        return replace(
            result,
            items=[result.items[place] for place, _ in choice],
            confidence_scores=scores,
            mode_used=RetrievalMode.LLM,
            search_time_ms=spent,
            confidence=max(scores, default=0.0),
            match="strong" if choice else "none",
        )


class HybridRetriever:
    """Retrieves by rules, and asks a language model if unsure.

    Args:
        rag_retriever: Retriever by rules.
        llm_retriever: Retriever by a model.
        escalation_threshold: Least confidence of an answer that is not escalated, 0..1.
        variance_threshold: Spread of the items' confidences (standard deviation) above which an answer whose second
            item is as good as its first is escalated as well.
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
        """
        result = await self._rules.retrieve(query, k, category_filter)
        least = self._least if escalation_threshold is None else escalation_threshold
        if not self._is_unsure(result, query, least):
            return result
        chosen = await self._model.retrieve(query, k, category_filter)
        spent = result.search_time_ms + chosen.search_time_ms
        if not chosen.items and result.items:  # a model only adds
            return replace(result, match="weak", search_time_ms=spent, escalated=True)
        return replace(chosen, search_time_ms=spent, escalated=chosen.mode_used is RetrievalMode.LLM)

    def _is_unsure(self, result: RetrievalResult, query: str, least: float) -> bool:
        sure = result.confidence
        if sure is None:
            sure = self._scorer.score(list(zip(result.items, result.confidence_scores, strict=True)), query)
        scores = result.confidence_scores
        is_ambiguous = len(scores) > 1 and pstdev(scores) > self._spread and scores[1] >= scores[0]
        return sure < least or is_ambiguous or (self._model.has_model and _COMPLEX.search(query) is not None)


def _rank(hit: MemorySearchResult) -> float:
    return hit.relevance_score * _FACTORS[view_item(hit.memory).importance]
