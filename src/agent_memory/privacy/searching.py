"""Where words still stand: every byte of every file of an agent, and of our backups of it. Reads, changes nothing.

A text is looked for as it is, as JSON and YAML write it, in capital and small letters, and with other white space
between its words; a long one in stretches. One of less than twelve characters is not looked for, since it would be
found in others.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, AnyStr, Final

from agent_memory.files.atomic import read_file
from agent_memory.files.names import VECTORS
from agent_memory.lifecycle.backups import list_backups

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

_STRETCH: Final = 40
"""Words."""
_LEAST_CHARS: Final = 12
BAR: Final = "\u2588"
"""Stands for each character that was made unreadable: places in a text stay what they were."""
_LARGEST: Final = 1 << 30
"""Bytes of a file that is read in one go."""
NEVER_OPENED: Final = frozenset({f"{VECTORS}-shm"})
"""Has numbers alone. POSIX drops every lock of a process on a file once the process closes any descriptor of it, and
SQLite of the same process relies on locks on this one and on the database (https://sqlite.org/howtocorrupt.html, 2.2).
"""
_BETWEEN: Final = rb"(?:\s|\\[nrt]|\\u20(?:28|29)|[>|]-?\s)+"
"""Between words: white space, or as JSON writes it, or a line break of YAML."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file in which words still stand.

    Attributes:
        path: The file; of a backup, the zip file.
        member: The file within that; None elsewhere.
        count: How often.
    """

    path: Path
    member: str | None
    count: int


def pattern_of(texts: Iterable[str]) -> re.Pattern[bytes] | None:
    """Return a pattern that finds these texts in the bytes of files; None where none can be told from others."""
    stretches = {way for text in texts for words in _stretches(text) for way in _written(words)}
    return _either(sorted(stretches, key=len, reverse=True), b"|")


def hiding(texts: Iterable[str]) -> Callable[[str], str]:
    """Return what makes these texts unreadable within others."""
    stretches = {r"\s+".join(map(re.escape, words)) for text in texts for words in _stretches(text)}
    pattern = _either(sorted(stretches, key=len, reverse=True), "|")
    if pattern is None:
        return lambda text: text
    return lambda text: pattern.sub(lambda match: BAR * len(match[0]), text)


def _either(patterns: list[AnyStr], joint: AnyStr) -> re.Pattern[AnyStr] | None:
    return re.compile(joint.join(patterns), re.IGNORECASE) if patterns else None


def search(folder: AgentFolder, texts: Collection[str], ids: Collection[str] = ()) -> list[Found]:
    """Return the files in which texts stand; with `ids`, also backups and journals that have changes of these records.

    Args:
        folder: The agent's.
        texts: What is looked for.
        ids: Of records; a file of ours may name them, as links do, so they count only where a change begins with one.

    Raises:
        OSError: A file cannot be read.
    """
    return _among(_contents(folder), texts, ids)


def _among(
    contents: Iterable[tuple[Path, str | None, bytes]], texts: Collection[str], ids: Collection[str]
) -> list[Found]:
    patterns = [each for each in (pattern_of(texts), _changes_of(ids)) if each is not None]
    found = []
    for path, member, content in contents if patterns else ():
        count = sum(len(pattern.findall(content)) for pattern in patterns)
        if count:
            found.append(Found(path, member, count))
    return found


def files_in(folder: AgentFolder) -> Iterator[Path]:
    """Yield every file in an agent's folder, links aside, in their order."""
    for path in sorted(folder.path.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


def search_backup(path: Path, texts: Collection[str], ids: Collection[str]) -> list[Found]:
    """Do the same in one backup.

    Raises:
        OSError: It cannot be read.
    """
    return _among(((path, member, content) for member, content in _members(path)), texts, ids)


def _contents(folder: AgentFolder) -> Iterator[tuple[Path, str | None, bytes]]:
    for path in files_in(folder):
        if path.name == VECTORS:
            yield path, None, _database(path)
        elif path.stat().st_size <= _LARGEST and path.name not in NEVER_OPENED:
            yield path, None, read_file(path)
    for each in list_backups(folder.path.parent, folder.agent_id):
        for member, content in _members(each.path):
            yield each.path, member, content


def _database(path: Path) -> bytes:
    """Return every page of a database, free ones too, as SQLite reads it."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            return database.serialize()
    except sqlite3.Error:
        return b""  # no database of ours: the doctor tells


def _members(path: Path) -> Iterator[tuple[str | None, bytes]]:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError):
        yield None, read_file(path)  # damaged: what of it is not compressed


def _stretches(text: str) -> Iterator[list[str]]:
    """Yield the words of a text, of a long one some at a time; the last stretch has what is left over."""
    words = text.split()
    if len(text.strip()) < _LEAST_CHARS:
        return
    count = max(1, len(words) // _STRETCH)
    for at in range(count):
        yield words[at * _STRETCH : None if at == count - 1 else (at + 1) * _STRETCH]


def _written(words: list[str]) -> Iterator[bytes]:
    """Yield words as a pattern: as they are, and as JSON writes them, with and without letters of ASCII alone."""
    for write in (str, lambda word: json.dumps(word, ensure_ascii=False)[1:-1], lambda word: json.dumps(word)[1:-1]):
        yield _BETWEEN.join(re.escape(write(word).encode("utf-8", "surrogatepass")) for word in words)


def _changes_of(ids: Collection[str]) -> re.Pattern[bytes] | None:
    """Return what finds a change of one of these records, or the record in a file of lost ones."""
    if not ids:
        return None
    named = b"|".join(re.escape(one.encode()) for one in sorted(ids))
    change = rb'"op": "(?:put|patch|delete|touch|mark)", "kind": "[a-z_]+", '
    return re.compile(b"(?:" + change + rb'|--- \{)"id": "(?:' + named + b')"')
