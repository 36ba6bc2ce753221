"""Detection of missing journals, so that no empty memory replaces one.

`agent.yaml` names the journals of an agent. Folders of earlier versions have none: there the segments, the log of
changes or the scratchpad say that memories were stored.
"""

from __future__ import annotations

import shlex
import stat
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_file, read_json
from agent_memory.files.changeover import is_settled
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
from agent_memory.journal.agent_file import JournalState, read_states
from agent_memory.journal.purge_list import PurgeList

if TYPE_CHECKING:
    from pathlib import Path

_DERIVABLE: Final = frozenset({TASKS})
"""Journals that may be begun again: they say how far work is, and it is done again."""
_CHANGE: Final = b'"memory_id"'
_ID: Final = b"mem-"
_KIND: Final = JOURNAL.removesuffix("ies.yaml") + "y"
"""The folder of the segments that are made of this journal."""


def check_present(path: Path) -> None:
    """Make sure that a journal that is not there never was.

    Raises:
        StorageError: It was there (`journal_missing`); nothing was written.
    """
    if path.name in _DERIVABLE or _is_there(path) or is_settled(path.parent):
        return
    state = _find_state(path)
    if state is not None and not is_settled(path.parent) and not _is_there(path):  # a restore may have ended meanwhile
        raise journal_missing(path, state)


def _is_there(path: Path) -> bool:
    """Return True if the path is not an empty or missing file."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return status.st_size > 0 or not stat.S_ISREG(status.st_mode)


def check_all_present(folder: Path) -> None:
    """Make sure that no journal of an agent is missing, and that its purge list can be used.

    Raises:
        StorageError: A journal is missing (`journal_missing`), or the list or its key (`purge_list`, `purge_key`).
    """
    PurgeList(folder).check_key()
    for name in sorted({JOURNAL, *(read_states(folder) or ())}):
        check_present(folder / name)


def journal_missing(path: Path, state: JournalState) -> StorageError:
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


def gone(path: Path) -> StorageError:
    """Return the error for a file that was read and is no longer there.

    What was read stays: when the same file is put back, reading goes on where it was. A new journal in its place,
    begun by the next writer, would hide that the other one exists.
    """
    return StorageError(
        f"{path.name} of {path.parent.name} is gone: it, or a folder above it, was moved, renamed or "
        "deleted while this session was using it. Nothing was written, and no new memory was begun.",
        code="gone",
        recovery="Put it back and go on, or start a new session, which looks where the settings say.",
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
