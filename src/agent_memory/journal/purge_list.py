"""`PurgeList`: what was purged from one agent's files and must never come back, in `purged.yaml` beside the journals.

It holds ids and keyed fingerprints, no text: HMAC-SHA256 (RFC 2104) of each text, folded for case, width and white
space, under the 32 random bytes of `purge.key`, and the like of its words, by which it is found within other texts.
Nobody can try words against it without the key. It is no journal: no compaction, no restoring of a backup and no import
touches it.

One line for each step, sealed like those of a journal: a purge is `begun` before anything is taken away, and `done`
with a receipt. A line that a killed process left torn at the end counts as not written.

Beside purges it holds the fingerprints of texts that a person rejected when asked whether they may be kept: they are
not offered again, and bar nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import uuid
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import (
    open_private,
    opened,
    read_at,
    read_file,
    signature,
    sync_file,
    sync_folder,
    translated,
    write_all,
)
from agent_memory.files.concerns import Concern
from agent_memory.files.names import PURGE_KEY, PURGED
from agent_memory.files.wording import counted
from agent_memory.journal.format import MalformedLineError, decode_line, encode_line, sealed
from agent_memory.journal.stretches import Stretches, signed_stretches
from agent_memory.journal.withholding import hidden_fields
from agent_memory.models.text import folded_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_KEY_BYTES: Final = 32
_REJECTED: Final = "rejected"
"""The step of a line that is no purge's; a version that does not know it takes the line for nothing."""
_LEAST: Final = 3
"""Characters: what is shorter is no statement that could be told from others."""
_TEXTS: Final = ("content", "body")
"""The fields with the words of a record: of the page of a topic the second, of all others the first."""


