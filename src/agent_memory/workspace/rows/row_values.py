"""Values of columns: checks, redaction, and conversion from and to the database.

Errors say what is allowed; nothing of a refused row is written.
"""

from __future__ import annotations

import contextlib
import json
import math
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.models.clock import as_utc
from agent_memory.redaction import Redactor, quoted, redact_value
from agent_memory.workspace.declaration.json_schemas import PatternError, find_fault
from agent_memory.workspace.declaration.model import (
    LARGEST_INTEGER,
    MAX_TEXT_CHARS,
    MAX_UNIQUE_CHARS,
    OWN_COLUMNS,
    Column,
    Table,
    canonical_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


MAX_NAME_CHARS: Final = 200
MAX_MESSAGE_CHARS: Final = 10_000
"""Characters of a failure message, which the next attempt receives."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols without a visible form."""
_TAGS: Final = ("\U000e0020", "\U000e007f")
"""First and last of the invisible characters in the flags of some countries."""
MAX_SECONDS: Final = 86_400
"""A claim lasts a day at most, as the declared `lease_seconds`."""
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {"json": json.loads, "boolean": bool}
_MAX_NESTING: Final = 60
"""Levels of lists and objects in a JSON value; secrets are found in the first 64."""


@dataclass(frozen=True, slots=True)
class EncodedRow:
    """Values in their stored form.

    Attributes:
        references: Keys of referenced rows, as given.
        redacted: Kinds of secrets that were removed.
    """

    values: dict[str, Any]
    references: dict[str, Any]
    redacted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValueCodec:
    """Codec of the values of one table.

    Args:
        name: Name of the table.
        table: Declaration of the table.
        redactor: Redactor of texts and JSON.
        folder: Folder of the workspace, which contains its files.
    """

    name: str
    table: Table
    redactor: Redactor
    folder: Path

    def encode(self, values: Mapping[str, Any], *, is_complete: bool) -> EncodedRow:
        """Check values and return their stored form.

        Args:
            values: Value of each column.
            is_complete: True for a complete row: required columns must have values, and defaults are filled in.

        Raises:
            ValidationError: A column is not declared, or a value does not fit it.
        """
        values_by_name = dict(values)
        for name in values_by_name:
            self._check_declared(name)
        if is_complete:
            for name, column in self.table.columns.items():
                if values_by_name.get(name) is None and name not in OWN_COLUMNS and column.default is not None:
                    values_by_name[name] = column.default
        columns = self.table.written_columns()
        names = columns if is_complete else [name for name in columns if name in values_by_name]
        stored: dict[str, Any] = {}
        references: dict[str, Any] = {}
        kinds: dict[str, None] = {}
        for name in names:
            column, value = self.table.columns[name], values_by_name.get(name)
            if value is None:
                if column.required or name == self.table.key:
                    raise self._build_error(name, "is required")
                stored[name] = None
            elif column.references is not None:
                references[name] = value
            else:
                stored[name] = self._encode(name, column, value, kinds)
        return EncodedRow(stored, references, tuple(kinds))

    def decode(self, name: str, value: Any) -> Any:
        """Return a value as people and agents see it."""
        read = self.list_readers([name]).get(name)
        return value if value is None or read is None else read(value)

    def list_readers(self, names: Iterable[str]) -> dict[str, Callable[[Any], Any]]:
        """Return functions that read columns with another stored form."""
        types = {name: self.table.columns[name].type for name in names if name in self.table.columns}
        return {name: _READERS[type_name] for name, type_name in types.items() if type_name in _READERS}

    def _check_declared(self, name: str) -> None:
        if name not in self.table.written_columns():
            columns = ", ".join(self.table.written_columns())
            raise ValidationError(
                f"{self.name} has no column {quoted(name)} that can be written; there are {columns}. "
                "Nothing was written.",
                code="unknown_column",
            )

    def _encode(self, name: str, column: Column, value: Any, kinds: dict[str, None]) -> Any:
        if column.type == "json":
            return self._encode_json(name, column, value, kinds)
        if column.type in ("text", "timestamp", "file"):
            return self._encode_text(name, column, value, kinds)
        if column.type == "boolean":
            if not isinstance(value, bool):
                raise self._build_error(name, "must be true or false", value)
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int if column.type == "integer" else int | float):
            raise self._build_error(name, f"must be {'an integer' if column.type == 'integer' else 'a number'}", value)
        if redact_value({name: value}, self.redactor)[1]:
            raise self._build_error(name, "is a number that looks like a secret, such as a card number or a PIN")
        if column.type == "real":
            return self._encode_number(name, value)
        if abs(value) > LARGEST_INTEGER:
            raise self._build_error(name, "must fit in 64 bits", value)
        return self._check_enum(name, column, value)

    def _encode_number(self, name: str, value: float) -> float:
        try:
            number = float(value)
        except OverflowError:  # an integer that no float can be
            number = math.inf
        if not math.isfinite(number):
            raise self._build_error(name, "must be a finite number", value)
        return number

    def _encode_text(self, name: str, column: Column, value: Any, kinds: dict[str, None]) -> str:
        if not isinstance(value, str):
            raise self._build_error(name, "must be a text", value)
        limit = MAX_UNIQUE_CHARS if column.unique or name == self.table.key else MAX_TEXT_CHARS
        if len(value) > limit:
            raise ValidationError(
                f"{self.name}.{name} may have {limit:,} characters; this has {len(value):,}. Nothing was written.",
                code="too_long",
            )
        if not is_text(value):
            raise self._build_error(name, "holds a character that no text has (NUL, or half of a surrogate pair)")
        if column.type == "timestamp":
            return self._encode_moment(name, value)
        if column.type == "file":
            return self._encode_file(name, value)
        self._check_enum(name, column, value)
        if column.enum:
            return value
        cleaned = self.redactor.redact(value)
        kinds.update(dict.fromkeys(cleaned.kinds))
        if not column.unique and name != self.table.key:
            return cleaned.text
        text = normalize_unique(cleaned.text)
        if not text and name == self.table.key:
            raise self._build_error(name, "names the row and must hold a character that is seen")
        return text

    def _encode_moment(self, name: str, value: str) -> str:
        try:
            return as_utc(datetime.fromisoformat(value)).isoformat()
        except ValueError:
            raise self._build_error(name, "must be a moment such as 2026-03-01T12:00:00+00:00", value) from None

    def _encode_file(self, name: str, value: str) -> str:
        """Return the relative path of a workspace file, with `/` separators."""
        allowed = "must be the path of a file inside the workspace, relative to its folder, without links"
        parts = PurePosixPath(value).parts
        if not parts or PurePosixPath(value).is_absolute() or ".." in parts or "\\" in value or parts[0][0] in ".~":
            raise self._build_error(name, allowed, value)
        if self.redactor.redact(value).text != value:
            raise self._build_error(name, "is a path that looks as if it held a secret; rename the file")
        path, is_there = self.folder, False
        with contextlib.suppress(OSError):  # a name that is longer than the file system takes names no file
            for part in parts:
                path /= part
                if path.is_symlink():
                    raise self._build_error(name, allowed, value)
            is_there = path.is_file()
        if not is_there:
            raise self._build_error(name, "names a file that is not there; write the file first", value)
        return str(PurePosixPath(*parts))

    def _encode_json(self, name: str, column: Column, value: Any, kinds: dict[str, None]) -> str:
        try:
            text = canonical_json(value)
        except (TypeError, ValueError, RecursionError):
            raise self._build_error(name, "must be JSON") from None
        if len(text) > MAX_TEXT_CHARS:
            raise ValidationError(
                f"{self.name}.{name} may have {MAX_TEXT_CHARS:,} characters as JSON; this has {len(text):,}. "
                "Nothing was written.",
                code="too_long",
            )
        if "\\u0000" in text.replace("\\\\", "") or not is_text(text):
            raise self._build_error(name, "holds a character that no text has (NUL, or half of a surrogate pair)")
        if _is_deep(value):
            raise self._build_error(name, f"may be nested {_MAX_NESTING} levels deep")
        if column.json_schema is not None:
            self._check_schema(name, column.json_schema, value)
        cleaned, found_kinds = redact_value(value, self.redactor)
        kinds.update(dict.fromkeys(found_kinds))
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
            raise self._build_error(name + where, f"does not fit its schema ({keyword}: {_brief(rule)})", part)

    def _check_enum(self, name: str, column: Column, value: Any) -> Any:
        if column.enum and value not in column.enum:
            raise self._build_error(name, f"must be one of {', '.join(str(choice) for choice in column.enum)}", value)
        return value

    def _build_error(self, name: str, rule: str, value: Any = None) -> ValidationError:
        decode = "" if value is None else f", not {quoted(_brief(value))}"
        return ValidationError(f"{self.name}.{name} {rule}{decode}. Nothing was written.", code="wrong_value")


