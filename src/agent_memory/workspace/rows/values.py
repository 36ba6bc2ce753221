"""Values of columns: checked against the declaration, without secrets, as the database keeps and as people see them.

Errors say what is allowed; nothing of a refused row is written.
"""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.models.clock import as_utc
from agent_memory.redaction import Redactor, quoted, redact_value
from agent_memory.workspace.declaration import (
    LARGEST_INTEGER,
    MAX_TEXT_CHARS,
    MAX_UNIQUE_CHARS,
    OWN_COLUMNS,
    Column,
    Table,
    canonical_json,
)
from agent_memory.workspace.declaration.json_schemas import PatternError, find_fault
from agent_memory.workspace.rows.naming import is_text, unique_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {"json": json.loads, "boolean": bool}
_MAX_NESTING: Final = 60
"""Levels of lists and objects in a JSON value: below 64, secrets are no longer looked for."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Values as the database keeps them; references still as they were given. `redacted`: kinds of secrets removed."""

    values: dict[str, Any]
    references: dict[str, Any]
    redacted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """Checks the values of one table.

    Args:
        name: Of the table.
        table: As it is declared.
        redactor: Takes secrets out of texts and JSON.
        folder: Of the workspace, inside which files are.
    """

    name: str
    table: Table
    redactor: Redactor
    folder: Path

    def encoded(self, values: Mapping[str, Any], *, whole: bool) -> Encoded:
        """Check values and return them as they are kept.

        Args:
            values: Column → value.
            whole: They are a whole row: what is required must be there, and defaults are filled in.

        Raises:
            ValidationError: A column is not declared, or a value does not fit it.
        """
        given = dict(values)
        for name in given:
            self._check_declared(name)
        if whole:
            for name, column in self.table.columns.items():
                if given.get(name) is None and name not in OWN_COLUMNS and column.default is not None:
                    given[name] = column.default
        columns = self.table.written_columns()
        wanted = columns if whole else [name for name in columns if name in given]
        kept: dict[str, Any] = {}
        references: dict[str, Any] = {}
        kinds: dict[str, None] = {}
        for name in wanted:
            column, value = self.table.columns[name], given.get(name)
            if value is None:
                if column.required or name == self.table.key:
                    raise self._wrong(name, "is required")
                kept[name] = None
            elif column.references is not None:
                references[name] = value
            else:
                kept[name] = self._encode(name, column, value, kinds)
        return Encoded(kept, references, tuple(kinds))

    def shown(self, name: str, value: Any) -> Any:
        """Return a value as people and agents see it."""
        read = self.readers([name]).get(name)
        return value if value is None or read is None else read(value)

    def readers(self, names: Iterable[str]) -> dict[str, Callable[[Any], Any]]:
        """Return how values are read of those columns that the database keeps otherwise than people see them."""
        types = {name: self.table.columns[name].type for name in names if name in self.table.columns}
        return {name: _READERS[each] for name, each in types.items() if each in _READERS}

    def _check_declared(self, name: str) -> None:
        if name not in self.table.written_columns():
            there = ", ".join(self.table.written_columns())
            raise ValidationError(
                f"{self.name} has no column {quoted(name)} that can be written; there are {there}. "
                "Nothing was written.",
                code="unknown_column",
            )

    def _encode(self, name: str, column: Column, value: Any, kinds: dict[str, None]) -> Any:
        if column.type == "json":
            return self._json(name, column, value, kinds)
        if column.type in ("text", "timestamp", "file"):
            return self._text(name, column, value, kinds)
        if column.type == "boolean":
            if not isinstance(value, bool):
                raise self._wrong(name, "must be true or false", value)
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int if column.type == "integer" else int | float):
            raise self._wrong(name, f"must be {'an integer' if column.type == 'integer' else 'a number'}", value)
        if redact_value({name: value}, self.redactor)[1]:
            raise self._wrong(name, "is a number that looks like a secret, such as a card number or a PIN")
        if column.type == "real":
            return self._number(name, value)
        if abs(value) > LARGEST_INTEGER:
            raise self._wrong(name, "must fit in 64 bits", value)
        return self._of_enum(name, column, value)

    def _number(self, name: str, value: float) -> float:
        try:
            number = float(value)
        except OverflowError:  # an integer that no float can be
            number = math.inf
        if not math.isfinite(number):
            raise self._wrong(name, "must be a finite number", value)
        return number

    def _text(self, name: str, column: Column, value: Any, kinds: dict[str, None]) -> str:
        if not isinstance(value, str):
            raise self._wrong(name, "must be a text", value)
        limit = MAX_UNIQUE_CHARS if column.unique or name == self.table.key else MAX_TEXT_CHARS
        if len(value) > limit:
            raise ValidationError(
                f"{self.name}.{name} may have {limit:,} characters; this has {len(value):,}. Nothing was written.",
                code="too_long",
            )
        if not is_text(value):
            raise self._wrong(name, "holds a character that no text has (NUL, or half of a surrogate pair)")
        if column.type == "timestamp":
            return self._moment(name, value)
        if column.type == "file":
            return self._file(name, value)
        self._of_enum(name, column, value)
        if column.enum:
            return value
        cleaned = self.redactor.redact(value)
        kinds.update(dict.fromkeys(cleaned.kinds))
        if not column.unique and name != self.table.key:
            return cleaned.text
        text = unique_form(cleaned.text)
        if not text and name == self.table.key:
            raise self._wrong(name, "names the row and must hold a character that is seen")
        return text

    def _moment(self, name: str, value: str) -> str:
        try:
            return as_utc(datetime.fromisoformat(value)).isoformat()
        except ValueError:
            raise self._wrong(name, "must be a moment such as 2026-03-01T12:00:00+00:00", value) from None

    def _file(self, name: str, value: str) -> str:
        """Return the path of a file of the workspace, relative to its folder, with `/` between its parts."""
        allowed = "must be the path of a file inside the workspace, relative to its folder, without links"
        parts = PurePosixPath(value).parts
        if not parts or PurePosixPath(value).is_absolute() or ".." in parts or "\\" in value or parts[0][0] in ".~":
            raise self._wrong(name, allowed, value)
        if self.redactor.redact(value).text != value:
            raise self._wrong(name, "is a path that looks as if it held a secret; rename the file")
        path, is_there = self.folder, False
        with contextlib.suppress(OSError):  # a name that is longer than the file system takes names no file
            for part in parts:
                path /= part
                if path.is_symlink():
                    raise self._wrong(name, allowed, value)
            is_there = path.is_file()
        if not is_there:
            raise self._wrong(name, "names a file that is not there; write the file first", value)
        return str(PurePosixPath(*parts))

    def _json(self, name: str, column: Column, value: Any, kinds: dict[str, None]) -> str:
        try:
            text = canonical_json(value)
        except (TypeError, ValueError, RecursionError):
            raise self._wrong(name, "must be JSON") from None
        if len(text) > MAX_TEXT_CHARS:
            raise ValidationError(
                f"{self.name}.{name} may have {MAX_TEXT_CHARS:,} characters as JSON; this has {len(text):,}. "
                "Nothing was written.",
                code="too_long",
            )
        if "\\u0000" in text.replace("\\\\", "") or not is_text(text):
            raise self._wrong(name, "holds a character that no text has (NUL, or half of a surrogate pair)")
        if _is_deep(value):
            raise self._wrong(name, f"may be nested {_MAX_NESTING} levels deep")
        if column.json_schema is not None:
            self._check_schema(name, column.json_schema, value)
        cleaned, found = redact_value(value, self.redactor)
        kinds.update(dict.fromkeys(found))
        return canonical_json(cleaned)

    def _check_schema(self, name: str, schema: dict[str, Any], value: Any) -> None:
        try:
            fault = find_fault(schema, value)
        except PatternError as error:
            raise ValidationError(
                f"{self.name}.{name} was not checked: {error}. Nothing was written.",
                code="slow_pattern",
                recovery="Write a shorter text, or change the pattern in the workspace's declaration.",
            ) from error
        if fault is not None:
            path, keyword, rule, part = fault
            where = "".join(f"[{step!r}]" for step in path)
            raise self._wrong(name + where, f"does not fit its schema ({keyword}: {_brief(rule)})", part)

    def _of_enum(self, name: str, column: Column, value: Any) -> Any:
        if column.enum and value not in column.enum:
            raise self._wrong(name, f"must be one of {', '.join(str(each) for each in column.enum)}", value)
        return value

    def _wrong(self, name: str, rule: str, value: Any = None) -> ValidationError:
        shown = "" if value is None else f", not {quoted(_brief(value))}"
        return ValidationError(f"{self.name}.{name} {rule}{shown}. Nothing was written.", code="wrong_value")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_NESTING + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list | tuple)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else f"{text[:77]}…"  # noqa: PLR2004 - what fits in a line