@dataclass(frozen=True, slots=True)
class Purge:
    """One purge as the list has it.

    Attributes:
        id: Its own.
        at: When it was begun, as text.
        ids: Of the records.
        fingerprints: Of their texts, hexadecimal.
        resting: Those of the records that went since they rested on the others; the same id may be made again of what
            is said later.
        stretches: Of their texts, by the number of words; see `Stretches`. None in lists of earlier versions.
        receipt: What it came to; None while it is unfinished.
    """

    id: str
    at: str
    ids: tuple[str, ...]
    fingerprints: tuple[str, ...]
    resting: tuple[str, ...] = ()
    receipt: Mapping[str, Any] | None = None
    stretches: Mapping[int, Sequence[str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Read:
    """What was read of the file when it looked like this."""

    looked: tuple[int, int, int] | None = None
    key: bytes = b""
    purges: dict[str, Purge] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    stretches: Stretches = field(default_factory=Stretches)

    @property
    def has_any(self) -> bool:
        """Whether anything is listed, for which the key is needed."""
        return bool(self.purges or self.rejected)


class PurgeList:
    """The list of one folder. Reads the file again when it has changed; without one a question costs a microsecond.

    Args:
        folder: The agent's.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self._key_path = folder / PURGED, folder / PURGE_KEY
        self._now = _Read()

    # -- asking -------------------------------------------------------------------------------------------------------

    def purges(self) -> list[Purge]:
        """Return all of them in their order.

        Raises:
            StorageError: The list is there and cannot be read.
        """
        return list(self._look().purges.values())

    def unfinished(self) -> list[Purge]:
        """Return those that were begun and not done; see `purges`."""
        return [purge for purge in self.purges() if purge.receipt is None]

    def names(self, record_id: str) -> bool:
        """Tell whether a record of this id was purged; see `purges`."""
        return record_id in self._look().ids

    def has(self, text: str) -> bool:
        """Tell whether this text was purged, whatever record says it; no, where the key is lost. See `purges`."""
        read = self._look()
        return bool(read.key) and _fingerprint(read.key, text) in read.fingerprints

    def has_rejected(self, text: str) -> bool:
        """Tell whether a person rejected this text; no, where the key is lost. See `purges`."""
        read = self._look()
        return bool(read.key) and _fingerprint(read.key, text) in read.rejected

    def stretches(self, purge: Purge | None = None, texts: Iterable[str] = ()) -> Stretches:
        """Return what finds the words of purged texts within others; nothing, where the key is lost. See `purges`.

        Args:
            purge: Only those of this one, if it has any.
            texts: What it purged, where that is known.
        """
        read = self._look()
        return Stretches(read.key, purge.stretches, texts) if purge is not None and purge.stretches else read.stretches

    def readable(self, record_id: object, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return fields of a record with the words of purged texts made unreadable; as they are, if it is barred."""
        if not self.stretches() or self.bars(record_id, fields):
            return fields
        return hidden_fields(fields, self.stretches().hidden)

    def bars(self, record_id: object, values: Mapping[str, Any]) -> bool:
        """Tell whether a record, as a journal has it, was purged: by its id, or by a text among its values."""
        if not self._look().ids:
            return False
        return (isinstance(record_id, str) and self.names(record_id)) or any(map(self.has, texts_in(values)))

    def admitted(self, line: bytes) -> bytes:
        """Return a line of a journal without the changes of records that were purged; empty where nothing is left.

        A change that only names such a record, as a link does, stays; one that has their words loses these.
        """
        if not self._look().ids:
            return line
        try:
            value = decode_line(line)
        except MalformedLineError:
            return line
        items = value["entries"] if isinstance(value.get("entries"), list) else [value]
        at = value.get("at")
        kept = [item for item in items if not (isinstance(item, dict) and self._bars_change(item, at))]
        readable = [_without_words(item, self._now.stretches) for item in kept]
        if readable == items:
            return line
        if not readable:
            return b""
        return sealed(encode_line({**value, "entries": readable} if "entries" in value else readable[0]))

    def _bars_change(self, item: Mapping[str, Any], at: object) -> bool:
        data, record_id = item.get("data"), item.get("id")
        values = data if isinstance(data, dict) else {}
        purged = [purge for purge in self.purges() if record_id in purge.ids] if record_id in self._now.ids else []
        if purged and _was_made_since(purged, record_id, at):
            return any(map(self.has, texts_in(values)))
        return self.bars(record_id, values)

    # -- noting -------------------------------------------------------------------------------------------------------

    def begin(self, ids: Collection[str], texts: Iterable[str], at: str, resting: Collection[str] = ()) -> Purge:
        """Note what is to be purged, and sync; to be called with the lock of the folder held.

        Args:
            ids: Of all records.
            texts: What must not come back.
            at: The present.
            resting: Those of the records that merely rest on the others.

        Raises:
            StorageError: It could not be noted; nothing may be purged.
        """
        key, said = _made_key(self._key_path, may_make=not self._look().has_any), [*texts]
        fingerprints = sorted({_fingerprint(key, text) for text in said if len(text) >= _LEAST})
        signed = signed_stretches(key, said)
        purge = Purge(
            str(uuid.uuid4()), at, tuple(sorted(ids)), tuple(fingerprints), tuple(sorted(resting)), stretches=signed
        )
        begun: dict[str, Any] = {"ids": [*purge.ids], "resting": [*purge.resting], "fingerprints": fingerprints}
        begun["stretches"] = {str(count): some for count, some in signed.items()}
        _append(self.path, {"purge": purge.id, "at": at, "step": "begun", **begun})
        return purge

    def reject(self, texts: Iterable[str], at: str) -> None:
        """Note texts that a person rejected, and sync; to be called with the lock of the folder held.

        Raises:
            StorageError: They could not be noted.
        """
        key = _made_key(self._key_path, may_make=not self._look().has_any)
        fingerprints = sorted({_fingerprint(key, text) for text in texts})
        _append(self.path, {"purge": str(uuid.uuid4()), "at": at, "step": _REJECTED, "fingerprints": fingerprints})

    def finish(self, purge: Purge, receipt: Mapping[str, Any], at: str) -> None:
        """Note that a purge is done, and what it came to.

        Raises:
            StorageError: It could not be noted; who comes next does it again.
        """
        _append(self.path, {"purge": purge.id, "at": at, "step": "done", "receipt": dict(receipt)})

    def _look(self) -> _Read:
        looked = signature(self.path)
        if looked == self._now.looked:
            return self._now
        read = _Read(looked)
        with translated(self.path, "read"):
            for line in read_file(self.path).split(b"\n") if looked is not None else ():
                _take(read, line)
        if read.has_any:
            with contextlib.suppress(StorageError):  # ids are known without it, and reading goes on
                read.key = _key_in(self._key_path)
            read.ids = {one for purge in read.purges.values() for one in purge.ids}
            read.fingerprints = {one for purge in read.purges.values() for one in purge.fingerprints}
            signed: defaultdict[int, set[str]] = defaultdict(set)
            for purge in read.purges.values():
                for count, some in purge.stretches.items():
                    signed[count].update(some)
            read.stretches = Stretches(read.key, signed)
        self._now = read
        return read


def _append(path: Path, value: Mapping[str, Any]) -> None:
    with translated(path, "write"), opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and read_at(descriptor, size - 1, size) != b"\n"
        write_all(descriptor, b"\n" * is_torn + sealed(encode_line(dict(value))))
        sync_file(descriptor)
        sync_folder(path.parent)


def _made_key(path: Path, *, may_make: bool) -> bytes:
    """Return the key; where nothing is listed for which one is needed, it is made if it is not there."""
    with translated(path, "write"):
        if may_make and not path.exists():
            temporary = path.with_name(f".{PURGE_KEY}.{secrets.token_hex(4)}.tmp")
            descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                write_all(descriptor, secrets.token_bytes(_KEY_BYTES).hex().encode())
                sync_file(descriptor)
            finally:
                os.close(descriptor)
            temporary.rename(path)
            sync_folder(path.parent)
    return _key_in(path)


def of_purges(folder: Path) -> Iterator[Concern]:
    """Report purges that were begun and not finished."""
    try:
        left = PurgeList(folder).unfinished()
    except StorageError as error:
        yield Concern("purges_unusable", f"{PURGED} cannot be read: {error.message}", error.recovery)
        return
    if left:
        count = sum(len(purge.ids) for purge in left)
        yield Concern(
            "purge_unfinished",
            f"A purge was interrupted: {counted(count, 'record')} found no more, and perhaps in files still.",
            "The next session or command goes on with it; `agent-memory purge` says how it ended.",
        )


def texts_in(values: Mapping[str, Any]) -> list[str]:
    """Return the texts of a record, as a journal has it: not its labels, which many records share."""
    return [text for name in _TEXTS if isinstance(text := values.get(name), str) and len(text) >= _LEAST]


def _without_words(item: Any, stretches: Stretches) -> Any:
    """Return a change with what must not be read made unreadable."""
    if not stretches or not isinstance(item, dict) or not isinstance(item.get("data"), dict):
        return item
    return {**item, "data": hidden_fields(item["data"], stretches.hidden)}


def _was_made_since(purges: Iterable[Purge], record_id: object, at: object) -> bool:
    """Tell whether a line is about a record that was made of what was said after these purges, of which it is one."""
    try:
        written = datetime.fromisoformat(str(at))
        return all(record_id in purge.resting and datetime.fromisoformat(purge.at) < written for purge in purges)
    except (ValueError, TypeError):
        return False


def _take(read: _Read, line: bytes) -> None:
    purges = read.purges
    try:
        value = decode_line(line)
        purge_id, at = str(value["purge"]), str(value["at"])
        if value["step"] == _REJECTED:
            read.rejected |= set(value["fingerprints"])
        elif value["step"] == "begun":
            signed = {int(count): tuple(map(str, some)) for count, some in value.get("stretches", {}).items()}
            ids, texts, resting = (tuple(value.get(name, ())) for name in ("ids", "fingerprints", "resting"))
            purges[purge_id] = Purge(purge_id, at, ids, texts, resting, stretches=signed)
        elif (known := purges.get(purge_id)) is not None:
            purges[purge_id] = replace(known, receipt=dict(value["receipt"]))
    except (MalformedLineError, KeyError, TypeError, ValueError, AttributeError):
        return  # torn, or damaged: what it began was not acknowledged


def _fingerprint(key: bytes, text: str) -> str:
    return hmac.new(key, folded_text(text), hashlib.sha256).hexdigest()


def _key_in(path: Path) -> bytes:
    with translated(path, "read"):
        try:
            key = bytes.fromhex(read_file(path).decode("ascii").strip())
        except FileNotFoundError:
            key = b""
        except ValueError:
            key = b""
    if len(key) != _KEY_BYTES:
        raise StorageError(
            f"{path.name}, the key of the list of what was purged, is missing or damaged.",
            code="purge_key",
            recovery=f"Put {path.name} back from a copy of the folder. Without it purged texts are known by their ids "
            "alone; reading and searching go on.",
            path=path,
        )
    return key
