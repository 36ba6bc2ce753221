"""Helpers of these tests: what a folder looks like, whose vectors bob's are."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from agent_memory.embeddings.testing import HashEmbedder
from tests.support import sealed_line

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


def make_circles(journal: Path) -> None:
    """Have memories replace one another: 5 and 6 each other, 6 later; 7 itself."""
    at = '"at": "2026-03-01T12:00:00Z", "op": "patch", "kind": "memory"'
    with journal.open("a") as lines:
        for seq, name, other in ((90, 5, 6), (91, 6, 5), (92, 7, 7)):
            data = f'{{"supersedes": "mem-{other:012x}"}}'
            lines.write(sealed_line(f'--- {{"seq": {seq}, {at}, "id": "mem-{name:012x}", "data": {data}}}\n'))


def spoil_vectors(cache: Path) -> None:
    """Make one vector all zeros and another too short."""
    with contextlib.closing(sqlite3.connect(cache)) as database, database:
        first, second = database.execute("SELECT hash FROM vectors LIMIT 2").fetchall()
        database.execute("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE hash = ?", first)
        database.execute("UPDATE vectors SET vector = x'3c00' WHERE hash = ?", second)


def rewrite_json(path: Path, **fields: object) -> None:
    """Change fields of a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
