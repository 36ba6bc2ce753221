"""Tool of a workspace, its argument schemas and session."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, LeaseError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.tools.argument_reader import normalize_arguments
from agent_memory.workspace.rows.claims import Claim, RowCaller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent_memory.models.clock import Clock
    from agent_memory.workspace.declaration.model import Column, Declaration, Table
    from agent_memory.workspace.step_plan import Step
    from agent_memory.workspace.workspace import Workspace

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
UNNAMED: Final = "agent"
"""Agent without a setting and a claim; it may not write what is reserved for named agents."""
_KINDS: Final = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "real": {"type": "number"},
    "boolean": {"type": "boolean"},
    "json": {"description": "any JSON"},
    "timestamp": {"type": "string", "format": "date-time"},
    "file": {"type": "string", "description": "path of a file that is there, relative to the workspace's folder"},
}
LIMIT_SCHEMA: Final = {
    "type": "integer", "minimum": 1, "maximum": 1000, "description": "at most so many rows", "x-count": True,
}  # fmt: skip
"""`x-count` marks a size of the answer; it is not shown."""
OFFSET_SCHEMA: Final = {
    "type": "integer",
    "minimum": 0,
    "description": "rows to leave out at the beginning",
    "x-count": True,
}
QUERY_SCHEMA: Final = {"type": "string", "description": "words to look for; a row that has any of them is found"}
BEGIN_SCHEMA: Final = {
    "type": "integer", "minimum": 0, "description": "begin texts at this character, to read on", "x-count": True,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tool:
    """Tool of a workspace.

    Attributes:
        name: Name by which a model calls it.
        description: Description for a model.
        properties: JSON Schema of each argument.
        needed: Required arguments.
        run: Takes the session and checked arguments; returns a dict with a `status` or a `count`.
        asked: Arguments with a default that a model is still asked for: some hosts cannot carry a call without any.
    """

    name: str
    description: str
    properties: Mapping[str, Any]
    run: Callable[[ToolSession, dict[str, Any]], dict[str, Any]] = field(repr=False)
    needed: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, an object."""
        return {
            "type": "object",
            "properties": {name: _remove_marks(schema) for name, schema in self.properties.items()},
            "required": [*self.needed, *(argument for argument in self.asked if argument not in self.needed)],
            "additionalProperties": False,
        }

    def check_arguments(self, raw: Any) -> tuple[dict[str, Any], list[str]]:
        """Return the arguments without optional nulls, and warnings.

        Numbers of rows or characters are brought into their range; nothing else is changed.

        Raises:
            ValidationError: One is unknown, missing or of another type. Values of columns are checked when written.
        """
        if raw is not None and not isinstance(raw, dict):
            raise self._build_error("takes its arguments as an object")
        arguments = {str(name): value for name, value in (raw or {}).items()}
        for name in arguments:
            if name not in self.properties:
                raise self._build_error(f"has no argument {quoted(name)}")
        missing = [name for name in self.needed if name not in arguments]
        if missing:
            raise self._build_error(f"needs {', '.join(missing)}")
        counts = {name: schema for name, schema in self.properties.items() if schema.get("x-count")}
        bounded, warnings = normalize_arguments({"properties": counts}, {name: arguments.get(name) for name in counts})
        arguments = {name: value for name, value in arguments.items() if name not in counts} | bounded
        checked = {name: value for name, value in arguments.items() if value is not None or name in self.needed}
        for name, value in checked.items():
            self._check_type(name, value)
        return checked, warnings

    def _check_type(self, name: str, value: Any) -> None:
        schema = self.properties[name]
        kind = schema.get("type")
        if value is None or kind is None:
            return
        odd = isinstance(value, bool) and kind != "boolean"
        if odd or not isinstance(value, _TYPES[kind]):
            raise self._build_error(f"takes {name} as {kind}")
        if "enum" in schema and value not in schema["enum"]:
            raise self._build_error(f"takes {name} as one of {', '.join(str(choice) for choice in schema['enum'])}")
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            raise self._build_error(
                f"takes {name} from {low} to {high}" if high is not None else f"takes {name} from {low}"
            )

    def _build_error(self, reason: str) -> ValidationError:
        return ValidationError(
            f"{self.name} {reason}. Nothing was done.",
            code="invalid",
            recovery=f"Arguments of {self.name}: {', '.join(self.properties)}.",
        )


def _remove_marks(schema: Any) -> Any:
    """Return a schema as a model is shown it."""
    return {key: value for key, value in schema.items() if key != "x-count"} if isinstance(schema, dict) else schema


