"""Inventory of agents, caches, backups and shared files."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.care.agents import summary_of, sweep_agents
from agent_memory.care.backups.manifest import agent_in
from agent_memory.files.atomic import sync_folder, translated
from agent_memory.files.entries import get_disk_size
from agent_memory.files.layout import agents_under
from agent_memory.files.names import (
    BACKUPS,
    CONSENT,
    DERIVED,
    INDEX,
    NOT_SECRETS,
    SESSIONS,
    TRUSTED_TOOLS,
    USED_AGENT,
    VECTORS,
)
from agent_memory.files.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_CACHES: Final = (VECTORS, DERIVED, INDEX)
_SHARED: Final = (SESSIONS, "_mcp", USED_AGENT, CONSENT, NOT_SECRETS, TRUSTED_TOOLS)
"""Files below the root that belong to no agent."""


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
    folder = root / BACKUPS
    with translated(folder, "list"):
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    names = [(agent_in(path.name.removesuffix("-reset") + ".zip" * path.is_dir()), path) for path in paths]
    return [StoredItem("backup", name, path, get_disk_size(path)) for name, path in names if name is not None]


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
    for folder in (root / BACKUPS, root):
        with contextlib.suppress(OSError):  # it is missing or has other files
            folder.rmdir()
    return sorted(root.iterdir()) if root.is_dir() else []
