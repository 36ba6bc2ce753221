"""List of backups, and the choice of those to delete."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agent_memory.care.backups.backup_reader import opened_backup, verify_open
from agent_memory.care.backups.manifest import BackupManifest, agent_in, folder_of_backups, moment_in
from agent_memory.errors import AgentMemoryError
from agent_memory.files.atomic import remove_leftovers, sync_folder, translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """A backup in the folder of backups.

    Attributes:
        path: Path of the file.
        agent_id: Agent by the file name.
        made_at: Moment by the manifest, else by the file name.
        size: Size in bytes.
        manifest: Manifest, or None if unreadable.
        problem: Reason why it cannot be used, empty for none.
        is_checked: True if the whole file was verified.
    """

    path: Path
    agent_id: str
    made_at: datetime
    size: int
    manifest: BackupManifest | None
    problem: str = ""
    is_checked: bool = False


def list_backups(root: Path, agent: str | None = None, *, check: bool = False) -> list[BackupSummary]:
    """Return the backups of one agent, or of all, the newest first.

    Args:
        root: Folder of all agents.
        agent: Name of an agent, all by default.
        check: True to verify whole files, not only their manifests.

    Raises:
        StorageError: The folder cannot be listed.
    """
    backups = [_read_summary(path, check=check) for path in list_backup_files(root, agent)]
    return sorted(backups, key=lambda backup: (backup.made_at, backup.path.name), reverse=True)


def list_backup_files(root: Path, agent: str | None = None) -> list[Path]:
    """Return files with names of backups in their folder.

    Raises:
        StorageError: The folder cannot be listed.
    """
    folder = folder_of_backups(root)
    with translated(folder, "list"):
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        return [
            path
            for path in entries
            if (whose := agent_in(path.name)) is not None
            and moment_in(path.name) is not None
            and (agent is None or whose.lower() == agent.lower())
            and path.is_file()
            and not path.is_symlink()
        ]


def last_backup(root: Path, agent: str) -> tuple[datetime, int] | None:
    """Return moment of the last backup and number of backups, or None.

    Goes by the names alone.

    Raises:
        StorageError: The folder cannot be listed.
    """
    moments = [moment for path in list_backup_files(root, agent) if (moment := moment_in(path.name)) is not None]
    return (max(moments), len(moments)) if moments else None


def to_prune(
    listed: Sequence[BackupSummary], now: datetime, *, keep: int | None = None, older_than: timedelta | None = None
) -> list[BackupSummary]:
    """Return backups to delete; never the newest valid one of an agent.

    Args:
        listed: Backups of one or more agents, newest first.
        now: The present, UTC.
        keep: Number of backups that stay for each agent.
        older_than: Age from which backups are deleted.
    """
    chosen = []
    for agent in dict.fromkeys(backup.agent_id.lower() for backup in listed):
        of_agent = [backup for backup in listed if backup.agent_id.lower() == agent]
        newest = next((backup.path for backup in of_agent if not _read_summary(backup.path, check=True).problem), None)
        chosen += [
            backup
            for place, backup in enumerate(of_agent)
            if backup.path != newest
            and (keep is None or place >= keep)
            and (older_than is None or now - backup.made_at > older_than)
        ]
    return chosen


def prune_backups(root: Path, gone: Iterable[BackupSummary]) -> int:
    """Delete backups and leftovers of killed writers; return freed bytes.

    Raises:
        StorageError: One could not be removed.
    """
    folder, freed = folder_of_backups(root), 0
    for backup in gone:
        with translated(backup.path, "remove"):
            backup.path.unlink(missing_ok=True)
        freed += backup.size
    if folder.is_dir():
        remove_leftovers(folder)
        with translated(folder, "sync"):
            sync_folder(folder)
    return freed


def _read_summary(path: Path, *, check: bool) -> BackupSummary:
    agent, moment = agent_in(path.name) or "", moment_in(path.name) or datetime.fromtimestamp(0, UTC)
    size, manifest = 0, None
    try:
        with translated(path, "read"):
            size = path.stat().st_size
        with opened_backup(path) as archive:
            manifest = archive.manifest
            moment = manifest.made_at
            problems = verify_open(archive).problems if check else tuple(archive.missing)
    except AgentMemoryError as error:
        return BackupSummary(path, agent, moment, size, manifest, error.message, check)
    return BackupSummary(path, agent, moment, size, manifest, "; ".join(problems), check)
