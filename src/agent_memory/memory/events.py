"""Table of events, the source of docs/reference/events.md, and `events.jsonl`, their log.

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
from functools import partial
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
    from pathlib import Path

    from agent_memory.models import SearchResults


_KEY: Final = secrets.token_bytes(16)
"""Of this process: a short query, such as a code of four digits, must not be found by hashing all there are."""
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


def _describe_event(name: str, when: str, /, *, audited: bool = False, **fields: str) -> EventSpec:
    return EventSpec(name, when, fields, audited)


_describe_change = partial(_describe_event, audited=True)


_SPECS: Final = (
    _describe_change(
        "memory:stored",
        "A memory was stored and is on disk.",
        memory_id="id of the new memory",
        category="its category; `other` unless it is a built-in one",
        tag_count="how many tags it has",
        backend="file, vector or server",
        in_scratchpad="whether it is in the scratchpad now",
        supersedes="id of the memory it replaces, or null",
        redacted="kinds of secrets that were removed",
    ),
    _describe_event(
        "memory:searched",
        "A search was answered.",
        query_chars="length of the query",
        query_sha8="8 hex digits, the same for equal queries of one process; keyed at random",
        results_count="results returned",
        total_found="results above the floor that met the filters",
        latency_ms="time taken, milliseconds",
        backend="file, vector or server",
        mode="keyword or hybrid",
    ),
    _describe_event(
        "memory:briefed",
        "A briefing was made for a session that begins.",
        memories="how many memories it quotes",
        turns="how many turns of conversations",
        tokens="how many it takes, by an estimate that overshoots; 0 without anything to show",
        latency_ms="time taken, milliseconds",
    ),
    _describe_change(
        "memory:updated",
        "Fields of a memory were changed.",
        memory_id="its id",
        fields="names of the changed fields",
        redacted="kinds of secrets removed",
    ),
    _describe_change(
        "memory:suspect",
        "Two memories conflict, or a conflict was settled.",
        memory_id="the newer one",
        older_id="the older one",
        kind="value or denial: what differs (change or other in earlier versions); null for a decision",
        hint="replace or conflict; null for a decision",
        outcome="queued; or the decision: replaced, keep or not_same",
    ),
    _describe_change("memory:forgotten", "A memory was forgotten.", memory_id="its id"),
    _describe_change(
        "memory:restored",
        "A memory was brought back.",
        memory_id="its id",
        was="what had become of it: forgotten, replaced, changed or archived",
    ),
    _describe_change(
        "memory:archived",
        "A memory was put into the archive.",
        memory_id="its id",
        rule="why: expired, merged, unused, too_many, retention or asked",
        run_id="id of the run of `archive tidy` that did it, or null",
    ),
    _describe_change(
        "memory:tidied",
        "A run of `archive tidy` was done, or taken back.",
        run_id="its id",
        outcome="done or undone",
        archived="memories that were put into the archive, or came back from it",
        merged="how many of these say what another one says",
        deleted="memories that left the archive for good, or came back to it",
        left_out="memories that were left out, since they were used or changed during the run",
    ),
    _describe_change(
        "memory:backed_up",
        "A backup was made.",
        source="the name of its file",
        memories="how many memories are in it",
        bytes="how long the file is",
    ),
    _describe_change(
        "memory:backup_restored",
        "A backup took the place of what was known.",
        source="the name of its file",
        memories="how many memories are in it",
        previous="the name of the backup that was made before, or null",
    ),
    _describe_change(
        "memory:purged",
        "Records were taken out of every file for good.",
        records="how many",
        files="how many files were rebuilt or removed",
        found="in how many files something of them was found afterwards; 0 if all is deleted",
    ),
    _describe_change(
        "memory:promoted",
        "A memory came into the scratchpad.",
        memory_id="its id",
        reason="manual or access_threshold",
        scratchpad_size="entries now",
        evicted="id that had to leave, or null",
    ),
    _describe_change(
        "memory:captured",
        "The capture hook kept something that was said.",
        memory_id="id of the new memory",
        category="its category; `other` unless it is a built-in one",
        confidence="how sure the rule was, 0..1",
        source="user, assistant or tool",
        rule="name of the rule",
        redacted="kinds of secrets removed",
    ),
    _describe_event(
        "memory:capture_skipped",
        "The capture hook saw candidates and kept none of them.",
        reason="why, one word",
        count="how many candidates",
    ),
    _describe_change(
        "memory:held",
        "What would have been kept waits in the inbox for a person's yes.",
        candidate_id="its id there",
        category="its category; `other` unless it is a built-in one",
        source="user, assistant or tool",
        via="capture, tool or import: what would have kept it",
        redacted="kinds of secrets removed",
    ),
    _describe_change(
        "memory:decided",
        "What waited in the inbox was decided on.",
        candidate_id="its id there",
        outcome="accepted, edited or rejected; expired without an answer; forgotten, with a memory",
        memory_id="id of the memory it became, or null",
    ),
    _describe_change(
        "memory:scratchpad_edited",
        "A person's edit of scratchpad.yaml was taken over.",
        changed="entries changed",
        added="entries added",
        removed="entries taken out",
    ),
    _describe_change(
        "memory:activated",
        "This session now uses the memory of an agent.",
        previous="the agent before, or null",
        reason="tool, resumed or configured",
    ),
    _describe_change(
        "memory:episodes_stored",
        "Turns of a conversation, or events, were ingested.",
        resource_id="id of the conversation, or null",
        count="how many",
        chars="how many characters together",
        redacted="kinds of secrets removed",
    ),
    _describe_event(
        "memory:ingestion_skipped",
        "Something that was said in the session was not ingested.",
        reason="why, one word",
        count="how many turns",
    ),
    _describe_event(
        "memory:background_worked",
        "Background work was done on what the agent was given.",
        done="how many records were worked on, by step",
        failed="how many of them could not be",
        is_over="whether nothing is left to be done",
    ),
    _describe_event(
        "memory:migration_suggested",
        "There are as many memories as `migration_threshold`; once a session.",
        memory_count="memories now",
        threshold="the setting",
        auto_migrate="whether it begins without asking",
        estimated_duration_seconds="how long it would take",
        estimated_cost_usd="what the embedder would charge",
    ),
    _describe_change(
        "memory:migration_started",
        "An index is being built; memories are still stored and found.",
        memory_count="memories to move",
        plan="backend, batch_size and estimated_duration_seconds",
    ),
    _describe_change(
        "memory:migration_resumed",
        "As memory:migration_started, for one that an earlier session began: vectors made until then are there.",
        memory_count="memories to move",
        plan="backend, batch_size and estimated_duration_seconds",
    ),
    _describe_change(
        "memory:migration_paused",
        "The session ended before it was done; with auto_migrate the next one continues. Vectors are kept.",
        texts_left="texts that have no vector yet",
        memory_count="memories to move",
        duration_seconds="how long it took so far",
    ),
    _describe_event(
        "memory:migration_progress",
        "How far it is; at most one a second for each stage.",
        stage="embed, load, index, check or switch",
        memories_processed="done of this stage",
        total="of how many",
        percent_complete="the same in percent",
        elapsed_seconds="since the beginning",
    ),
    _describe_change(
        "memory:migration_completed",
        "The index is whole, checked and in use.",
        memory_count="memories there were when it was built",
        duration_seconds="how long it took",
        cost_usd="what the embedder charged for it, by the tokens it counted",
        backend="the backend now",
    ),
    _describe_change(
        "memory:migration_failed",
        "It failed; the memories are untouched.",
        code="error code",
        error="one sentence",
        memories_processed="memories loaded until then",
        total="of how many",
        rolled_back="whether the backend is the one from before",
    ),
    _describe_change(
        "memory:migration_rolled_back",
        "The backend from before is in use again; nothing stored since is lost.",
        from_backend="file or vector",
        to_backend="file or vector",
        reason="requested or failed",
    ),
    _describe_change(
        "memory:resource_stored",
        "A document or a conversation was stored.",
        resource_id="its id",
        resource_type="conversation, document, config, feedback or a name of one's own",
        content_length="characters",
        metadata_keys="names of what it is said with",
    ),
    _describe_change(
        "memory:items_extracted",
        "Items were extracted from a resource.",
        resource_id="its id",
        item_ids="ids of the items",
        item_count="how many",
        categories="names of their topics",
        extraction_time_ms="time taken, milliseconds",
        by_model="how many of them are statements of a language model",
    ),
    _describe_change("memory:category_created", "A topic was declared.", category_id="its id", name="its name"),
    _describe_change(
        "memory:category_consolidated",
        "The page of a topic was rebuilt.",
        category_id="its id",
        name="its name",
        item_count="items it is made of",
        content_length="characters",
        consolidation_time_ms="time taken, milliseconds",
        by_model="0; earlier versions counted claims that a language model worded",
    ),
    _describe_event(
        "memory:retrieval_performed",
        "Knowledge was searched by `MemoryManager.retrieve` or `recall`.",
        mode="rag, llm or hybrid: how it was answered",
        result_count="items returned",
        search_time_ms="time taken, milliseconds",
        escalated="whether a language model was asked after the first answer",
    ),
    _describe_change(
        "memory:resource_deleted",
        "A resource was deleted on request.",
        resource_id="its id",
        cascade="whether its items went with it",
        item_count="items that went, or that stay without it",
    ),
    _describe_change("memory:item_deleted", "An item was deleted on request.", item_id="its id"),
    _describe_event(
        "memory:degraded",
        "Something does not work; what still does is in the message. Once for each time that it begins.",
        component="storage, scratchpad, capture, ingestion, background, embedder, engine, model or audit",
        code="error code",
        message="one sentence",
    ),
    _describe_event(
        "memory:alert",
        "A check of `agent-memory agents health` has turned bad, or worse. Once for each time that it does.",
        check="disk, files, edits, activity or speed: those that take some milliseconds",
        level="warning or critical",
        message="what is seen, one or two sentences",
        advice="what to do",
    ),
)


EVENTS: Final[Mapping[str, EventSpec]] = {spec.name: spec for spec in _SPECS}


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
