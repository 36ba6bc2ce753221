"""Candidates for a scratchpad, without reading the journal if possible.

`shortlist.json` is derived and can be deleted. It is valid while the journal is, to the nanosecond, the file it was
made from, and no memory has expired since: then it says exactly what reading the journal would.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic

import pydantic

from agent_memory.encryption import data_key, is_encrypted, key_for
from agent_memory.encryption.cipher import MAGIC
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.atomic import open_private, replace_file
from agent_memory.files.names import get_shortlist_name
from agent_memory.journal.format import MalformedLineError, decode_entry
from agent_memory.journal.purge_filter import is_returned
from agent_memory.models import may_stand_for, to_text
from agent_memory.models.kind import R, own_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Kind
    from agent_memory.store.lookups import RecencyRule
    from agent_memory.store.state import State
    from agent_memory.store.store import Store

_VERSION: Final = 1
_MOST_BYTES: Final = 8 * 1024 * 1024
_LAST_LINE_BYTES: Final = 128 * 1024
"""A line of the journal is shorter, except for a batch; after a batch no shortlist is written."""


class Shortlist(Generic[R]):
    """The candidates for a scratchpad in a file. Blocking; for one thread.

    Args:
        kind: Kind of the records.
        folder: Folder of the agent.
    """

    def __init__(self, kind: Kind[R], folder: AgentFolder) -> None:
        self._kind = kind
        self._journal = folder.path / kind.journal
        self._folder = folder
        self._path = folder.path / get_shortlist_name(kind.journal, kind.name if kind.beside() else "")

    def read(self, rule: RecencyRule, now: datetime) -> list[R] | None:
        """Return the result of `RecordStorage.recent`, None if the journal must be read."""
        try:
            content = self._decrypt(_read_content(self._path))
            note = json.loads(content) if content else None
            if not isinstance(note, dict) or note.get("asked") != _describe_rule(rule):
                return None
            if note["journal"] != _identify(self._journal.stat()):
                return None
            if not _is_within(now, note["since"], note["until"]) or is_returned(self._journal):
                return None
            return [self._kind.load(self._folder.agent_id, seq, record) for seq, record in note["memories"]]
        except (OSError, ValueError, TypeError, KeyError, RecursionError, pydantic.ValidationError, StorageError):
            return None  # reading the journal reports the reason

    def write(self, rule: RecencyRule, state: State[R], seq: int, now: datetime) -> None:
        """Write the present result of `RecordStorage.recent`; a failure costs only time.

        Args:
            rule: Rule by which the records are chosen.
            state: State of the records; the file is valid until the next of them expires.
            seq: Number of the last entry that was read.
            now: Time of the choice.
        """
        with contextlib.suppress(OSError, AgentMemoryError, MalformedLineError):
            journal = self._identify_journal(seq)
            if journal is None:
                return
            unsealed = (record.expires_at for record in state.table.records.values())
            sealed = [] if state.sealed is None else state.sealed.replacements.list_ends()
            ends = [*sealed, *(end for end in unsealed if end is not None)]
            note: dict[str, Any] = {
                "asked": _describe_rule(rule),
                "journal": journal,
                "since": to_text(now) if ends else None,
                "until": min((to_text(end) for end in ends if end > now), default=None),
                "memories": [[memory.id, memory.to_record()] for memory in state.list_recent(rule, now)],
            }
            content, key = json.dumps(note, ensure_ascii=False).encode(), key_for(self._folder.path)
            content = content if key is None else key.encrypt_file(self._path.name, content)
            replace_file(self._path, content, durable=False)
            if _identify(self._journal.stat()) != journal:
                self.drop()  # another process wrote at the same time, and may have forgotten a text in it

    def _decrypt(self, content: bytes) -> bytes:
        """Return the plain content.

        Nothing if it is not encrypted like the agent's other files.
        """
        if is_encrypted(self._folder.path) is not content.startswith(MAGIC):
            return b""
        if not content.startswith(MAGIC):
            return content
        return data_key(self._folder.path).decrypt_file(self._path.name, content)

    def drop(self) -> None:
        """Delete the file: a text in it was forgotten or changed."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _identify_journal(self, seq: int) -> list[int] | None:
        """Return the identity of the journal; None if an entry follows `seq`.

        Raises:
            OSError: It cannot be read.
            MalformedLineError: Its last line is not an entry.
        """
        descriptor = open_private(self._journal, os.O_RDONLY)
        try:
            status = os.fstat(descriptor)
            tail = os.pread(descriptor, _LAST_LINE_BYTES, max(0, status.st_size - _LAST_LINE_BYTES))
        finally:
            os.close(descriptor)
        begin = tail.rfind(b"\n", 0, len(tail) - 1) + 1
        if not tail.endswith(b"\n") or not begin or decode_entry(tail[begin:]).seq != seq:
            return None
        return _identify(status)


