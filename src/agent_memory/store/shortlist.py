"""What a scratchpad is chosen from, known without reading the journal where that is certain.

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
    from agent_memory.store.lookups import Order
    from agent_memory.store.state import State
    from agent_memory.store.store import Store

_VERSION: Final = 1
_MOST_BYTES: Final = 8 * 1024 * 1024
_LAST_LINE_BYTES: Final = 128 * 1024
"""A line of the journal is shorter, but for a batch; behind one of these nothing is written."""


class Shortlist(Generic[R]):
    """What a scratchpad is chosen from, as a file next to one agent's journal. Blocking; for one thread.

    Args:
        kind: Of which records.
        folder: The agent's.
    """

    def __init__(self, kind: Kind[R], folder: AgentFolder) -> None:
        self._kind = kind
        self._journal = folder.path / kind.journal
        self._folder = folder
        self._path = folder.path / get_shortlist_name(kind.journal, kind.name if kind.beside() else "")

    def read(self, order: Order, now: datetime) -> list[R] | None:
        """Return what `RecordStorage.recent` would, or None if only the journal can tell."""
        try:
            content = self._decrypted(_content(self._path))
            note = json.loads(content) if content else None
            if not isinstance(note, dict) or note.get("asked") != _asked(order):
                return None
            if note["journal"] != _identity(self._journal.stat()):
                return None
            if not _is_time(now, note["since"], note["until"]) or is_returned(self._journal):
                return None
            return [self._kind.load(self._folder.agent_id, seq, record) for seq, record in note["memories"]]
        except (OSError, ValueError, TypeError, KeyError, RecursionError, pydantic.ValidationError, StorageError):
            return None  # reading the journal says why

    def write(self, order: Order, state: State[R], seq: int, now: datetime) -> None:
        """Keep what `RecordStorage.recent` returns now; costs nothing but time if it cannot.

        Args:
            order: The rule by which it is chosen.
            state: The records; the next of them to expire ends its time.
            seq: Of the last entry that was read.
            now: The present.
        """
        with contextlib.suppress(OSError, AgentMemoryError, MalformedLineError):
            journal = self._identity_up_to(seq)
            if journal is None:
                return
            ends = _ends(state)
            known: dict[str, Any] = {
                "asked": _asked(order),
                "journal": journal,
                "since": to_text(now) if ends else None,
                "until": min((to_text(end) for end in ends if end > now), default=None),
                "memories": [[memory.id, memory.to_record()] for memory in state.recent(order, now)],
            }
            content, key = json.dumps(known, ensure_ascii=False).encode(), key_for(self._folder.path)
            content = content if key is None else key.encrypted(self._path.name, content)
            replace_file(self._path, content, durable=False)
            if _identity(self._journal.stat()) != journal:
                self.drop()  # another process wrote meanwhile, and may have forgotten what it contains

    def _decrypted(self, content: bytes) -> bytes:
        """Return what the file says, nothing where it is not as the agent's other files are."""
        if is_encrypted(self._folder.path) is not content.startswith(MAGIC):
            return b""
        if not content.startswith(MAGIC):
            return content
        return data_key(self._folder.path).decrypted(self._path.name, content)

    def drop(self) -> None:
        """Remove it: something in it was forgotten or reworded."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _identity_up_to(self, seq: int) -> list[int] | None:
        """Return what tells the journal from any other state of it; None if it holds more than that entry.

        Raises:
            OSError: It cannot be read.
            MalformedLineError: Its last line is no entry.
        """
        descriptor = open_private(self._journal, os.O_RDONLY)
        try:
            status = os.fstat(descriptor)
            at = max(0, status.st_size - _LAST_LINE_BYTES)
            tail = os.pread(descriptor, _LAST_LINE_BYTES, at)
        finally:
            os.close(descriptor)
        begin = tail.rfind(b"\n", 0, len(tail) - 1) + 1
        if not tail.endswith(b"\n") or not begin or decode_entry(tail[begin:]).seq != seq:
            return None
        return _identity(status)


def _ends(state: State[R]) -> list[datetime]:
    """Return when records expire, of those that do; loads none that is sealed."""
    unsealed = (record.expires_at for record in state.table.records.values())
    sealed = state.sealed.replacements.ends() if state.sealed is not None else []
    return [*sealed, *(end for end in unsealed if end is not None)]


def _asked(order: Order) -> list[int]:
    return [_VERSION, order.size, order.promotion_threshold]


def _identity(status: os.stat_result) -> list[int]:
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _is_time(now: datetime, since: str | None, until: str | None) -> bool:
    """Tell whether nothing has expired, or has not yet where a clock was set back."""
    return (since is None or datetime.fromisoformat(since) <= now) and (
        until is None or now < datetime.fromisoformat(until)
    )


def _content(path: Path) -> bytes:
    descriptor = open_private(path, os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_MOST_BYTES + 1)
    return content if len(content) <= _MOST_BYTES else b""


@dataclass(frozen=True, slots=True)
class _Known(Generic[R]):
    """Records that were true while the log had one state.

    Attributes:
        looked: How the log looked, taken before it was read; None where that tells nothing.
        records: Records that said then what is true, by id.
        until: When the first of them expires, if one does.
    """

    looked: object = None
    records: dict[str, R] = field(default_factory=dict)
    until: datetime | None = None

    @classmethod
    def of(cls, looked: object, said: Iterable[R], now: Iterable[R]) -> _Known[R]:
        """Return the knowledge that records as `said` read as they do `now`."""
        until = min((one.expires_at for one in now if one.expires_at is not None), default=None)
        return cls(looked, {record.id: record for record in said}, until)


class Shown(Generic[R]):
    """Knowledge of a scratchpad's records. Blocking, except `is_known_true`.

    Args:
        shortlist: The file that a start reads instead of the journal; None where there is none.
    """

    def __init__(self, shortlist: Shortlist[R] | None) -> None:
        self._shortlist = shortlist
        self._asked: Order | None = None
        # Set in the storage's thread and read on event loops, so it is one value that is replaced whole.
        self._known: _Known[R] = _Known()

    @property
    def wants_keeping(self) -> bool:
        """True if `keep` has something to keep."""
        return self._asked is not None and self._shortlist is not None

    def recent(self, store: Store[R], order: Order) -> list[R]:
        """Return candidates for a scratchpad."""
        self._asked = order
        looked = store.log.looks_like()
        found = None
        if self._shortlist is not None and not store.log.watermark[1]:
            known = self._shortlist.read(order, store.clock())
            found = known if known is not None and all(map(order.admits, known)) else None
        if found is None:
            found = store.refresh().recent(order, store.clock())
        self._known = _Known.of(looked, found, found)
        return found

    def is_known_true(self, store: Store[R], shown: Sequence[R], now: datetime) -> bool:
        """Return True if records may be shown on, without reading.

        Takes 5 µs for 50 records, which each request pays.

        That nothing was written since the last look does not suffice: that look may have been another's, such as the
        rendering's, and what it read may differ from what was shown before. So the words are compared, not the ids;
        less than 1 µs for each record of which a newer version was read.
        """
        known = self._known
        if known.looked is None or known.looked != store.log.looks_like():
            return False
        if known.until is not None and known.until <= now:
            return False
        records = known.records
        return all((one := records.get(each.id)) is each or _says_the_same(each, one) for each in shown)

    def still_true(self, store: Store[R], shown: Sequence[R]) -> bool:
        """Return True if records may be shown on after any change."""
        looked, state, now = store.log.looks_like(), store.refresh(), store.clock()
        current = [one for each in shown if (one := state.get(each.id)) is not None and state.is_valid(one, now)]
        if len(current) < len(shown) or not all(map(_says_the_same, shown, current)):
            return False
        self._known = _Known.of(looked, shown, current)
        return True

    def keep(self, store: Store[R]) -> None:
        """Write the file that the next start needs.

        Not if this session read nothing or was asked for nothing.
        """
        order, self._asked = self._asked, None
        if order is None or self._shortlist is None or not store.log.watermark[1]:
            return
        with contextlib.suppress(StorageError):
            state = store.refresh()
            self._shortlist.write(order, state, store.log.watermark[1], store.clock())

    def drop(self) -> None:
        """Delete that file: a text in it was forgotten or reworded."""
        if self._shortlist is not None:
            self._shortlist.drop()


def _says_the_same(shown: R, now: R | None) -> bool:
    """Return True if two versions read the same.

    Pins, places and counts do not matter.
    """
    if now is None or not may_stand_for(now.trust, shown.trust):
        return False
    return shown.tags == now.tags and all(getattr(shown, name) == getattr(now, name) for name in own_fields(type(now)))
