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
import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import opened, read_at, read_file, replace_file, signature
from agent_memory.files.names import AGENT, may_be_journal
from agent_memory.journal.format import MalformedLineError, decode_header, decode_line, encode_line, sealed
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from agent_memory.journal.format import Header

log = get_logger(__name__)
_HEADER_BYTES: Final = 4096
_MOST_READ: Final = 64


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
    """State of the purge list in `agent.yaml`. The list only grows, so a shorter one is not the whole list.

    Attributes:
        count: Number of purges.
        last: ID of the last purge.
        key: Checksum of the key, see `checksum_key`.
    """

    count: int
    last: str
    key: str


_PURGES: Final[dict[Path, tuple[object, PurgeState | None]]] = {}
"""State that was read last, with the signature of the file, by the folder."""


def checksum_key(key: bytes) -> str:
    """Return the checksum by which a purge key is recognised; the key cannot be computed from it."""
    return hashlib.sha256(key).hexdigest()[:16]


def read_purge_state(folder: Path) -> PurgeState | None:
    """Return the state of the purge list; None if none was written, as by earlier versions."""
    signed = signature(folder / AGENT)
    known = _PURGES.get(folder)
    if known is None or known[0] != signed:
        if len(_PURGES) >= _MOST_READ:
            _PURGES.clear()
        known = _PURGES[folder] = signed, _decode_purges(_read_value(folder).get("purges"))
    return known[1]


def _decode_purges(value: Any) -> PurgeState | None:
    try:
        return PurgeState(int(value["count"]), str(value["last"]), str(value["key"]))
    except (KeyError, TypeError, ValueError):
        return None


def note_purges(folder: Path, state: PurgeState) -> None:
    """Write down how long the purge list is, with the lock of the folder held; a failure is logged.

    The list is written first: a process that dies in between leaves a list that is longer than noted, which is used.
    """
    known = read_purge_state(folder)
    if known is not None and (known.key != state.key or known.count >= state.count):
        return
    content = _encode(folder, _read_value(folder).get("journals") or {}, asdict(state))
    _write(folder, content, durable=True)


def read_states(folder: Path) -> dict[str, JournalState] | None:
    """Return states by journal name; None if the file is unreadable."""
    try:
        journals = decode_line(read_file(folder / AGENT))["journals"]
        return {str(name): JournalState(**state) for name, state in journals.items()}
    except (OSError, MalformedLineError, KeyError, TypeError, AttributeError):
        return None


def encode_states(folder: Path, states: Mapping[str, JournalState]) -> bytes:
    """Return the content of `agent.yaml` with these states; ID and purge list stay if the folder has them."""
    return _encode(folder, {name: asdict(states[name]) for name in sorted(states)})


def _encode(folder: Path, journals: Mapping[str, Any], purges: Mapping[str, Any] | None = None) -> bytes:
    value = _read_value(folder)
    agent_id, purges = value.get("agent"), purges or value.get("purges")
    noted = {"agent": agent_id if isinstance(agent_id, str) else str(uuid.uuid4()), "journals": journals}
    return sealed(encode_line({**noted, "purges": purges} if purges else noted))


def _read_value(folder: Path) -> dict[str, Any]:
    """Return what `agent.yaml` holds; nothing if it cannot be read."""
    try:
        return decode_line(read_file(folder / AGENT))
    except (OSError, MalformedLineError):
        return {}


def write_states(folder: Path, states: Mapping[str, JournalState]) -> None:
    """Write `agent.yaml`, with the lock of the folder held; a failure is logged, and costs a check later."""
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
    states = read_states(path.parent) or {}
    known = states.get(path.name)
    count = known.count if count is None and known is not None else count
    state = JournalState(header.generation, last_seq, count)
    if state != known:
        write_states(path.parent, {**states, path.name: state})


def note_unnamed(journals: Iterable[Path]) -> None:
    """Record journals missing in `agent.yaml` before a purge.

    The caller holds the lock of the folder.
    """
    for path in journals:
        header = header_at(path)
        if header is not None and path.name not in (read_states(path.parent) or {}):
            note_journal(path, header, 0, None)


def note_returned(path: Path, header: Header, last_seq: int) -> None:
    """Record the last number of a journal of another generation.

    What is appended after that number was stored on purpose. The caller holds the lock of the folder.
    """
    states = read_states(path.parent) or {}
    known = states.get(path.name, JournalState(""))
    if header.generation not in known.returned:
        returned = {**known.returned, header.generation: last_seq}
        state = JournalState(known.generation, known.last_seq, known.count, returned)
        write_states(path.parent, {**states, path.name: state})


def header_at(path: Path) -> Header | None:
    """Return a journal's header on disk; None if unreadable."""
    with contextlib.suppress(OSError, StorageError, MalformedLineError), opened(path, os.O_RDONLY) as descriptor:
        return decode_header(read_at(descriptor, 0, _HEADER_BYTES).split(b"\n", 1)[0])
    return None


def states_in(folder: Path, counts: Mapping[str, int]) -> dict[str, JournalState]:
    """Return the current states of all journals in a folder.

    Args:
        folder: Folder of one agent.
        counts: Number of records by the file name of the journal.
    """
    headers = {path: header_at(path) for path in folder.glob("*.yaml") if may_be_journal(path.name)}
    return {
        path.name: JournalState(header.generation, header.last_seq, counts.get(path.name, 0))
        for path, header in headers.items()
        if header is not None
    }
