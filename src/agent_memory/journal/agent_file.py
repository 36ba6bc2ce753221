"""`agent.yaml`: an agent's journals and the current generation of each.

It is stored outside the journals, so that a missing journal, or one that was put back from a copy, is noticed. It is
written when a journal is rewritten or closed, not at each store. Without it, as in folders of earlier versions, a
journal counts as current, unless something was purged. It also says how long the purge list is, so that a list that was
lost or emptied is noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import stat
import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import opened, read_at, read_file, read_json, read_signature, replace_file
from agent_memory.files.exchange import is_settled
from agent_memory.files.layout import build_command
from agent_memory.files.names import (
    AGENT,
    AUDIT,
    BACKUP,
    BACKUPS,
    DERIVED,
    JOURNAL,
    OLDER_AUDIT,
    PURGED,
    SCRATCHPAD,
    SEGMENTS,
    SHORTLIST,
    TASKS,
    may_be_journal,
)
from agent_memory.files.wording import counted
from agent_memory.journal.format import MalformedLineError, add_checksum, decode_header, decode_line, encode_line
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from agent_memory.journal.format import Header

log = get_logger(__name__)
_HEADER_BYTES: Final = 4096
_MOST_READ: Final = 64
_PURGES: Final[dict[Path, tuple[object, PurgeState | None]]] = {}
"""State read last and the file's signature, by folder."""
_DERIVABLE: Final = frozenset({TASKS})
"""Journals of checkpoints, which may start again: the work is repeated."""
_CHANGE: Final = b'"memory_id"'
_ID: Final = b"mem-"
_KIND: Final = JOURNAL.removesuffix("ies.yaml") + "y"
"""Name of the folder of this journal's segments."""


@dataclass(frozen=True, slots=True)
class JournalState:
    """State of one journal in `agent.yaml`.

    Attributes:
        generation: Of the current file.
        last_seq: The last number when this was written; the journal may have gone on since.
        count: How many records it had then; None if unknown.
        returned: Last numbers of files of other generations, when each was first met in its place.
    """

    generation: str
    last_seq: int = 0
    count: int | None = None
    returned: Mapping[str, int] = field(default_factory=dict)

    def names(self, header: Header) -> bool:
        """Return True if a journal is current, or its compaction."""
        return self.generation in {header.generation, header.parent}

    def follows(self, header: Header, last_seq: int) -> bool:
        """Return True if a journal may replace this as the current one."""
        is_older = header.generation == self.generation and last_seq < self.last_seq
        return not self.generation or (self.names(header) and not is_older)


@dataclass(frozen=True, slots=True)
class PurgeState:
    """State of the purge list in `agent.yaml`.

    The list only grows, so a shorter list is incomplete.

    Attributes:
        count: Number of purges.
        last: ID of the last purge.
        key: Checksum of the key, see `checksum_key`.
    """

    count: int
    last: str
    key: str


def checksum_key(key: bytes) -> str:
    """Return a checksum that identifies a purge key."""
    return hashlib.sha256(key).hexdigest()[:16]


def read_purge_state(folder: Path) -> PurgeState | None:
    """Return the state of the purge list, or None.

    Earlier versions wrote none.
    """
    signed = read_signature(folder / AGENT)
    cached = _PURGES.get(folder)
    if cached is None or cached[0] != signed:
        if len(_PURGES) >= _MOST_READ:
            _PURGES.clear()
        cached = _PURGES[folder] = signed, _decode_purges(_read_value(folder).get("purges"))
    return cached[1]


def _decode_purges(value: Any) -> PurgeState | None:
    try:
        return PurgeState(int(value["count"]), str(value["last"]), str(value["key"]))
    except (KeyError, TypeError, ValueError):
        return None


def note_purges(folder: Path, state: PurgeState) -> None:
    """Record the length of the purge list; log a failure.

    The list is written first: a process that dies in between leaves a list that is longer than noted, which is used.
    """
    noted = read_purge_state(folder)
    if noted is not None and (noted.key != state.key or noted.count >= state.count):
        return
    content = _encode(folder, _read_value(folder).get("journals") or {}, asdict(state))
    _write(folder, content, durable=True)


