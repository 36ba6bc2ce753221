"""Line format of the journal: one YAML document per line.

A document is in flow style, which is JSON after `--- `.

Every stored line, also of rejected entries and lost records, is written by `encode_line` and read by `decode_line`;
only `mentions` and `find_ids` scan lines without decoding. YAML 1.1 and JSON readers must see the same values, so a
few more characters are escaped than JSON requires, and exponents get a decimal point.
"""

from __future__ import annotations

import json
import uuid
import zlib
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.late import compile_late

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable

FORMAT: Final = 2
"""Format of new journals. Format 1 has no checksums; a compaction converts it."""
ENCRYPTED_FORMAT: Final = 3
"""Format of encrypted journals: versions without encryption must not write to one."""
PREFIX: Final = b"--- "
_BEGIN: Final = b'--- {"'
_DECODER: Final = json.JSONDecoder()
_SPACES: Final = " \t\r\n"
"""White space of JSON."""
KNOWN_OPS: Final = frozenset({"put", "patch", "delete", "touch", "mark"})
_MOST: Final = 2**53
"""Greatest number that every JSON reader reads exactly; a mistyped one must not number later entries."""
_ID: Final = compile_late(rb"[a-z]{3}-[0-9a-f]{12}(?![0-9a-f])")
_PREFIX_BYTES: Final = 4
_FEW_IDS: Final = 4
"""IDs that are searched one after the other; with more, finding all IDs of the lines is faster."""
_SEAL: Final = compile_late(rb', "crc": "([0-9a-f]{8})"}\s*\Z')
"""End of a line with a checksum, which covers all bytes before it, including `---`."""
_SEAL_BYTES: Final = 64
_SEQ: Final = compile_late(rb'--- {"seq": (\d{1,16}),')
_NONE: Final[frozenset[str]] = frozenset()
_ENTRY_FIELDS: Final = frozenset({"seq", "at", "op", "kind", "id", "data"})
# PyYAML gives up on a key whose ':' is more than 1,024 characters away (yaml.scanner, stale_possible_simple_keys).
_MAX_ENCODED_KEY: Final = 1000
# Legal in JSON strings, but line breaks, byte order marks or unprintable to a YAML reader (yaml.reader.NON_PRINTABLE).
_YAML_UNSAFE: Final = compile_late("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# A number with an exponent and no point is a string in YAML 1.1; strings and numbers with a point are matched first so
# that they stay.
_POINTLESS_EXPONENT: Final = compile_late(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|(?<!\d)-?\d+\.\d+(?:e[+-]?\d+)?|(?<!\d)(-?\d+)(e[+-]?\d+)'
)
Records = dict[str, dict[str, Any]]
"""Records of one kind by ID."""


@dataclass(frozen=True, slots=True)
class Change:
    """One operation on one record: `put`, `patch`, `delete`, `touch` or `mark`.

    Attributes:
        op: Name of the operation.
        kind: Kind of the record.
        id: ID of the record.
        data: Fields of the record, or what else the operation takes.
        record: Validated record after the change, where the change was decided; None where it was read from a file.
    """

    op: str
    kind: str
    id: str
    data: dict[str, Any] = field(default_factory=dict)
    record: object = field(default=None, compare=False, repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON fields for a journal line."""
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
    """First line of a journal.

    Attributes:
        format: Format of the following lines.
        min_reader: Oldest format whose readers understand the journal.
        generation: ID of this file; each compaction makes another.
        last_seq: Highest number before the compaction.
        parent: Generation before the compaction; None for a new journal.
        purged_seq: Number of the last deletion or rewording removed by a compaction, or of the last line if something
            was removed without a deletion; None for neither. A reader past that number misses nothing; see `continues`.
        key: Name of the encryption key; None, and left out, for a plain journal.
    """

    format: int = FORMAT
    min_reader: int = FORMAT
    generation: str
    last_seq: int = 0
    parent: str | None = None
    purged_seq: int | None = None
    key: str | None = None

    @property
    def too_new(self) -> bool:
        """True if only a newer version may write the journal."""
        return max(self.format, self.min_reader) > (FORMAT if self.key is None else ENCRYPTED_FORMAT)

    @classmethod
    def fresh(
        cls, last_seq: int = 0, parent: str | None = None, purged_seq: int | None = None, *, key: str | None = None
    ) -> Header:
        """Return the header of a new generation."""
        form = FORMAT if key is None else ENCRYPTED_FORMAT
        return cls(
            format=form,
            min_reader=form,
            generation=str(uuid.uuid4()),
            last_seq=last_seq,
            parent=parent,
            purged_seq=purged_seq,
            key=key,
        )

    def encode(self) -> bytes:
        """Return the line, newline included."""
        fields = asdict(self)
        if self.key is None:
            del fields["key"]
        return add_checksum(encode_line({"journal": "agent-memory", **fields}))

    def continues(self, previous: Header, seq: int) -> bool:
        """Return True if a reader of `previous` at `seq` can continue here."""
        purged = self.purged_seq or 0
        misses_nothing = self.purged_seq == previous.purged_seq or (purged <= seq and purged < self.last_seq)
        return self.parent == previous.generation and misses_nothing


class MalformedLineError(ValueError):
    """Raised for a line that is not an entry; says why."""


def encode_line(value: dict[str, Any]) -> bytes:
    """Return `value` as a line that JSON and YAML 1.1 readers understand.

    Raises:
        ValidationError: It has NaN, infinity, lone surrogates or an overlong key, or is not JSON.
    """
    try:
        text = _escape(value)
        _check_keys(value)
        text = _POINTLESS_EXPONENT.sub(_add_point, text)
        return PREFIX + text.encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"This cannot be written to the journal: {error}.", code="not_encodable") from None


def encode_fields(data: dict[str, Any]) -> bytes:
    """Return a record's fields as JSON in UTF-8.

    Raises:
        ValidationError: As for `encode_line`, so that they can be written as a line some day.
    """
    return encode_line(data)[len(PREFIX) : -1]


def encode_entry(seq: int, moment: str, changes: tuple[Change, ...], form: int = FORMAT) -> bytes:
    """Return the line for one change or an atomic batch."""
    many = {"op": "batch", "entries": [change.as_json() for change in changes]}
    line = encode_line({"seq": seq, "at": moment, **(changes[0].as_json() if len(changes) == 1 else many)})
    return add_checksum(line) if form > 1 else line


def add_checksum(line: bytes) -> bytes:
    """Return a line with its checksum.

    Unchanged if it has one or is not a mapping.
    """
    body = line.rstrip()
    if _find_checksum(line) or not body.endswith(b"}"):
        return line
    body = body[:-1]
    return b'%b, "crc": "%08x"}\n' % (body, zlib.crc32(body))


def _find_checksum(line: bytes) -> re.Match[bytes] | None:
    return _SEAL.search(line, max(0, len(line) - _SEAL_BYTES))


def read_seq(line: bytes) -> int | None:
    """Return an entry's number without decoding it, or None."""
    begin = _SEQ.match(line)
    return int(begin[1]) if begin else None


def decode_line(line: bytes) -> dict[str, Any]:
    """Return the mapping in a line, without its checksum.

    Raises:
        MalformedLineError: Not a `--- {…}` line of UTF-8 JSON, or not what its checksum says.
    """
    return _decode(line)[0]


def _decode(line: bytes) -> tuple[dict[str, Any], bool]:
    """Return a line's mapping, and True if it has a checksum."""
    seal = _find_checksum(line)
    if seal and zlib.crc32(line[: seal.start()]) != int(seal[1], 16):
        raise MalformedLineError("its checksum does not match: it was changed")
    if not line.startswith(PREFIX):
        raise MalformedLineError("it does not begin with '--- '")
    try:
        value = _decode_json(line)
    except UnicodeDecodeError:
        raise MalformedLineError("it is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise MalformedLineError(f"it is not a flow mapping: {error}") from None
    if not isinstance(value, dict):
        raise MalformedLineError("it is not a mapping")
    if seal:
        del value["crc"]
    return value, seal is not None


def _decode_json(line: bytes) -> Any:
    """Return the JSON in a line; detect other encodings only if needed."""
    if not line.startswith(_BEGIN):
        return json.loads(line[len(PREFIX) :])
    text = line[len(PREFIX) :].decode("utf-8", "surrogatepass")
    value, end = _DECODER.raw_decode(text)
    if text[end:].strip(_SPACES):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def decode_entry(line: bytes, form: int = 1) -> Entry:
    """Return the entry in a line of a journal of format `form`.

    Raises:
        MalformedLineError: A required field is missing or of the wrong type, or the checksum is.
    """
    value, is_sealed = _decode(line)
    if form > 1 and not is_sealed:
        raise MalformedLineError("it has no checksum")
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
        items, extra = [value], set()
    changes = tuple([_decode_change(item) for item in items if _is_known(item)])
    beyond = _NONE
    if len(changes) < len(items):
        beyond = frozenset(str(item.get("kind")) for item in items if not _is_known(item))
    opaque = bool(extra) or bool(beyond) or not all(item.keys() <= _ENTRY_FIELDS for item in items)
    return Entry(seq, at, changes, line, opaque, beyond)


def decode_header(line: bytes) -> Header:
    """Return the header in the first line.

    Raises:
        MalformedLineError: It is not a header of an agent-memory journal.
    """
    value = decode_line(line)
    generation, parent = value.get("generation"), value.get("parent")
    if value.get("journal") != "agent-memory" or not isinstance(generation, str):
        raise MalformedLineError("it is not the header of an agent-memory journal")
    numbers = {name: value.get(name, least) for name, least in (("format", 1), ("min_reader", 1), ("last_seq", 0))}
    purged, key = value.get("purged_seq"), value.get("key")
    if not all(isinstance(number, int) and 0 <= number <= _MOST for number in (*numbers.values(), purged or 0)):
        raise MalformedLineError("the header's numbers are not numbers")
    if numbers["format"] == (FORMAT if key is None else ENCRYPTED_FORMAT) and not _find_checksum(line):
        raise MalformedLineError("it has no checksum")
    if key is not None and not isinstance(key, str):
        raise MalformedLineError("the header's key is not a name")
    return Header(
        generation=generation,
        parent=parent if isinstance(parent, str) else None,
        purged_seq=purged,
        key=key,
        **numbers,
    )


def mentions(line: bytes, ids: Iterable[bytes]) -> bool:
    """Return True if a line has one of these IDs."""
    return any(record_id in line for record_id in ids)


def compile_mentions(ids: Collection[bytes]) -> Callable[[bytes], bool]:
    """Return a function that finds any of these IDs in lines.

    Its cost grows with the lines alone if there are many IDs of the usual form.
    """
    if len(ids) <= _FEW_IDS or not all(map(_ID.fullmatch, ids)):
        return partial(mentions, ids=ids)
    wanted, prefixes = frozenset(ids), sorted({record_id[:_PREFIX_BYTES] for record_id in ids})
    find = compile_late(rb"(?:%s)[0-9a-f]{12}" % b"|".join(prefixes)).findall
    return lambda lines: not wanted.isdisjoint(find(lines))


def find_ids(lines: bytes) -> set[bytes]:
    """Return the record IDs in lines, which need not be entries."""
    return set(_ID.findall(lines))


def _is_known(item: dict[str, Any]) -> bool:
    op = item.get("op")
    return isinstance(op, str) and op in KNOWN_OPS


def _decode_change(item: dict[str, Any]) -> Change:
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


def _escape(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _YAML_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _add_point(match: re.Match[str]) -> str:
    return f"{match[1]}.0{match[2]}" if match[1] else match[0]


def _check_keys(root: object) -> None:
    pending: list[object] = [root]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise TypeError(f"the key {key!r} is not a string")
                if len(key) > _MAX_ENCODED_KEY // 6 and len(_escape(key)) > _MAX_ENCODED_KEY:
                    raise ValueError(f"a key takes more than {_MAX_ENCODED_KEY} characters")
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)


def apply_change(records: Records, change: Change, moment: str) -> bool:
    """Apply a change to records in place; return True if anything changed.

    `put` replaces; `patch` overlays top-level fields, and a field given as null is removed; `delete` removes; `touch`
    adds `data.count` (default 1) to `access_count` and moves `last_accessed`; `mark` is a note and changes nothing.
    All but `put` on an unknown id do nothing.
    """
    if change.op == "put":
        records[change.id] = change.data
        return True
    record = records.get(change.id)
    if record is None or change.op == "mark":
        return False
    if change.op == "delete":
        del records[change.id]
    elif change.op == "patch":
        unchanged = {key: value for key, value in record.items() if key not in change.data}
        records[change.id] = unchanged | {key: value for key, value in change.data.items() if value is not None}
    elif change.op == "touch":
        before = record.get("access_count")
        count = (before if isinstance(before, int) else 0) + int(change.data.get("count", 1))
        records[change.id] = {**record, "access_count": count, "last_accessed": moment}
    return True
