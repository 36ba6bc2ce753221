"""Files with old lines beside a journal: what was forgotten for good is taken out of them, too.

What was set aside (rejected, rewritten, lost, before a repair) may hold the text of a memory that was forgotten since.
A line goes when all records that it concerns are forgotten for good; every other line stays as it is, byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.files.atomic import read_file, replace_file
from agent_memory.files.names import keeps_lines_of
from agent_memory.journal.format import MalformedLineError, decode_line, encode_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from agent_memory.journal.format import Entry

_ID: Final = re.compile(rb"[a-z]{3}-[0-9a-f]{12}(?![0-9a-f])")


def forgotten_in(entries: Iterable[Entry], young: Iterable[Entry], kinds: Collection[str]) -> set[str]:
    """Return the ids of records that were deleted in `entries`, and of which nothing was written afterwards.

    Args:
        entries: Those past their grace time, in the order of the file.
        young: Those that follow.
        kinds: Of the records.
    """
    gone: set[str] = set()
    for entry in entries:
        for change in entry.changes:
            if change.kind in kinds:
                if change.op == "delete":
                    gone.add(change.id)
                elif change.op == "put":
                    gone.discard(change.id)
    later = {change.id for entry in young for change in entry.changes if change.op not in {"touch", "mark"}}
    return gone - later


def drop_forgotten(journal: Path, forgotten: Collection[str]) -> None:
    """Take the lines about forgotten records out of the files beside a journal; one with none left is removed.

    To be called with the journal's lock held, before the journal itself forgets which records these were.

    Raises:
        OSError: A file could not be read or written; it is as it was.
    """
    gone = {record_id.encode() for record_id in forgotten}
    if not gone:
        return
    for path in sorted(journal.parent.iterdir()):
        if not keeps_lines_of(journal.name, path.name) or path.is_symlink():
            continue
        content = read_file(path)
        if gone.isdisjoint(_ID.findall(content)):
            continue
        lines = [_without(line, gone) for line in content.splitlines(keepends=True)]
        if any(line.strip() and not _is_header(line) for line in lines):
            replace_file(path, b"".join(lines), durable=True)
        else:
            path.unlink()


def _without(line: bytes, gone: set[bytes]) -> bytes:
    """Return a line without what concerns forgotten records; empty when nothing is left."""
    try:
        value = decode_line(line)
    except MalformedLineError:
        named = set(_ID.findall(line))
        return b"" if named and named <= gone else line
    if (inner := _inner(value)) is not None:
        return b"" if inner and not _without(inner, gone) else line
    if not isinstance(value.get("entries"), list):
        return b"" if _concerns(value, gone) else line
    kept = [item for item in value["entries"] if not _concerns(item, gone)]
    if len(kept) == len(value["entries"]):
        return line
    with contextlib.suppress(ValidationError):  # another program wrote what we do not: it stays whole
        return encode_line({**value, "entries": kept}) if kept else b""
    return line


def _inner(value: dict[str, Any]) -> bytes | None:
    """Return the line that a document of the rejected file holds, None if it is none of those."""
    if isinstance(value.get("line"), str):
        return str(value["line"]).encode("utf-8", "replace")
    if isinstance(value.get("line_base64"), str):
        with contextlib.suppress(binascii.Error, ValueError):
            return base64.b64decode(value["line_base64"])
    return None


def _concerns(value: object, gone: set[bytes]) -> bool:
    record_id = value.get("id") if isinstance(value, dict) else None
    return isinstance(record_id, str) and record_id.encode("utf-8", "replace") in gone


def _is_header(line: bytes) -> bool:
    try:
        return "journal" in decode_line(line)
    except MalformedLineError:
        return False
