"""What goes into a search and what comes out of it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from typing_extensions import override

from agent_memory.errors import ValidationError
from agent_memory.models.clock import UtcDatetime
from agent_memory.models.document import GROUP, GROUPED, ITEM
from agent_memory.models.found_text import HitOrigin
from agent_memory.models.invalid import describe
from agent_memory.models.links import Surroundings
from agent_memory.models.memory import Category, Memory
from agent_memory.models.record import Record, normalise_tags
from agent_memory.models.typed_dates import parse_bound

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models.document import Document, Facet

MAX_RESULTS: Final = 100

MatchType = Literal["scratchpad", "keyword", "vector", "hybrid"]
"""How one hit was found: in the scratchpad, by its words, by its embedding, or by both."""

Match = Literal["strong", "weak", "none"]
"""How well a hit, or the best hit of an answer, matches the question; "none" is for answers without a match."""

SearchMode = Literal["keyword", "hybrid"]
"""How the answer was found: by words alone, or by words and embeddings."""


class DateRange(BaseModel):
    """Both bounds inclusive and optional, in ISO 8601; a bare date means that whole local day."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    start: UtcDatetime | None = None
    end: UtcDatetime | None = None

    @field_validator("start", "end", mode="before")
    @classmethod
    def _bound(cls, value: object, info: ValidationInfo) -> object:
        return parse_bound(value, end=info.field_name == "end") if isinstance(value, str) else value

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

    `project` asks for what belongs to that project alone. `tags` asks for at least one of the tags listed, `all_tags`
    for every one. A field that is a text asks for the facet of its name, as `category` does; tools and commands offer
    it by its description (`models.fields.offered_fields`). Without `include_items` nothing is found that was drawn from
    a document or a talk, with `only_items` as well nothing else; with `group` nothing that belongs to another one: an
    empty `group` finds what belongs to none, None finds all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    category: Category | None = None
    topic: str | None = None
    project: str | None = None
    tags: list[str] = Field(default_factory=list)
    all_tags: list[str] = Field(default_factory=list)
    date_range: DateRange | None = None
    min_access_count: int | None = Field(default=None, ge=0)
    include_items: bool = False
    only_items: bool = False
    group: str | None = None

    _tags = field_validator("tags", "all_tags")(normalise_tags)

    @property
    def admits_all(self) -> bool:
        """Whether there is no condition, not even that what is found is no item."""
        return self.include_items and self == EVERYTHING

    @property
    def with_items(self) -> SearchFilters:
        """The same conditions for items, too."""
        if self.include_items:
            return self
        return EVERYTHING if self == _NOTES else self.model_copy(update={"include_items": True})

    def within(self, group: str | None) -> SearchFilters:
        """Return the same conditions for what a group may see; None adds no condition."""
        return self if group is None else self.model_copy(update={GROUP: group})

    @override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> SearchFilters:
        """Return a copy with changed fields, and with facets of its own."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("facets", "any_facets"):
            copied.__dict__.pop(name, None)
        return copied

    @property
    def is_narrow(self) -> bool:
        """Return True if a condition other than the group and the kind is set."""
        return self.with_items.model_copy(update={"only_items": False, "group": None}) != EVERYTHING

    @property
    def reach(self) -> SearchFilters:
        """Those conditions of which an explanation says nothing: what they leave out is not there for who asks."""
        return SearchFilters(include_items=self.include_items, group=self.group)

    @cached_property
    def facets(self) -> frozenset[Facet]:
        """The facets that a result has, every one."""
        named = {(name, value) for name, value in self if isinstance(value, str) and name != GROUP}
        items = [ITEM] if self.only_items else []
        return frozenset(named | {("tag", tag) for tag in self.all_tags} | {*items})

    @cached_property
    def any_facets(self) -> frozenset[Facet]:
        """The facets of which a result has at least one, unless there are none here."""
        return frozenset([("tag", tag) for tag in self.tags])

    def admits(self, item: Record | Document) -> bool:
        """Tell whether a record, or the document of one, meets every condition."""
        facets = item.facets  # once: a record makes them anew each time
        return (
            (self.include_items or ITEM not in facets)
            and (self.group is None or sees(self.group, facets))
            and self.facets.issubset(facets)
            and (not self.any_facets or not self.any_facets.isdisjoint(facets))
            and (self.date_range is None or self.date_range.covers(item.moment))
            and (self.min_access_count is None or item.access_count >= self.min_access_count)
        )


def sees(group: str | None, facets: Container[Facet]) -> bool:
    """Tell whether a group may see what has these facets: what belongs to it or to none; None sees all."""
    return group is None or GROUPED not in facets or (GROUP, group) in facets


EVERYTHING: Final = SearchFilters(include_items=True)
"""No condition."""
_NOTES: Final = SearchFilters()


def filters_of(filters: SearchFilters | Mapping[str, Any] | None) -> SearchFilters:
    """Return checked filters.

    Raises:
        ValidationError: Names the field and the rule.
    """
    if isinstance(filters, SearchFilters):
        return filters
    if filters is not None and not isinstance(filters, Mapping):
        raise ValidationError(
            f"The filters are wrong: they are of type {type(filters).__name__}, not a mapping.",
            code="invalid_filter",
            recovery="Give them as in {'category': 'decision', 'tags': ['db']}.",
        )
    try:
        return SearchFilters.model_validate(dict(filters or {}))
    except (pydantic.ValidationError, TypeError, ValueError) as error:
        reason = describe(error) if isinstance(error, pydantic.ValidationError) else str(error)
        raise ValidationError(f"The filters are wrong: {reason}.", code="invalid_filter") from None


def check_limit(limit: object) -> None:
    """Refuse what is no number of results.

    Raises:
        ValidationError: Names the type.
    """
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ValidationError(f"limit must be a whole number from 1 to {MAX_RESULTS}, got {type(limit).__name__}.")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search, checked; made once where a caller's arguments arrive, and handed down whole.

    Attributes:
        text: The question; an empty one asks for the latest.
        limit: Most results, 1 to 100.
        now: The moment of asking; ages are counted from it.
        filters: Conditions that every result meets.
        include_superseded: Find what was replaced, too.
        explain: Also report what was left out, and why.
        min_answer_confidence: Least `answer_confidence` of an answer that is not `not_known`, 0 to 1. For programs of
            earlier versions; read `match`.
        patience: Seconds to wait at most until what is stored is found by its embedding, too; None leaves that to the
            storage.

    Raises:
        ValidationError: Names the argument and what it may be.
    """

    text: str
    limit: int
    now: datetime
    filters: SearchFilters = field(default_factory=SearchFilters)
    include_superseded: bool = False
    explain: bool = False
    patience: float | None = None
    min_answer_confidence: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValidationError(f"The query must be text, got {type(self.text).__name__}; '' asks for the latest.")
        check_limit(self.limit)
        if not 1 <= self.limit <= MAX_RESULTS:
            raise ValidationError(f"limit must lie between 1 and {MAX_RESULTS}, got {self.limit}.")
        least = self.min_answer_confidence
        if least is not None and (isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1):
            raise ValidationError(f"min_answer_confidence must lie between 0 and 1, got {least!r}.")


