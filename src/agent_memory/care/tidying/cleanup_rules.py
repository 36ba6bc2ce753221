"""Settings of `lifecycle`: ages of archiving and deletion, checks of a memory.

The numbers are those of the contract of `MemoryStore` (its `CleanupConfig`), which deleted by them; here they decide
what is suggested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

import pydantic
from pydantic import Field

from agent_memory.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from agent_memory.models import Memory

    Importance = Callable[[Memory, datetime], float]


Days = Annotated[int, Field(ge=1, le=36_500)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class CleanupRules(Settings):
    """Limits of proposals by age, importance and use; days of 24 hours."""

    archive_old_entries_days: Days = Field(
        default=60, description="Archive what was stored so many days ago, is not important and was not used lately."
    )
    max_age_days: Days = Field(
        default=90, description="Propose to delete from the archive what was stored and last used so many days ago."
    )
    delete_unaccessed_days: Days = Field(
        default=30,
        description="What was stored or opened by its id within so many days is neither archived nor deleted.",
    )
    keep_used_days: Days = Field(
        default=90, description="What was opened by its id within so many days stays, but for a rule of its sort."
    )
    min_importance_threshold: Fraction = Field(
        default=0.3,
        description="Less important memories are archived for their age; an `importance` that is set and not less "
        "keeps a memory, whatever its age.",
    )
    max_entries: Annotated[int, Field(ge=1)] = Field(
        default=10_000, description="Of more memories the least important that were not used lately are archived."
    )
    merge_duplicates: bool = Field(
        default=True, description="Archive a memory where another one says the same in the same words."
    )

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_age_days < self.archive_old_entries_days:
            raise ValueError("max_age_days is less than archive_old_entries_days: what is deleted was archived before")
        return self


class RetentionRule(Settings):
    """Retention of one type of memories; the first match decides."""

    category: str | None = Field(default=None, description="Only of this category.")
    topic: str | None = Field(default=None, description="Only of this topic.")
    tag: str | None = Field(default=None, description="Only with this tag.")
    project: str | None = Field(default=None, description="Only of this project.")
    group: str | None = Field(default=None, description="Only of this group, `tenant:session`.")
    archive_after_days: Days | None = Field(
        default=None, description="Archive after so many days without use; empty: never for their age."
    )

    @pydantic.model_validator(mode="after")
    def _says_which(self) -> Self:
        if not self.name:
            raise ValueError("a rule names a category, a topic, a tag, a project or a group")
        return self

    def fits(self, memory: Memory) -> bool:
        """Return True if a memory is of this sort."""
        return (
            self.category in {None, memory.category}
            and self.topic in {None, memory.topic}
            and (self.tag is None or self.tag.lower() in memory.tags)
            and (self.project is None or self.project.casefold() == memory.project.casefold())
            and self.group in {None, memory.belongs_to}
        )

    @property
    def name(self) -> str:
        """Conditions in words."""
        conditions = self.model_dump(exclude={"archive_after_days"})
        return ", ".join(f"{key} {value}" for key, value in conditions.items() if value is not None)


class LifecycleSettings(Settings):
    """Rules and budget of proposals."""

    cleanup: CleanupRules = Field(default=CleanupRules(), description="By age, importance and use.")
    retention: tuple[RetentionRule, ...] = Field(
        default=(), description="By category, topic, tag or project, before `cleanup`; the first that fits decides."
    )
    budget: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None,
        description="Memories that one run moves at most; empty: a tenth of all, at least 10 and at most 100.",
    )
