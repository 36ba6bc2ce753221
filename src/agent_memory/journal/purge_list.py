"""`PurgeList`: what was purged from one agent's files and must never come back, in `purged.yaml` beside the journals.

It holds ids and keyed fingerprints, no text: HMAC-SHA256 (RFC 2104) of each text, folded for case, width and white
space, under the 32 random bytes of `purge.key`. Without the key nobody can try words against it. It is no journal: no
compaction, no restoring of a backup and no import touches it.

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
from agent_memory.models.text import folded_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
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
        receipt: What it came to; None while it is unfinished.
    """

    id: str
    at: str
    ids: tuple[str, ...]
    fingerprints: tuple[str, ...]
    resting: tuple[str, ...] = ()
    receipt: Mapping[str, Any] | None = None


@dataclass(slots=True)
class _Read:
    """What was read of the file when it looked like this."""

    looked: tuple[int, int, int] | None = None
    key: bytes = b""
    purges: dict[str, Purge] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)

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

    def bars(self, record_id: object, values: Mapping[str, Any]) -> bool:
        """Tell whether a record, as a journal has it, was purged: by its id, or by a text among its values."""
        if not self._look().ids:
            return False
        return (isinstance(record_id, str) and self.names(record_id)) or any(map(self.has, texts_in(values)))

    def admitted(self, line: bytes) -> bytes:
        """Return a line of a journal without the changes of records that were purged; empty where nothing is left.

        A change that only names such a record, as a link does, stays.
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
        if len(kept) == len(items):
            return line
        return sealed(encode_line({**value, "entries": kept})) if kept else b""

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
        key = self._made_key()
        fingerprints = sorted({_fingerprint(key, text) for text in texts if len(text) >= _LEAST})
        purge = Purge(str(uuid.uuid4()), at, tuple(sorted(ids)), tuple(fingerprints), tuple(sorted(resting)))
        begun = {"ids": [*purge.ids], "resting": [*purge.resting], "fingerprints": fingerprints}
        self._append({"purge": purge.id, "at": at, "step": "begun", **begun})
        return purge

    def reject(self, texts: Iterable[str], at: str) -> None:
        """Note texts that a person rejected, and sync; to be called with the lock of the folder held.

        Raises:
            StorageError: They could not be noted.
        """
        key = self._made_key()
        fingerprints = sorted({_fingerprint(key, text) for text in texts})
        self._append({"purge": str(uuid.uuid4()), "at": at, "step": _REJECTED, "fingerprints": fingerprints})

    def finish(self, purge: Purge, receipt: Mapping[str, Any], at: str) -> None:
        """Note that a purge is done, and what it came to.

        Raises:
            StorageError: It could not be noted; who comes next does it again.
        """
        self._append({"purge": purge.id, "at": at, "step": "done", "receipt": dict(receipt)})

    def _append(self, value: Mapping[str, Any]) -> None:
        with translated(self.path, "write"), opened(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
            size = os.fstat(descriptor).st_size
            is_torn = size > 0 and read_at(descriptor, size - 1, size) != b"\n"
            write_all(descriptor, b"\n" * is_torn + sealed(encode_line(dict(value))))
            sync_file(descriptor)
            sync_folder(self.path.parent)

    def _made_key(self) -> bytes:
        with translated(self._key_path, "write"):
            if not self._key_path.exists() and not self._look().has_any:
                temporary = self._key_path.with_name(f".{PURGE_KEY}.{secrets.token_hex(4)}.tmp")
                descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    write_all(descriptor, secrets.token_bytes(_KEY_BYTES).hex().encode())
                    sync_file(descriptor)
                finally:
                    os.close(descriptor)
                temporary.rename(self._key_path)
                sync_folder(self._key_path.parent)
        return _key_in(self._key_path)

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
        self._now = read
        return read


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
            purges[purge_id] = Purge(
                purge_id, at, tuple(value["ids"]), tuple(value["fingerprints"]), tuple(value.get("resting", ()))
            )
        elif (known := purges.get(purge_id)) is not None:
            purges[purge_id] = replace(known, receipt=dict(value["receipt"]))
    except (MalformedLineError, KeyError, TypeError):
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
