"""Declaration of a workspace: tables, phases, files and tools."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
"""Name that is equal in every database; PostgreSQL cuts names after 63 bytes."""
Label: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[\w.@-]{1,100}$")]
"""Name of an agent or a snapshot."""

ColumnType: TypeAlias = Literal["text", "integer", "real", "boolean", "json", "timestamp", "file"]
TableKind: TypeAlias = Literal["rows", "log", "singleton"]
Operation: TypeAlias = Literal["get", "list", "search", "save", "update", "log", "ending"]

DECLARATION: Final = "workspace.yaml"
"""File with the declaration of a workspace; not part of snapshots."""
OWN_COLUMNS: Final = frozenset({"id", "created_at", "updated_at"})
"""Columns of every table; a declaration may list the two times to show them."""
MAX_TEXT_CHARS: Final = 1_000_000
"""Characters of one value, as of other ingested texts: a chapter of 150,000 words."""
MAX_UNIQUE_CHARS: Final = 500
"""Characters of a unique text: PostgreSQL indexes no more than about 2,700 bytes."""
LARGEST_INTEGER: Final = 2**63 - 1
"""Both databases keep integers in 64 bits."""
_SNAPSHOT_CHARS: Final = 100
_SNAPSHOT_BYTES: Final = 200
"""Bytes of the name of a snapshot, which is also a file name: most file systems allow 255."""


class _DeclaredModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Column(_DeclaredModel):
    """Column of a table.

    Attributes:
        references: Table whose rows the values name, by key, or by ID without a key.
        json_schema: JSON Schema of a JSON column (https://json-schema.org, draft 2020-12).
        write: Agents that may write it; empty for all that may write the table.
        done: Phase whose finished steps the column shows; nothing else writes it.
    """

    type: ColumnType = "text"
    required: bool = False
    unique: bool = False
    enum: tuple[str | int, ...] = Field(default=(), strict=False)
    references: Name | None = None
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    default: Any = None
    write: tuple[Label, ...] = Field(default=(), strict=False)
    done: Name | None = None
    description: str = ""


class Table(_DeclaredModel):
    """Table of a workspace.

    Attributes:
        kind: Kind of the table. `rows` are added and changed, a `log` is only added to, a `singleton` is one row.
        key: Column that names a row; required and unique.
        search: Columns that are searched by words.
        lock: True if a claimed row can only be changed under its claim.
        belongs_to: Column that references the row of a phase, for `reads: own`.
        write: Agents that may write it; empty for all.
        one: Name of one row in the names of tools.
    """

    kind: TableKind = "rows"
    key: Name | None = None
    columns: dict[Name, Column]
    search: tuple[Name, ...] = Field(default=(), strict=False)
    index: tuple[Name, ...] = Field(default=(), strict=False)
    lock: bool = False
    belongs_to: Name | None = None
    write: tuple[Label, ...] = Field(default=(), strict=False)
    one: Name | None = None
    description: str = ""

    @field_validator("columns", mode="before")
    @classmethod
    def _types_alone(cls, value: Any) -> Any:
        """Accept `title: text` for `title: {type: text}`."""
        if not isinstance(value, dict):
            return value
        return {name: {"type": column} if isinstance(column, str) else column for name, column in value.items()}

    def written_columns(self) -> list[str]:
        """Return the columns that agents write."""
        return [name for name, column in self.columns.items() if name not in OWN_COLUMNS and column.done is None]

    def unique_columns(self) -> list[str]:
        """Return the columns with unique values among shown rows."""
        return [name for name, column in self.columns.items() if column.unique or name == self.key]


class PhaseAgent(_DeclaredModel):
    """Part of one agent in a phase.

    Attributes:
        produces: Columns of the phase's table that need a value before the step can finish.
    """

    agent: Label
    produces: tuple[Name, ...] = Field(default=(), strict=False)


class Phase(_DeclaredModel):
    """Phase with equal steps for each row, or for the whole workspace.

    Attributes:
        over: Table whose rows are worked on; None for the whole workspace.
        order: Order of the rows: `parallel`, or `in_order` for one after the other.
        reads: Rows of other steps that a step sees: `own` for none, `earlier` for those before it, or `all`.
        after: Steps of earlier phases that must be done: `all`, or those of the same `row`.
        agents: Agents that work on a row, one after the other.
        retries: Number of failures after which a step may be tried again.
        lease_seconds: Duration of a claim, unless it is renewed.
        snapshot: Name of the snapshot at the end of the phase.
    """

    name: Name
    over: Name | None = None
    order: Literal["parallel", "in_order"] = "parallel"
    reads: Literal["own", "earlier", "all"] = "all"
    after: Literal["all", "row"] = "all"
    agents: tuple[PhaseAgent, ...] = Field(min_length=1, strict=False)
    retries: int = Field(default=3, ge=0, le=100)
    lease_seconds: int = Field(default=600, ge=1, le=86_400)
    snapshot: Label | None = None

    @field_validator("agents", mode="before")
    @classmethod
    def _names_alone(cls, value: Any) -> Any:
        """Accept `writer` for `{agent: writer}`."""
        if not isinstance(value, list):
            return value
        return tuple({"agent": agent} if isinstance(agent, str) else agent for agent in value)


class LogTables(_DeclaredModel):
    """Tables in which the workspace writes declared columns.

    Attributes:
        retries: Log with `agent_name`, `phase`, `attempt_number`, `failure_type`, `failure_message`, `outcome`, and the
            row.
        validations: Log with `validator_name`, `phase`, `passed`, `failures`, and the row.
        issues: Table with a row for each present proposal: `description`, `flagged_by`, and the row.
    """

    retries: Name | None = None
    validations: Name | None = None
    issues: Name | None = None


class ToolSpec(_DeclaredModel):
    """Declared tool: an operation on one table, with named arguments.

    Attributes:
        operation: Operation of the tool. `ending` returns the end of the item before one, in a list of texts.
        table: Table that it works on.
        key: Argument that names the row, by key, or by ID without a key.
        value: Key of the row if no argument names one, e.g. `structure` of a table of named values.
        where: Argument that each named column must equal.
        arguments: Argument that is written into each named column.
        optional: Arguments that may be left out.
        constants: Value that is written into each named column; `now` for the moment of the call.
        field: Argument with the name of the written column; its value is in `value_argument`.
        fields: Argument with a mapping of columns to values.
        columns: Columns of the answer; empty for all.
        bare: True to answer the value of the only column instead of a row.
        filled: Column that must have a value.
        item: Argument of `ending` with the number of the item, from 1.
        characters: Length of the answer of `ending`.
        description: Description for a model; empty for one made from the operation.
    """

    operation: Operation
    table: Name
    key: Name | None = None
    value: str | None = None
    where: dict[Name, Name] = Field(default_factory=dict)
    arguments: dict[Name, Name] = Field(default_factory=dict)
    optional: tuple[Name, ...] = Field(default=(), strict=False)
    constants: dict[Name, Any] = Field(default_factory=dict)
    field: Name | None = None
    value_argument: Name = "value"
    fields: Name | None = None
    columns: tuple[Name, ...] = Field(default=(), strict=False)
    bare: bool = False
    filled: Name | None = None
    item: Name | None = None
    characters: int = Field(default=1_000, ge=1, le=100_000)
    description: str = ""


class Declaration(_DeclaredModel):
    """Declaration of a whole workspace.

    Attributes:
        workspace: Name of the workspace.
        files: Patterns of its files by purpose, e.g. `prompts: prompts/**/*.md`.
    """

    workspace: Name
    description: str = ""
    tables: dict[Name, Table] = Field(min_length=1)
    phases: tuple[Phase, ...] = Field(default=(), strict=False)
    logs: LogTables = Field(default_factory=LogTables)
    files: dict[Name, str] = Field(default_factory=dict)
    tools: dict[Name, ToolSpec] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _phases_differ(self) -> Declaration:
        names = [phase.name for phase in self.phases]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two phases are called {twice!r}")
        return self

    def phase(self, name: str) -> Phase:
        """Return the phase of a name.

        Raises:
            KeyError: It does not exist.
        """
        return next(phase for phase in self.phases if phase.name == name)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the content, in hexadecimal digits."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json", by_alias=True)).encode()).hexdigest()


def is_snapshot_name(name: str) -> bool:
    """Return True if a snapshot may have this name.

    It has letters, digits and `_.@-`, no dot at the beginning, and a limited length.
    """
    fits = 0 < len(name) <= _SNAPSHOT_CHARS and len(name.encode(errors="replace")) <= _SNAPSHOT_BYTES
    return fits and name[0] != "." and all(character.isalnum() or character in "_.@-" for character in name)


def canonical_json(value: Any) -> str:
    """Return JSON that is equal for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


STEP_TOOLS: Final = ("next_steps", "claim_step", "claim_row", "finish_step", "release_step", "fail_step", "renew")
ROW_TOOLS: Final = ("get_row", "list_rows", "search_rows", "save_row", "update_row", "list_proposals")
DEFAULT_TOOLS: Final = ("next_steps", "claim_step", "finish_step", "fail_step", *ROW_TOOLS[:5])
"""Tools that are offered by default: enough for a step, whatever is declared."""
_OF_KIND: Final = {
    "rows": ("get", "list", "search", "save", "update"),
    "log": ("list", "search", "log"),
    "singleton": ("get", "update"),
}


def get_row_name(name: str, table: Table) -> str:
    """Return the name of one row: as declared, else the table's singular."""
    if table.one is not None:
        return table.one
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def list_tool_names(name: str, table: Table) -> dict[str, str]:
    """Return the operation of each tool of a table, by name."""
    row_name = get_row_name(name, table)
    operations = [operation for operation in _OF_KIND[table.kind] if operation != "search" or table.search]
    return {
        f"{operation}_{name if operation in ('list', 'search') else row_name}": operation for operation in operations
    }
