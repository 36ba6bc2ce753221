"""`Tool`: a name, a JSON Schema that a model can follow, and what is done with arguments that were checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.models.arguments import normalize_arguments
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_memory.workspace.toolset.session import ToolSession

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    Attributes:
        name: By which a model calls it.
        description: What a model is told that it does.
        properties: JSON Schema of each argument.
        needed: Arguments without which it cannot be done.
        run: Does it: takes the session and the arguments, returns a dict with a `status` or a `count`.
        asked: Arguments that a model is asked for although there is a default: some hosts cannot carry a call without
            any argument.
    """

    name: str
    description: str
    properties: Mapping[str, Any]
    run: Callable[[ToolSession, dict[str, Any]], dict[str, Any]] = field(repr=False)
    needed: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, an object."""
        return {
            "type": "object",
            "properties": {name: _without_marks(schema) for name, schema in self.properties.items()},
            "required": [*self.needed, *(argument for argument in self.asked if argument not in self.needed)],
            "additionalProperties": False,
        }

    def check_arguments(self, given: Any) -> tuple[dict[str, Any], list[str]]:
        """Return the arguments without optional nulls, and warnings.

        How many rows or characters to answer is brought into its range; nothing else is changed.

        Raises:
            ValidationError: One is unknown, missing or of another type. Values of columns are checked when written.
        """
        if given is not None and not isinstance(given, dict):
            raise self._refused("takes its arguments as an object")
        arguments = {str(name): value for name, value in (given or {}).items()}
        for name in arguments:
            if name not in self.properties:
                raise self._refused(f"has no argument {quoted(name)}")
        missing = [name for name in self.needed if name not in arguments]
        if missing:
            raise self._refused(f"needs {', '.join(missing)}")
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
            raise self._refused(f"takes {name} as {kind}")
        if "enum" in schema and value not in schema["enum"]:
            raise self._refused(f"takes {name} as one of {', '.join(str(each) for each in schema['enum'])}")
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            raise self._refused(
                f"takes {name} from {low} to {high}" if high is not None else f"takes {name} from {low}"
            )

    def _refused(self, reason: str) -> ValidationError:
        return ValidationError(
            f"{self.name} {reason}. Nothing was done.",
            code="invalid",
            recovery=f"Arguments of {self.name}: {', '.join(self.properties)}.",
        )


def _without_marks(schema: Any) -> Any:
    """Return a schema as a model is shown it."""
    return {key: value for key, value in schema.items() if key != "x-count"} if isinstance(schema, dict) else schema
