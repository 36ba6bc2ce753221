"""Quarantine files of a journal, in the same folder.

No acknowledged record is discarded:

- `memories.rejected.yaml`: bytes that are not an entry, and entries that are not a record, with the reason.
- `memories.lost-….yaml`: records that a session knew before another program removed or changed them. An editor with an
  hour-old copy, a truncated file or an old backup removes acknowledged records; a session that has them in memory
  writes them here. A person, who may have removed them on purpose, imports them again or not.

These files, and copies of the whole journal, may have the text of a record that was forgotten since. A line is deleted
when all records that it concerns are gone for good; every other line stays byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import zlib
from typing import TYPE_CHECKING, Any, Final

from agent_memory.encryption import DataKey, data_key, key_for
from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.files.atomic import (
    append_lines,
    opened,
    read_at,
    read_file,
    replace_file,
    sync_file,
    sync_folder,
    translated,
    write_all,
)
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import get_disk_size, get_path_type, list_names, read_regular
from agent_memory.files.exchange import set_aside
from agent_memory.files.names import classify_name, get_aside_path, has_journal_lines
from agent_memory.files.wording import counted, few
from agent_memory.journal.format import (
    MalformedLineError,
    add_checksum,
    decode_line,
    encode_fields,
    encode_line,
    find_ids,
)
from agent_memory.journal.purge_list import PurgeList
from agent_memory.logs import get_logger
from agent_memory.models import ACCESS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_memory.journal.reader import LineProblem

log = get_logger(__name__)
_KEPT: Final = ("id", "encrypted")
_ENCRYPTED: Final = b'"encrypted": "'


def get_rejected_path(journal: Path) -> Path:
    """Return the path of a journal's rejected file."""
    return get_aside_path(journal, "rejected")


def keep_rejected(path: Path, problems: Iterable[LineProblem], at: str) -> None:
    """Append malformed lines to a rejected file, with the reason, and sync.

    Known lines are not written twice: a process may have died before it removed them from the journal.

    Raises:
        StorageError: They could not be written; the caller must leave them where they are.
    """
    documents = [_build_document(problem, at) for problem in problems]
    with translated(path, "write"):
        with opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
            written = _read_known(descriptor)
            new = [document for document in documents if {**document, "at": None} not in written]
            _append(descriptor, b"".join(map(encode_line, new)))
        sync_folder(path.parent)  # also of a file that was there: its maker may have died before this


