"""Arguments of the memory tools: validated models and their JSON Schemas.

Every request carries the schemas, so they hold only what a model needs to call a tool well. `_HIDDEN` marks arguments
that are accepted and documented, but not shown. `models.arguments` reads the values that a model sends.
"""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    create_model,
    field_validator,
    model_validator,
)

from agent_memory.models import (
    CATEGORIES,
    MAX_TAG_CHARS,
    MAX_TAGS,
    HitKind,
    Memory,
    SearchFilters,
    check_metadata,
    offered_fields,
    parse_bound,
)
from agent_memory.models.identifiers import ID_DIGITS
from agent_memory.models.record import new_list
from agent_memory.tools.argument_reader import ToolArguments

if TYPE_CHECKING:
    from collections.abc import Callable

IdText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
_MemoryId = Annotated[str, StringConstraints(strip_whitespace=True, pattern=f"^mem-{ID_DIGITS}$")]
_RecordId = Annotated[str, StringConstraints(strip_whitespace=True, pattern=f"^[a-z]{{3}}-{ID_DIGITS}$")]
CategoryName = Literal[CATEGORIES]  # type: ignore[valid-type]
_Detail = Literal["short", "full"]
_Tag = Annotated[str, StringConstraints(max_length=MAX_TAG_CHARS)]
_HIDDEN: Final[dict[str, Any]] = {"x-hidden": True}
_UNLISTED: Final[dict[str, Any]] = {"x-unlisted": True}
"""Shows no values: memory_store alone lists the nine categories."""
_TERSE: Final[dict[str, Any]] = {"x-terse": True}
"""Shows no fields of its items: the description names them."""
_Kind = Annotated[HitKind, Field(json_schema_extra=_UNLISTED)]
_KINDS: Final[dict[str, Any]] = {"x-aliases": ["kind"]}
_TAG: Final[dict[str, Any]] = {"x-aliases": ["tag"]}
_MAX_LINKS: Final = 100
_MAX_FORGOTTEN: Final = 100
"""Maximum IDs in one call of memory_forget."""
_COUNT: Final[dict[str, Any]] = {"x-aliases": ["k", "top_k", "max_results"]}


class StrictInput(ToolArguments):
    """Arguments whose loss changes the meaning; unknown names are refused."""

    model_config = ConfigDict(extra="forbid")


InputT = TypeVar("InputT", bound=ToolArguments)


def _add_fields(model: type[BaseModel]) -> Callable[[type[InputT]], type[InputT]]:
    """Add an argument for each field that `model` offers.

    Bounds are checked where the values are used.
    """
    offered = offered_fields(model).items()
    fields: Any = {name: (kind, Field(None, description=description)) for name, (kind, description) in offered}
    return lambda base: create_model(base.__name__, __base__=base, __doc__=base.__doc__, **fields)


class DateRangeInput(StrictInput):
    """Bounds of a search in time: days, months, years or moments."""

    model_config = ConfigDict(json_schema_extra={"x-text": True})

    start: str | None = None
    end: str | None = None


@_add_fields(SearchFilters)
class FiltersInput(StrictInput):
    """Conditions that every result meets."""

    category: CategoryName | None = Field(None, json_schema_extra=_UNLISTED)
    tags: list[str] | None = Field(None, json_schema_extra=_TAG)
    all_tags: list[str] | None = Field(None, json_schema_extra=_HIDDEN)
    date_range: DateRangeInput | None = None
    min_access_count: int | None = Field(None, ge=0, json_schema_extra=_HIDDEN)


class LinkInput(ToolArguments):
    """One end of a link."""

    rel: str = Field(min_length=1, max_length=64)
    id: _RecordId


class SearchInput(ToolArguments):
    """Arguments of memory_search."""

    query: str = Field("", max_length=10_000, json_schema_extra={"x-aliases": ["q"], "x-strict": True})
    limit: int = Field(5, ge=1, le=100, json_schema_extra=_COUNT)
    kinds: list[_Kind] | None = Field(None, description="note, passage, page, talk", json_schema_extra=_KINDS)
    filters: FiltersInput | None = None
    include_superseded: bool = Field(default=False)
    full: bool = Field(default=False, description="whole texts")
    detail: _Detail = Field("short", json_schema_extra=_HIDDEN)
    explain: bool = Field(default=False, json_schema_extra=_HIDDEN)


@_add_fields(Memory)
class StoreInput(ToolArguments):
    """Arguments of memory_store."""

    content: str = Field(json_schema_extra={"x-aliases": ["text", "memory", "fact"]})
    category: CategoryName = Field(json_schema_extra={"x-fallback": "note"})
    tags: list[_Tag] = Field(default_factory=new_list, max_length=MAX_TAGS, json_schema_extra=_TAG)
    metadata: dict[str, JsonValue] = Field(default_factory=dict, json_schema_extra=_HIDDEN)
    supersedes: _MemoryId | None = Field(None, description="id of what it replaces")
    links: list[LinkInput] | None = Field(
        None, max_length=_MAX_LINKS, description="{rel: because, id}", json_schema_extra=_TERSE
    )

    _metadata = field_validator("metadata", mode="before")(check_metadata)


class MemoryIdInput(ToolArguments):
    """Arguments of memory_promote."""

    memory_id: IdText = Field(json_schema_extra={"x-aliases": ["id"]})


