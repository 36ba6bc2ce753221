"""`memories.lost-….yaml`: records that a session knew before another program removed or changed them.

An editor that saves what it loaded an hour ago, a file cut short or an old copy put in place undo what was
acknowledged. Who still knows it writes it down; whether it comes back is for a person to say (`agent-memory import`),
who may have removed it on purpose. One file takes them all, however often that happens.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import TYPE_CHECKING, Any

from agent_memory.files.aside import set_aside
from agent_memory.files.atomic import open_private, read_file, sync_file, translated, write_all
from agent_memory.files.entries import names_of
from agent_memory.files.names import aside_path
from agent_memory.journal.format import MalformedLineError, decode_line, encode_line
from agent_memory.models import ACCESS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def keep_lost(journal: Path, records: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write records by id beside `journal`, one YAML document each, and return the file; the same ones are kept once.

    Two that differ in accesses alone are the same. Where there is such a file already, what is new is added to it.

    Raises:
        StorageError: They could not be written.
    """
    lost = {record_id: {"id": record_id, **fields} for record_id, fields in records.items()}
    with translated(journal, "keep what was lost of"):
        files = [journal.with_name(name) for name in names_of(journal.parent, "lost")]
        known: dict[object, list[dict[str, Any]]] = {}
        for document in (document for file in files for document in _documents(file)):
            known.setdefault(str(document.get("id")), []).append(_without_accesses(document))
        new = [each for record_id, each in lost.items() if _without_accesses(each) not in known.get(record_id, ())]
        content = b"".join(map(encode_line, new))
        if not files:
            path = set_aside(journal, aside_path(journal, "lost", f"{zlib.crc32(content):08x}"), content)
        else:
            path = files[-1]
            _append(path, content)
    return path


def _append(path: Path, content: bytes) -> None:
    """Add lines to a file in one go: another session may be doing the same."""
    if not content:
        return
    descriptor = open_private(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"  # somebody died while writing
        write_all(descriptor, b"\n" * is_torn + content)
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def _documents(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in read_file(path).split(b"\n"):
        with contextlib.suppress(MalformedLineError):  # a person may have written into it
            found.append(decode_line(line))
    return found


def _without_accesses(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in ACCESS}