def read_rejected(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return a quarantine file's documents, and the number of unreadable lines.

    Raises:
        OSError: The file cannot be read.
    """
    content = read_regular(path, follow=False)
    with contextlib.suppress(AgentMemoryError):  # without the key an encrypted line says which record it is about
        content = _decrypt(path, content)
    lines = [line for line in content.split(b"\n") if line.strip()]
    items = _decode_lines(lines)
    return items, len(lines) - len(items)


def check_rejected(journal: Path) -> Iterator[Concern]:
    """Report the rejected lines of a journal."""
    path = get_rejected_path(journal)
    if get_path_type(path) == "missing":
        return
    try:
        items, bad = read_rejected(path)
    except OSError as error:
        yield Concern(
            "rejected_unusable",
            f"{path.name} cannot be used: {error.strerror or error}. Nothing can be set aside.",
            "`agent-memory doctor --repair` moves it aside.",
        )
        return
    broken = f" {counted(bad, 'line')} of it cannot be read." if bad else ""
    yield Concern(
        "rejected",
        f"{path.name} keeps {counted(len(items), 'piece')} that could not stay in the journal.{broken}",
        "Look whether anything in it is worth storing again; then it may be deleted.",
        get_disk_size(path),
        few([f"{str(item.get('at'))[:10]}: {item.get('reason')}" for item in items]),
    )


def _decode_lines(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    return [value for line in lines if (value := _decode_mapping(line)) is not None]


def _decode_mapping(line: bytes) -> dict[str, Any] | None:
    """Return the mapping in a line, None if malformed."""
    try:
        return decode_line(line)
    except MalformedLineError:
        return None


def _read_known(descriptor: int) -> list[dict[str, Any]]:
    """Return the documents of a file, without their times.

    A torn last document is cut off: until it is whole, nothing is removed from the journal.
    """
    content = read_at(descriptor, 0, os.fstat(descriptor).st_size)
    lines = content.split(b"\n")
    if lines[-1]:
        os.ftruncate(descriptor, len(content) - len(lines[-1]))
    return [{**document, "at": None} for document in _decode_lines(lines[:-1])]


def _append(descriptor: int, content: bytes) -> None:
    before = os.fstat(descriptor).st_size
    try:
        write_all(descriptor, content)
        sync_file(descriptor)
    except BaseException:
        os.ftruncate(descriptor, before)  # half a document would make the rest of the file unreadable, too
        raise


def _build_document(problem: LineProblem, at: str) -> dict[str, Any]:
    base: dict[str, Any] = {"at": at, "reason": problem.reason.encode("utf-8", "replace").decode()}
    try:
        return {**base, "line": problem.raw.decode()}
    except UnicodeDecodeError:
        return {**base, "line_base64": base64.b64encode(problem.raw).decode()}


def keep_lost(journal: Path, records: Mapping[str, Mapping[str, Any]]) -> Path | None:
    """Write records to a file of lost records and return its path.

    Equal records, also if only accesses differ, are written once. An existing file is appended to. Purged records and
    words are left out; None if nothing is left.

    Raises:
        StorageError: They could not be written.
    """
    purged, key = PurgeList(journal.parent), key_for(journal.parent)
    named = records.items()
    admitted = {identifier: fields for identifier, fields in named if not purged.bars(identifier, fields)}
    lost = {
        identifier: {"id": identifier, **purged.readable(identifier, fields)} for identifier, fields in admitted.items()
    }
    if records and not lost:
        return None
    with translated(journal, "keep what was lost of"):
        files = [journal.with_name(name) for name in list_names(journal.parent, "lost")]
        written: dict[object, list[dict[str, Any]]] = {}
        for document in _decode_lines(line for file in files for line in read_lost(file).split(b"\n")):
            written.setdefault(str(document.get("id")), []).append(_drop_accesses(document))
        new = [record for record_id, record in lost.items() if _drop_accesses(record) not in written.get(record_id, ())]
        content = b"".join(encode_line(_encrypt_document(record, key)) for record in new)
        if not files:
            path = set_aside(journal, get_aside_path(journal, "lost", f"{zlib.crc32(content):08x}"), content)
        else:
            path = files[-1]
            if content:
                append_lines(path, content)
    return path


def read_lost(path: Path) -> bytes:
    """Return the content of a quarantine file.

    A file of lost records is decrypted, without records purged since.

    Raises:
        OSError: The file cannot be read.
        StorageError: The key is missing.
    """
    content = _decrypt(path, path.read_bytes())
    purged = PurgeList(path.parent).read().ids if classify_name(path.name) == "lost" else {}
    return remove_lines(content, purged.keys()) if purged else content


def _decrypt(path: Path, content: bytes) -> bytes:
    if classify_name(path.name) != "lost" or _ENCRYPTED not in content:
        return content
    key = data_key(path.parent)
    return b"".join(_decrypt_line(line, key) for line in content.splitlines(keepends=True))


def _encrypt_document(document: dict[str, Any], key: DataKey | None) -> dict[str, Any]:
    """Return a lost record as stored: encrypted except its ID."""
    if key is None:
        return document
    return {"id": document["id"], "encrypted": key.encode(("lost", document["id"]), encode_fields(document))}


def _decrypt_line(line: bytes, key: DataKey) -> bytes:
    value = _decode_mapping(line)
    if value is None or not isinstance(text := value.get("encrypted"), str) or len(value) != len(_KEPT):
        return line
    with contextlib.suppress(ValueError):  # something changed it: it stays as it is
        return encode_line(json.loads(key.decode(("lost", value.get("id")), text)))
    return line


def _drop_accesses(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in ACCESS}


def decrypt_lost(folder: Path) -> None:
    """Decrypt the files of lost records in a folder.

    Raises:
        StorageError: One cannot be read or written.
    """
    for name in list_names(folder, "lost"):
        with translated(folder / name, "decrypt"):
            content = read_file(folder / name)
            if (plain := read_lost(folder / name)) != content:
                replace_file(folder / name, plain, durable=True)


def drop_forgotten(journal: Path, forgotten: Collection[str]) -> None:
    """Remove lines about forgotten records from quarantine files.

    A file without lines is deleted. Call it with the journal's lock held, before the journal forgets which records
    these were. A file that cannot be read or written stays as it is.
    """
    gone = {record_id.encode() for record_id in forgotten}
    try:
        if gone:
            _drop(journal, gone)
    except OSError as error:
        log.warning("forgotten_text_not_removed", error=error.strerror or str(error), file=error.filename)


def _drop(journal: Path, gone: set[bytes]) -> None:
    for path in sorted(journal.parent.iterdir()):
        if not has_journal_lines(journal.name, path.name) or path.is_symlink():
            continue
        content = read_file(path)
        if gone.isdisjoint(find_ids(content)):
            continue
        lines = [_remove_from_line(line, gone) for line in content.splitlines(keepends=True)]
        if any(line.strip() and "journal" not in (_decode_mapping(line) or ()) for line in lines):  # more than a header
            replace_file(path, b"".join(lines), durable=True)
        else:
            path.unlink()


def remove_lines(content: bytes, record_ids: Collection[str]) -> bytes:
    """Return content without lines that concern only these records."""
    gone = {record_id.encode("utf-8", "surrogatepass") for record_id in record_ids}
    return b"".join(_remove_from_line(line, gone) for line in content.splitlines(keepends=True))


def count_lines_about(path: Path, record_ids: set[bytes]) -> int:
    """Count the lines of a quarantine file about these records.

    Raises:
        OSError: It cannot be read.
    """
    return sum(_remove_from_line(line, record_ids) != line for line in read_file(path).splitlines(keepends=True))


def _remove_from_line(line: bytes, gone: set[bytes]) -> bytes:
    """Return a line without forgotten records, empty if nothing is left."""
    value = _decode_mapping(line)
    if value is None:
        named = find_ids(line)
        return b"" if named and named <= gone else line
    if (inner := _get_inner_line(value)) is not None:
        return b"" if inner and not _remove_from_line(inner, gone) else line
    if not isinstance(value.get("entries"), list):
        return b"" if _concerns(value, gone) else line
    remaining = [item for item in value["entries"] if not _concerns(item, gone)]
    if len(remaining) == len(value["entries"]):
        return line
    with contextlib.suppress(ValidationError):  # another program wrote what we do not: it stays whole
        line_of_rest = encode_line({**value, "entries": remaining})
        return (add_checksum(line_of_rest) if add_checksum(line) == line else line_of_rest) if remaining else b""
    return line


def _get_inner_line(value: dict[str, Any]) -> bytes | None:
    """Return the line in a rejected document, or None."""
    if isinstance(value.get("line"), str):
        return str(value["line"]).encode("utf-8", "replace")
    if isinstance(value.get("line_base64"), str):
        with contextlib.suppress(binascii.Error, ValueError):
            return base64.b64decode(value["line_base64"])
    return None


def _concerns(value: object, gone: set[bytes]) -> bool:
    record_id = value.get("id") if isinstance(value, dict) else None
    return isinstance(record_id, str) and record_id.encode("utf-8", "replace") in gone
