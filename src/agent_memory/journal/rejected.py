"""Where bytes go that are no entry: `memories.rejected.yaml`, so that nothing is ever thrown away."""

from __future__ import annotations

import base64
import contextlib
import os
from typing import TYPE_CHECKING, Any

from agent_memory.files.atomic import open_private, read_at, sync_file, sync_folder, translated, write_all
from agent_memory.files.names import aside_path
from agent_memory.journal.format import MalformedLineError, decode_line, encode_line

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agent_memory.journal.reader import Problem


def rejected_path(journal: Path) -> Path:
    """Return the name beside `journal` that holds what was set aside from it."""
    return aside_path(journal, "rejected")


def set_aside(path: Path, problems: Iterable[Problem], at: str) -> None:
    """Append the raw bytes of `problems`, with the reason, one YAML document each, and sync.

    What is there already is not written twice: whoever did so may have died before taking it out of the journal.

    Raises:
        StorageError: They could not be kept; the caller must then leave them where they are.
    """
    documents = [_document(problem, at) for problem in problems]
    with translated(path, "write"):
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            known = _kept(descriptor)
            new = [document for document in documents if {**document, "at": None} not in known]
            _append(descriptor, b"".join(map(encode_line, new)))
        finally:
            os.close(descriptor)
        sync_folder(path.parent)  # also of a file that was there: its maker may have died before this


def _kept(descriptor: int) -> list[dict[str, Any]]:
    """Return the documents of a file, without their times.

    A last one that somebody died in the middle of is cut off: until it was whole, nothing was taken out of the journal.
    """
    content = read_at(descriptor, 0, os.fstat(descriptor).st_size)
    lines = content.split(b"\n")
    if lines[-1]:
        os.ftruncate(descriptor, len(content) - len(lines[-1]))
    kept: list[dict[str, Any]] = []
    for line in lines[:-1]:
        with contextlib.suppress(MalformedLineError):  # a person may have written into it
            kept.append({**decode_line(line), "at": None})
    return kept


def _append(descriptor: int, content: bytes) -> None:
    before = os.fstat(descriptor).st_size
    try:
        write_all(descriptor, content)
        sync_file(descriptor)
    except BaseException:
        os.ftruncate(descriptor, before)  # half a document would make the rest of the file unreadable, too
        raise


def _document(problem: Problem, at: str) -> dict[str, Any]:
    base: dict[str, Any] = {"at": at, "reason": problem.reason.encode("utf-8", "replace").decode()}
    try:
        return {**base, "line": problem.raw.decode()}
    except UnicodeDecodeError:
        return {**base, "line_base64": base64.b64encode(problem.raw).decode()}
