"""What each tool takes: checked models, and the JSON Schema a model is shown.

Every request carries the schemas, so they hold only what a model needs to call a tool well. Bounds are checked and
told by the answer; `SkipJsonSchema` marks arguments that are accepted and documented, but not shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, WithJsonSchema, create_model
from pydantic.json_schema import SkipJsonSchema

from agent_memory.models import CATEGORIES, Memory, SearchFilters, offered_fields

if TYPE_CHECKING:
    from collections.abc import Callable

_Id = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
_CategoryName = Literal[CATEGORIES]  # type: ignore[valid-type]
_KnownCategory = Annotated[_CategoryName, WithJsonSchema({"type": "string"})]
"""The nine categories are listed once, in memory_store."""


class Input(BaseModel):
    """Unknown arguments are refused: a mistyped filter that is silently ignored finds the wrong things."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


InputT = TypeVar("InputT", bound=Input)


def _with_fields_of(model: type[BaseModel]) -> Callable[[type[InputT]], type[InputT]]:
    """Add an argument for each field that `model` offers; their bounds are checked where the values are used."""
    offered = offered_fields(model).items()
    fields: Any = {name: (kind, Field(None, description=description)) for name, (kind, description) in offered}
    return lambda given: create_model(given.__name__, __base__=given, __doc__=given.__doc__, **fields)


class DateRangeInput(Input):
    """Bounds of a search in time: ISO 8601 dates or date-times; a bare date means that whole day."""

    start: str | None = Field(None, description="ISO 8601")
    end: str | None = None


@_with_fields_of(SearchFilters)
class FiltersInput(Input):
    """Conditions that every result meets."""

    category: _KnownCategory | None = None
    tags: list[str] | None = Field(None, description="any of these")
    all_tags: SkipJsonSchema[list[str] | None] = None
    date_range: DateRangeInput | None = None
    min_access_count: SkipJsonSchema[int | None] = Field(None, ge=0)


class LinkInput(Input):
    """One end of a link."""

    rel: str = Field(min_length=1, max_length=64)
    id: _Id


class SearchInput(Input):
    """Of memory_search."""

    query: str = Field(min_length=1, max_length=10_000)
    limit: int = Field(5, ge=1, le=100, description="1 to 100, by default 5")
    filters: FiltersInput | None = None
    include_superseded: bool = Field(default=False, description="also what a newer memory replaced")
    full: bool = Field(default=False, description="whole texts")
    explain: SkipJsonSchema[bool] = False
    min_answer_confidence: SkipJsonSchema[float | None] = Field(None, ge=0, le=1)


@_with_fields_of(Memory)
class StoreInput(Input):
    """Of memory_store."""

    content: str
    category: _CategoryName
    tags: list[str] = Field(default_factory=list)
    metadata: SkipJsonSchema[dict[str, JsonValue]] = Field(default_factory=dict)
    supersedes: _Id | None = Field(None, description="id of the memory that this makes untrue")
    links: list[LinkInput] | None = Field(None, description="rel: because, derived_from, …")


class MemoryIdInput(Input):
    """Of memory_promote."""

    memory_id: _Id


class ForgetInput(Input):
    """Of memory_forget: an id, or words and then what their preview said."""

    query: str | None = Field(None, description="the user's words for it, or an id")
    confirm: str | None = None
    permanently: bool = False
    memory_id: SkipJsonSchema[_Id | None] = None
    reason: SkipJsonSchema[str] = ""


class SuspectsInput(Input):
    """Of memory_suspects."""

    limit: int = Field(10, ge=1, le=100)


class ListRecentInput(Input):
    """Of memory_list_recent."""

    limit: int = Field(10, ge=1, le=100, description="1 to 100")
    scratchpad: bool = Field(default=False, description="instead what the scratchpad shows")


@_with_fields_of(Memory)
class UpdateInput(Input):
    """Of memory_update."""

    memory_id: _Id
    content: str | None = None
    category: _KnownCategory | None = None
    tags: list[str] | None = Field(None, description="replace the old ones")
    pinned: bool | None = None
    expires_at: str | None = Field(None, description="ISO 8601; '' for never")
    links: SkipJsonSchema[list[LinkInput] | None] = None


class StatusInput(Input):
    """Of memory_status."""

    detail: Literal["short", "full"] = "short"


class ActivateInput(Input):
    """Of memory_activate."""

    agent_id: str = Field(min_length=1, max_length=200, description="NAME exactly as the user said it")


# loop-basic crashes the whole turn on a call with no arguments at all, so these have one that is asked for.
_ALWAYS_ASKED: dict[type[Input], list[str]] = {
    ListRecentInput: ["limit"],
    SuspectsInput: ["limit"],
    StatusInput: ["detail"],
    ForgetInput: ["query"],
}
_NOT_SHOWN: Final = frozenset(
    {"$defs", "$ref", "title", "default", "minLength", "maxLength", "minimum", "maximum", "additionalProperties"}
)
"""What a model does not need to know: the answer to a call that breaks a bound says it."""


def schema_of(model: type[Input]) -> dict[str, Any]:
    """Return the JSON Schema of an input as a model is shown it: references inlined, only what it needs."""
    raw = model.model_json_schema()
    schema = _plain(raw, raw.get("$defs", {}))
    required = _ALWAYS_ASKED.get(model, schema.get("required", []))
    return {"type": "object", "properties": schema["properties"], "required": required}


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    choices = [choice for choice in node.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        node = {**choices[0], **{key: value for key, value in node.items() if key != "anyOf"}}
    if "$ref" in node:  # without the docstring of its class
        node = {**definitions[node["$ref"].rpartition("/")[2]], "description": None, **node}
    return {
        key: {name: _plain(each, definitions) for name, each in value.items()}  # whatever they are called
        if key == "properties"
        else _plain(value, definitions)
        for key, value in node.items()
        if key not in _NOT_SHOWN and value is not None
    }
