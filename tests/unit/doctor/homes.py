"""Helpers of these tests: what a folder looks like, whose vectors bob's are."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agent_memory.embeddings.testing import HashEmbedder

if TYPE_CHECKING:
    from agent_memory.embeddings import EmbedderIdentity

LIVE = 12
"""Memories that bob still has."""


def snapshot(root: Path) -> dict[str, tuple[object, ...]]:
    """Return all there is below `root`: modes, times and contents; how a test sees that nothing was touched."""
    seen: dict[str, tuple[object, ...]] = {}
    for top, folders, files in os.walk(root):
        for name in [".", *folders, *files]:
            path = Path(top, name)
            status = path.lstat()
            content: object = ""
            if path.is_symlink():
                content = path.readlink()
            elif path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            seen[str(path.relative_to(root))] = (status.st_mode, status.st_size, status.st_mtime_ns, content)
    return seen


def identity() -> EmbedderIdentity:
    """Return whose vectors bob's are."""
    return HashEmbedder().identity


def rewrite_json(path: Path, **fields: object) -> None:
    """Change fields of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
