"""Search for words in every byte of files and backups. Changes nothing.

A text is found in any way that a file may write it, see `TextMatcher`, a long one in spans. Texts of less than 12
characters are skipped, as they occur in others. Packed files (zip, gzip) are unpacked for the search.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import gzip
import io
import os
import re
import sqlite3
import zipfile
import zlib
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.backup_reader import list_backup_files, list_backups
from agent_memory.care.backups.manifest import agent_in, folder_of_backups
from agent_memory.care.encrypted_files import kept_in
from agent_memory.encryption import data_key, get_encryption_state
from agent_memory.encryption.cipher import MAGIC
from agent_memory.files.atomic import opened, read_at, read_file
from agent_memory.files.names import KEPT, VECTORS, is_packed
from agent_memory.journal.purged_spans import BAR, is_distinctive, is_most, normalize_text, normalize_with_places

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal.purged_spans import PurgedSpans


_LARGEST: Final = 1 << 30
"""Bytes of a file that are read in one go."""
_OVERLAP: Final = 1 << 20
"""Bytes that two parts of a longer file share: more than the longest line of a record."""
NEVER_OPENED: Final = frozenset({f"{VECTORS}-shm"})
"""Has numbers alone. POSIX drops every lock of a process on a file once the process closes any descriptor of it, and
SQLite of the same process relies on locks on this one and on the database (https://sqlite.org/howtocorrupt.html, 2.2).
"""
_RUN: Final = re.compile(
    rb"(?:[\t\n\r -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){6,}"
)
"""Text among other bytes: six characters of UTF-8 or more."""
_BASE64: Final = re.compile(r'"line_base64": "([A-Za-z0-9+/=]+)"')
"""Form of a quarantined line that is not UTF-8."""
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class FileWithWords:
    """File with remaining words.

    Attributes:
        path: Path of the file or zip file.
        member: Name within a backup, else None.
        count: Number of matches.
    """

    path: Path
    member: str | None
    count: int

    def describe(self, root: Path) -> str:
        """Return the path below a folder, with the member."""
        return f"{self.path.relative_to(root)}" + (f"/{self.member}" if self.member else "")


def search(
    folder: AgentFolder,
    texts: Collection[str],
    ids: Collection[str] = (),
    spans: PurgedSpans | None = None,
    *,
    short: bool = False,
) -> list[FileWithWords]:
    """Return files with some texts, and with changes of some records.

    Args:
        folder: Folder of the agent.
        texts: Texts to search for.
        ids: IDs of records, which count at the beginning of a change.
        spans: Signatures of unknown words to search for.
        short: True to search for texts that may occur by chance.

    Raises:
        OSError: A file cannot be read.
    """
    contents = chain(iter_contents(folder), _iter_encrypted(folder))
    return find_matches(contents, _list_counters(TextMatcher(texts, short=short), spans), ids)


def _list_counters(*patterns: TextMatcher | PurgedSpans | None) -> list[Callable[[str], int]]:
    return [pattern.count for pattern in patterns if pattern]


def find_matches(
    contents: Iterable[tuple[Path, str | None, bytes]],
    counters: Sequence[Callable[[str], int]],
    ids: Collection[str] = (),
) -> list[FileWithWords]:
    """Return the files whose content has matches.

    Args:
        contents: Path, member and content of each file.
        counters: Return the number of matches in a text.
        ids: IDs of records, which count at the beginning of a change.
    """
    changes, files = _compile_changes(ids), list[FileWithWords]()
    for path, member, content in contents if counters or changes else ():
        count = len(changes.findall(content)) if changes is not None else 0
        if counters:
            count += sum(count_in(text) for text in extract_texts(content) for count_in in counters)
        if count:
            files.append(FileWithWords(path, member, count))
    return files


def extract_texts(content: bytes) -> Iterator[str]:
    """Yield text of a file's bytes: all, between other bytes, or unpacked."""
    if content.startswith(_GZIP):
        content = _unpack(content)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = b"\n".join(_RUN.findall(content)).decode("utf-8", "replace")
    yield text
    yield from _packed_lines(text)


def packed_in(line: bytes, wording: TextMatcher) -> bool:
    """Return True if a quarantined line packs one of these texts."""
    return b'"line_base64"' in line and any(map(wording.count, _packed_lines(line.decode("utf-8", "replace"))))


def _packed_lines(text: str) -> Iterator[str]:
    for packed in _BASE64.findall(text):
        with contextlib.suppress(binascii.Error):
            yield base64.b64decode(packed).decode("utf-8", "replace")


def _unpack(content: bytes) -> bytes:
    """Return the readable content of a gzip file, within the limit."""
    reader = gzip.GzipFile(fileobj=io.BytesIO(content))
    try:
        return reader.read(_LARGEST)
    except (OSError, EOFError, zlib.error):
        return content


def files_in(folder: AgentFolder) -> Iterator[Path]:
    """Yield every file of an agent's folder in order, except links."""
    for path in sorted(folder.path.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


def among_backups(folder: AgentFolder) -> Iterator[Path]:
    """Yield other files and links among the backups, such as exports."""
    root = folder.path.parent
    ours, all_backups = set(list_backup_files(root, folder.agent_id)), set(list_backup_files(root))
    backups = folder_of_backups(root)
    for path in sorted(backups.rglob("*")) if backups.is_dir() else ():
        is_anothers = path.is_symlink() and (agent_in(path.name) or folder.agent_id).lower() != folder.agent_id.lower()
        if not (path.is_dir() and not path.is_symlink()) and path not in ours | all_backups and not is_anothers:
            yield path


def search_backup(
    path: Path, texts: Collection[str], ids: Collection[str], spans: PurgedSpans | None = None
) -> list[FileWithWords]:
    """Search one backup; see `search`.

    Raises:
        OSError: It cannot be read.
    """
    contents = ((path, member, content) for member, content in _members(path))
    return find_matches(contents, _list_counters(TextMatcher(texts), spans), ids)


def iter_contents(folder: AgentFolder) -> Iterator[tuple[Path, str | None, bytes]]:
    """Yield path, member and content of an agent's files and backups."""
    for path in files_in(folder):
        if path.name == VECTORS:
            yield path, None, _database(path)
        elif path.name not in NEVER_OPENED:
            yield from _parts(path)
    for backup in list_backups(folder.path.parent, folder.agent_id):
        for member, content in _members(backup.path):
            yield backup.path, member, content
    for path in among_backups(folder):
        if not path.is_symlink():
            yield from _parts(path)


def _iter_encrypted(folder: AgentFolder) -> Iterator[tuple[Path, str | None, bytes]]:
    """Yield decrypted content of encrypted and packed files; none without the key."""
    if get_encryption_state(folder.path) is None:
        return
    key = data_key(folder.path)
    for path in files_in(folder):
        content = read_file(path) if is_packed(path.name) else b""
        if content.startswith(MAGIC):
            with contextlib.suppress(ValueError):  # of another memory, or damaged: unreadable
                yield path, None, key.decrypt_file(path.name, content)
    yield from ((folder.path / KEPT, name, content) for name, content in kept_in(folder.path, key).items())


def _parts(path: Path) -> Iterator[tuple[Path, str | None, bytes]]:
    """Yield the content of a file and of its members.

    A long file comes in overlapping parts.
    """
    size = path.stat().st_size
    if size <= _LARGEST:
        content = read_file(path)
        yield path, None, content
        if content.startswith(_ZIP):
            yield from ((path, member, inside) for member, inside in _members(path) if member is not None)
        return
    with opened(path, os.O_RDONLY) as descriptor:
        for start in range(0, size, _LARGEST):
            yield path, None, read_at(descriptor, max(0, start - _OVERLAP), min(size, start + _LARGEST))


def _database(path: Path) -> bytes:
    """Return every page of a database, free ones too."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            return database.serialize()
    except sqlite3.Error:
        return b""  # not our database: the doctor reports it


def _members(path: Path) -> Iterator[tuple[str | None, bytes]]:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError):
        yield None, read_file(path)  # damaged: what of it is not compressed


def _compile_changes(ids: Collection[str]) -> re.Pattern[bytes] | None:
    """Return a pattern for changes of records, also of lost ones."""
    if not ids:
        return None
    named = b"|".join(re.escape(record_id.encode()) for record_id in sorted(ids))
    change = rb'"op": "(?:put|patch|delete|touch|mark)", "kind": "[a-z_]+", '
    return re.compile(b"(?:" + change + rb'|--- \{)"id": "(?:' + named + b')"')


_SPAN_WORDS: Final = 40
"""Words."""
_ENDS: Final = ".,;:!?…。"
"""Ends of sentences, which differ where the same words continue."""


class TextMatcher:
    """Some texts, to be found in others.

    Args:
        texts: Texts to find; a long one in spans of 40 words.
        short: True to find texts that may occur by chance.
    """

    def __init__(self, texts: Iterable[str], *, short: bool = False) -> None:
        wanted = {way for text in texts for way in iter_word_spans(text, short=short)}
        ways = sorted(wanted, key=lambda way: (-len(way), way))
        self._pattern = re.compile("|".join(map(_compile_span, ways))) if ways else None

    def __bool__(self) -> bool:
        """Return True if there is anything to search."""
        return self._pattern is not None

    def count(self, text: str) -> int:
        """Return the number of matches in a text."""
        return 0 if self._pattern is None else len(self._pattern.findall(normalize_text(text)))

    def hide(self, text: str) -> str:
        """Return a text with `BAR` for each matched character."""
        if self._pattern is None or self._pattern.search(normalize_text(text)) is None:
            return text
        folded, places = normalize_with_places(text)
        parts, shown_to = list[str](), 0
        for match in self._pattern.finditer(folded):
            start, end = places[match.start()][0], places[match.end() - 1][1]
            parts += [text[shown_to:start], BAR * (end - start)]
            shown_to = end
        return "".join([*parts, text[shown_to:]])


def iter_word_spans(text: str, *, short: bool = False) -> Iterator[str]:
    """Yield a text in comparable form, in spans of 40 words.

    The last has the rest. A short one, which may occur by chance, only if `short`.
    """
    words = normalize_text(text).split()
    if not words or not (short or is_distinctive(text)):
        return
    count = max(1, len(words) // _SPAN_WORDS)
    for number in range(count):
        yield " ".join(words[number * _SPAN_WORDS : None if number == count - 1 else (number + 1) * _SPAN_WORDS])


def _compile_span(way: str) -> str:
    """Return a pattern for a span with any punctuation; cuts no numbers."""
    body = way.strip(f" {_ENDS}")
    body = body if is_most(body, way) else way
    before, _, after = way.partition(body)
    edges = r"(?<!\d)" * body[:1].isdigit(), r"(?!\d)" * body[-1:].isdigit()
    lead, trail = (f"(?:{re.escape(edge)})?" if edge else "" for edge in (before, after))
    return f"{lead}{edges[0]}{re.escape(body)}{edges[1]}{trail}"