class MemorySearchResult(BaseModel):
    """One hit of a search.

    Attributes:
        memory: What was found.
        relevance_score: What orders the hits of one answer, 0..1; it does not compare hits of different answers.
        match_type: Which list found it.
        parts: Raw parts of the score.
        match: "strong" or "weak"; None if nothing was asked.
        answer_confidence: Raw evidence of the match, 0..1: the share of the question's words or the cosine, whichever
            is larger; None if nothing was asked. For programs of earlier versions; read `match`.
        surroundings: What it is linked with, and why it may no longer hold.
        origin: Where its text comes from.
        pieces: The cosine of each piece of a text that is embedded in several, where they are known.
        is_near: Whether it is near the best hit; the service tells it, and tools and commands show those alone.
        excerpt: What it says about the question, where that is not all it says; the service gives it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    memory: Memory
    relevance_score: float = Field(ge=0, le=1, allow_inf_nan=False)
    match_type: MatchType
    parts: dict[str, float] = Field(default_factory=dict)
    match: Match | None = None
    answer_confidence: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    surroundings: Surroundings = Surroundings()
    origin: HitOrigin = HitOrigin()
    pieces: tuple[float, ...] = ()
    is_near: bool = True
    excerpt: str | None = None


class SearchResults(list[MemorySearchResult]):
    """Results best first, a list, with what a caller needs to judge them.

    Attributes:
        total_found: How many memories met the filters and the floor, shown or not; about how many where there are many.
        mode: Whether the answer was found by keyword alone or hybrid.
        rejected: With `explain`, what was considered and left out: `{id, reason, parts}` each.
        degraded: Why the answer is weaker than it could be and what to do, in a sentence or two; None when it is not.
        match: Best grade of the first ten hits, "none" without a match; None if nothing was asked.
        answer_confidence: Largest raw evidence of these hits, 0..1; None if nothing was asked. For programs of earlier
            versions; read `match`.
        looks_back: Whether a time that is over was asked for, so that what held then was found, too, though it was
            replaced since.
        words: The question's terms, each with how much it tells.
    """

    def __init__(
        self,
        results: list[MemorySearchResult] | None = None,
        *,
        total_found: int = 0,
        mode: SearchMode = "keyword",
        rejected: list[dict[str, Any]] | None = None,
        degraded: str | None = None,
        match: Match | None = None,
        answer_confidence: float | None = None,
    ) -> None:
        super().__init__(results or [])
        self.total_found = total_found
        self.mode: SearchMode = mode
        self.rejected = rejected or []
        self.degraded = degraded
        self.answer_confidence = answer_confidence
        self.min_answer_confidence: float | None = None
        self.match: Match | None = match
        self.looks_back = False
        self.words: Mapping[str, float] = {}

    @property
    def not_known(self) -> bool:
        """True if nothing matches, or less than asked for. For programs of earlier versions; read `match`."""
        if self.min_answer_confidence is None or self.answer_confidence is None:
            return self.match == "none"
        return self.answer_confidence < self.min_answer_confidence
