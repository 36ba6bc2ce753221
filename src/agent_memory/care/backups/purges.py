"""The purge list in a backup, which takes the place of one that was lost."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.keeping import list_backups
from agent_memory.care.backups.reading import opened_backup
from agent_memory.care.backups.shape import PURGES
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.atomic import make_private_folder, read_file, replace_file, translated
from agent_memory.files.layout import build_command
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import BACKUPS, PURGE_KEY, PURGED
from agent_memory.journal import PurgeList
from agent_memory.journal.agent_file import checksum_key, read_purge_state
from agent_memory.journal.purge_index import PurgeIndex, decode_key, parse_purges
from agent_memory.settings import PERSON_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.care.backups.reading import BackupArchive
    from agent_memory.files.layout import AgentFolder

_NEWLINE: Final = b"\n"


def restore_purges(folder: AgentFolder) -> str:
    """Restore the purge list of an agent from its newest backup that has all of it; return the name of that.

    Raises:
        BusyError: A process writes to the agent.
        StorageError: No backup has all of it.
    """
    for listed in list_backups(folder.path.parent, folder.agent_id):
        if not listed.problem:
            with opened_backup(listed.path) as archive, folder_lock(folder.path, PERSON_SECONDS):
                if bring_purges(archive, folder.path):
                    return listed.path.name
    root, agent = folder.path.parent, shlex.quote(folder.agent_id)
    reset, restore = build_command(root, "agents reset", agent), build_command(root, "restore", agent)
    raise StorageError(
        f'No backup of "{folder.agent_id}" has all of its {PURGED}.',
        code="purge_list",
        recovery=f"Put {PURGED} and {PURGE_KEY} back from a copy of the folder; or run {reset} (keeps what is left in "
        f"{BACKUPS}), then {restore}.",
    )


def add_purges(archive: BackupArchive, folder: AgentFolder) -> None:
    """Do as `bring_purges` with the lock held, for an agent that may have no folder yet.

    Raises:
        BusyError: A process writes to the agent.
        StorageError: Nothing could be written.
    """
    make_private_folder(folder.path)
    with folder_lock(folder.path, PERSON_SECONDS):
        bring_purges(archive, folder.path)


def bring_purges(archive: BackupArchive, folder: Path) -> bool:
    """Add the purge list of a backup to that of an agent; return True if that changed it.

    Nothing changes if the agent has purges under another key, or if its list would not be the whole one even then. To
    be called with the lock of the folder held.

    Raises:
        StorageError: The list of the backup cannot be read, or nothing could be written.
    """
    held = {file.name: b"".join(archive.blocks(file)) for file in archive.manifest.files if file.name in PURGES}
    key, own = decode_key(held.get(PURGE_KEY, b"")), _read_own(folder)
    try:
        brought = parse_purges(held.get(PURGED, b""), key, folder / PURGED)
        if not key or not brought.purges or (own is not None and _keeps(own, brought)):
            return False
        lines = _merge(held[PURGED], key, folder)
        merged = parse_purges(lines, key, folder / PURGED)
    except StorageError:
        return False  # it is damaged as well
    noted = read_purge_state(folder)
    if noted is not None and not (merged.holds(noted) and checksum_key(key) == noted.key):
        return False
    with translated(folder / PURGED, "write"):
        replace_file(folder / PURGE_KEY, held[PURGE_KEY], durable=True)
        replace_file(folder / PURGED, lines, durable=True)
    PurgeList(folder).note()
    return True


def _read_own(folder: Path) -> PurgeIndex | None:
    """Return the purge list of an agent; None if it, or its key, cannot be used."""
    purges = PurgeList(folder)
    try:
        purges.check_key()
        return purges.read()
    except AgentMemoryError:
        return None


def _keeps(own: PurgeIndex, brought: PurgeIndex) -> bool:
    """Return True if a list that can be used stays: it has other purges, or all those of the backup."""
    return bool(own.purges) and (own.key != brought.key or brought.purges.keys() <= own.purges.keys())


def _merge(brought: bytes, key: bytes, folder: Path) -> bytes:
    """Return the lines of a backup's list, and after them those that only the agent has and that are sound."""
    try:
        own_key = decode_key(read_file(folder / PURGE_KEY))
    except OSError:
        own_key = b""
    try:
        own = read_file(folder / PURGED).split(_NEWLINE) if own_key in {b"", key} else []
    except OSError:
        own = []
    lines = dict.fromkeys(brought.split(_NEWLINE))
    lines |= dict.fromkeys(line for line in own if _is_sound(line, folder))
    return _NEWLINE.join(line for line in lines if line.strip()) + _NEWLINE


def _is_sound(line: bytes, folder: Path) -> bool:
    try:
        parse_purges(line, b"", folder / PURGED)
    except StorageError:
        return False
    return True
