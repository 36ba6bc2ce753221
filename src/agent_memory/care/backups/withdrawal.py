"""Rewrites of a backup in place: without purged content, or encrypted.

The old file stays until the new one is valid.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

from agent_memory.care.agents import open_hidden_folder
from agent_memory.care.backups.admission import EVERYTHING, AdmissionFilter
from agent_memory.care.backups.backup_reader import opened_backup
from agent_memory.care.backups.backup_writer import open_cut, write_backup
from agent_memory.care.backups.manifest import PURGES
from agent_memory.care.backups.restoration import restore_backup
from agent_memory.care.encrypted_files import recode
from agent_memory.encryption.keys import add_key
from agent_memory.files.atomic import read_file, replace_file, sync_folder, translated
from agent_memory.files.layout import AgentFolder, folder_of
from agent_memory.files.names import ENCRYPTION
from agent_memory.store.change_log import sweep_blobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.encryption import DataKey


def withdraw(path: Path, root: Path, admission: AdmissionFilter) -> None:
    """Rewrite a backup in place with only admitted content.

    Moment and name stay the same. The scratchpad is left out, as a restore renders it again.

    Args:
        path: Path of the backup.
        root: Folder of all agents, used for unpacking.
        admission: Filter of the content.

    Raises:
        ValidationError: It is not a backup.
        StorageError: It is damaged, or could not be written; it stays as it was.
    """
    _rewrite_backup(path, root, admission, lambda folder: sweep_blobs(folder, timedelta(0)))


def encrypt_backup(path: Path, root: Path, key: DataKey, begun: bytes, done: bytes) -> bool:
    """Rewrite a backup in place, encrypted with the key of its agent.

    Moment and name stay the same. Scratchpad and pages are left out, as a restore renders them again.

    Args:
        path: Path of the backup.
        root: Folder of all agents, used for unpacking.
        key: Key of the agent's files.
        begun: Content of `encryption.json` while files are encrypted.
        done: Content of `encryption.json` afterwards.

    Returns:
        Whether it was plain.

    Raises:
        ValidationError: It is not a backup.
        StorageError: It is damaged, or could not be written; it stays as it was.
    """
    with opened_backup(path) as archive:
        if any(file.name == ENCRYPTION for file in archive.manifest.files):
            return False

    def encrypt_files(unpacked: AgentFolder) -> None:
        replace_file(unpacked.path / ENCRYPTION, begun, durable=True)
        add_key(unpacked.path, key)
        recode(unpacked)
        replace_file(unpacked.path / ENCRYPTION, done, durable=True)
        unpacked.scratchpad.unlink(missing_ok=True)
        shutil.rmtree(unpacked.topics, ignore_errors=True)

    _rewrite_backup(path, root, EVERYTHING, encrypt_files)
    return True


def _rewrite_backup(
    path: Path, root: Path, admission: AdmissionFilter, change: Callable[[AgentFolder], object]
) -> None:
    with opened_backup(path) as archive:
        manifest = archive.manifest
    with translated(path, "write"), open_hidden_folder(root) as hidden:
        folder = restore_backup(path, hidden, admission=admission).folder
        change(folder)
        _copy_purges(folder_of(manifest.agent_id, root).path, folder.path)
        with open_cut(folder) as cut:
            made = write_backup(folder, cut, manifest.reason, manifest.made_at)
        made.path.replace(path)
        sync_folder(path.parent)


def _copy_purges(source: Path, target: Path) -> None:
    """Copy the complete purge list of an agent with its key."""
    for name in sorted(PURGES):
        if (source / name).is_file():
            replace_file(target / name, read_file(source / name), durable=False)
