"""`PurgeList`: records purged from one agent's files.

The list is `purged.yaml` next to the journals. It has IDs and keyed fingerprints, and no text: HMAC-SHA256 (RFC 2104)
of each text, folded for case, width and white space, under the 32 random bytes of `purge.key`; and signatures of its
words, which find it within other texts. Without the key, words cannot be tested against it. It is not a journal: no
compaction, restore or import touches it.

It has one line per step, with a checksum: a purge is `begun` before anything is removed, and `done` with a receipt. A
torn line at the end counts as not written.

It also has fingerprints of texts that a person rejected in the inbox: they are not offered again.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import math
import os
import secrets
import shlex
import uuid
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import (
    append_lines,
    open_private,
    read_file,
    read_signature,
    sync_file,
    sync_folder,
    translated,
    write_all,
)
from agent_memory.files.concerns import Concern
from agent_memory.files.layout import build_command
from agent_memory.files.names import AGENT, PURGE_KEY, PURGED
from agent_memory.files.wording import counted
from agent_memory.journal.agent_file import PurgeState, checksum_key, note_purges, read_purge_state
from agent_memory.journal.format import MalformedLineError, add_checksum, decode_line, encode_line
from agent_memory.journal.purged_spans import PurgedSpans, sign_spans, sum_spans
from agent_memory.models.text import folded_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_LEAST: Final = 3
"""Characters; a shorter text cannot be recognized."""
_TEXTS: Final = ("content", "body")
"""Text fields of records: `body` of topics, `content` of all others."""
REJECTED: Final = "rejected"
"""Step of a rejected text; versions that do not know it skip the line."""
READMITTED: Final = "readmitted"
"""Step of a text whose rejection was taken back; versions that do not know it skip the line."""
KEY_BYTES: Final = 32
_MOST_READ: Final = 64
_READ: Final[dict[Path, PurgeIndex]] = {}
"""Index read last, by path of the list."""


class PurgeList:
    """Purge list of one folder, read again after a change.

    Args:
        folder: Folder of the agent.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self._key_path = folder / PURGED, folder / PURGE_KEY

    # -- asking -------------------------------------------------------------------------------------------------------

    def check_key(self) -> None:
        """Check that purged texts can be recognized.

        Raises:
            StorageError: The list, or its key, cannot be read.
        """
        read = self.read()
        if read.purges and not read.key:
            read_key(self._key_path)
        noted = read_purge_state(self.path.parent)
        if noted is not None and checksum_key(read.key) != noted.key:
            raise StorageError(
                f"{self._key_path.name} is not the key of {self.path.name}, the list of what was purged. "
                "Nothing was read or changed.",
                code="purge_key",
                recovery=hint_purges(self.path.parent),
                path=self._key_path,
            )

    def note(self) -> None:
        """Record in `agent.yaml` how long the list is; needs the lock.

        Raises:
            StorageError: The list cannot be read.
        """
        if (state := self.read().state) is not None:
            note_purges(self.path.parent, state)

    @property
    def is_noted(self) -> bool:
        """True if `agent.yaml` records the length of the list."""
        return self.read().state == read_purge_state(self.path.parent)

    def purges(self) -> list[Purge]:
        """Return all purges in order.

        Raises:
            StorageError: The list exists and cannot be read.
        """
        return list(self.read().purges.values())

    def list_unfinished(self) -> list[Purge]:
        """Return purges that were begun and not done."""
        return [purge for purge in self.purges() if purge.receipt is None]

    def names(self, record_id: str) -> bool:
        """Return True if a record with this ID was purged."""
        return record_id in self.read().ids

    def has(self, text: str, moment: float = 0.0) -> bool:
        """Return True if a text was purged under any ID. See `purges`.

        False if the key is lost.

        Args:
            text: What a record says.
            moment: When it was stored, in seconds since 1970; earlier purges do not count. Default: before any purge.
        """
        return self.read().has(text, moment)

    def read(self) -> PurgeIndex:
        """Return the present index, for many queries."""
        return read_purges(self.path, self._key_path)

    def has_rejected(self, text: str) -> bool:
        """Return True if a person rejected this text.

        False if the key is missing.
        """
        read = self.read()
        return bool(read.key) and make_fingerprint(read.key, text) in read.rejected

    def get_spans(self, purge: Purge | None = None, texts: Iterable[str] = ()) -> PurgedSpans:
        """Return a matcher for words of purged texts.

        It matches nothing if the key is missing.

        Args:
            purge: Only match texts of this purge, if it has spans.
            texts: Texts of the purge, if known, for a faster search.
        """
        read = self.read()
        return PurgedSpans(read.key, purge.spans, texts) if purge is not None and purge.spans else read.spans

    def readable(self, record_id: object, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a record's fields with purged words made unreadable.

        Unchanged if the record is barred.

        Args:
            record_id: ID of the record.
            fields: With `timestamp`, when it was stored; without, it counts as older than any purge.
        """
        spans, moment = self.get_spans(), to_seconds(fields.get("timestamp"))
        if not spans or self.bars(record_id, fields):
            return fields
        return spans.hide_in(fields, moment)

    def bars(self, record_id: object, fields: Mapping[str, Any]) -> bool:
        """Return True if a record was purged by ID or by text.

        A text counts only if the record is older than the purge.

        Args:
            record_id: ID of the record.
            fields: As in `readable`.
        """
        index, moment = self.read(), to_seconds(fields.get("timestamp"))
        if not index.ids:
            return False
        return (isinstance(record_id, str) and record_id in index.ids) or any(
            index.has(text, moment) for text in list_texts(fields)
        )

    def filter_line(self, line: bytes) -> bytes:
        """Return a journal line without changes of purged records.

        Empty if nothing is left.

        A change that only names such a record, as a link does, stays; one that has their words loses these, if it is
        older than the purge.
        """
        index = self.read()
        if not index.ids:
            return line
        try:
            value = decode_line(line)
        except MalformedLineError:
            return line
        items = value["entries"] if isinstance(value.get("entries"), list) else [value]
        moment = to_seconds(value.get("at"))
        admitted = [
            item
            for item in items
            if not (isinstance(item, dict) and index.drops(item.get("id"), item.get("data"), moment, is_returned=True))
        ]
        readable = [_hide_words(item, index.spans, moment) for item in admitted]
        if readable == items:
            return line
        if not readable:
            return b""
        return add_checksum(encode_line({**value, "entries": readable} if "entries" in value else readable[0]))

    # -- noting -------------------------------------------------------------------------------------------------------

    def begin(self, ids: Collection[str], texts: Iterable[str], at: str, resting: Collection[str] = ()) -> Purge:
        """Record what is going to be purged, and sync; needs the lock.

        Args:
            ids: IDs of all records.
            texts: Texts that must not come back.
            at: Present time as text.
            resting: IDs of records that were only derived from the others.

        Raises:
            StorageError: It could not be recorded; nothing may be purged.
        """
        key, all_texts = _load_or_make_key(self._key_path, may_make=not self.read().has_any), [*texts]
        fingerprints = sorted({make_fingerprint(key, text) for text in all_texts if len(text) >= _LEAST})
        signed = sign_spans(key, all_texts)
        purge = Purge(
            str(uuid.uuid4()), at, tuple(sorted(ids)), tuple(fingerprints), tuple(sorted(resting)), spans=signed
        )
        begun: dict[str, Any] = {"ids": [*purge.ids], "resting": [*purge.resting], "fingerprints": fingerprints}
        begun["stretches"] = {str(count): signatures for count, signatures in signed.items()}
        begun["sums"] = {str(count): sums for count, sums in sum_spans(key, all_texts).items()}
        _append(self.path, {"purge": purge.id, "at": at, "step": "begun", **begun})
        self.note()
        return purge

    def reject(self, texts: Iterable[str], at: str) -> None:
        """Record rejected texts, and sync; needs the lock.

        Raises:
            StorageError: They could not be recorded.
        """
        self._note_texts(REJECTED, texts, at)

    def readmit(self, texts: Iterable[str], at: str) -> None:
        """Record that rejections were taken back, and sync; needs the lock.

        Raises:
            StorageError: They could not be recorded.
        """
        self._note_texts(READMITTED, texts, at)

    def _note_texts(self, step: str, texts: Iterable[str], at: str) -> None:
        key = _load_or_make_key(self._key_path, may_make=not self.read().has_any)
        fingerprints = sorted({make_fingerprint(key, text) for text in texts})
        _append(self.path, {"purge": str(uuid.uuid4()), "at": at, "step": step, "fingerprints": fingerprints})

    def finish(self, purge: Purge, receipt: Mapping[str, Any], at: str) -> None:
        """Record that a purge is done, with its receipt.

        Raises:
            StorageError: It could not be recorded; the next process purges again.
        """
        _append(self.path, {"purge": purge.id, "at": at, "step": "done", "receipt": dict(receipt)})


def _append(path: Path, value: Mapping[str, Any]) -> None:
    with translated(path, "write"):
        append_lines(path, add_checksum(encode_line(dict(value))), os.O_CREAT)
        sync_folder(path.parent)


def _load_or_make_key(path: Path, *, may_make: bool) -> bytes:
    """Return the key; make one if `may_make` and none exists."""
    with translated(path, "write"):
        if may_make and not path.exists():
            temporary = path.with_name(f".{PURGE_KEY}.{secrets.token_hex(4)}.tmp")
            descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                write_all(descriptor, secrets.token_bytes(KEY_BYTES).hex().encode())
                sync_file(descriptor)
            finally:
                os.close(descriptor)
            temporary.rename(path)
            sync_folder(path.parent)
    return read_key(path)


def check_purges(folder: Path) -> Iterator[Concern]:
    """Report purges that were begun and not finished."""
    try:
        PurgeList(folder).check_key()
        unfinished = PurgeList(folder).list_unfinished()
    except StorageError as error:
        yield Concern("purges_unusable", f"{PURGED} cannot be read: {error.message}", error.recovery)
        return
    if unfinished:
        count = sum(len(purge.ids) for purge in unfinished)
        yield Concern(
            "purge_unfinished",
            f"A purge was interrupted: {counted(count, 'record')} found no more, and perhaps in files still.",
            "The next session or command goes on with it; `agent-memory purge` says how it ended.",
        )


def list_texts(values: Mapping[str, Any]) -> list[str]:
    """Return the texts of a record, without labels."""
    return [text for name in _TEXTS if isinstance(text := values.get(name), str) and len(text) >= _LEAST]


def _hide_words(item: Any, spans: PurgedSpans, moment: float) -> Any:
    """Return a change with purged words made unreadable."""
    if not spans or not isinstance(item, dict) or not isinstance(item.get("data"), dict):
        return item
    return {**item, "data": spans.hide_in(item["data"], moment)}


@dataclass(frozen=True, slots=True)
class Purge:
    """One purge in the list.

    Attributes:
        id: ID of the purge.
        at: Begin of the purge, as text.
        ids: IDs of the purged records.
        fingerprints: Hexadecimal signatures of their texts.
        resting: IDs of records that were only derived from the others, and may be derived again.
        spans: Signatures of spans by number of words; see `PurgedSpans`. Empty in lists of earlier versions.
        sums: Sums of spans by number of words; see `SpanSums`. Empty in lists of earlier versions.
        receipt: Result of the purge; None while unfinished.
    """

    id: str
    at: str
    ids: tuple[str, ...]
    fingerprints: tuple[str, ...]
    resting: tuple[str, ...] = ()
    receipt: Mapping[str, Any] | None = None
    spans: Mapping[int, Sequence[str]] = field(default_factory=dict)
    sums: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @property
    def moment(self) -> float:
        """Begin in seconds since 1970; infinite if unreadable."""
        return to_seconds(self.at) or math.inf


@dataclass(slots=True)
class PurgeIndex:
    """Content of the purge list, cached until the file or key changes.

    Attributes:
        ids, fingerprints: Time of the last purge by ID or fingerprint, in seconds since 1970.
        lasting: IDs that may not be derived again.
    """

    looked: tuple[object, object] = (None, None)
    key: bytes = b""
    purges: dict[str, Purge] = field(default_factory=dict)
    ids: dict[str, float] = field(default_factory=dict)
    lasting: set[str] = field(default_factory=set)
    fingerprints: dict[str, float] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    spans: PurgedSpans = field(default_factory=PurgedSpans)

    @property
    def has_any(self) -> bool:
        """True if anything in the list needs the key."""
        return bool(self.purges or self.rejected)

    @property
    def state(self) -> PurgeState | None:
        """State for `agent.yaml`; None without a purge or key."""
        return (
            PurgeState(len(self.purges), next(reversed(self.purges)), checksum_key(self.key))
            if self.purges and self.key
            else None
        )

    def holds(self, noted: PurgeState) -> bool:
        """Return True if the list has all purges that were noted."""
        return len(self.purges) >= noted.count and noted.last in self.purges

    def has(self, text: str, moment: float = 0.0) -> bool:
        """Return True if a text was purged after a time."""
        return bool(self.key) and self.fingerprints.get(make_fingerprint(self.key, text), -1.0) >= moment

    def drops(self, record_id: object, data: object, moment: float, *, is_returned: bool) -> bool:
        """Return True if a journal's change of a record is purged.

        Args:
            record_id: ID of the record.
            data: Fields of the change.
            moment: Time of the line in seconds since 1970.
            is_returned: True if the line may be older than the purge, although a purge cleans each journal.
        """
        if isinstance(record_id, str) and (purged := self.ids.get(record_id)) is not None:
            is_lasting = record_id in self.lasting
            if (is_lasting or moment <= purged) if is_returned else (is_lasting and moment < purged):
                return True
        return is_returned and isinstance(data, dict) and any(self.has(text, moment) for text in list_texts(data))

    def index(self) -> None:
        """Build the lookups; the last purge of an ID or text counts."""
        signed: dict[int, dict[str, float]] = {}
        sums: dict[int, set[int] | None] = {}
        for purge in sorted(self.purges.values(), key=lambda purge: purge.moment):
            moment = purge.moment
            self.ids |= dict.fromkeys(purge.ids, moment)
            self.lasting.update(set(purge.ids).difference(purge.resting))
            self.fingerprints |= dict.fromkeys(purge.fingerprints, moment)
            for count, signatures in purge.spans.items():
                signed.setdefault(count, {}).update(dict.fromkeys(signatures, moment))
                span_sums = sums.setdefault(count, set())
                if span_sums is not None and count in purge.sums:
                    span_sums.update(purge.sums[count])
                else:
                    sums[count] = None
        self.spans = PurgedSpans(
            self.key, signed, sums={count: span_sums for count, span_sums in sums.items() if span_sums}
        )


def read_purges(path: Path, key_path: Path) -> PurgeIndex:
    """Return the current index of a purge list.

    Raises:
        StorageError: The list cannot be read, or lacks purges that `agent.yaml` counts.
    """
    noted = read_purge_state(path.parent)  # before the list, which is written first
    looked = (read_signature(path), read_signature(key_path))
    read = _READ.get(path)
    if read is None or read.looked != looked:
        with translated(path, "read"):
            content = read_file(path) if looked[0] is not None else b""
        key = b""
        with contextlib.suppress(StorageError):  # `PurgeList.check_key` says so
            key = read_key(key_path) if content.strip() else b""
        read = parse_purges(content, key, path)
        read.looked = looked
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        _READ[path] = read
    if noted is not None and not read.holds(noted):
        raise _build_incomplete_error(path, noted, len(read.purges))
    return read


def parse_purges(content: bytes, key: bytes, path: Path) -> PurgeIndex:
    """Return the index of a purge list that was read.

    Args:
        content: Bytes of the list.
        key: Key of the list; empty if it is missing.
        path: File of the list, for errors.

    Raises:
        StorageError: A line is damaged.
    """
    read = PurgeIndex()
    for line in content.split(b"\n"):
        _take_line(read, line, path)
    if read.has_any:
        read.key = key
        read.index()
    return read


def _build_incomplete_error(path: Path, noted: PurgeState, count: int) -> StorageError:
    what = "is missing or empty" if not count else f"has {counted(count, 'purge')}"
    return StorageError(
        f"{path.name}, the list of what was purged from {path.parent.name}, {what}; {AGENT} counts "
        f"{counted(noted.count, 'purge')}. Nothing was read or changed.",
        code="purge_list",
        recovery=hint_purges(path.parent),
        path=path,
    )


def hint_purges(folder: Path) -> str:
    """Return a hint for an unusable purge list or key."""
    repair = build_command(folder.parent, "doctor --repair -a", shlex.quote(folder.name))
    return f"Run {repair} to take {PURGED} and {PURGE_KEY} from a backup, or put both back from a copy of the folder."


def to_seconds(moment: object) -> float:
    """Return a moment as seconds since 1970; 0 if invalid."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _take_line(read: PurgeIndex, line: bytes, path: Path) -> None:
    purges = read.purges
    if not _is_whole(line):
        return  # a process died while writing it: what it began was not acknowledged
    try:
        value = _decode_sealed(line)
    except MalformedLineError as error:
        raise StorageError(
            f"{path.name}, the list of what was purged, is damaged: {error}. Nothing was read or changed.",
            code="purge_list",
            recovery=hint_purges(path.parent),
            path=path,
        ) from None
    try:
        purge_id, moment = str(value["purge"]), str(value["at"])
        if value["step"] == REJECTED:
            read.rejected |= set(value["fingerprints"])
        elif value["step"] == READMITTED:
            read.rejected -= set(value["fingerprints"])
        elif value["step"] == "begun":
            signed = {int(count): tuple(map(str, values)) for count, values in value.get("stretches", {}).items()}
            ids, texts, resting = (tuple(value.get(name, ())) for name in ("ids", "fingerprints", "resting"))
            sums = {int(count): tuple(map(int, values)) for count, values in value.get("sums", {}).items()}
            purges[purge_id] = Purge(purge_id, moment, ids, texts, resting, spans=signed, sums=sums)
        elif (begun := purges.get(purge_id)) is not None:
            purges[purge_id] = replace(begun, receipt=dict(value["receipt"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return  # of a newer version


def _decode_sealed(line: bytes) -> dict[str, Any]:
    """Return the mapping in a line, which must have a checksum."""
    if add_checksum(line) != line:
        raise MalformedLineError("a line has no checksum")
    return decode_line(line)


def _is_whole(line: bytes) -> bool:
    return line.strip(b"\0 \r").endswith(b"}")


def make_fingerprint(key: bytes, text: str) -> str:
    """Return the hexadecimal signature of a text.

    Case, width and white space are folded before.
    """
    return hmac.new(key, folded_text(text), hashlib.sha256).hexdigest()


def decode_key(content: bytes) -> bytes:
    """Return the key in a file's content, empty if damaged."""
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        return b""
    return key if len(key) == KEY_BYTES else b""


def read_key(path: Path) -> bytes:
    """Return the key of a purge list.

    Raises:
        StorageError: The key is missing or damaged.
    """
    with translated(path, "read"):
        try:
            key = decode_key(read_file(path))
        except FileNotFoundError:
            key = b""
    if not key:
        raise StorageError(
            f"{path.name}, the key of the list of what was purged, is missing or damaged.",
            code="purge_key",
            recovery=hint_purges(path.parent),
            path=path,
        )
    return key