def read_states(folder: Path) -> dict[str, JournalState] | None:
    """Return states by journal name; None if the file is unreadable."""
    try:
        journals = decode_line(read_file(folder / AGENT))["journals"]
        return {str(name): JournalState(**_select_fields(state)) for name, state in journals.items()}
    except (OSError, MalformedLineError, KeyError, TypeError, AttributeError):
        return None


def _select_fields(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that this version knows."""
    return {name: value for name, value in state.items() if name in JournalState.__dataclass_fields__}


def encode_states(folder: Path, states: Mapping[str, JournalState]) -> bytes:
    """Return the content of `agent.yaml`, keeping ID and purge list."""
    return _encode(folder, {name: asdict(states[name]) for name in sorted(states)})


def _encode(folder: Path, journals: Mapping[str, Any], purges: Mapping[str, Any] | None = None) -> bytes:
    value = _read_value(folder)
    agent_id, purges = value.get("agent"), purges or value.get("purges")
    noted = {**value, "agent": agent_id if isinstance(agent_id, str) else str(uuid.uuid4()), "journals": journals}
    return add_checksum(encode_line({**noted, "purges": purges} if purges else noted))


def _read_value(folder: Path) -> dict[str, Any]:
    try:
        return decode_line(read_file(folder / AGENT))
    except (OSError, MalformedLineError):
        return {}


def read_identity(folder: Path) -> str:
    """Return the random ID of an agent's folder, or an empty text."""
    identity = _read_value(folder).get("agent")
    return identity if isinstance(identity, str) else ""


def write_states(folder: Path, states: Mapping[str, JournalState]) -> None:
    """Write `agent.yaml` under the folder's lock; log a failure."""
    _write(folder, encode_states(folder, states), durable=False)


def _write(folder: Path, content: bytes, *, durable: bool) -> None:
    try:
        replace_file(folder / AGENT, content, durable=durable)
    except OSError as error:
        log.info("agent_file_not_written", folder=folder.name, error=error.strerror or str(error))


def note_journal(path: Path, header: Header, last_seq: int, count: int | None) -> None:
    """Record the current journal; the caller holds the lock of the folder.

    Args:
        path: Path of the journal.
        header: Header of the journal.
        last_seq: Its last number.
        count: How many records it has; the number known before when None.
    """
    if header.too_new:
        return  # a newer version may note more than this one knows
    states = read_states(path.parent) or {}
    previous = states.get(path.name)
    count = previous.count if count is None and previous is not None else count
    state = JournalState(header.generation, last_seq, count)
    if state != previous:
        write_states(path.parent, {**states, path.name: state})


def note_unnamed(journals: Iterable[Path]) -> None:
    """Record journals missing in `agent.yaml` before a purge.

    The caller holds the lock of the folder.
    """
    for path in journals:
        header = read_header_at(path)
        if header is not None and path.name not in (read_states(path.parent) or {}):
            note_journal(path, header, 0, None)


def note_returned(path: Path, header: Header, last_seq: int) -> None:
    """Record the last number of a journal of another generation.

    What is appended after that number was stored on purpose. The caller holds the lock of the folder.
    """
    states = read_states(path.parent) or {}
    previous = states.get(path.name, JournalState(""))
    if header.generation not in previous.returned:
        returned = {**previous.returned, header.generation: last_seq}
        state = JournalState(previous.generation, previous.last_seq, previous.count, returned)
        write_states(path.parent, {**states, path.name: state})


def read_header_at(path: Path) -> Header | None:
    """Return a journal's header on disk; None if unreadable."""
    with contextlib.suppress(OSError, StorageError, MalformedLineError), opened(path, os.O_RDONLY) as descriptor:
        return decode_header(read_at(descriptor, 0, _HEADER_BYTES).split(b"\n", 1)[0])
    return None


def build_states(folder: Path, counts: Mapping[str, int]) -> dict[str, JournalState]:
    """Return the current states of all journals in a folder.

    Args:
        folder: Folder of one agent.
        counts: Number of records by the file name of the journal.
    """
    headers = {path: read_header_at(path) for path in folder.glob("*.yaml") if may_be_journal(path.name)}
    return {
        path.name: JournalState(header.generation, header.last_seq, counts.get(path.name, 0))
        for path, header in headers.items()
        if header is not None
    }


def check_present(path: Path) -> None:
    """Make sure that a journal that is not there never was.

    Raises:
        StorageError: It was there (`journal_missing`); nothing was written.
    """
    if path.name in _DERIVABLE or _is_present(path) or is_settled(path.parent):
        return
    state = _find_state(path)
    if state is not None and not is_settled(path.parent) and not _is_present(path):  # a restore may have ended since
        raise build_missing_error(path, state)


def _is_present(path: Path) -> bool:
    """Return True if the path is not an empty or missing file."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return status.st_size > 0 or not stat.S_ISREG(status.st_mode)


def build_missing_error(path: Path, state: JournalState) -> StorageError:
    """Return the error for a missing journal, with commands that help."""
    agent, which = path.parent.name, "" if path.name == JOURNAL else f" {path.name}"
    facts = [f"generation {state.generation}"] if state.generation else []
    facts += [counted(state.count, "record")] if state.count is not None else []
    details = f" ({', '.join(facts)})" if facts else ""
    root, named = path.parent.parent, shlex.quote(agent)
    reset = f"{build_command(root, 'agents reset', named)} (keeps what is left in {BACKUPS})"
    newest = newest_backup(path.parent)
    restore = f"{build_command(root, 'restore', named)} (newest backup {newest}), or " if newest else ""
    return StorageError(
        f'the journal{which} of "{agent}" is missing{details}',
        code="journal_missing",
        recovery=f"run {restore}{reset}",
        path=path,
    )


def build_gone_error(path: Path) -> StorageError:
    """Build the error for a file that disappeared during use.

    What was read is kept, so reading continues if the same file is put back. A new journal, begun by the next writer,
    would hide that another one exists.
    """
    return StorageError(
        f"{path.name} of {path.parent.name} is gone: it, or a folder above it, was moved, renamed or "
        "deleted while this session was using it. Nothing was written, and no new memory was created.",
        code="gone",
        recovery="Put it back, or start a new session, which uses the folder in the settings.",
    )


def newest_backup(folder: Path) -> str | None:
    """Return the day of an agent's newest backup, or None."""
    try:
        matches = [BACKUP.fullmatch(path.name) for path in (folder.parent / BACKUPS).iterdir()]
    except OSError:
        return None
    moments = [match["at"] for match in matches if match is not None and match["agent"].lower() == folder.name.lower()]
    return f"{max(moments)[:4]}-{max(moments)[4:6]}-{max(moments)[6:8]}" if moments else None


def _find_state(path: Path) -> JournalState | None:
    """Return the last known state of a journal; None if never seen."""
    folder, states = path.parent, read_states(path.parent)
    if states is not None:
        return states.get(path.name)
    if path.name != JOURNAL or not folder.is_dir():
        return None
    listed: Any = read_json(folder / DERIVED / _KIND / SEGMENTS) or {}
    header = ((listed.get("notes") or {}).get("place") or {}).get("header") or {}
    if isinstance(generation := header.get("generation"), str):
        return JournalState(generation)
    return JournalState("") if _names_memories(folder) else None


def _names_memories(folder: Path) -> bool:
    """Return True if other files prove that memories were stored.

    A logged change of a memory is proof. A shown memory is one only if no journal of any kind is left.
    """
    if any(_holds(folder / name, _CHANGE) for name in (AUDIT, OLDER_AUDIT)):
        return True
    if any(may_be_journal(path.name) and path.name not in {AGENT, PURGED} for path in folder.iterdir()):
        return False
    return any(_holds(folder / name, _ID) for name in (SCRATCHPAD, SHORTLIST))


def _holds(path: Path, words: bytes) -> bool:
    try:
        return words in read_file(path)
    except OSError:
        return False
