"""What goes into a search and what comes out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agent_memory.models.memory import Category, Memory
from agent_memory.models.record import normalise_tags
from agent_memory.models.times import UtcDatetime, parse_bound

if TYPE_CHECKING:
    from datetime import datetime

MatchType = Literal["scratchpad", "keyword", "vector", "hybrid"]
SearchMode = Literal["keyword", "hybrid"]
"""How the answer was found: by words alone, or by words and meaning."""


class DateRange(BaseModel):
    """Both bounds inclusive and optional, in ISO 8601; a bare date means that whole local day."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    start: UtcDatetime | None = None
    end: UtcDatetime | None = None

    @field_validator("start", mode="before")
    @classmethod
    def _start(cls, value: object) -> object:
        return parse_bound(value, end=False) if isinstance(value, str) else value

    @field_validator("end", mode="before")
    @classmethod
    def _end(cls, value: object) -> object:
        return parse_bound(value, end=True) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _ordered(self) -> DateRange:
        if self.start and self.end and self.start > self.end:
            raise ValueError("date_range.start lies after date_range.end")
        return self

    def covers(self, moment: datetime) -> bool:
        """Tell whether `moment` lies within the range."""
        return (self.start is None or moment >= self.start) and (self.end is None or moment <= self.end)


class SearchFilters(BaseModel):
    """Conditions that every result meets; all given ones must hold.

    `tags` asks for at least one of the tags listed, `all_tags` for every one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    category: Category | None = None
    tags: list[str] = Field(default_factory=list)
    all_tags: list[str] = Field(default_factory=list)
    date_range: DateRange | None = None
    min_access_count: int | None = Field(default=None, ge=0)

    _tags = field_validator("tags", "all_tags")(normalise_tags)

    def admits(self, memory: Memory) -> bool:
        """Tell whether `memory` meets every condition."""
        return (
            (self.category is None or memory.category == self.category)
            and (not self.tags or not set(self.tags).isdisjoint(memory.tags))
            and (not self.all_tags or set(self.all_tags) <= set(memory.tags))
            and (self.date_range is None or self.date_range.covers(memory.timestamp))
            and (self.min_access_count is None or memory.access_count >= self.min_access_count)
        )


class MemorySearchResult(BaseModel):
    """One hit: the memory, its rank score in 0..1, how it was matched, and the raw parts of the score."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    memory: Memory
    relevance_score: float = Field(ge=0, le=1, allow_inf_nan=False)
    match_type: MatchType
    parts: dict[str, float] = Field(default_factory=dict)


class SearchResults(list[MemorySearchResult]):
    """Results best first, a list, with what a caller needs to judge them.

    Attributes:
        total_found: How many memories met the filters and the floor, shown or not.
        mode: Whether the answer was found by keyword alone or hybrid.
        rejected: With `explain`, what was considered and left out: `{id, reason, parts}` each.
        degraded: Why the answer is weaker than it could be and what to do, in a sentence or two; None when it is not.
    """

    def __init__(
        self,
        results: list[MemorySearchResult] | None = None,
        *,
        total_found: int = 0,
        mode: SearchMode = "keyword",
        rejected: list[dict[str, Any]] | None = None,
        degraded: str | None = None,
    ) -> None:
        super().__init__(results or [])
        self.total_found = total_found
        self.mode: SearchMode = mode
        self.rejected = rejected or []
        self.degraded = degraded
