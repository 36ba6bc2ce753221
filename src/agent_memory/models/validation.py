"""Validation errors of pydantic in words for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.models.identifiers import ID_DIGITS

if TYPE_CHECKING:
    import pydantic

_FIELD: Final = re.compile(r"[a-z_]{1,40}")
_RULES: Final = {
    "string_too_short": "has fewer than {min_length} characters",
    "string_too_long": "has more than {max_length} characters",
    "string_type": "is not a text",
    "string_unicode": "holds half a surrogate pair, which is not Unicode text",
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "finite_number": "is not a finite number",
    "bool_type": "is neither true nor false",
    "bool_parsing": "is neither true nor false",
    "list_type": "is not a list",
    "tuple_type": "is not a list",
    "dict_type": "is not a mapping of keys to values",
    "too_long": "has more than {max_length} items",
    "greater_than": "is not above {gt}",
    "greater_than_equal": "is below {ge}",
    "less_than_equal": "is above {le}",
    "less_than": "is not below {lt}",
    "literal_error": "is not one of: {expected}",
    "enum": "is not one of: {expected}",
    "model_type": "is not a mapping",
    "datetime_type": "is not a date",
    "datetime_parsing": "is not a date such as 2026-01-28T12:00:00Z",
    "datetime_from_date_parsing": "is not a date such as 2026-01-28T12:00:00Z",
}
"""Text by type of error; other types keep pydantic's words, which tests look for."""
_PATTERNS: Final = {
    f"^(?:mem)-{ID_DIGITS}$": "is not the id of a memory, such as mem-a3f2c1b4e5d6",
    f"^(?:[a-z]{{3}})-{ID_DIGITS}$": "is not the id of a record, such as mem-a3f2c1b4e5d6",
    r"^[a-z][a-z0-9_]{0,63}$": "is not a name of lower-case letters, digits and _, which begins with a letter",
    r"^[A-Za-z0-9_-]{1,128}$": "is not a name of letters, digits, _ and -",
}


def describe(error: pydantic.ValidationError, field: str = "{}") -> str:
    """Return the first problem, such as `tags is not a list`.

    The wrong value is not in the text.

    Args:
        error: Error of pydantic.
        field: Format of a field's name, with one argument; unused for a problem of the whole.
    """
    first = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(_render_part(part) for part in first["loc"])
    rule = _RULES.get(first["type"]) or _PATTERNS.get((first.get("ctx") or {}).get("pattern", ""))
    if rule is None:  # an error of our own validators, or a rare one of pydantic's
        problem = first["msg"].removeprefix("Value error, ").rstrip(".")  # the caller ends the sentence
        return f"{field.format(name)}: {problem}" if name else problem
    context = first.get("ctx") or {}
    if first["type"] == "string_too_short" and context.get("min_length") == 1:
        rule = "is empty"
    return f"{field.format(name)} {rule.format(**context)}"


def _render_part(part: str | int) -> str:
    """Return one part of a path: field, index or unknown key."""
    if isinstance(part, int) or _FIELD.fullmatch(part):
        return str(part)
    from agent_memory.redaction import shortened  # its patterns load only for an unknown name

    return shortened(part)
