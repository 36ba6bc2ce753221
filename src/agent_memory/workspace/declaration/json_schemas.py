r"""JSON Schemas of columns, with patterns matched in linear time.

RE2 (https://github.com/google/re2/wiki/Syntax) matches the patterns. In it `\w`, `\d`, `\s` and `\b` are ASCII, and
`$` is the very end of a text. A new pattern that RE2 cannot match (look-around, back-references) is refused. For one in
an older declaration, the whole value is checked by `re` in a child process with a limit.
"""

from __future__ import annotations

import functools
import re
import resource
from typing import TYPE_CHECKING, Any, Final

import jsonschema
from jsonschema.validators import extend

from agent_memory.errors import UnsupportedError
from agent_memory.files.processes import ReaderDiedError, wait_for_reader
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_memory.workspace.declaration.model import Declaration

SchemaFault = tuple[list[str | int], str, Any, Any]
"""Path inside the value, keyword, what the keyword says, and the wrong part."""
_MAX_STEPS: Final = 500_000_000
"""Instructions of a pattern times characters of a text: 3.5 s at most, measured with `([ab]?){900}c`."""
_CPU_SECONDS: Final = 2
_NAMED: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose values have a schema under each name."""


class PatternError(ValueError):
    """A pattern that RE2 cannot match, or not in time."""


def find_fault(schema: dict[str, Any], value: Any) -> SchemaFault | None:
    """Return the most telling fault of a value, or None.

    Raises:
        PatternError: A pattern takes too long.
    """
    if not any(find_refused_patterns(schema)):
        return _find_fault(make_validator(schema), value)
    try:
        fault: SchemaFault | None = wait_for_reader(_find_fault_slowly, schema, value)
    except ReaderDiedError as error:
        raise PatternError(f"a pattern could not be checked within {_CPU_SECONDS} s ({error.reason})") from error
    return fault


def check_schema(schema: dict[str, Any]) -> None:
    """Check the form of a schema, with patterns for RE2 or `re`.

    Raises:
        jsonschema.SchemaError: The schema is wrong.
    """
    formats = jsonschema.FormatChecker(formats=())
    formats.checks("regex", raises=re.error)(_is_pattern)
    jsonschema.Draft202012Validator.check_schema(schema, format_checker=formats)


def make_validator(schema: dict[str, Any]) -> jsonschema.protocols.Validator:
    """Return a validator that matches patterns in linear time."""
    contents = {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
    validator: jsonschema.protocols.Validator = _make_class()(contents)
    return validator


def find_refused_patterns(schema: Any) -> Iterator[str]:
    """Yield the patterns that RE2 cannot match, each with the reason.

    An inner `$schema` is refused, too: jsonschema would use another validator for its part.
    """
    if isinstance(schema, dict):
        patterns = [schema.get("pattern"), *_get_object(schema, "patternProperties")]
        yield from filter(None, map(_describe_refusal, patterns))
        for subschema in _list_subschemas(schema):
            if isinstance(subschema, dict) and "$schema" in subschema:
                yield "$schema is only read at the top of a schema"
            yield from find_refused_patterns(subschema)


def _list_subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the values that may be schemas: `$ref` can name any."""
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value
        else:
            yield value


def find_new_refused_patterns(declaration: Declaration, old: Declaration | None = None) -> Iterator[tuple[str, str]]:
    """Yield column and reason of refused patterns that `old` does not have."""
    for table_name, table in declaration.tables.items():
        former = old.tables.get(table_name) if old is not None else None
        for name, column in table.columns.items():
            before = former.columns.get(name) if former is not None else None
            if column.json_schema is not None and (before is None or before.json_schema != column.json_schema):
                for reason in find_refused_patterns(column.json_schema):
                    yield f"tables.{table_name}.columns.{name}", reason


def _get_object(schema: Mapping[str, Any], keyword: str) -> dict[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _is_pattern(value: object) -> bool:
    return not isinstance(value, str) or _compile(value)[0] is not None or bool(re.compile(value))


def _describe_refusal(pattern: Any) -> str | None:
    reason = _compile(pattern)[1] if isinstance(pattern, str) else None
    return None if reason is None else f"the pattern {pattern!r} cannot be matched in linear time ({reason})"


@functools.lru_cache(maxsize=256)
def _compile(pattern: str) -> tuple[Any, str | None]:
    """Return a compiled pattern, or None with the reason."""
    try:
        import re2
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "A schema with a pattern needs the package google-re2, which is not installed.",
            recovery=advice("workspace"),
        ) from error
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options), None
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown"
        return None, reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def _has_match(pattern: str, text: str) -> bool:
    compiled, reason = _compile(pattern)
    if compiled is None:
        raise PatternError(f"the pattern {pattern!r} cannot be matched in linear time ({reason})")
    if compiled.programsize * len(text) > _MAX_STEPS:
        raise PatternError(f"the pattern {pattern!r} takes too long for a text of {len(text):,} characters")
    return compiled.search(text) is not None


