"""Backups of agents, one zip file each: created, verified, restored."""

from agent_memory.care.backups.admission import AdmissionFilter, restore_purges
from agent_memory.care.backups.backup_list import BackupSummary, last_backup, list_backups, prune_backups, to_prune
from agent_memory.care.backups.backup_reader import VerifiedBackup, verify_backup
from agent_memory.care.backups.backup_writer import Backup, create_backup
from agent_memory.care.backups.manifest import BackupManifest, folder_of_backups
from agent_memory.care.backups.restoration import (
    RestoredBackup,
    RestorePreview,
    copy_agent,
    delete_derived,
    preview_restore,
    restore_backup,
)
from agent_memory.care.backups.withdrawal import encrypt_backup, withdraw

__all__ = [
    "AdmissionFilter",
    "Backup",
    "BackupManifest",
    "BackupSummary",
    "RestorePreview",
    "RestoredBackup",
    "VerifiedBackup",
    "copy_agent",
    "create_backup",
    "delete_derived",
    "encrypt_backup",
    "folder_of_backups",
    "last_backup",
    "list_backups",
    "preview_restore",
    "prune_backups",
    "restore_backup",
    "restore_purges",
    "to_prune",
    "verify_backup",
    "withdraw",
]
