"""`Holding`: a record as the files of an agent have it: now or last, and what it said before. Changes nothing."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.encryption import AgentBlobs
from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_file, translated
from agent_memory.files.names import AUDIT, OLDER_AUDIT, PURGE_KEY, PURGED, VECTORS, sort_of
from agent_memory.journal import PurgeList, Records, apply_change, texts_in
from agent_memory.journal.reader import JournalReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_memory.files.blobs import Blobs
    from agent_memory.files.layout import AgentFolder

_IDS: Final = re.compile(r"\b[a-z]{3}-[0-9a-f]{12}\b")
_READ: Final = frozenset(
    {"rejected", "lost", "rewritten", "before_repair", "broken_pad", "broken", "conflict", "copy", "stray"}
)
"""Sorts of files beside the journals in which words may stand; see `agent_memory.files.names`."""
_NO_WORDS: Final = frozenset({PURGED, PURGE_KEY})


@dataclass(frozen=True, slots=True)
class Holding:
    """One record that a journal has.

    Attributes:
        kind, id, journal: Of which kind, its id, and the name of the file.
        data: Its fields as they are, or were last; of a long text all of it.
        at: When it was changed last, as the journal says it.
        earlier: What its text was before, the oldest first, as far as the file still has it.
        is_gone: It was forgotten, and stands in the file still.
    """

    kind: str
    id: str
    journal: str
    data: Mapping[str, Any]
    at: str
    earlier: tuple[str, ...] = ()
    is_gone: bool = False

    def strings(self) -> Iterator[str]:
        """Yield every text of it: of its fields, whatever they are, and what it said before."""
        yield from _strings(self.data)
        yield from self.earlier


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file that is no journal, each with its number, from 1 on."""

    file: str
    lines: tuple[tuple[int, str], ...]


def holdings_in(folder: AgentFolder) -> list[Holding]:
    """Return all records that the journals of an agent have, those that were forgotten too. Blocking; reads them whole.

    Raises:
        StorageError: One cannot be read.
    """
    with translated(folder.path, "list"):
        journals = folder.journals()
    found = [each for journal in journals for each in _in_journal(journal, AgentBlobs(folder))]
    live = {each.id for each in found if not each.is_gone}
    purged = PurgeList(folder.path)  # that may be unfinished
    return [
        each
        for each in found
        if not (each.is_gone and (each.id in live or purged.names(each.id)))  # moved to another journal and back
    ]


def other_files(folder: AgentFolder) -> list[Path]:
    """Return the files beside the journals in which words may stand: the scratchpad, pages, what was kept aside."""
    with translated(folder.path, "list"):
        journals = {path.name for path in folder.journals()}
        beside = [path for path in sorted(folder.path.iterdir()) if path.name not in journals | _NO_WORDS]
        chosen = [
            path
            for path in beside
            if path == folder.scratchpad or (sort_of(path.name) in _READ and not path.name.startswith(VECTORS))
        ]
        pages = sorted(folder.topics.glob("*.md")) if folder.topics.is_dir() and not folder.topics.is_symlink() else []
    return [path for path in (*chosen, *pages) if path.is_file() and not path.is_symlink()]


def lines_of(path: Path, name: str) -> Lines:
    """Return all lines of a file.

    Raises:
        StorageError: It cannot be read.
    """
    with translated(path, "read"):
        text = read_file(path).decode("utf-8", "replace")
    return Lines(name, tuple(enumerate(text.splitlines(), start=1)))


def audit_of(folder: AgentFolder, ids: Iterable[str] | None) -> list[str]:
    """Return the lines of the audit log about some records; all of them where None is given."""
    wanted = None if ids is None else set(ids)
    found = []
    for name in (OLDER_AUDIT, AUDIT):
        with contextlib.suppress(StorageError):
            if (path := folder.path / name).is_file() and not path.is_symlink():
                lines = lines_of(path, name).lines
                found += [line for _, line in lines if wanted is None or wanted & set(_IDS.findall(line))]
    return found


def _in_journal(path: Path, blobs: Blobs) -> Iterator[Holding]:
    records: Records = {}
    last: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
    texts: dict[str, dict[str, None]] = {}
    for entry in JournalReader(path).poll().entries:
        for change in entry.changes:
            apply_change(records, change, entry.at)
            if change.id in records:
                kind = last[change.id][0] if change.op != "put" and change.id in last else change.kind
                last[change.id] = kind, entry.at, records[change.id]
                texts.setdefault(change.id, {}).update(dict.fromkeys(texts_in(change.data)))
            elif change.id in last and change.op == "delete":
                kind, _, data = last[change.id]
                last[change.id] = kind, entry.at, data
    for record_id, (kind, at, data) in last.items():
        said = texts_in(data)
        earlier = tuple(text for text in texts[record_id] if text not in said)
        yield Holding(kind, record_id, path.name, _whole(data, blobs), at, earlier, record_id not in records)


def _whole(data: Mapping[str, Any], blobs: Blobs) -> Mapping[str, Any]:
    """Return fields with the whole of a long text instead of its beginning."""
    if isinstance(name := data.get("blob"), str) and name:
        with contextlib.suppress(StorageError):  # the doctor tells of it; its beginning is here
            return {**data, "content": blobs.read(name)}
    return data


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
