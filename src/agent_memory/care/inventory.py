"""Inventory of stored files, for a security review and for leaving."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import platform
import shutil
import stat
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.care.agents import summary_of, sweep_agents
from agent_memory.care.backups.backup_reader import list_backups
from agent_memory.care.backups.manifest import agent_in
from agent_memory.files import names
from agent_memory.files.atomic import opened, sync_folder, translated
from agent_memory.files.entries import get_disk_size
from agent_memory.files.layout import agents_under
from agent_memory.files.wording import counted
from agent_memory.journal import GRACE, PurgeList
from agent_memory.memory.consent import iter_overrides
from agent_memory.memory.events import MAX_BYTES
from agent_memory.models import to_text, utc_now, visible
from agent_memory.settings.installation import installed_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal.purge_list import Purge
    from agent_memory.memory import MemoryService
    from agent_memory.settings import ServiceSettings


_CONTENTS: Final[Mapping[str, str]] = {
    names.JOURNAL: "memories, with the versions of the last 30 days",
    "knowledge.yaml": "documents, topics",
    "episodes.yaml": "turns of conversations",
    "entities.yaml": "people and things, relations, summaries",
    "tasks.yaml": "progress of background work, no text",
    "archive.yaml": "archived memories",
    "inbox.yaml": "notes that wait for a decision",
    "verbatim.yaml": "what other frameworks store, unchanged except for secrets",
    names.SCRATCHPAD: "what a session is shown at its start",
    names.BLOBS: "long texts",
    names.TOPICS: "pages of topics",
    names.DERIVED: "indexes: words and numbers of the texts",
    names.INDEX: "index of the vector engine, with the texts",
    names.VECTORS: "vectors: numbers made of the texts",
    names.AUDIT: "log of changes: IDs and kinds, no text",
    names.OLDER_AUDIT: "older log of changes",
    names.AGENT: "generations and counts of the journals",
    names.PURGED: "fingerprints of purged texts",
    names.PURGE_KEY: "key of the fingerprints",
    names.ENCRYPTION: "the data key, wrapped by yours",
    names.KEPT: "packed files that cannot be used encrypted",
    names.CONSENT: "your consent",
    names.MODEL_USE: "counts of the background model, your yes",
    names.METADATA: "name of the backend",
    names.LOCK: "lock",
}
_SORTS: Final = defaultdict(lambda: "put aside", ours="lock or derived file", other="not of this program")
_TEXT_TO_HOST: Final = (
    "What a tool, the scratchpad or the briefing shows in a session goes to the model of the host, as every message "
    "there does."
)
_MODEL_OF_HOST: Final = "statements of documents: the host's model, only after your yes (`agent-memory status`)"
_NETWORK_KEYS: Final = ("embedding_base_url", "qdrant_url", "redis_url")
_NETWORK_VALUES: Final = {"embedder": "openai", "backend": "server", "queue_backend": "redis"}
_OTHERS_OPEN: Final = stat.S_IRWXG | stat.S_IRWXO
_SHOWN_PURGES: Final = 5
_CACHES: Final = (names.VECTORS, names.DERIVED, names.INDEX)
_SHARED: Final = (names.SESSIONS, "_mcp", names.USED_AGENT, names.CONSENT, names.NOT_SECRETS, names.TRUSTED_TOOLS)
"""Files below the root that belong to no agent."""


async def describe_account(service: MemoryService, folder: AgentFolder, root: Path) -> dict[str, Any]:
    """Return the account of one agent, as JSON.

    Raises:
        StorageError: The folder cannot be read.
    """
    status = await service.status()
    embedder = status.embedder
    files = await asyncio.to_thread(_list_files, folder.path)
    backups = [
        _describe_file(backup.path, str(backup.path.relative_to(root)), f"backup of {to_text(backup.made_at)}")
        for backup in list_backups(root, folder.agent_id)
    ]
    return {
        "agent": folder.agent_id,
        "at": to_text(utc_now()),
        "folder": str(folder.path),
        "stored": [*files, *backups],
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
            **_describe_file(path, path.name, _CONTENTS.get(path.name) or _SORTS[names.classify_name(path.name)]),
            "sha256": _hash_file(path) if names.may_be_journal(path.name) else "",
        }
        for path in sorted(folder.iterdir())
    ]


def _describe_file(path: Path, name: str, content: str) -> dict[str, Any]:
    status = path.lstat()
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    size = get_disk_size(path)
    return {"name": name, "content": content, "bytes": size, "mode": mode, "user": status.st_uid, "sha256": ""}


def _hash_file(path: Path) -> str:
    with opened(path, os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A file or folder of ours.

    Attributes:
        kind: What it is; a cache is inside the folder of its agent.
        agent: Name of its agent; empty for shared files.
        path: Path of the file or folder.
        size: Bytes of all its files.
        content: Short description of the content.
    """

    kind: Literal["agent", "cache", "backup", "shared"]
    agent: str
    path: Path
    size: int
    content: str = ""


def list_stored(root: Path, agent: str | None = None) -> list[StoredItem]:
    """Return the stored items of one agent, or of all.

    Raises:
        StorageError: A folder cannot be listed.
    """
    items = [item for name in agents_under(root) for item in _list_agent(name, root)]
    items += _list_backups(root)
    if agent is not None:
        return [item for item in items if item.agent.lower() == agent.lower()]
    shared = [root / name for name in _SHARED if os.path.lexists(root / name)]
    return items + [StoredItem("shared", "", path, get_disk_size(path)) for path in shared]


def _list_agent(name: str, root: Path) -> Iterator[StoredItem]:
    summary = summary_of(name, root)
    memories = "" if summary.memories is None else counted(summary.memories, "memory", "memories")
    yield StoredItem("agent", name, summary.folder, summary.size, summary.problem or memories)
    for path in (summary.folder / cache for cache in _CACHES):
        if path.exists():
            yield StoredItem("cache", name, path, get_disk_size(path))


def _list_backups(root: Path) -> list[StoredItem]:
    """Return backups, and folders of files that a reset moved."""
    folder = root / names.BACKUPS
    with translated(folder, "list"):
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    owners = [(agent_in(path.name.removesuffix("-reset") + ".zip" * path.is_dir()), path) for path in paths]
    return [StoredItem("backup", owner, path, get_disk_size(path)) for owner, path in owners if owner is not None]


def delete_stored(root: Path, items: Sequence[StoredItem]) -> list[Path]:
    """Delete backups and shared files; return what is left.

    Raises:
        StorageError: One could not be deleted; the same call deletes the rest.
    """
    sweep_agents(root)
    for item in items:
        with translated(item.path, "delete"):
            if item.path.is_dir() and not item.path.is_symlink():
                shutil.rmtree(item.path)
            else:
                item.path.unlink(missing_ok=True)
            sync_folder(item.path.parent)
    for folder in (root / names.BACKUPS, root):
        with contextlib.suppress(OSError):  # it is missing or has other files
            folder.rmdir()
    return sorted(root.iterdir()) if root.is_dir() else []
