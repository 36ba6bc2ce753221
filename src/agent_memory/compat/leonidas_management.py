"""Configuration, metrics, cleanup and archiving of a `MemoryStore`."""

from __future__ import annotations

import time
from collections import Counter, deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pydantic
from pydantic import Field

from agent_memory.care.importance import ENTRY_TYPES, get_entry_type, importance_of
from agent_memory.care.tidying.cleanup_rules import CleanupRules, LifecycleSettings
from agent_memory.care.tidying.suggestions import TidyBudget, TidyingPlan
from agent_memory.care.tidying.tidy_runs import Tidying
from agent_memory.compat.leonidas_entries import get_record_id
from agent_memory.compat.leonidas_records import MAX_RESULTS, EntryRecords
from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.logs import CounterMetric, HistogramMetric
from agent_memory.models import Memory, describe
from agent_memory.models.record import normalise_tags
from agent_memory.settings import OPENAI_DIMENSIONS, ServiceSettings, Settings
from agent_memory.store.shards import with_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from agent_memory.embeddings import Embedder
    from agent_memory.memory import Caller
    from agent_memory.models import Clock

_MODEL: Final = "text-embedding-ada-002"
_DIMENSION: Final = 1536
_THRESHOLD: Final = 0.7
_STORAGE: Final = "memory_store"


# -- configuration --------------------------------------------------------------------------------------------------


class EmbeddingConfig(Settings):
    """Settings of embeddings; defaults mean those of the memory's settings.

    So nothing uses a network unasked. `batch_size` is accepted and has no effect.
    """

    model_name: str = Field(
        default=_MODEL, min_length=1, description="Model of OpenAI's, or a folder with a local one; default: settings'."
    )
    embedding_dimension: int = Field(
        default=_DIMENSION, ge=1, description="What vectors have to have, where `model_name` or an embedder is given."
    )
    batch_size: int = Field(default=100, ge=1)
    similarity_threshold: float = Field(
        default=_THRESHOLD,
        ge=0,
        le=1,
        description="Least cosine of what shares no word; default: the embedder's own floor.",
    )
    max_similarity_results: int = Field(
        default=50, ge=1, le=MAX_RESULTS, description="Candidates of each kind that are weighed, at least."
    )


class CleanupConfig(Settings):
    """Limits of proposals for tidying, see `agent_memory.care.tidying.CleanupRules`.

    `cleanup_interval_hours` is accepted and has no effect: nothing is tidied unasked.
    """

    cleanup_interval_hours: int = Field(default=24, ge=1)
    min_importance_threshold: float = Field(
        default=0.3, ge=0, le=1, description="What is less important is proposed for the archive for its age."
    )
    max_age_days: int = Field(default=90, ge=1, description="What is older in the archive is proposed for deletion.")
    max_entries: int = Field(default=10_000, ge=1, description="The least important of more are proposed.")
    delete_unaccessed_days: int = Field(default=30, ge=1, description="What was used within so many days stays.")
    archive_old_entries_days: int = Field(default=60, ge=1, description="What is older is proposed for the archive.")


class ArchivalConfig(Settings):
    """Default criteria of archiving."""

    archive_after_days: int = Field(default=60, ge=1, description="Days without a use.")
    max_importance: float = Field(default=0.8, ge=0, le=1, description="More important ones are not proposed.")