def _is_deep(value: Any) -> bool:
    """Return True if a value is nested deeper than allowed."""
    level = [value]
    for _ in range(_MAX_NESTING + 1):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list | tuple)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else f"{text[:77]}…"  # noqa: PLR2004 - what fits in a line


def clean_name(redactor: Redactor, what: str, name: object) -> str:
    """Return the name of an owner, agent or session without secrets.

    Raises:
        ValidationError: It is not a text of 1 to 200 characters that a database can store.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS or _replace_unstorable(name) != name:
        raise ValidationError(
            f"{what} is a text of 1 to {MAX_NAME_CHARS} characters, without NUL or halves of surrogate pairs, "
            f"not {quoted(name)}. Nothing was written.",
            code="wrong_name",
        )
    return redactor.redact(name).text


def clean_message(redactor: Redactor, message: str) -> str:
    """Return a failure message in a form that can be stored.

    It is shortened and redacted, never refused.
    """
    if len(message) > MAX_MESSAGE_CHARS:
        message = f"{message[:MAX_MESSAGE_CHARS]}…"
    return redactor.redact(_replace_unstorable(message)).text


def check_seconds(seconds: float) -> None:
    """Check the duration of a claim.

    Raises:
        ValidationError: It is not more than 0 and at most a day.
    """
    if isinstance(seconds, bool) or not math.isfinite(seconds) or not 0 < seconds <= MAX_SECONDS:
        raise ValidationError(
            f"A claim lasts more than 0 and at most {MAX_SECONDS:,} seconds, not {seconds!r}.", code="wrong_seconds"
        )


def normalize_unique(value: str) -> str:
    """Return a unique text as it is stored and compared.

    In NFC, without white space and invisible characters at its ends.
    """
    visible_indexes = [index for index, character in enumerate(value) if not _is_invisible(character)]
    return unicodedata.normalize("NFC", value[visible_indexes[0] : visible_indexes[-1] + 1]) if visible_indexes else ""


def _is_invisible(character: str) -> bool:
    if character.isspace() or character in _BLANK:
        return True
    return unicodedata.category(character) in {"Cc", "Cf"} and not _TAGS[0] <= character <= _TAGS[1]


def is_text(value: str) -> bool:
    """Return True if both databases can store a text."""
    return "\0" not in value and (value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value))


def _replace_unstorable(text: str) -> str:
    if is_text(text):
        return text
    return "".join(
        "\ufffd" if character == "\0" or "\ud800" <= character <= "\udfff" else character for character in text
    )
