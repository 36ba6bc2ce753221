"""Searches: filters, requests, hits and their origin, results."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from typing_extensions import override

from agent_memory.errors import ValidationError
from agent_memory.models.clock import UtcDatetime, parse_bound
from agent_memory.models.memory import Category, Memory
from agent_memory.models.record import (
    GROUP,
    GROUPED,
    ITEM,
    Document,
    Facet,
    IdOf,
    Record,
    Surroundings,
    new_list,
    normalise_tags,
)
from agent_memory.models.validation import describe

if TYPE_CHECKING:
    from datetime import datetime


MAX_RESULTS: Final = 100

MatchType = Literal["scratchpad", "keyword", "vector", "hybrid"]
"""Source of a hit: the scratchpad, its words, its embedding, or both."""

Match = Literal["strong", "weak", "none"]
"""Grade of a hit, or of the best hit of an answer; "none" is for answers without a match."""

SearchMode = Literal["keyword", "hybrid"]
"""Method of an answer: words alone, or words and embeddings."""

HitKind = Literal["note", "passage", "page", "talk"]
"""Type of a hit: a memory, a part of a document, the page of a topic, or a part of a conversation."""
HIT_KINDS: Final[frozenset[HitKind]] = frozenset(get_args(HitKind))
NOTES: Final[frozenset[HitKind]] = frozenset({"note"})


@dataclass(frozen=True, slots=True)
class HitOrigin:
    """Origin of the text of a hit.

    Attributes:
        kind: Type of the hit.
        source: Title of the document, page or conversation; empty for a note.
        speaker: Name or role of the speaker; empty if unknown.
        is_confirmed: False for a text in the inbox that waits for a person's yes.
        is_expired: True for an expired or withdrawn text, which is shown by its ID alone.
        replaced_by: ID of the version of the document that replaced this text; empty if none did.
    """

    kind: HitKind = "note"
    source: str = ""
    speaker: str = ""
    is_confirmed: bool = True
    is_expired: bool = False
    replaced_by: str = ""


class FoundText(Memory):
    """Turn, document or page in the form of a memory; never stored."""

    id: Annotated[str, IdOf("epi|res|top")] = Field()
    supersedes: Annotated[str, IdOf("epi|res|top")] | None = None


class DateRange(BaseModel):
    """Date range with optional inclusive bounds; a date is a local day."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    start: UtcDatetime | None = None
    end: UtcDatetime | None = None

    @field_validator("start", "end", mode="before")
    @classmethod
    def _parse_bound(cls, value: object, info: ValidationInfo) -> object:
        return parse_bound(value, end=info.field_name == "end") if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_order(self) -> DateRange:
        if self.start and self.end and self.start > self.end:
            raise ValueError("date_range.start is after date_range.end")
        return self

    def covers(self, moment: datetime) -> bool:
        """Return True if a moment is in the range."""
        return (self.start is None or moment >= self.start) and (self.end is None or moment <= self.end)


_NO_PROJECT: Final = "\0"
"""Name that no project has."""


class ProjectScope(str):
    """Project as the scope of a session, in place of a group."""

    __slots__ = ()


class SearchFilters(BaseModel):
    """Conditions of a search; a result meets all of them.

    A text field selects the facet of its name; tools and commands offer it by its description (`offered_fields`).

    Attributes:
        project: Project that the results belong to.
        tags: Tags that a result has one of.
        all_tags: Tags that a result has.
        include_items: True to find items, extracted from documents and conversations, too.
        only_items: True to find items alone.
        group: Group whose results are found, with those of no group; empty for no group, None for all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    category: Category | None = None
    topic: str | None = None
    project: str | None = None
    tags: list[str] = Field(default_factory=new_list)
    all_tags: list[str] = Field(default_factory=new_list)
    date_range: DateRange | None = None
    min_access_count: int | None = Field(default=None, ge=0)
    include_items: bool = False
    only_items: bool = False
    group: str | None = None

    _normalise_tags = field_validator("tags", "all_tags")(normalise_tags)

    @property
    def admits_all(self) -> bool:
        """True if every record and item meets the conditions."""
        return self.include_items and self == EVERYTHING

    @property
    def with_items(self) -> SearchFilters:
        """The same conditions, but including items."""
        if self.include_items:
            return self
        return EVERYTHING if self == _NOTES else self.model_copy(update={"include_items": True})

    def within(self, group: str | None) -> SearchFilters:
        """Return the conditions within a group or project; None adds none."""
        if isinstance(group, ProjectScope):
            is_inside = self.project in {None, group}
            return self.model_copy(update={"project": str(group) if is_inside else _NO_PROJECT})
        return self if group is None else self.model_copy(update={GROUP: group})

    @override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> SearchFilters:
        """Return a copy with changed fields, and without cached facets."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("facets", "any_facets"):
            copied.__dict__.pop(name, None)
        return copied

    @property
    def is_narrow(self) -> bool:
        """True if a condition except group and kind is set."""
        return self.with_items.model_copy(update={"only_items": False, "group": None}) != EVERYTHING

    @property
    def reach(self) -> SearchFilters:
        """The conditions whose exclusions the caller cannot see, for explanations."""
        return SearchFilters(include_items=self.include_items, group=self.group)

    @cached_property
    def facets(self) -> frozenset[Facet]:
        """The required facets."""
        named = {(name, value) for name, value in self if isinstance(value, str) and name != GROUP}
        items = [ITEM] if self.only_items else []
        return frozenset(named | {("tag", tag) for tag in self.all_tags} | {*items})

    @cached_property
    def any_facets(self) -> frozenset[Facet]:
        """The facets that a result has one of; empty for no condition."""
        return frozenset([("tag", tag) for tag in self.tags])

    def admits(self, item: Record | Document) -> bool:
        """Return True if a record or document meets every condition."""
        facets = item.facets  # a local: a record builds them at each access
        return (
            (self.include_items or ITEM not in facets)
            and (self.group is None or sees(self.group, facets))
            and self.facets.issubset(facets)
            and (not self.any_facets or not self.any_facets.isdisjoint(facets))
            and (self.date_range is None or self.date_range.covers(item.moment))
            and (self.min_access_count is None or item.access_count >= self.min_access_count)
        )


