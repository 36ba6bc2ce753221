"""Events, whose table is events.json, and `events.jsonl`, their log.

Payloads and log carry ids, kinds, counts and times; never content, never a query, no free text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.atomic import (
    make_private_folder,
    open_to_append,
    translated,
    try_lock,
    unlock_and_close,
    write_all,
)
from agent_memory.files.entries import read_regular
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import OLDER_AUDIT
from agent_memory.models import CATEGORIES
from agent_memory.models.identifiers import IMPORT_PREFIX
from agent_memory.store.record_redaction import redact_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agent_memory.models import SearchResults


_KEY: Final = secrets.token_bytes(16)
"""Key of this process: without it, a query such as a code of four digits could be found by hashing all codes."""
COMMON: Final = {"agent_id": "whose memory", "session_id": "the session it happened in", "timestamp": "ISO 8601, UTC"}
_TRIES: Final = 25
_BETWEEN_TRIES: Final = 0.002
MAX_BYTES: Final = 5 * 1024 * 1024
_KEPT: Final = frozenset(
    {"memory_id", "category", "fields", "reason", "evicted", "supersedes", "redacted", "rule", "source", "previous"}
)


@dataclass(frozen=True, slots=True)
class EventSpec:
    """Event with its time, its own fields, and whether it is logged."""

    name: str
    when: str
    fields: Mapping[str, str]
    audited: bool = False


EVENTS: Final[Mapping[str, EventSpec]] = {
    name: EventSpec(name, **spec)
    for name, spec in json.loads(Path(__file__).with_name("events.json").read_text(encoding="utf-8")).items()
}


def payload(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as a payload that the host can carry.

    Raises:
        KeyError: The event or a field is not in the table, so the documentation would be wrong.
    """
    spec = EVENTS[name]
    for field in fields:
        if field not in spec.fields and field not in COMMON:
            raise KeyError(f"{name} has no field {field!r}")
    safe = dict(fields)
    if safe.get("category", CATEGORIES[0]) not in CATEGORIES:
        safe["category"] = "other"
    if "session_id" in safe:  # whatever a host calls it
        safe["session_id"], _ = redact_session(safe["session_id"])
    return {key: _make_carriable(value) for key, value in safe.items()}


def fingerprint(query: str) -> str:
    """Return 8 hex digits that are equal for equal queries."""
    return hashlib.blake2b(query.encode("utf-8", "replace"), digest_size=4, key=_KEY).hexdigest()


def _make_carriable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return [_make_carriable(item) for item in value]
    return value


def describe_search(query: str, results: SearchResults, latency: float, backend: str) -> dict[str, Any]:
    """Return the fields of a search event: no words, only counts."""
    return {
        "query_chars": len(query),
        "query_sha8": fingerprint(query),
        "results_count": len(results),
        "total_found": results.total_found,
        "latency_ms": latency,
        "backend": backend,
        "mode": results.mode,
    }


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
        lines = b"".join(_encode_line(event, data) for event, data in events)
        if not self._begun:  # a missing folder was moved later: a new one would be in the way
            make_private_folder(self._path.parent)
            self._begun = True
        with translated(self._path, "write"):
            descriptor = open_to_append(self._path, os.O_CREAT)
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


def _encode_line(event: str, data: Mapping[str, Any]) -> bytes:
    fields = {key: value for key, value in data.items() if key in _KEPT and value not in (None, [])}
    entry = {"at": data.get("timestamp"), "event": event, "session_id": data.get("session_id"), **fields}
    return json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def list_audit_files(path: Path) -> list[Path]:
    """Return the paths of the log and the older file."""
    return [path, path.with_name(OLDER_AUDIT)]


def read_audit(path: Path) -> Iterator[dict[str, Any]]:
    """Yield logged changes, oldest first; unreadable lines are left out.

    Raises:
        OSError: A file is there and cannot be read.
    """
    for file in reversed(list_audit_files(path)):
        with contextlib.suppress(FileNotFoundError):
            yield from read_audit_file(file)


def read_audit_file(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the changes of one file; see `read_audit`."""
    for line in read_regular(file, follow=False).split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(entry := json.loads(line), dict):
                yield entry


def read_withdrawn_ids(path: Path) -> set[str]:
    """Return the IDs of memories that the undo of an import forgot.

    What was forgotten by another request later is left out.

    Raises:
        OSError: A file is there and cannot be read.
    """
    withdrawn = set[str]()
    for entry in read_audit(path):
        if entry.get("event") == "memory:forgotten":
            is_import = str(entry.get("session_id")).startswith(IMPORT_PREFIX)
            (withdrawn.add if is_import else withdrawn.discard)(str(entry.get("memory_id")))
    return withdrawn


def get_moment(entry: Mapping[str, Any]) -> datetime | None:
    """Return the moment of a logged change, or None if unreadable."""
    try:
        moment = datetime.fromisoformat(str(entry.get("at")))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def read_latest_audit(path: Path, since: str) -> Iterator[dict[str, Any]]:
    """Yield changes since a moment in UTC as ISO text, latest first.

    Raises:
        OSError: A file is there and cannot be read.
    """
    for file in list_audit_files(path):
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


def _try_to_lock(descriptor: int) -> None:
    """Lock the file until it is closed, or give up soon.

    The lock shows the incomplete line of a process that died. A stopped process may hold it without end, and a joined
    line is less harm.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(OSError):
            try_lock(descriptor)
            return
        time.sleep(_BETWEEN_TRIES)
