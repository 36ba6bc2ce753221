"""`shortlist.json`: what the scratchpad was chosen from when the memory was closed, so that a start reads no journal.

Derived and droppable. It counts only while the journal is, to the nanosecond, the file it was made from, and as long as
no memory has expired since: then it is exactly what reading the journal would give. Anything else: it does not count.
"""

from __future__ import annotations

import contextlib
import json
import os
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic

import pydantic

from agent_memory.encryption import data_key, is_encrypted, key_for
from agent_memory.encryption.cipher import MAGIC
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.atomic import open_private, replace_file
from agent_memory.files.names import shortlist_of
from agent_memory.journal.format import MalformedLineError, decode_entry
from agent_memory.journal.purge_filter import is_returned
from agent_memory.models import to_text
from agent_memory.models.kind import R

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Kind
    from agent_memory.store.recency import Order
    from agent_memory.store.state import State

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
        self._path = folder.path / shortlist_of(kind.journal, kind.name if kind.beside() else "")

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