def _describe_rule(rule: RecencyRule) -> list[int]:
    return [_VERSION, rule.size, rule.promotion_threshold]


def _identify(status: os.stat_result) -> list[int]:
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _is_within(now: datetime, since: str | None, until: str | None) -> bool:
    """Return True if nothing has expired, and no clock was set back."""
    return (since is None or datetime.fromisoformat(since) <= now) and (
        until is None or now < datetime.fromisoformat(until)
    )


def _read_content(path: Path) -> bytes:
    descriptor = open_private(path, os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_MOST_BYTES + 1)
    return content if len(content) <= _MOST_BYTES else b""


@dataclass(frozen=True, slots=True)
class _Snapshot(Generic[R]):
    """Records that were true while the log had one signature.

    Attributes:
        signature: Signature of the log before it was read; None if it says nothing.
        records: Records by ID that said the same then.
        until: Time at which the first of them expires, or None.
    """

    signature: object = None
    records: dict[str, R] = field(default_factory=dict)
    until: datetime | None = None

    @classmethod
    def of(cls, signature: object, shown: Iterable[R], current: Iterable[R]) -> _Snapshot[R]:
        """Return a snapshot in which records `shown` read like the `current` ones."""
        until = min((record.expires_at for record in current if record.expires_at is not None), default=None)
        return cls(signature, {record.id: record for record in shown}, until)


class ShownRecords(Generic[R]):
    """Records of a scratchpad known to be true. Blocking, except `is_known_true`.

    Args:
        shortlist: File that a start reads instead of the journal, or None.
    """

    def __init__(self, shortlist: Shortlist[R] | None) -> None:
        self._shortlist = shortlist
        self._rule: RecencyRule | None = None
        # Set in the storage's thread and read on event loops, so it is one value that is replaced as a whole.
        self._snapshot: _Snapshot[R] = _Snapshot()

    @property
    def has_unsaved(self) -> bool:
        """True if `save` has something to write."""
        return self._rule is not None and self._shortlist is not None

    def load_recent(self, store: Store[R], rule: RecencyRule) -> list[R]:
        """Return the candidates for a scratchpad."""
        self._rule = rule
        signature = store.log.looks_like()
        records = None
        if self._shortlist is not None and not store.log.watermark[1]:
            listed = self._shortlist.read(rule, store.clock())
            records = listed if listed is not None and all(map(rule.admits, listed)) else None
        if records is None:
            records = store.refresh().list_recent(rule, store.clock())
        self._snapshot = _Snapshot.of(signature, records, records)
        return records

    def is_known_true(self, store: Store[R], shown: Sequence[R], now: datetime) -> bool:
        """Return True if records may still be shown, without reading the log.

        Takes 5 µs for 50 records, which each request pays.

        An unchanged log does not suffice: the last read may have been another caller's, such as the rendering's, with
        other versions than the shown ones. So the words are compared, not the IDs; that takes less than 1 µs for each
        record with a newer version.
        """
        snapshot = self._snapshot
        if snapshot.signature is None or snapshot.signature != store.log.looks_like():
            return False
        if snapshot.until is not None and snapshot.until <= now:
            return False
        pairs = ((record, snapshot.records.get(record.id)) for record in shown)
        return all(current is record or _reads_the_same(record, current) for record, current in pairs)

    def still_true(self, store: Store[R], shown: Sequence[R]) -> bool:
        """Return True if records may still be shown after any change."""
        signature, state, now = store.log.looks_like(), store.refresh(), store.clock()
        versions = (state.get(record.id) for record in shown)
        current = [record for record in versions if record is not None and state.is_valid(record, now)]
        if len(current) < len(shown) or not all(map(_reads_the_same, shown, current)):
            return False
        self._snapshot = _Snapshot.of(signature, shown, current)
        return True

    def save(self, store: Store[R]) -> None:
        """Write the file that the next start reads.

        Not if this session read nothing or was asked for nothing.
        """
        rule, self._rule = self._rule, None
        if rule is None or self._shortlist is None or not store.log.watermark[1]:
            return
        with contextlib.suppress(StorageError):
            state = store.refresh()
            self._shortlist.write(rule, state, store.log.watermark[1], store.clock())

    def drop(self) -> None:
        """Delete that file: a text in it was forgotten or changed."""
        if self._shortlist is not None:
            self._shortlist.drop()


def _reads_the_same(shown: R, current: R | None) -> bool:
    """Return True if two versions say the same.

    Pins, places and counts do not matter.
    """
    if current is None or not may_stand_for(current.trust, shown.trust):
        return False
    names = own_fields(type(current))
    return shown.tags == current.tags and all(getattr(shown, name) == getattr(current, name) for name in names)