class MemoryStoreConfig(Settings):
    """Settings of a `MemoryStore`.

    Index and copies are in each agent's folder below `storage_path`; `index_path` and `backup_path` must be below it.
    `cache_size` and `query_cache_size` are accepted and have no effect: entries are in memory, and a cached answer
    would name forgotten entries.
    """

    storage_path: str = Field(default=_STORAGE, min_length=1, description="Root of all agents' folders.")
    index_path: str = Field(default="memory_store/indexes", min_length=1)
    backup_path: str = Field(default="memory_store/backups", min_length=1)
    cache_size: int = Field(default=1000, ge=0)
    query_cache_size: int = Field(default=500, ge=0)
    max_file_size_mb: int = Field(default=100, ge=1, description="Statistics name the journals that are larger.")
    embedding_config: EmbeddingConfig = Field(default_factory=EmbeddingConfig)
    cleanup_config: CleanupConfig = Field(default_factory=CleanupConfig)
    archival_config: ArchivalConfig = Field(default_factory=ArchivalConfig)
    max_context_length: int = Field(default=2000, ge=1, description="Tokens of a context for a query.")
    max_retrieval_results: int = Field(default=10, ge=1, le=MAX_RESULTS, description="Entries of an answer.")
    relevance_threshold: float = Field(
        default=0.6, ge=0, le=1, description="Least relevance of an entry, on the scale of the profile `weighted`."
    )


def build_service_settings(
    config: MemoryStoreConfig, settings: ServiceSettings | None, embedder: Embedder | None = None
) -> ServiceSettings:
    """Return the settings of the memory below a store.

    Args:
        config: Settings of the store.
        settings: Settings of the program, defaults if omitted.
        embedder: Embedder of the program, or None.

    Raises:
        ConfigurationError: Two folders or thresholds are named, the model is unknown, vectors have another dimension,
            or a path is outside the storage.
    """
    embedding = config.embedding_config
    settings = settings or ServiceSettings()
    if embedding.model_name != _MODEL:
        settings = with_model(settings, embedding.model_name) or settings
    threshold = embedding.similarity_threshold
    changes = {
        "storage_root": _choose("storage_path", config.storage_path, _STORAGE, "storage_root", settings),
        "similarity_threshold": _choose(
            "similarity_threshold", threshold, _THRESHOLD, "similarity_threshold", settings
        ),
    }
    dimension = None if embedder is None else embedder.identity.dimension
    if dimension is None and embedding.model_name != _MODEL:
        dimension = settings.embedding_dimensions or OPENAI_DIMENSIONS.get(embedding.model_name)
    wanted = embedding.embedding_dimension
    is_set = wanted != _DIMENSION or embedding.model_name != _MODEL
    if is_set and dimension is not None and dimension != wanted:
        raise ConfigurationError(f"embedding_dimension is {wanted}, and the embedder's vectors have {dimension}.")
    root = Path(config.storage_path).expanduser().absolute()
    for name in ("index_path", "backup_path"):
        path = Path(getattr(config, name)).expanduser().absolute()
        if name in config.model_fields_set and not path.is_relative_to(root):
            raise ConfigurationError(
                f"{name} lies outside storage_path; what belongs to an agent lies in its folder.",
                code="path_outside",
                recovery=f"Leave {name} out, or name a folder below storage_path.",
            )
    values = settings.model_dump(exclude_unset=True)
    return ServiceSettings(**{**values, **{name: value for name, value in changes.items() if value is not None}})


def _choose(name: str, value: object, default: object, shared: str, settings: ServiceSettings) -> object:
    """Return the common value of store and settings; None means the settings'."""
    is_set = shared in settings.model_fields_set and getattr(settings, shared) is not None
    if value == default:
        return None if is_set or name != "storage_path" else default
    if is_set and getattr(settings, shared) != value:
        raise ConfigurationError(
            f"{name}={value!r} and {shared}={getattr(settings, shared)!r} are two values of one setting.",
            code="conflicting_settings",
            recovery=f"Give {name} or {shared}, or the same value to both.",
        )
    return value


# -- metrics --------------------------------------------------------------------------------------------------------

_OPERATIONS: Final = ("store", "retrieve")
OPERATIONS: Final = CounterMetric(
    "agent_memory_store_operations",
    "Calls of a memory store, and those that failed.",
    {"operation": _OPERATIONS, "outcome": ("done", "failed")},
)
LATENCY: Final = HistogramMetric(
    "agent_memory_store_latency_milliseconds", "From the call to the answer.", {"operation": _OPERATIONS}
)


