"""The journal's line format: one YAML document a line, in flow style, which is JSON behind `--- `.

Owns encoding, decoding and what a well-formed line is. Opens no file. Every stored line, also one in a file of rejected
entries or of lost records, is made by `encode_line` and read by `decode_line`; only `mentions` and `ids_in` look into a
line without decoding it. YAML 1.1 readers and JSON readers must see the same values, so a few characters are escaped
beyond what JSON asks for and exponents get a decimal point.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT: Final = 1
PREFIX: Final = b"--- "
KNOWN_OPS: Final = frozenset({"put", "patch", "delete", "touch", "mark"})
_MOST: Final = 2**53
"""Greatest number that every reader of JSON reads exactly; a mistyped one must not number the entries behind it."""
_ID: Final = re.compile(rb"[a-z]{3}-[0-9a-f]{12}(?![0-9a-f])")
_ENTRY_FIELDS: Final = frozenset({"seq", "at", "op", "kind", "id", "data"})
# PyYAML gives up on a key whose ':' is more than 1,024 characters away (yaml.scanner, stale_possible_simple_keys).
_MAX_ENCODED_KEY: Final = 1000
# Legal in JSON strings, but line breaks, byte order marks or unprintable to a YAML reader (yaml.reader.NON_PRINTABLE).
_YAML_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# A number with an exponent and no point is a string in YAML 1.1; strings and numbers with a point are matched first so
# that they stay.
_POINTLESS_EXPONENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+\.\d+(?:e[+-]?\d+)?|(-?\d+)(e[+-]?\d+)')


@dataclass(frozen=True, slots=True)
class Change:
    """One operation on one record: `put`, `patch`, `delete`, `touch` or `mark`."""

    op: str
    kind: str
    id: str
    data: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as they stand in a line."""
        value: dict[str, Any] = {"op": self.op, "kind": self.kind, "id": self.id}
        return {**value, "data": self.data} if self.data else value


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal: atomic, numbered, with one or more changes.

    `changes` is empty for an operation this version does not know; `raw` keeps such a line alive.
    `opaque` says that part of the line is beyond this version, so compaction must leave it as it is, and `beyond` names
    the kinds of records that its unknown operations concern: no change of these may be moved past the line.
    """

    seq: int
    at: str
    changes: tuple[Change, ...]
    raw: bytes
    opaque: bool = False
    beyond: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: format, the oldest reader that understands it, generation, last seq before a compaction."""

    min_reader: int = 1
    generation: str
    last_seq: int = 0

    @classmethod
    def fresh(cls, last_seq: int = 0) -> Header:
        """Return the header of a new generation."""
        return cls(generation=str(uuid.uuid4()), last_seq=last_seq)

    def encode(self) -> bytes:
        """Return the line, newline included."""
        return encode_line({"journal": "agent-memory", "format": FORMAT, **asdict(self)})


class MalformedLineError(ValueError):
    """A line is not an entry; the message says in which way."""


def encode_line(value: dict[str, Any]) -> bytes:
    """Return `value` as one line that JSON and YAML 1.1 readers understand alike.

    Raises:
        ValidationError: It holds NaN, infinity, lone surrogates, an overlong key, or is no JSON at all.
    """
    try:
        text = _escaped(value)
        _check_keys(value)
        text = _POINTLESS_EXPONENT.sub(_with_point, text)
        return PREFIX + text.encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"This cannot be written to the journal: {error}.", code="not_encodable") from None


def encode_entry(seq: int, at: str, changes: tuple[Change, ...]) -> bytes:
    """Return the line for one change, or for several as one atomic batch."""
    if len(changes) == 1:
        return encode_line({"seq": seq, "at": at, **changes[0].as_json()})
    return encode_line({"seq": seq, "at": at, "op": "batch", "entries": [change.as_json() for change in changes]})


