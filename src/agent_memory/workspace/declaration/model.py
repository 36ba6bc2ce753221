"""What a workspace is declared to be: tables, phases, files and tools. Values only; `reading` makes and checks them."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
"""A name that is the same in every database: lower-case letters, digits, `_`; PostgreSQL cuts names after 63 bytes."""
Label: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[\w.@-]{1,100}$")]
"""The name of an agent or a snapshot."""

ColumnType: TypeAlias = Literal["text", "integer", "real", "boolean", "json", "timestamp", "file"]
TableKind: TypeAlias = Literal["rows", "log", "singleton"]
Operation: TypeAlias = Literal["get", "list", "search", "save", "update", "log", "ending"]

OWN_COLUMNS: Final = frozenset({"id", "created_at", "updated_at"})
"""Columns that every table has; a declaration may name the two times to say that a table shows them."""
MAX_TEXT_CHARS: Final = 1_000_000
"""Characters of one value, as of the other texts that are taken in: a chapter of 150,000 words."""
MAX_UNIQUE_CHARS: Final = 500
"""Characters of a unique text: PostgreSQL indexes no more than about 2,700 bytes."""
LARGEST_INTEGER: Final = 2**63 - 1
"""Both databases keep integers in 64 bits."""
_SNAPSHOT_CHARS: Final = 100
_SNAPSHOT_BYTES: Final = 200
"""Bytes of the name of a snapshot, which names a file too: most file systems take 255."""


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Column(_Declared):
    """A column.

    Attributes:
        references: A table: a value names one of its rows, by the key of that table, or by id where it has none.
        json_schema: What a value of a JSON column must be (https://json-schema.org, draft 2020-12).
        write: The agents that may write it; all that may write the table where it is empty.
        done: A phase: the column shows whether its steps for this row are done, and nobody writes it.
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


class Table(_Declared):
    """A table.

    Attributes:
        kind: `rows` are changed and added; a `log` is only added to; a `singleton` is one row that is always there.
        key: The column by which people and agents name a row; required and unique.
        search: Columns whose words are searched.
        lock: While somebody holds the lease of a row, nobody else may change it.
        belongs_to: The column that says to which row of a phase's table a row belongs, for `reads: own`.
        write: The agents that may write it; all where it is empty.
        one: What one row is called in the names of tools.
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
        """Take `title: text` for `title: {type: text}`."""
        if not isinstance(value, dict):
            return value
        return {name: {"type": each} if isinstance(each, str) else each for name, each in value.items()}

    def written_columns(self) -> list[str]:
        """Return the columns that agents write: not those that the workspace itself sets or works out."""
        return [name for name, each in self.columns.items() if name not in OWN_COLUMNS and each.done is None]

    def unique_columns(self) -> list[str]:
        """Return the columns of which no two shown rows have the same value."""
        return [name for name, column in self.columns.items() if column.unique or name == self.key]


class PhaseAgent(_Declared):
    """One agent's part of a phase.

    Attributes:
        produces: Columns of the phase's table that must have a value before the step may be finished.
    """

    agent: Label
    produces: tuple[Name, ...] = Field(default=(), strict=False)


class Phase(_Declared):
    """A phase: the same steps for each row of a table, or once for the whole workspace.

    Attributes:
        over: The table whose rows are worked on; None: one step for the whole workspace.
        order: `parallel`: rows in any order, at the same time; `in_order`: a row after those before it.
        reads: What a step sees of rows that belong to others: `own` nothing, `earlier` those before it, `all`.
        after: `all` steps of the phases before must be done, or those of the same `row` alone.
        agents: Who works on a row, one after the other.
        retries: How often a step may fail and be tried again.
        lease_seconds: How long a claim lasts unless it is renewed.
        snapshot: The name of the snapshot that is made when the phase is done.
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
        """Take `writer` for `{agent: writer}`."""
        if not isinstance(value, list):
            return value
        return tuple({"agent": each} if isinstance(each, str) else each for each in value)


class Logs(_Declared):
    """Tables into which the workspace itself writes, where they have a column of the name.

    Attributes:
        retries: `agent_name`, `phase`, `attempt_number`, `failure_type`, `failure_message`, `outcome`, and the row.
        validations: `validator_name`, `phase`, `passed`, `failures`, and the row.
        issues: A row for each proposal, while it is one: `description`, `flagged_by`, and the row.
    """

    retries: Name | None = None
    validations: Name | None = None
    issues: Name | None = None


class ToolSpec(_Declared):
    """A tool by a name of the declaration's own: an operation on one table, with names for its arguments.

    Attributes:
        operation: What it does. `ending`: the end of the item before one, in a column that holds a list of texts.
        table: On which table.
        key: The argument that names the row, by the table's key, or by its id where it has none.
        value: The key of the row that is meant where no argument names one: `structure` of a table of named values.
        where: Columns that must equal arguments: column → argument.
        arguments: What is written: column → argument.
        optional: Arguments that may be left out.
        constants: What is written without being asked for: column → value; `now` for the moment of the call.
        field: The argument that names the one column that is written; its value is in `value_argument`.
        fields: The argument that holds a mapping of columns to values.
        columns: What is answered; all columns where it is empty.
        bare: The value of the one column is answered, not a row.
        filled: Rows only in which this column has a value.
        item: `ending`: the argument that says before which item, counted from 1.
        characters: `ending`: how much of the text is answered.
        description: What a model is told that it does; made from the operation where it is empty.
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


class Declaration(_Declared):
    """A whole workspace as it is declared.

    Attributes:
        workspace: Its name.
        files: Patterns of the files that belong to it, by what they are: `prompts: prompts/**/*.md`.
    """

    workspace: Name
    description: str = ""
    tables: dict[Name, Table] = Field(min_length=1)
    phases: tuple[Phase, ...] = Field(default=(), strict=False)
    logs: Logs = Field(default_factory=Logs)
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
            KeyError: There is none.
        """
        return next(phase for phase in self.phases if phase.name == name)

    def fingerprint(self) -> str:
        """Return the SHA-256 of what it says, as 64 hexadecimal digits: equal for equal declarations."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json", by_alias=True)).encode()).hexdigest()


def is_snapshot_name(name: str) -> bool:
    """Tell whether a snapshot may have this name: letters, digits and `_.@-`, no dot at the beginning, not too long."""
    fits = 0 < len(name) <= _SNAPSHOT_CHARS and len(name.encode(errors="replace")) <= _SNAPSHOT_BYTES
    return fits and name[0] != "." and all(each.isalnum() or each in "_.@-" for each in name)


def canonical_json(value: Any) -> str:
    """Return JSON that is the same for equal values: keys sorted, no blanks, letters as they are."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
