"""Arguments of tools, as language models send them, normalized by JSON Schema.

An object with `additionalProperties: false` is strict: unknown names are refused, and no value is replaced or left
out. Elsewhere an unreadable value is left out, with a warning. Five keywords are ours: `x-aliases` (further names of a
property), `x-fallback` (value for an unreadable one), `x-empty` (an empty text has a meaning), `x-strict` (a wrong
value is refused, though it may be missing) and `x-text` (a text is the value of each property of an object).
"""

from __future__ import annotations

import functools
import json
import math
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import pydantic

from agent_memory.errors import ValidationError
from agent_memory.models.validation import describe

if TYPE_CHECKING:
    from collections.abc import Mapping

_ABSENT: Final = object()
_NOTHING: Final = frozenset({"null", "none", "undefined"})
"""Words for null in a text whose argument may be left out."""
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})
_MAX_NAMED: Final = 40
"""Characters of an unknown name in a message."""


class ToolArguments(pydantic.BaseModel):
    """Arguments of a tool, strict where `extra` is `forbid`."""

    model_config = pydantic.ConfigDict(extra="ignore", hide_input_in_errors=True, defer_build=True)

    _warnings: list[str] = pydantic.PrivateAttr(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        """Changes of the arguments, a sentence each."""
        return list(dict.fromkeys(self._warnings))

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _normalize(cls, sent: Any, handler: pydantic.ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(sent, cls):
            return handler(sent)
        schema = _get_schema(cls)
        values, warnings = normalize_arguments(schema, sent)
        while True:
            try:
                arguments = handler(values)
            except pydantic.ValidationError as error:
                warnings += _leave_out(schema, values, error)
            else:
                arguments._warnings = warnings  # noqa: SLF001 - its own
                return arguments


ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


def read_arguments(tool: str, model: type[ArgumentsT], sent: Any) -> ArgumentsT:
    """Return a tool's checked arguments.

    Args:
        tool: Name of the tool, for errors.
        model: Model of its arguments.
        sent: Arguments as the language model sent them.

    Raises:
        ValidationError: A required argument is missing or wrong, or a strict object has an unknown name.
    """
    try:
        return model.model_validate(sent)
    except pydantic.ValidationError as error:
        raise ValidationError(
            f"{tool} was called with a wrong argument: {describe(error)}.",
            recovery=f"Arguments of {tool}: {', '.join(model.model_fields)}.",
        ) from None


@functools.cache
def _get_schema(model: type[ToolArguments]) -> dict[str, Any]:
    return model.model_json_schema()


def normalize_arguments(schema: Mapping[str, Any], sent: Any) -> tuple[dict[str, Any], list[str]]:
    """Return arguments in the form of a JSON Schema, and warnings.

    Args:
        schema: JSON Schema of an object, its references in `$defs`.
        sent: Arguments as the language model sent them.

    Raises:
        ValueError: They are not an object, or a strict object has an unknown name.
    """
    reader = _ArgumentReader(schema.get("$defs", {}))
    sent = _parse_json(sent, dict)
    if not isinstance(sent, dict):
        raise ValueError("it is not a mapping of keys to values")  # noqa: TRY004 - callers catch one type
    return reader.read_object(schema, sent, ""), reader.warnings


class _ArgumentReader:
    """Reads values by their schema; collects a warning for each change."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.warnings: list[str] = []
        self._definitions = definitions

    def read_object(self, schema: Mapping[str, Any], sent: Mapping[Any, Any], path: str) -> dict[str, Any]:
        """Return the known properties of an object.

        Unknown ones that belong to an inner object are moved there.
        """
        properties: dict[str, Any] = {name: self.resolve(part) for name, part in schema.get("properties", {}).items()}
        is_strict = schema.get("additionalProperties") is False
        named, unknown = self._name(properties, sent, path, is_strict=is_strict)
        if is_strict and unknown:
            name = str(next(iter(unknown)))[:_MAX_NAMED]
            raise ValueError(f"{path or 'the call'} has no argument {name!r}; it takes {', '.join(properties)}")
        for name, value in unknown.items():
            self._move(properties, named, name, value)
        required, values = schema.get("required", ()), dict[str, Any]()
        for name, part in properties.items():
            where = f"{path}.{name}" if path else name
            value = self._read(part, named.get(name), where, is_strict=is_strict, is_required=name in required)
            if value is _ABSENT and "x-fallback" in part:
                value = self._fall_back(part, where, "missing")
            if value is not _ABSENT:
                values[name] = value
        return values

    def _name(
        self, properties: Mapping[str, Any], sent: Mapping[Any, Any], path: str, *, is_strict: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the values of known properties, and of unknown names."""
        aliases = {alias: name for name, part in properties.items() for alias in part.get("x-aliases", ())}
        named = {name: value for name, value in sent.items() if name in properties}
        unknown: dict[str, Any] = {}
        for name, value in sent.items():
            if name in properties or value is None:
                continue
            folded = str(name).strip().lower().replace("-", "_")
            target = aliases.get(folded) or (folded if folded in properties and not is_strict else None)
            if target is not None and named.get(target) is None:
                named[target] = value
                self.warnings.append(f"{path}.{folded}: read as {target}".removeprefix("."))
            else:
                unknown[str(name)] = value
        return named, unknown

    def _move(self, properties: Mapping[str, Any], named: dict[str, Any], name: str, value: Any) -> None:
        """Move an unknown argument to an inner object, or ignore it."""
        homes = [home for home, part in properties.items() if name in self._list_names(part)]
        inner = _parse_json(named.get(homes[0]), dict) if len(homes) == 1 else None
        if len(homes) != 1 or not (inner is None or isinstance(inner, dict)):
            self.warnings.append(f"{name[:_MAX_NAMED]}: unknown, and ignored")
            return
        named[homes[0]] = {name: value, **(inner or {})}
        self.warnings.append(f"{name}: read as {homes[0]}.{name}")

    @staticmethod
    def _list_names(schema: Mapping[str, Any]) -> set[str]:
        inner = schema.get("properties", {})
        return {*inner, *(alias for part in inner.values() for alias in part.get("x-aliases", ()))}

    def _read(self, schema: Mapping[str, Any], value: Any, path: str, *, is_strict: bool, is_required: bool) -> Any:
        """Return a value in the form of its schema, or `_ABSENT`."""
        if value is None or (isinstance(value, str) and not value.strip() and "x-empty" not in schema):
            return _ABSENT
        kind = schema.get("type")
        is_text = kind == "string" and is_required
        if isinstance(value, str) and value.strip().lower() in _NOTHING and not is_text:
            return _ABSENT
        if "enum" in schema:
            result = self._read_choice(schema["enum"], value, path)
        else:
            result = self._read_type(schema, value, path, is_strict=is_strict)
        if result is not _ABSENT:
            return result
        is_strict = is_strict or "x-strict" in schema or schema.get("additionalProperties") is False
        if is_strict or (is_required and "x-fallback" not in schema):
            return value  # refused by the model's own check, which says why
        choices = ", ".join(str(choice) for choice in schema.get("enum", ()))
        return self._fall_back(schema, path, f"not one of {choices}" if choices else "not understood")

    def _read_type(self, schema: Mapping[str, Any], value: Any, path: str, *, is_strict: bool) -> Any:
        match schema.get("type"):
            case "string":
                return self._read_text(value, path, is_strict=is_strict)
            case "integer" | "number":
                return self._read_number(schema, value, path, is_strict=is_strict)
            case "boolean":
                word = str(value).strip().lower() if isinstance(value, str | int | float) else ""
                return True if word in _TRUE else False if word in _FALSE else _ABSENT
            case "array":
                return self._read_list(schema, value, path, is_strict=is_strict)
            case "object":
                return self._read_inner(schema, value, path)
        return value

    def _fall_back(self, schema: Mapping[str, Any], path: str, problem: str) -> Any:
        """Return the fallback of an unreadable argument, or `_ABSENT` for its default."""
        value = schema.get("x-fallback", schema.get("default"))
        self.warnings.append(f"{path}: {problem}; {'left out' if value in (None, '', [], {}) else f'{value} was used'}")
        return schema.get("x-fallback", _ABSENT)

    def _read_choice(self, choices: list[Any], value: Any, path: str) -> Any:
        if value in choices:
            return value
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        folded = "_".join(value.lower().replace("-", " ").split()) if isinstance(value, str) else None
        choice = next((name for name in choices if folded in (str(name), f"{name}s")), _ABSENT)
        if choice is not _ABSENT:
            self.warnings.append(f"{path}: read as {choice}")
        return choice

    def _read_text(self, value: Any, path: str, *, is_strict: bool) -> Any:
        if isinstance(value, str):
            return value
        is_list = isinstance(value, list) and bool(value) and all(isinstance(item, str | int | float) for item in value)
        if is_strict and isinstance(value, list | dict):
            return _ABSENT
        text = "\n".join(str(item) for item in value) if is_list else _encode_json(value)
        if text is None:
            return _ABSENT
        self.warnings.append(f"{path}: read as text")
        return text

    def _read_number(self, schema: Mapping[str, Any], value: Any, path: str, *, is_strict: bool) -> Any:
        number = value
        if isinstance(value, str):
            try:
                number = int(value) if value.strip().lstrip("+-").isdecimal() else float(value)
            except ValueError:
                return _ABSENT
        if isinstance(number, bool) or not isinstance(number, int | float) or not _is_finite(number):
            return _ABSENT
        if schema.get("type") == "integer" and number == int(number):
            number = int(number)
        if is_strict:
            return number
        bounded = min(max(number, schema.get("minimum", number)), schema.get("maximum", number))
        bounded = round(bounded) if schema.get("type") == "integer" else bounded
        if bounded != number:
            self.warnings.append(f"{path}: {bounded} was used")
        return bounded

    def _read_list(self, schema: Mapping[str, Any], value: Any, path: str, *, is_strict: bool) -> Any:
        items = self.resolve(schema.get("items", {}))
        listed = _parse_json(value, list)
        if isinstance(value, str) and not isinstance(listed, list) and items.get("type") == "string":
            listed = [part.strip() for part in value.split(",")]
        elif isinstance(listed, str | int | float | dict):
            listed = [_parse_json(listed, dict)]
        if not isinstance(listed, list):
            return _ABSENT
        if listed is not value:
            self.warnings.append(f"{path}: read as a list")
        listed = [item for item in listed if item not in (None, "")]
        most = schema.get("maxItems", len(listed))
        if len(listed) > most and not is_strict:
            self.warnings.append(f"{path}: only the first {most} were used")
            listed = listed[:most]
        read = [self._read(items, item, path, is_strict=True, is_required=False) for item in listed]
        return [item for item in read if item is not _ABSENT]

    def _read_inner(self, schema: Mapping[str, Any], value: Any, path: str) -> Any:
        inner = _parse_json(value, dict)
        if inner == []:  # how some models write an empty object
            return {}
        if isinstance(inner, str) and "x-text" in schema:
            inner = dict.fromkeys(schema["properties"], inner)
        if not isinstance(inner, dict):
            return _ABSENT
        if inner is not value:
            self.warnings.append(f"{path}: read as an object")
        return self.read_object(schema, inner, path) if "properties" in schema else inner

    def resolve(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema without references, and without the choice of null."""
        choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
        if len(choices) == 1:
            schema = {**choices[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
        if "$ref" in schema:
            schema = {**self._definitions[schema["$ref"].rpartition("/")[2]], **schema}
        return dict(schema)


def _leave_out(schema: Mapping[str, Any], values: dict[str, Any], error: pydantic.ValidationError) -> list[str]:
    """Remove optional values that a model refused; return warnings.

    Of a list only the wrong items are removed.

    Raises:
        pydantic.ValidationError: One of them is required, or is part of a strict object.
    """
    resolve = _ArgumentReader(schema.get("$defs", {})).resolve
    protected = {*schema.get("required", ())} | {
        name
        for name, part in schema["properties"].items()
        if "x-strict" in part or resolve(part).get("additionalProperties") is False
    }
    is_strict = schema.get("additionalProperties") is False
    wrong: dict[str, set[int]] = {}
    for finding in error.errors(include_input=False, include_url=False, include_context=False):
        name, *inner = finding["loc"] or ("",)
        value = values.get(str(name))
        if is_strict or name not in values or name in protected:
            raise error
        position = inner[0] if inner and isinstance(inner[0], int) else None
        wrong.setdefault(str(name), set()).update(
            range(len(value)) if position is None and isinstance(value, list) else ()
        )
        if position is not None:
            wrong[str(name)].add(position)
    warnings = []
    for name, positions in wrong.items():
        items = [item for position, item in enumerate(values[name]) if position not in positions] if positions else []
        warnings += [f"{name}.{position}: wrong, and left out" for position in sorted(positions)[:3]] or [
            f"{name}: left out"
        ]
        if items:
            values[name] = items
        else:
            del values[name]
    return warnings


def _parse_json(value: Any, kind: type) -> Any:
    """Return the JSON of a kind in a text, else the value."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{"):
        return value
    try:
        inner = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return inner if isinstance(inner, kind) else value


def _encode_json(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond every float
        return True