@functools.cache
def _make_class() -> Any:
    keywords = {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "additionalProperties": _check_additional_properties,
        "unevaluatedProperties": _check_unevaluated_properties,
    }
    return extend(jsonschema.Draft202012Validator, validators=keywords)  # type: ignore[no-untyped-call]


def _check_pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, str) and not _has_match(pattern, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _check_pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, _: Any
) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if _has_match(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _check_additional_properties(
    validator: Any, subschema: Any, instance: Any, schema: dict[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, dict):
        names = set(instance) - set(_get_object(schema, "properties")) - _match_names(schema, instance)
        yield from _check_names(validator, subschema, instance, sorted(names))


def _check_unevaluated_properties(
    validator: Any, subschema: Any, instance: Any, schema: dict[str, Any]
) -> Iterator[jsonschema.ValidationError]:
    if isinstance(instance, dict):
        names = set(instance) - _list_evaluated(validator, instance, schema, is_own=True)
        yield from _check_names(validator, subschema, instance, sorted(names))


def _check_names(
    validator: Any, subschema: Any, instance: dict[str, Any], names: list[str]
) -> Iterator[jsonschema.ValidationError]:
    if subschema is False and names:
        yield jsonschema.ValidationError(f"unexpected properties: {', '.join(map(repr, names))}")
    else:
        for name in names:
            yield from validator.descend(instance[name], subschema, path=name)


def _match_names(schema: dict[str, Any], instance: dict[str, Any]) -> set[str]:
    patterns = _get_object(schema, "patternProperties")
    return {name for name in instance if any(_has_match(pattern, name) for pattern in patterns)}


def _list_evaluated(validator: Any, instance: dict[str, Any], schema: Any, *, is_own: bool = False) -> set[str]:
    """Return the names that a schema, or one inside it, evaluates.

    Args:
        validator: Validator of `schema`, by which its references are looked up.
        instance: Object whose names are asked for.
        schema: Schema, or True or False.
        is_own: True while `unevaluatedProperties` of this very schema is checked.
    """
    if not isinstance(schema, dict):
        return set()
    names = set(_get_object(schema, "properties")) & set(instance) | _match_names(schema, instance)
    if "additionalProperties" in schema or (not is_own and "unevaluatedProperties" in schema):
        names = set(instance)
    for reference in filter(None, (schema.get("$ref"), schema.get("$dynamicRef"))):
        target = validator._resolver.lookup(reference)  # noqa: SLF001 - jsonschema has no public way
        inner = validator.evolve(schema=target.contents, _resolver=target.resolver)
        names |= _list_evaluated(inner, instance, target.contents)
    for subschema in _list_applied(validator, instance, schema):
        names |= _list_evaluated(validator.evolve(schema=subschema), instance, subschema)
    return names


def _list_applied(validator: Any, instance: dict[str, Any], schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the inner schemas that an object fits."""
    for name, subschema in _get_object(schema, "dependentSchemas").items():
        if name in instance:
            yield subschema
    for keyword in ("allOf", "oneOf", "anyOf"):
        for subschema in schema.get(keyword, ()):
            if validator.evolve(schema=subschema).is_valid(instance):
                yield subschema
    if "if" in schema:
        if validator.evolve(schema=schema["if"]).is_valid(instance):
            yield from (schema["if"], schema.get("then", True))
        else:
            yield schema.get("else", True)


def _find_fault(validator: Any, value: Any) -> SchemaFault | None:
    fault = jsonschema.exceptions.best_match(validator.iter_errors(value))
    return None if fault is None else ([*fault.absolute_path], fault.validator, fault.validator_value, fault.instance)


def _find_fault_slowly(schema: dict[str, Any], value: Any) -> SchemaFault | None:
    """Return the fault of a value by `re`, in a child."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(spent.ru_utime + spent.ru_stime) + _CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    return _find_fault(jsonschema.Draft202012Validator(schema), value)
