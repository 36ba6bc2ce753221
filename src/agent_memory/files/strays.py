"""What lies beside a journal and is none of its files: conflict copies of a cloud, and what was saved from loss.

Looks at names alone. Such files are told about and never read as the truth.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.files.atomic import translated

if TYPE_CHECKING:
    from pathlib import Path

_OURS: Final = re.compile(
    r"memories\.yaml|memories\.rejected\.yaml|memories\.(?:rewritten|lost)-[0-9a-f]{8}\.yaml|memories\.db"
    r"|scratchpad\.yaml|scratchpad\.broken-\d{8}T\d{6}(?:-\d+)?\.yaml|metadata\.json|\.lock"
    r"|events(?:\.1)?\.jsonl|embeddings\.sqlite3(?:-wal|-shm|-journal|\.broken)?"
    # What `agent-memory doctor --repair` keeps aside.
    r"|.*\.(?:before-repair|broken)-\d{8}T\d{6}(?:-\d+)?(?:\.yaml)?"
)
_LIKE_OURS: Final = re.compile(r"\.?(?:memories|scratchpad|metadata|embeddings|events|lock)\b.*", re.IGNORECASE)
_LEFTOVER: Final = re.compile(r"\..*\.tmp|\.scratchpad\.yaml\.[0-9a-f]{8}\.old")
_LOST: Final = re.compile(r"memories\.lost-[0-9a-f]{8}\.yaml")


def conflict_copies(folder: Path) -> list[str]:
    """Return the names in `folder` that look like one of ours and are not, sorted.

    Dropbox writes `memories (Bob's conflicted copy 2026-03-01).yaml`, Syncthing `memories.sync-conflict-….yaml`,
    OneDrive `memories-LAPTOP.yaml`, iCloud and Google Drive `memories 2.yaml` and `memories (1).yaml`.

    Raises:
        StorageError: The folder cannot be listed.
    """
    return [
        name
        for name in _names(folder)
        if _LIKE_OURS.fullmatch(name) and not _OURS.fullmatch(name) and not _LEFTOVER.fullmatch(name)
    ]


def saved_from_loss(folder: Path) -> list[str]:
    """Return the names of files with memories that another program removed or changed; see `lost`.

    Raises:
        StorageError: The folder cannot be listed.
    """
    return [name for name in _names(folder) if _LOST.fullmatch(name)]


def _names(folder: Path) -> list[str]:
    with translated(folder, "list"):
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
