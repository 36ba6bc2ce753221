"""`CleanupManager` and `ArchivalManager`: what would be tidied by a store's numbers, and doing it when told to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pydantic

from agent_memory.care.importance import ENTRY_TYPES, importance_of, type_of
from agent_memory.care.tidying import Budget, Cleanup, LifecycleSettings, Tidying
from agent_memory.compat.memory_store.entries import record_id_of
from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.models import Memory, describe
from agent_memory.models.record import normalise_tags
from agent_memory.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from agent_memory.care.tidying import TidyingPlan
    from agent_memory.compat.memory_store.configs import ArchivalConfig, CleanupConfig
    from agent_memory.compat.memory_store.keeping import Kept
    from agent_memory.memory import Caller
    from agent_memory.models import Clock

_WITHOUT_EFFECT: Final = frozenset({"cleanup_interval_hours"})
_WHY: Final = "it met criteria of a program"


class CleanupManager:
    """Tidies by the rules of `agent-memory archive tidy`, with a store's numbers. Nothing happens by itself.

    Args:
        kept: Where memories and the archive are.
        config: The numbers.
        caller: Returns the session that asks.

    Raises:
        ConfigurationError: The numbers contradict each other.
    """

    def __init__(self, kept: Kept, config: CleanupConfig, caller: Callable[[], Caller]) -> None:
        try:
            rules = Cleanup.model_validate(config.model_dump(exclude=set(_WITHOUT_EFFECT)))
        except pydantic.ValidationError as error:
            raise ConfigurationError(f"cleanup_config: {describe(error)}.") from None
        self._kept, self._settings, self._caller = kept, LifecycleSettings(cleanup=rules), caller

    async def plan(self) -> TidyingPlan:
        """Return what would be done, memory by memory with the reason, within a budget; changes nothing.

        Raises:
            ConfigurationError: The memory is on a server, which has no archive.
            StorageError: The memories cannot be read.
        """
        return await self._tidying().plan()

    async def perform_cleanup(self, *, apply: bool = False, delete: bool = False) -> int:
        """Return how many memories the plan moves; with `apply`, do what it says and return how many moved.

        Args:
            apply: Do it; `Tidying.undo` takes it back.
            delete: Also delete for good what the plan proposes to delete from the archive.

        Raises:
            ValidationError: The caller may not do it to one of them; nothing was done.
            StorageError: What was done before is safe.
        """
        tidying = self._tidying()
        plan = await tidying.plan()
        if not apply:
            return sum(each.size for each in plan.suggestions if delete or each.action != "delete")
        return (await tidying.apply(plan, self._caller(), delete=delete)).moved

    def _tidying(self) -> Tidying:
        return Tidying(self._kept.archive, self._settings)


class Criteria(Settings):
    """Which memories are meant; all that are given hold.

    `older_than_days` and `unused_for_days` count from when it was stored, and used last; `max_importance` is the most
    that it may have; of `tags` one is enough. What is pinned is never meant.
    """

    older_than_days: int | None = pydantic.Field(default=None, ge=0)
    unused_for_days: int | None = pydantic.Field(default=None, ge=0)
    max_importance: float | None = pydantic.Field(default=None, ge=0, le=1)
    entry_types: list[str] | None = None
    entry_ids: list[str] | None = None
    session_id: str | None = None
    tags: list[str] | None = None

    @pydantic.field_validator("entry_types")
    @classmethod
    def _known(cls, types: list[str] | None) -> list[str] | None:
        if types is not None and (unknown := set(types) - set(ENTRY_TYPES)):
            raise ValueError(f"{len(unknown)} of the entry types are unknown; there are {', '.join(ENTRY_TYPES)}")
        return types


@dataclass(frozen=True, slots=True)
class ArchivalManager:
    """Puts memories away that meet criteria; turns and documents have no archive.

    Attributes:
        kept: Where memories and the archive are.
        config: What holds where criteria name neither an age, nor an importance, nor ids.
        clock: Source of the present.
        caller: Returns the session that asks.
    """

    kept: Kept
    config: ArchivalConfig
    clock: Clock
    caller: Callable[[], Caller]

    async def matching(self, criteria: Mapping[str, Any]) -> list[Memory]:
        """Return the memories that meet criteria, the least important first; changes nothing.

        Raises:
            ValidationError: A criterion is unknown, or has a wrong value.
            StorageError: The memories cannot be read.
        """
        asked, now = self._read(criteria), self.clock()
        group = self.caller().group or ""
        ids = None if asked.entry_ids is None else {record_id_of(one, group) for one in asked.entry_ids}
        found: list[tuple[float, Memory]] = []
        for memory in await self.kept.memories():
            if isinstance(memory, Memory) and (ids is None or memory.id in ids):
                importance = importance_of(memory, now)
                if _is_meant(memory, asked, importance, now):
                    found.append((importance, memory))
        return [memory for _, memory in sorted(found, key=lambda each: (each[0], each[1].timestamp, each[1].id))]

    async def archive_entries(
        self, criteria: Mapping[str, Any], *, apply: bool = False, budget: int | None = None
    ) -> int:
        """Return how many memories would be archived by criteria; with `apply`, archive them and return how many were.

        Args:
            criteria: Of `Criteria`; empty ones mean those of the configuration.
            apply: Do it; `Archive.restore` brings them back. What a memory has replaced goes with it.
            budget: How many at most, the least important first; a tenth of all, at least 10 and at most 100, when
                omitted.

        Raises:
            ValidationError: A criterion is unknown or wrong, or the caller may not archive one; none was archived.
            ConfigurationError: The memory is on a server, which has no archive.
            StorageError: What was archived before is safe.
        """
        meant = await self.matching(criteria)
        most = Budget.of(await self.kept.service.storage.count(), budget).most
        ids = [memory.id for memory in meant[:most]]
        if not apply or not ids:
            return len(ids)
        put = {each.id for each in await self.kept.archive.add(ids, self.caller(), why=_WHY)}
        return sum(one in put for one in ids)

    def _read(self, criteria: Mapping[str, Any]) -> Criteria:
        try:
            asked = Criteria.model_validate(dict(criteria))
        except (pydantic.ValidationError, TypeError, ValueError) as error:
            reason = describe(error) if isinstance(error, pydantic.ValidationError) else "they are a mapping"
            raise ValidationError(
                f"The criteria are wrong: {reason}; nothing was archived.",
                recovery=f"There are: {', '.join(Criteria.model_fields)}.",
            ) from None
        if asked.entry_ids is not None:
            return asked
        own: dict[str, Any] = {}
        if asked.older_than_days is None and asked.unused_for_days is None:
            own["unused_for_days"] = self.config.archive_after_days
        if asked.max_importance is None:
            own["max_importance"] = self.config.max_importance
        return asked.model_copy(update=own)


def _is_meant(memory: Memory, asked: Criteria, importance: float, now: datetime) -> bool:
    """Return True if a memory meets all criteria but that of ids."""
    unused = (now - (memory.last_accessed or memory.timestamp)).days
    return (
        not memory.pinned
        and (asked.entry_types is None or type_of(memory) in asked.entry_types)
        and asked.session_id in {None, memory.created_by_session}
        and (asked.tags is None or bool(set(normalise_tags(asked.tags)) & set(memory.tags)))
        and (asked.max_importance is None or importance <= asked.max_importance)
        and (asked.older_than_days is None or (now - memory.timestamp).days >= asked.older_than_days)
        and (asked.unused_for_days is None or unused >= asked.unused_for_days)
    )