def sees(group: str | None, facets: Container[Facet]) -> bool:
    """Return True if a group sees records with these facets.

    It sees its own and those without a group; None sees all, a project its own.
    """
    if isinstance(group, ProjectScope):
        return ("project", group) in facets
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
            f"The filters are invalid: they are of type {type(filters).__name__}, not a mapping.",
            code="invalid_filter",
            recovery="Give them as in {'category': 'decision', 'tags': ['db']}.",
        )
    try:
        return SearchFilters.model_validate(dict(filters or {}))
    except (pydantic.ValidationError, TypeError, ValueError) as error:
        reason = describe(error) if isinstance(error, pydantic.ValidationError) else str(error)
        raise ValidationError(f"The filters are invalid: {reason}.", code="invalid_filter") from None


def check_limit(limit: object) -> None:
    """Check the type of a number of results.

    Raises:
        ValidationError: Names the type.
    """
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ValidationError(f"limit must be a whole number from 1 to {MAX_RESULTS}, got {type(limit).__name__}.")


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One checked search, created where a caller's arguments arrive.

    Attributes:
        text: The question; empty for the latest records.
        limit: Maximum number of results, 1 to 100.
        now: Moment of asking, from which ages are counted.
        filters: Conditions of every result.
        include_superseded: True to find replaced records, too.
        explain: True to report candidates that were left out, and why.
        min_answer_confidence: Lowest `answer_confidence` of an answer that is not `not_known`, 0 to 1. For programs of
            earlier versions; read `match`.
        patience: Maximum seconds to wait until all records have embeddings; None for the storage's default.
        loads_model: False to compare words alone unless the embedding model is loaded already.

    Raises:
        ValidationError: Names the argument and its allowed values.
    """

    text: str
    limit: int
    now: datetime
    filters: SearchFilters = field(default_factory=SearchFilters)
    include_superseded: bool = False
    explain: bool = False
    patience: float | None = None
    min_answer_confidence: float | None = None
    loads_model: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ValidationError(f"The query must be text, got {type(self.text).__name__}; '' asks for the latest.")
        check_limit(self.limit)
        if not 1 <= self.limit <= MAX_RESULTS:
            raise ValidationError(f"limit must be between 1 and {MAX_RESULTS}, got {self.limit}.")
        floor = self.min_answer_confidence
        if floor is not None and (isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 <= floor <= 1):
            raise ValidationError(f"min_answer_confidence must be between 0 and 1, got {floor!r}.")


class MemorySearchResult(BaseModel):
    """One hit of a search.

    Attributes:
        memory: The memory that was found.
        relevance_score: Order of the hits of one answer, 0..1; not comparable between answers.
        match_type: List that found it.
        parts: Raw parts of the score, by name.
        match: "strong" or "weak"; None if nothing was asked.
        answer_confidence: Raw evidence of the match, 0..1: the share of the question's words or the cosine, whichever
            is larger; None if nothing was asked. For programs of earlier versions; read `match`.
        surroundings: Its links, and why it may no longer hold.
        origin: Origin of its text.
        pieces: Known cosines of the pieces of a long text.
        is_near: True if near the best hit; tools and commands show only these.
        excerpt: Part of a long text about the question, or None.
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
    """List of results, best first, with the quality of the answer.

    Attributes:
        total_found: Number of memories that met the filters and the floor, shown or not; approximate if large.
        mode: Method of the answer: by keyword alone or hybrid.
        rejected: With `explain`, candidates that were left out: `{id, reason, parts}` each.
        degraded: Why the answer is weaker than usual and what to do, or None.
        match: Best grade of the first ten hits, "none" without a match; None if nothing was asked.
        answer_confidence: Largest raw evidence of these hits, 0..1; None if nothing was asked. For programs of earlier
            versions; read `match`.
        looks_back: True if a past period was asked for, so that records replaced since were found, too.
        words: Weights of the question's terms.
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
        """True without a sufficient match. For programs of earlier versions; read `match`."""
        if self.min_answer_confidence is None or self.answer_confidence is None:
            return self.match == "none"
        return self.answer_confidence < self.min_answer_confidence
