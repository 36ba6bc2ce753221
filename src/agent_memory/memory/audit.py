"""`events.jsonl`: log of changes by ID and session, without content."""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.atomic import make_private_folder, open_private, translated, write_all
from agent_memory.files.entries import read_regular
from agent_memory.files.held import lock_at_once, unlock_and_close
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import OLDER_AUDIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_TRIES: Final = 25
_BETWEEN_TRIES: Final = 0.002
MAX_BYTES: Final = 5 * 1024 * 1024
_KEPT: Final = frozenset(
    {"memory_id", "category", "fields", "reason", "evicted", "supersedes", "redacted", "rule", "source", "previous"}
)


class AuditLog:
    """Log of changes in a file and an older one. Blocking."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._begun = False

    def append(self, event: str, data: Mapping[str, Any]) -> None:
        """Write one event; see `append_all`."""
        self.append_all([(event, data)])

    def append_all(self, events: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Write events without sync: the journal is the truth.

        Raises:
            StorageError: The lines could not be written.
        """
        lines = b"".join(_line(event, data) for event, data in events)
        if not self._begun:  # a missing folder was moved later: a new one would be in the way
            make_private_folder(self._path.parent)
            self._begun = True
        with translated(self._path, "write"):
            descriptor = open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                _try_to_lock(descriptor)
                size = os.fstat(descriptor).st_size
                torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"  # a process died while writing
                write_all(descriptor, b"\n" + lines if torn else lines)
                full = os.fstat(descriptor).st_size >= self._max_bytes
            finally:
                unlock_and_close(descriptor)
        if full:
            self._rotate()

    def _rotate(self) -> None:
        with folder_lock(self._path.parent), translated(self._path, "rotate"):
            if self._path.stat().st_size >= self._max_bytes:  # no other process has rotated it
                self._path.replace(self._path.with_name(OLDER_AUDIT))


def _line(event: str, data: Mapping[str, Any]) -> bytes:
    kept = {key: value for key, value in data.items() if key in _KEPT and value not in (None, [])}
    entry = {"at": data.get("timestamp"), "event": event, "session_id": data.get("session_id"), **kept}
    return json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def audit_files(path: Path) -> list[Path]:
    """Return the paths of the log and the older file."""
    return [path, path.with_name(OLDER_AUDIT)]


def read_audit(path: Path) -> Iterator[dict[str, Any]]:
    """Yield logged changes, oldest first; unreadable lines are left out.

    Raises:
        OSError: A file is there and cannot be read.
    """
    for file in reversed(audit_files(path)):
        with contextlib.suppress(FileNotFoundError):
            for line in read_regular(file, follow=False).split(b"\n"):
                with contextlib.suppress(ValueError, RecursionError):
                    if isinstance(entry := json.loads(line), dict):
                        yield entry


def latest_audit(path: Path, since: str) -> Iterator[dict[str, Any]]:
    """Yield changes since a moment in UTC as ISO text, latest first.

    Raises:
        OSError: A file is there and cannot be read.
    """
    for file in audit_files(path):
        with contextlib.suppress(FileNotFoundError):
            data = read_regular(file, follow=False)
            end = len(data)
            while end > 0:
                begin = data.rfind(b"\n", 0, end) + 1
                with contextlib.suppress(ValueError, RecursionError):
                    if isinstance(entry := json.loads(data[begin:end]), dict):
                        if str(entry.get("at")) < since:
                            return
                        yield entry
                end = begin - 1


def inspect_audit(path: Path) -> tuple[int, int]:
    """Return the numbers of logged changes and of unreadable lines."""
    lines: list[bytes] = []
    for file in audit_files(path):
        with contextlib.suppress(OSError):
            lines += [line for line in read_regular(file, follow=False).split(b"\n") if line.strip()]
    good = bad = 0
    for line in lines:
        try:
            good += isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            bad += 1
    return good, bad


def _try_to_lock(descriptor: int) -> None:
    """Lock the file until it is closed, or give up soon.

    The lock shows the incomplete line of a process that died. A stopped process may hold it without end, and a joined
    line is less harm.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(OSError):
            lock_at_once(descriptor)
            return
        time.sleep(_BETWEEN_TRIES)