class ForgetInput(StrictInput):
    """Arguments of memory_forget: a description, IDs, or everything."""

    query: str | None = Field(None, description="the user's words")
    ids: list[IdText] | None = Field(None, json_schema_extra={"x-aliases": ["memory_ids"]}, max_length=_MAX_FORGOTTEN)
    confirm: str | None = Field(None, json_schema_extra=_HIDDEN)
    permanently: bool = False
    memory_id: IdText | None = Field(None, json_schema_extra=_HIDDEN)
    reason: str = Field("", json_schema_extra=_HIDDEN)
    all: bool = Field(default=False, json_schema_extra=_HIDDEN)

    @model_validator(mode="after")
    def _read_everything(self) -> Self:
        if self.query is not None and " ".join(self.query.lower().split()).strip("\"'.! ") in _EVERYTHING:
            self.query, self.all = None, True
        return self


class SuspectsInput(ToolArguments):
    """Arguments of memory_suspects."""

    limit: int = Field(10, ge=1, le=100, json_schema_extra=_COUNT)


class ListRecentInput(ToolArguments):
    """Arguments of memory_list_recent."""

    limit: int = Field(10, ge=1, le=100, json_schema_extra=_COUNT)
    filters: FiltersInput | None = Field(None, json_schema_extra=_HIDDEN)
    pinned: bool = Field(default=False, json_schema_extra=_HIDDEN)
    scratchpad: bool = Field(default=False, description="only the scratchpad")
    detail: _Detail = Field("short", json_schema_extra=_HIDDEN)


@_add_fields(Memory)
class UpdateInput(StrictInput):
    """Arguments of memory_update."""

    memory_id: IdText
    content: str | None = None
    category: CategoryName | None = Field(None, json_schema_extra=_UNLISTED)
    tags: list[str] | None = None
    pinned: bool | None = None
    supersedes: _MemoryId | None = None
    expires_at: str | None = Field(None, description="'' for never", json_schema_extra={"x-empty": True})
    links: list[LinkInput] | None = Field(None, json_schema_extra=_HIDDEN)


class StatusInput(ToolArguments):
    """Arguments of memory_status."""

    detail: _Detail = "short"


class ActivateInput(StrictInput):
    """Arguments of memory_activate."""

    agent_id: str = Field(min_length=1, max_length=200)


_EVERYTHING: Final = frozenset(
    {
        "*", "all", "all memories", "all my memories", "all of it", "everything", "everything about me",
        "everything you know", "everything you know about me", "everything you remember",
        "everything you remember about me", "forget all memories", "forget everything",
    }
)  # fmt: skip
"""Queries of memory_forget that mean `all`, as a whole."""
# loop-basic crashes the whole turn on a call without arguments, so each of these tools requires one.
_REQUIRED: dict[type[ToolArguments], list[str]] = {
    SearchInput: ["query"],
    ListRecentInput: ["limit"],
    SuspectsInput: ["limit"],
    StatusInput: ["detail"],
    ForgetInput: ["query"],
}
_HIDDEN_KEYS: Final = frozenset(
    {
        "$defs", "$ref", "title", "default", "minLength", "maxLength", "maxItems", "pattern", "minimum", "maximum",
        "additionalProperties", "x-aliases", "x-empty", "x-fallback", "x-strict", "x-terse", "x-text",
        "x-unlisted",
    }
)  # fmt: skip
"""Keys that a model does not need: an error names the bound that a call broke."""


def resolve_dates(filters: dict[str, Any]) -> list[str]:
    """Replace words for days in filters, such as "last week"; return warnings."""
    warnings = []
    date_range = filters.get("date_range", {})
    for name, text in date_range.items():
        if not text[:4].isdecimal():
            with contextlib.suppress(ValueError):  # the search refuses it, and names the forms
                date_range[name] = parse_bound(text, end=name == "end").astimezone().isoformat()
                warnings.append(f"filters.date_range.{name}: read as {date_range[name]}")
    return warnings


@lru_cache(maxsize=64)  # the host mounts each tool twice
def build_schema(model: type[ToolArguments]) -> dict[str, Any]:
    """Return the JSON Schema that a model is shown.

    References are inlined, and keys that a model does not need are dropped.
    """
    raw = model.model_json_schema()
    schema = _simplify_schema(raw, raw.get("$defs", {}))
    required = _REQUIRED.get(model, schema.get("required", []))
    return {"type": "object", "properties": schema["properties"], "required": required}


def _simplify_schema(node: Any, definitions: dict[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    choices = [choice for choice in node.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        node = {**choices[0], **{key: value for key, value in node.items() if key != "anyOf"}}
    if "$ref" in node:  # without the docstring of its class
        node = {**definitions[node["$ref"].rpartition("/")[2]], "description": None, **node}
    if "x-terse" in node:
        node = {**node, "items": {"type": "object"}}
    if "x-unlisted" in node:
        node = {key: value for key, value in node.items() if key != "enum"}
    return {
        key: {name: _simplify_schema(schema, definitions) for name, schema in value.items() if "x-hidden" not in schema}
        if key == "properties"
        else _simplify_schema(value, definitions)
        for key, value in node.items()
        if key not in _HIDDEN_KEYS and value is not None
    }