class MemoryPerformanceMetrics:
    """Counts, durations and failures of one store's calls."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {name: deque(maxlen=1000) for name in _OPERATIONS}
        self._calls, self._errors, self._results = Counter[str](), Counter[str](), 0

    @contextmanager
    def timing(self, operation: Literal["store", "retrieve"]) -> Iterator[None]:
        """Measure one call; one that raises counts as failed."""
        begin = time.perf_counter()
        try:
            yield
        except BaseException:
            self._errors[operation] += 1
            OPERATIONS.add(operation=operation, outcome="failed")
            raise
        duration = (time.perf_counter() - begin) * 1000
        self._calls[operation] += 1
        self._times[operation].append(duration)
        OPERATIONS.add(operation=operation, outcome="done")
        LATENCY.observe(duration, operation=operation)

    def count_results(self, count: int) -> None:
        """Count the entries of an answer."""
        self._results += count

    def get_summary(self) -> dict[str, Any]:
        """Return count, errors and milliseconds of each operation."""
        summary = {name: self._summarize(name) for name in _OPERATIONS}
        summary["retrieve"]["results"] = self._results
        return summary

    def _summarize(self, operation: str) -> dict[str, Any]:
        times = sorted(self._times[operation])

        def quantile(share: float) -> float | None:
            return round(times[min(len(times) - 1, int(share * len(times)))], 3) if times else None

        counts = {"count": self._calls[operation], "errors": self._errors[operation]}
        return {**counts, "p50_ms": quantile(0.5), "p95_ms": quantile(0.95)}


# -- tidying --------------------------------------------------------------------------------------------------------


class CleanupManager:
    """Tidies by the rules of `agent-memory archive tidy`, on request.

    Args:
        records: Records of the store.
        config: Limits of the proposals.
        caller: Returns the calling session.

    Raises:
        ConfigurationError: The limits contradict each other.
    """

    def __init__(self, records: EntryRecords, config: CleanupConfig, caller: Callable[[], Caller]) -> None:
        try:
            rules = CleanupRules.model_validate(config.model_dump(exclude={"cleanup_interval_hours"}))
        except pydantic.ValidationError as error:
            raise ConfigurationError(f"cleanup_config: {describe(error)}.") from None
        self._records, self._settings, self._caller = records, LifecycleSettings(cleanup=rules), caller

    async def plan(self) -> TidyingPlan:
        """Return proposals with reasons, within a budget; changes nothing.

        Raises:
            ConfigurationError: The memory is on a server, which has no archive.
            StorageError: The memories cannot be read.
        """
        return await Tidying(self._records.archive, self._settings).plan()

    async def perform_cleanup(self, *, apply: bool = False, delete: bool = False) -> int:
        """Return the number of proposed memories; with `apply`, of moved ones.

        Args:
            apply: True to do it; `Tidying.undo` reverses it.
            delete: True to include deletions from the archive.

        Raises:
            ValidationError: The caller may not move one of them; nothing was done.
            StorageError: Completed changes stay.
        """
        tidying = Tidying(self._records.archive, self._settings)
        plan = await tidying.plan()
        if not apply:
            return sum(proposal.size for proposal in plan.suggestions if delete or proposal.action != "delete")
        return (await tidying.apply(plan, self._caller(), delete=delete)).moved


class ArchivalCriteria(Settings):
    """Criteria of archiving, which all must hold.

    One of `tags` is enough. Pinned memories are excluded.

    `older_than_days` counts from storing, `unused_for_days` from the last use.
    """

    older_than_days: int | None = Field(default=None, ge=0)
    unused_for_days: int | None = Field(default=None, ge=0)
    max_importance: float | None = Field(default=None, ge=0, le=1)
    entry_types: list[str] | None = None
    entry_ids: list[str] | None = None
    session_id: str | None = None
    tags: list[str] | None = None

    @pydantic.field_validator("entry_types")
    @classmethod
    def _check_types(cls, types: list[str] | None) -> list[str] | None:
        if types is not None and (unknown := set(types) - set(ENTRY_TYPES)):
            raise ValueError(f"{len(unknown)} of the entry types are unknown; there are {', '.join(ENTRY_TYPES)}")
        return types

    def matches(self, memory: Memory, importance: float, now: datetime) -> bool:
        """Return True if a memory meets all criteria except IDs."""
        unused = (now - (memory.last_accessed or memory.timestamp)).days
        return (
            not memory.pinned
            and (self.entry_types is None or get_entry_type(memory) in self.entry_types)
            and self.session_id in {None, memory.created_by_session}
            and (self.tags is None or bool(set(normalise_tags(self.tags)) & set(memory.tags)))
            and (self.max_importance is None or importance <= self.max_importance)
            and (self.older_than_days is None or (now - memory.timestamp).days >= self.older_than_days)
            and (self.unused_for_days is None or unused >= self.unused_for_days)
        )


class ArchivalManager:
    """Archives memories that meet criteria; turns and documents have no archive.

    Args:
        records: Records of the store.
        config: Default criteria if an age, an importance and IDs are missing.
        clock: Source of the present.
        caller: Returns the calling session.
    """

    def __init__(
        self, records: EntryRecords, config: ArchivalConfig, clock: Clock, caller: Callable[[], Caller]
    ) -> None:
        self._records, self._config, self._clock, self._caller = records, config, clock, caller

    async def matching(self, criteria: Mapping[str, Any]) -> list[Memory]:
        """Return memories that meet criteria, the least important first.

        Raises:
            ValidationError: A criterion is unknown, or has a wrong value.
            StorageError: The memories cannot be read.
        """
        checked, now, group = self._check(criteria), self._clock(), self._caller().group or ""
        ids = None if checked.entry_ids is None else {get_record_id(entry_id, group) for entry_id in checked.entry_ids}
        matches: list[tuple[float, Memory]] = []
        for memory in await self._records.memories():
            if isinstance(memory, Memory) and (ids is None or memory.id in ids):
                importance = importance_of(memory, now)
                if checked.matches(memory, importance, now):
                    matches.append((importance, memory))
        return [memory for _, memory in sorted(matches, key=lambda pair: (pair[0], pair[1].timestamp, pair[1].id))]

    async def archive_entries(
        self, criteria: Mapping[str, Any], *, apply: bool = False, budget: int | None = None
    ) -> int:
        """Return the number of matching memories, or with `apply` of archived ones.

        Args:
            criteria: Fields of `ArchivalCriteria`; empty ones mean the configuration's.
            apply: True to archive them with what they replaced; `Archive.restore` reverses it.
            budget: Maximum number, the least important first; by default a tenth of all, 10 to 100.

        Raises:
            ValidationError: A criterion is wrong, or the caller may not archive one; none was archived.
            ConfigurationError: The memory is on a server, which has no archive.
            StorageError: Memories that were archived before it stay archived.
        """
        matches = await self.matching(criteria)
        most = TidyBudget.of(await self._records.service.storage.count(), budget).most
        ids = [memory.id for memory in matches[:most]]
        if not apply or not ids:
            return len(ids)
        why = "it met criteria of a program"
        archived = {memory.id for memory in await self._records.archive.add(ids, self._caller(), why=why)}
        return sum(memory_id in archived for memory_id in ids)

    def _check(self, criteria: Mapping[str, Any]) -> ArchivalCriteria:
        try:
            checked = ArchivalCriteria.model_validate(dict(criteria))
        except (pydantic.ValidationError, TypeError, ValueError) as error:
            reason = describe(error) if isinstance(error, pydantic.ValidationError) else "they are a mapping"
            raise ValidationError(
                f"The criteria are wrong: {reason}; nothing was archived.",
                recovery=f"There are: {', '.join(ArchivalCriteria.model_fields)}.",
            ) from None
        if checked.entry_ids is not None:
            return checked
        defaults: dict[str, Any] = {}
        if checked.older_than_days is None and checked.unused_for_days is None:
            defaults["unused_for_days"] = self._config.archive_after_days
        if checked.max_importance is None:
            defaults["max_importance"] = self._config.max_importance
        return checked.model_copy(update=defaults)