@dataclass(slots=True)
class ToolSession:
    """Worker of a workspace, with at most one claim.

    An expired claim is kept until the next one. Without it, a worker that was thought dead and returns would write as
    if it had never claimed anything.

    Args:
        workspace: Open workspace, which its opener closes.
        owner: Name of the worker in claims, such as the ID of the host's session.
        agent: Name of the agent; None for the agent of the claimed step.
        clock: Source of the time for columns that are written with `now`.
        knows_strangers: Returns True if the worker knows untrusted words, which may be in what it writes.

    Attributes:
        low_seen: Number of rows and steps of low trust that it was shown.
    """

    workspace: Workspace
    owner: str
    agent: str | None
    clock: Clock
    knows_strangers: Callable[[], bool]
    claim: Claim | None = None
    low_seen: int = 0

    def caller(self) -> RowCaller:
        """Return the present reader and writer."""
        of_claim = self.claim.agent if self.claim is not None else None
        is_low = self.low_seen > 0 or self.knows_strangers()
        return RowCaller(self.agent or of_claim or UNNAMED, self.owner, self.claim, is_low, self._on_low)

    def note_low(self, *steps: Step) -> None:
        """Note that steps of low trust were shown."""
        self.low_seen += sum(step.is_low for step in steps)

    def get_claim(self, step: str | None = None) -> Claim:
        """Return the claim.

        Args:
            step: Name of its step; None for any.

        Raises:
            ValidationError: It does not exist, or it is of another step.
        """
        if self.claim is None:
            raise ValidationError(
                "You have claimed nothing.", code="no_claim", recovery="Claim a step with claim_step first."
            )
        if step not in (None, self.claim.step):
            raise ValidationError(
                f"You work on {self.claim.step or self.claim.key}, not on {step}. Nothing was changed.",
                code="no_claim",
                recovery="Name the step that you claimed.",
            )
        return self.claim

    def make_room(self) -> None:
        """Release a claim on a row, and drop an expired claim.

        Raises:
            LeaseError: A step is still claimed.
        """
        claim = self.claim
        if claim is None:
            return
        if claim.step is None:
            self.leave()
        elif self._is_held(claim):
            raise LeaseError(
                f"You work on {claim.step} until {claim.expires_at.isoformat(timespec='seconds')}.",
                code="claimed",
                recovery="Finish it with finish_step, or give it back with release_step or fail_step.",
            )
        self.claim = None

    def leave(self) -> None:
        """Release the claim, if any, and undo its attempt."""
        claim, self.claim = self.claim, None
        if claim is not None:
            with contextlib.suppress(AgentMemoryError):  # it has ended by itself, or will
                self.workspace.steps.release(claim)

    def _on_low(self, table: str, row: dict[str, Any]) -> None:
        del table, row
        self.low_seen += 1

    def _is_held(self, claim: Claim) -> bool:
        return any(
            (step.name, step.status, step.owner, step.attempts) == (claim.step, "claimed", claim.owner, claim.attempt)
            for step in self.workspace.steps.all()
        )


def build_column_schema(declaration: Declaration, column: Column) -> dict[str, Any]:
    """Return the schema of an argument for a column."""
    schema: dict[str, Any] = dict(_KINDS[column.type])
    json_schema = column.json_schema
    if json_schema is not None:
        # Its pointers would not resolve here; the value is checked against the full schema when written.
        schema = (
            {"type": json_schema["type"]}
            if "$ref" in str(json_schema) and isinstance(json_schema.get("type"), str)
            else dict(json_schema)
        )
        if not isinstance(schema.get("type"), str):
            schema.pop("type", None)
    if column.enum:
        schema["enum"] = list(column.enum)
    texts = [column.description or schema.get("description", "")]
    if column.references is not None:
        texts.append(f"{declaration.tables[column.references].key or 'id'} of a row of {column.references}")
    text = "; ".join(item for item in texts if item)
    return {**schema, "description": text} if text else schema


def build_key_schema(declaration: Declaration, table: str) -> dict[str, Any]:
    """Return the schema of an argument that names a row."""
    declared = declaration.tables[table]
    if declared.key is None:
        return {"type": "integer", "description": f"id of a row of {table}"}
    kind = _KINDS[declared.columns[declared.key].type]["type"]
    return {"type": kind, "description": f"{declared.key} of a row of {table}"}


def build_names_schema(table: Table) -> dict[str, Any]:
    """Return the schema of a choice of columns."""
    return {
        "type": "array",
        "items": {"type": "string", "enum": ["id", *table.columns]},
        "description": "columns to answer; all when left out",
    }


def build_values_schema(declaration: Declaration, table: str, names: Iterable[str], description: str) -> dict[str, Any]:
    """Return the schema of a mapping of columns to values."""
    columns = declaration.tables[table].columns
    properties = {name: build_column_schema(declaration, columns[name]) for name in names}
    return {"type": "object", "properties": properties, "additionalProperties": False, "description": description}
