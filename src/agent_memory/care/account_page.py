"""Page for a security review: storage, readers, and data that leaves."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.backups import list_backups
from agent_memory.files.atomic import opened
from agent_memory.files.entries import get_disk_size
from agent_memory.files.names import (
    AGENT,
    AUDIT,
    BLOBS,
    CONSENT,
    DERIVED,
    ENCRYPTION,
    INDEX,
    JOURNAL,
    KEPT,
    LOCK,
    METADATA,
    MODEL_USE,
    OLDER_AUDIT,
    PURGE_KEY,
    PURGED,
    SCRATCHPAD,
    TOPICS,
    VECTORS,
    classify_name,
)  # fmt: skip
from agent_memory.files.names import may_be_journal as is_journal_name
from agent_memory.journal import GRACE, PurgeList
from agent_memory.memory.consent import iter_overrides
from agent_memory.memory.events import MAX_BYTES
from agent_memory.models import to_text, utc_now, visible
from agent_memory.settings.installation import installed_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal.purge_list import Purge
    from agent_memory.memory import MemoryService
    from agent_memory.settings import ServiceSettings

_CONTENTS: Final[Mapping[str, str]] = {
    JOURNAL: "memories, with the versions of the last 30 days",
    "knowledge.yaml": "documents, topics",
    "episodes.yaml": "turns of conversations",
    "entities.yaml": "people and things, relations, summaries",
    "tasks.yaml": "progress of background work, no text",
    "archive.yaml": "archived memories",
    "inbox.yaml": "notes that wait for a decision",
    "verbatim.yaml": "what other frameworks store, unchanged except for secrets",
    SCRATCHPAD: "what a session is shown at its start",
    BLOBS: "long texts",
    TOPICS: "pages of topics",
    DERIVED: "indexes: words and numbers of the texts",
    INDEX: "index of the vector engine, with the texts",
    VECTORS: "vectors: numbers made of the texts",
    AUDIT: "log of changes: IDs and kinds, no text",
    OLDER_AUDIT: "older log of changes",
    AGENT: "generations and counts of the journals",
    PURGED: "fingerprints of purged texts",
    PURGE_KEY: "key of the fingerprints",
    ENCRYPTION: "the data key, wrapped by yours",
    KEPT: "packed files that cannot be used encrypted",
    CONSENT: "your consent",
    MODEL_USE: "counts of the background model, your yes",
    METADATA: "name of the backend",
    LOCK: "lock",
}
_TEXT_TO_HOST: Final = (
    "What a tool, the scratchpad or the briefing shows in a session goes to the model of the host, as every message "
    "there does."
)
_MODEL_OF_HOST: Final = "statements of documents: the host's model, only after your yes (`agent-memory status`)"
_NETWORK_KEYS: Final = ("embedding_base_url", "qdrant_url", "redis_url")
_NETWORK_VALUES: Final = {"embedder": "openai", "backend": "server", "queue_backend": "redis"}
_OTHERS_OPEN: Final = stat.S_IRWXG | stat.S_IRWXO
_SHOWN_PURGES: Final = 5


async def describe_account(service: MemoryService, folder: AgentFolder, root: Path) -> dict[str, Any]:
    """Return the account of one agent, as JSON.

    Raises:
        StorageError: The folder cannot be read.
    """
    status = await service.status()
    embedder = status.embedder
    files = await asyncio.to_thread(_list_files, folder.path)
    return {
        "agent": folder.agent_id,
        "at": to_text(utc_now()),
        "folder": str(folder.path),
        "stored": [*files, *_list_backups(root, folder.agent_id)],
        "readers": {**_describe_readers(files), "encrypted": status.encrypted},
        "network": [*_list_network(), *(["searches: a server"] if status.backend == "server" else [])],
        "shown_to_host": _TEXT_TO_HOST,
        "models": [f"embeddings: {embedder['kind']} ({embedder['status']})", _MODEL_OF_HOST],
        "retention": _describe_retention(service.settings),
        "purges": await asyncio.to_thread(_list_purges, folder),
        "versions": {"agent-memory": installed_version(), "python": platform.python_version()},
        "sha256": {item["name"]: item["sha256"] for item in files if item["sha256"]},
    }


def _list_files(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of an agent's folder; a subfolder is one entry."""
    return [
        {
            **_describe_file(path, path.name, _CONTENTS.get(path.name) or _describe_sort(path.name)),
            "sha256": _hash_file(path) if is_journal_name(path.name) else "",
        }
        for path in sorted(folder.iterdir())
    ]


def _describe_file(path: Path, name: str, content: str) -> dict[str, Any]:
    status = path.lstat()
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    size = get_disk_size(path)
    return {"name": name, "content": content, "bytes": size, "mode": mode, "user": status.st_uid, "sha256": ""}


def _describe_sort(name: str) -> str:
    return {"ours": "lock or derived file", "other": "not of this program"}.get(classify_name(name), "put aside")


def _hash_file(path: Path) -> str:
    with opened(path, os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _list_backups(root: Path, agent_id: str) -> list[dict[str, Any]]:
    return [
        _describe_file(backup.path, str(backup.path.relative_to(root)), f"backup of {to_text(backup.made_at)}")
        for backup in list_backups(root, agent_id)
    ]


def _describe_readers(files: list[dict[str, Any]]) -> dict[str, Any]:
    user = os.geteuid()
    return {
        "user": user,
        "open_to_others": [item["name"] for item in files if int(item["mode"], 8) & _OTHERS_OPEN],
        "of_other_users": [item["name"] for item in files if item["user"] != user],
    }


def _list_network() -> list[str]:
    """Return the settings of this user and project that use a network."""
    return [
        f"{module}: {key}: {visible(str(value).rpartition('@')[2])} ({place})"
        for module, config, place in iter_overrides(Path.cwd())
        for key, value in config.items()
        if value and (key in _NETWORK_KEYS or _NETWORK_VALUES.get(key) == value)
    ]


def _describe_retention(settings: ServiceSettings) -> list[str]:
    return [
        f"forgotten: {GRACE.days} days, as replaced and expired text; then a compaction removes it",
        f"notes: waiting ones {settings.inbox_days} days",
        f"log: two files of {MAX_BYTES // 2**20} MiB",
        "other: until you forget or purge it; backups until you delete them",
    ]


def _list_purges(folder: AgentFolder) -> list[dict[str, Any]]:
    purges = list(PurgeList(folder.path).read().purges.values())[-_SHOWN_PURGES:]
    return [describe_purge(purge) for purge in reversed(purges)]


def describe_purge(purge: Purge) -> dict[str, Any]:
    """Return ID, time, number of records and outcome of a purge."""
    receipt = purge.receipt
    if receipt is None:
        state = "unfinished"
    else:
        state = "not all of it is gone" if receipt.get("found") or receipt.get("failed") else "gone"
    return {"purge_id": purge.id, "at": purge.at, "records": len(purge.ids), "state": state}
