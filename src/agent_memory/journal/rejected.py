"""Where bytes go that are no entry: `memories.rejected.yaml`, so that nothing is ever thrown away."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any

from agent_memory.journal.files import open_private, sync_file, sync_folder, write_all
from agent_memory.journal.format import encode_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agent_memory.journal.reader import Problem


def rejected_path(journal: Path) -> Path:
    """Return the name beside `journal` that holds what was set aside from it."""
    return journal.with_name(f"{journal.stem}.rejected{journal.suffix}")


def set_aside(path: Path, problems: Iterable[Problem], at: str) -> None:
    """Append the raw bytes of `problems`, with the reason, one YAML document each, and sync.

    Raises:
        OSError: They could not be kept; the caller must then leave them where they are.
    """
    content = b"".join(encode_line(_document(problem, at)) for problem in problems)
    existed = path.exists()
    descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        write_all(descriptor, content)
        sync_file(descriptor)
    finally:
        os.close(descriptor)
    if not existed:
        sync_folder(path.parent)


def _document(problem: Problem, at: str) -> dict[str, Any]:
    base: dict[str, Any] = {"at": at, "reason": problem.reason.encode("utf-8", "replace").decode()}
    try:
        return {**base, "line": problem.raw.decode()}
    except UnicodeDecodeError:
        return {**base, "line_base64": base64.b64encode(problem.raw).decode()}
