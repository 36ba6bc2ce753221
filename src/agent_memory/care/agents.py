"""Whole agents: summaries, and renaming, copying, deleting and resetting.

An agent is a folder. Each change holds the folder's lock, so no other process writes. Moving or deleting the folder is
refused while another process has one of its files open.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, BusyError, StorageError, ValidationError
from agent_memory.files import atomic
from agent_memory.files.entries import get_disk_size
from agent_memory.files.layout import AgentFolder, build_command, folder_of, resolve_root
from agent_memory.files.lock import folder_lock, make_lock
from agent_memory.files.names import AGENT, BACKUPS, ENCRYPTION, LOCK, PURGE_KEY, PURGED, STAMP
from agent_memory.journal import PurgeList
from agent_memory.journal.agent_file import read_states, write_states
from agent_memory.settings import PERSON_SECONDS
from agent_memory.store.change_log import read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_OPEN_FILES: Final = Path("/proc")
_STAYS: Final = frozenset({LOCK, PURGED, PURGE_KEY, ENCRYPTION})
"""Files that a reset agent keeps."""
_UNFINISHED: Final = re.compile(r"_(deleted|copy)-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """Counts and sizes of an agent.

    Attributes:
        agent_id: Name of the agent.
        folder: Folder of the agent.
        memories: Number of memories in `memories.yaml`, replaced and expired ones too; None if unreadable. Of an
            encrypted agent it includes items, which cannot be distinguished without the key.
        size: Bytes of all its files.
        last_used: Moment of the last change or retrieval, or None.
        problem: Reason why records cannot be read, empty for none.
        others: Number of records by name of other journals.
        items: Number of records in `memories.yaml` that were drawn from documents and talks.
    """

    agent_id: str
    folder: Path
    memories: int | None
    size: int
    last_used: datetime | None
    problem: str = ""
    others: Mapping[str, int] = field(default_factory=dict)
    items: int = 0


def summary_of(agent_id: str, storage_root: str | Path) -> AgentSummary:
    """Return counts and sizes of an agent, with the problem if unreadable.

    Raises:
        ValidationError: The name cannot name an agent.
        StorageError: The storage root is not a folder.
    """
    try:
        folder = folder_of(agent_id, storage_root)
    except StorageError as error:  # a link that leads elsewhere, most often
        return AgentSummary(agent_id, resolve_root(storage_root) / agent_id, None, 0, None, error.message)
    counts: dict[str, int] = {}
    problem, used, items = "", None, 0
    try:
        with atomic.translated(folder.path, "list"):
            journals = folder.journals() if folder.path.is_dir() else []
        for journal in journals:
            records = read_records(journal)
            counts[journal.name] = len(records)
            if journal == folder.journal:
                items = sum(_is_item(record) for record in records.values())
    except AgentMemoryError as error:
        problem, journals = error.message, [folder.journal]
    with contextlib.suppress(OSError, ValueError):
        used = datetime.fromtimestamp(max(journal.stat().st_mtime for journal in journals), UTC)
    in_journal, size = counts.pop(folder.journal.name, 0), get_disk_size(folder.path)
    memories = None if problem else in_journal - items
    return AgentSummary(folder.agent_id, folder.path, memories, size, used, problem, counts, 0 if problem else items)


def _is_item(record: Mapping[str, Any]) -> bool:
    source = record.get("source")
    return isinstance(source, dict) and source.get("kind") == "extraction"


def create_agent(folder: AgentFolder) -> None:
    """Create an agent without records; leave an existing one as it is.

    Raises:
        StorageError: Its folder cannot be created.
    """
    atomic.make_private_folder(folder.path)
    if not (folder.path / AGENT).exists() and not folder.journals():
        with folder_lock(folder.path, PERSON_SECONDS):
            write_states(folder.path, {})


def rename_agent(folder: AgentFolder, name: str, storage_root: str | Path) -> AgentFolder:
    """Give an agent another name and return its folder.

    Raises:
        ValidationError: The name cannot name an agent, or one has it.
        BusyError: A process writes to it, or has a file of it open.
        StorageError: Nothing was changed.
    """
    renamed = new_folder(name, storage_root, unless=folder.agent_id)
    with _lock_unused(folder), atomic.translated(renamed.path, "rename an agent to"):
        folder.path.rename(renamed.path)
        atomic.sync_folder(renamed.path.parent)
    return renamed


@contextlib.contextmanager
def build_agent(folder: AgentFolder, action: str) -> Iterator[AgentFolder]:
    """Yield a hidden folder that becomes an agent's at the end.

    Whole or not at all.

    Args:
        folder: Folder of the new agent.
        action: Action for error messages, as an infinitive.
    """
    with atomic.translated(folder.path, action), open_hidden_folder(folder.path.parent) as hidden:
        make_lock(hidden)
        yield AgentFolder(hidden)
        atomic.sync_tree(hidden)
        hidden.rename(folder.path)
        atomic.sync_folder(folder.path.parent)


@contextlib.contextmanager
def open_hidden_folder(root: Path) -> Iterator[Path]:
    """Yield a private folder next to those of agents.

    It is deleted at the end if it still exists. After a crash `sweep_agents` deletes it.
    """
    hidden = root / f"_copy-{secrets.token_hex(6)}"
    with contextlib.ExitStack() as ending:
        hidden.mkdir(mode=atomic.PRIVATE_FOLDER)
        if (held := atomic.hold_folder(hidden)) is not None:
            ending.callback(atomic.unlock_and_close, held)
        ending.callback(shutil.rmtree, hidden, ignore_errors=True)
        yield hidden


def delete_agent(folder: AgentFolder, check: Callable[[], object] | None = None) -> None:
    """Delete an agent with all its files, atomically for other processes.

    Args:
        folder: Folder of the agent.
        check: Last check, called while no other process can write; its errors keep the agent.

    Raises:
        BusyError: A process writes to it, or has a file of it open.
        StorageError: Its folder is a link, or could not be removed; what is left of it then, `sweep_agents` removes.
    """
    if folder.path.is_symlink():
        message = f"The folder of agent {folder.agent_id!r} is a link; nothing was deleted."
        recovery = "Remove the link, and what it leads to, by hand."
        raise StorageError(message, code="symlink", recovery=recovery, path=folder.path)
    hidden = folder.path.with_name(f"_deleted-{secrets.token_hex(6)}")
    with atomic.translated(folder.path, "delete"), _lock_unused(folder):
        if check is not None:
            check()
        folder.path.rename(hidden)
        atomic.sync_folder(hidden.parent)
    _remove(hidden)


def reset_agent(folder: AgentFolder, moment: datetime) -> Path:
    """Move all files of an agent to the backups; return their folder.

    The agent then starts again. What was purged stays purged, and what was encrypted stays so.

    Args:
        folder: Folder of the agent.
        moment: The present, UTC.

    Raises:
        BusyError: A process writes to it, or has a file of it open.
        ValidationError: Nothing is left of it (`nothing_to_reset`).
        StorageError: Not all of it could be moved; doing it again moves the rest.
    """
    moved = folder.path.parent / BACKUPS / f"{folder.agent_id}-{moment:{STAMP}}Z-reset"
    with atomic.translated(folder.path, "reset"), _lock_unused(folder):
        paths = find_reset_files(folder)
        atomic.make_private_folder(moved)
        for path in paths:
            path.rename(moved / path.name)
        atomic.sync_folder(moved)
        atomic.sync_folder(folder.path)
        PurgeList(folder.path).note()
    return moved


def find_reset_files(folder: AgentFolder) -> list[Path]:
    """Return the files that a reset moves.

    The list of purges is moved only if it cannot be used.

    `agent.yaml` is the last: until it is moved, it says that journals are missing.

    Raises:
        ValidationError: There are none (`nothing_to_reset`).
    """
    stays = _STAYS
    try:
        PurgeList(folder.path).check_key()
    except StorageError:
        stays -= {PURGED, PURGE_KEY}
    with atomic.translated(folder.path, "list"):
        paths = sorted(path for path in folder.path.iterdir() if path.name not in stays)
    is_reset = PURGED in stays and not read_states(folder.path)
    if not paths or (is_reset and [path.name for path in paths] == [AGENT]):
        message = f"{folder.agent_id} has stored nothing; there is nothing to reset."
        recovery = f"Run {build_command(folder.path.parent, 'agents')} to list agents and what they have."
        raise ValidationError(message, code="nothing_to_reset", recovery=recovery)
    return sorted(paths, key=lambda path: path.name == AGENT)


def unfinished_agents(root: Path) -> list[Path]:
    """Return folders of interrupted deletions and copies that no process uses.

    Raises:
        OSError: `root` cannot be listed.
    """
    unfinished = []
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        if _UNFINISHED.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            with contextlib.suppress(BlockingIOError):
                held = atomic.hold_folder(path)
                unfinished.append(path)
                if held is not None:
                    atomic.unlock_and_close(held)
    return unfinished


def sweep_agents(root: Path) -> list[Path]:
    """Delete the folders of interrupted deletions and copies; return them.

    Raises:
        StorageError: One could not be removed.
    """
    with atomic.translated(root, "list"):
        unfinished = unfinished_agents(root)
    for path in unfinished:
        _remove(path)
    return unfinished


def _remove(hidden: Path) -> None:
    try:
        shutil.rmtree(hidden)
    except FileNotFoundError:
        shutil.rmtree(hidden, ignore_errors=True)  # another process is removing it, too
    except OSError as error:
        raise StorageError(
            f"Could not remove {hidden}: {error.strerror or error}. No agent uses it, and memories are still in it.",
            code="not_removed",
            recovery="Remove that folder by hand, or run `agent-memory agents` again once it can be removed.",
            path=hidden,
        ) from error


def new_folder(name: str, storage_root: str | Path, unless: str = "") -> AgentFolder:
    """Return the folder of an agent that is to be.

    Args:
        name: Name of the new agent.
        storage_root: Folder of all agents.
        unless: Agent to rename, whose own name is free.

    Raises:
        ValidationError: The name can name no folder, or there is such an agent.
    """
    taken = folder_of(name, storage_root)
    if taken.path.exists() and taken.agent_id != unless:
        message = f"There is an agent {taken.agent_id!r} already; nothing was changed."
        raise ValidationError(message, code="agent_exists", recovery="Choose another name.")
    return AgentFolder(resolve_root(storage_root) / name)


@contextlib.contextmanager
def _lock_unused(folder: AgentFolder) -> Iterator[None]:
    """Hold an agent's lock while no other process has its files open."""
    with folder_lock(folder.path, PERSON_SECONDS):
        if users := _find_users(folder.path):
            message = f"{folder.agent_id} is in use by process {', '.join(map(str, users))}; nothing was changed."
            raise BusyError(message, code="in_use", recovery="End the sessions of this agent, then try again.")
        yield


def _find_users(folder: Path) -> list[int]:
    """Return IDs of other processes with open files below `folder` (Linux)."""
    inside, users = f"{os.path.realpath(folder)}/", []
    for process in sorted(_OPEN_FILES.glob("[0-9]*")):
        if process.name == str(os.getpid()):
            continue
        with contextlib.suppress(OSError):  # another user's, or it has ended
            if any(str(link.readlink()).startswith(inside) for link in (process / "fd").iterdir()):
                users.append(int(process.name))
    return users