def decode_line(line: bytes) -> dict[str, Any]:
    """Return the mapping in a line (with or without its newline).

    Raises:
        MalformedLineError: Not a `--- {…}` line of UTF-8 JSON.
    """
    if not line.startswith(PREFIX):
        raise MalformedLineError("it does not begin with '--- '")
    try:
        value = json.loads(line[len(PREFIX) :])
    except UnicodeDecodeError:
        raise MalformedLineError("it is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise MalformedLineError(f"it is not a flow mapping: {error}") from None
    if not isinstance(value, dict):
        raise MalformedLineError("it is not a mapping")
    return value


def decode_entry(line: bytes) -> Entry:
    """Return the entry in a line.

    Raises:
        MalformedLineError: A required field is missing or of the wrong type.
    """
    value = decode_line(line)
    seq, at, op = value.get("seq"), value.get("at"), value.get("op")
    if not isinstance(seq, int) or isinstance(seq, bool) or not 1 <= seq <= _MOST:
        raise MalformedLineError("'seq' is not a positive number")
    if not isinstance(at, str) or not _is_moment(at):
        raise MalformedLineError("'at' is not a date and time")
    if not isinstance(op, str):
        raise MalformedLineError("'op' is missing")
    if op == "batch":
        items = value.get("entries")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise MalformedLineError("a batch without 'entries'")
        extra = value.keys() - {"seq", "at", "op", "entries"}
    else:
        items = [{key: item for key, item in value.items() if key not in {"seq", "at"}}]
        extra = set()
    changes = tuple(_change(item) for item in items if _is_known(item))
    beyond = frozenset(str(item.get("kind")) for item in items if not _is_known(item))
    opaque = bool(extra) or bool(beyond) or any(item.keys() - _ENTRY_FIELDS for item in items)
    return Entry(seq, at, changes, line, opaque, beyond)


def decode_header(line: bytes) -> Header:
    """Return the header in the first line.

    Raises:
        MalformedLineError: The line is no header of an agent-memory journal.
    """
    value = decode_line(line)
    generation, min_reader, last_seq = value.get("generation"), value.get("min_reader", 1), value.get("last_seq", 0)
    if value.get("journal") != "agent-memory" or not isinstance(generation, str):
        raise MalformedLineError("it is not the header of an agent-memory journal")
    if not isinstance(min_reader, int) or not isinstance(last_seq, int) or not 0 <= last_seq <= _MOST:
        raise MalformedLineError("the header's numbers are not numbers")
    return Header(generation=generation, min_reader=min_reader, last_seq=last_seq)


def mentions(line: bytes, ids: Iterable[bytes]) -> bool:
    """Return whether a stored line names one of these records; it need not be an entry."""
    return any(each in line for each in ids)


def ids_in(lines: bytes) -> set[bytes]:
    """Return the ids that stored lines name; these need not be entries."""
    return set(_ID.findall(lines))


def _is_known(item: dict[str, Any]) -> bool:
    op = item.get("op")
    return isinstance(op, str) and op in KNOWN_OPS


def _change(item: dict[str, Any]) -> Change:
    kind, record_id, data = item.get("kind"), item.get("id"), item.get("data", {})
    if not isinstance(kind, str) or not isinstance(record_id, str) or not isinstance(data, dict):
        raise MalformedLineError("'kind', 'id' or 'data' is missing or of the wrong type")
    count = data.get("count", 1)
    if item["op"] == "touch" and (not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MOST):
        raise MalformedLineError("a touch whose 'count' is not a number")
    return Change(str(item["op"]), kind, record_id, data)


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _escaped(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _YAML_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _with_point(match: re.Match[str]) -> str:
    return f"{match[1]}.0{match[2]}" if match[1] else match[0]


def _check_keys(root: object) -> None:
    pending: list[object] = [root]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise TypeError(f"the key {key!r} is not a string")
                if len(key) > _MAX_ENCODED_KEY // 6 and len(_escaped(key)) > _MAX_ENCODED_KEY:
                    raise ValueError(f"a key takes more than {_MAX_ENCODED_KEY} characters")
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)
