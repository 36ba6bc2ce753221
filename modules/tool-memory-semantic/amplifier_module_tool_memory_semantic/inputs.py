"""What each tool takes: checked models, and the JSON Schema a model is shown, without references or noise."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from agent_memory.models import CATEGORIES

_Id = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
_CategoryName = Literal[CATEGORIES]  # type: ignore[valid-type]
_Tags = Annotated[list[str], Field(description="Keywords, lower case, at most 50.")]


class Input(BaseModel):
    """Unknown arguments are refused: a mistyped filter that is silently ignored finds the wrong things."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class DateRangeInput(Input):
    """Bounds of a search in time."""

    start: str | None = Field(None, description="ISO 8601 date or date-time; a bare date means that whole day.")
    end: str | None = Field(None, description="ISO 8601 date or date-time; a bare date means that whole day.")


class FiltersInput(Input):
    """Conditions that every result meets."""

    category: _CategoryName | None = Field(None, description="Only this category.")
    tags: list[str] | None = Field(None, description="Only memories with all of these tags.")
    date_range: DateRangeInput | None = Field(None, description="Only memories stored in this time.")
    min_access_count: int | None = Field(None, ge=0, description="Only memories found at least so often.")


class SearchInput(Input):
    """Of memory_search."""

    query: str = Field(min_length=1, max_length=10_000, description="A question or keywords.")
    limit: int = Field(5, ge=1, le=100, description="Most results to return.")
    filters: FiltersInput | None = Field(None, description="Narrow the search.")
    include_superseded: bool = Field(default=False, description="Also find what a newer memory replaced.")
    explain: bool = Field(default=False, description="Also return score parts and what was left out, and why.")


class StoreInput(Input):
    """Of memory_store."""

    content: str = Field(description="One fact, self-contained, 1 to 10,000 characters. Never a password or key.")
    category: _CategoryName = Field(description="What kind of memory it is.")
    tags: _Tags = Field(default_factory=list)
    metadata: dict[str, JsonValue] = Field(default_factory=dict, description="Further JSON, at most 8 KiB.")
    supersedes: _Id | None = Field(None, description="Id of the memory that this one makes untrue.")


class PromoteInput(Input):
    """Of memory_promote."""

    memory_id: _Id = Field(description="Id of the memory, e.g. mem-a3f2c1b4e5d6.")


class ListRecentInput(Input):
    """Of memory_list_recent."""

    limit: int = Field(10, ge=1, le=100, description="Most memories to return.")


class UpdateInput(Input):
    """Of memory_update."""

    memory_id: _Id = Field(description="Id of the memory.")
    content: str | None = Field(None, description="New text, if it was wrong or incomplete.")
    category: _CategoryName | None = Field(None, description="New category.")
    tags: list[str] | None = Field(None, description="New tags, replacing the old ones.")
    pinned: bool | None = Field(None, description="true keeps it at the top of the scratchpad.")
    expires_at: str | None = Field(None, description="ISO 8601 moment after which it is no longer found; '' for never.")


class ForgetInput(Input):
    """Of memory_forget."""

    memory_id: _Id = Field(description="Id of the memory to forget.")


class StatusInput(Input):
    """Of memory_status."""

    detail: Literal["short", "full"] = Field("short", description="How much to tell.")


class ActivateInput(Input):
    """Of memory_activate."""

    agent_id: str = Field(min_length=1, max_length=200, description="Name of the agent, exactly as the user said it.")


# loop-basic crashes the whole turn on a call with no arguments at all, so these have one that is asked for.
_ALWAYS_ASKED: dict[type[Input], list[str]] = {ListRecentInput: ["limit"], StatusInput: ["detail"]}


def schema_of(model: type[Input]) -> dict[str, Any]:
    """Return the JSON Schema of an input: references inlined, titles and null alternatives removed."""
    raw = model.model_json_schema()
    schema = _plain(raw, raw.get("$defs", {}))
    schema.pop("description", None)
    required = _ALWAYS_ASKED.get(model, schema.get("required", []))
    return {"type": "object", "properties": schema["properties"], "required": required, "additionalProperties": False}


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _plain({**target, **rest}, definitions)
    choices = [choice for choice in node.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in node.items() if key not in {"anyOf", "default"}}
        return _plain({**choices[0], **rest}, definitions)
    drop = {"$defs", "title"} if "properties" in node or "type" in node else {"$defs"}
    plain = {key: value for key, value in node.items() if key not in drop}
    if "properties" in plain:
        plain["properties"] = {name: _plain(value, definitions) for name, value in plain["properties"].items()}
    return {key: value if key == "properties" else _plain(value, definitions) for key, value in plain.items()}
