"""`PurgeFilter`: removes purged text from journal lines as they are read.

A purged record is recognized by its ID, in any journal. Words are searched only in a journal that `agent.yaml` does not
name: it was put back, and no purge has cleaned it. What was stored after a purge stays.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_memory.journal.agent_file import read_header_at, read_states
from agent_memory.journal.codec import Codec, decode_changes, encode_changes, is_encrypted
from agent_memory.journal.format import Change, Entry, Header, MalformedLineError, decode_entry, mentions
from agent_memory.journal.purge_list import PurgeList, to_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_ALL: Final = 2**63
"""Number beyond the last line of any journal."""
_MAX_SHORT_CHARS: Final = 64
"""A longer text has spans."""
_DATA: Final = b'"data": '
_CHECKSUM: Final = b', "crc": "'
_CHECKSUM_BYTES: Final = 24
"""Length of the checksum at the end of a line, with some reserve."""


class PurgeFilter:
    """Cleans the entries of one journal.

    Args:
        purges: Purged records of the folder.
        returned_up_to: Number of the last line when the journal was put back; None if it is current.
    """

    def __init__(self, purges: PurgeList, returned_up_to: int | None) -> None:
        self._purges, self._index = purges, purges.read()
        self._ids = self._index.ids.keys()
        self._up_to = returned_up_to

    @property
    def is_returned(self) -> bool:
        """Return True if `agent.yaml` names another journal."""
        return self._up_to is not None

    def clean(self, entries: Sequence[Entry], codec: Codec) -> list[Entry | None]:
        """Return entries without purged text; None for a purged entry.

        An entry without purged text is returned as the same object.
        """
        if self._up_to is None:
            return [self._clean_entry(entry, codec) if self._names_purged(entry) else entry for entry in entries]
        with_words = self._index.spans.find([_read_data(entry, codec) for entry in entries])
        return [
            self._clean_entry(entry, codec) if index in with_words or self._is_concerned(entry) else entry
            for index, entry in enumerate(entries)
        ]

    def _names_purged(self, entry: Entry) -> bool:
        return not self._ids.isdisjoint([change.id for change in entry.changes])

    def _is_concerned(self, entry: Entry) -> bool:
        """Return True if an entry has a purged record or short text.

        Texts too short for a span are compared as a whole.
        """
        if self._names_purged(entry):
            return True
        for change in entry.changes:
            text = change.data.get("content") or change.data.get("body")
            if isinstance(text, str) and len(text) <= _MAX_SHORT_CHARS and self._index.has(text):
                return True
        return False

    def _clean_entry(self, entry: Entry, codec: Codec) -> Entry | None:
        is_returned = self._up_to is not None and entry.seq <= self._up_to
        moment = to_seconds(entry.at)
        changes = tuple(
            self._hide_purged_words(change, moment) if is_returned else change
            for change in entry.changes
            if not self._index.drops(change.id, change.data, moment, is_returned=is_returned)
        )
        if changes == entry.changes:
            return entry
        if entry.opaque:
            return _decode_line(self._purges.filter_line(entry.raw), codec)
        if not changes:
            return None
        return replace(entry, changes=changes, raw=encode_changes(codec, entry.seq, entry.at, changes))

    def clean_damaged(self, line: bytes) -> bytes:
        """Return a damaged line without purged words.

        Empty if it names a purged record.
        """
        if not self.is_returned:
            return line
        if mentions(line, (record_id.encode("utf-8", "surrogatepass") for record_id in self._ids)):
            return b""
        text = line.decode("utf-8", "surrogateescape")
        return self._index.spans.hide(text).encode("utf-8", "surrogateescape")

    def _hide_purged_words(self, change: Change, moment: float) -> Change:
        if not self._index.spans or is_encrypted(change):
            return change
        data = self._index.spans.hide_in(change.data, moment)
        return change if data == change.data else replace(change, data=data)


def is_returned(path: Path) -> bool:
    """Return True if a put-back journal may have purged text.

    That is so if something was purged and `agent.yaml` does not name this file.
    """
    purge_filter = filter_for(path, read_header_at(path))
    return purge_filter is not None and purge_filter.is_returned


def filter_for(path: Path, header: Header | None) -> PurgeFilter | None:
    """Return the filter for a journal; None if nothing was purged.

    Raises:
        StorageError: The purge list cannot be read.
    """
    purges = PurgeList(path.parent)
    if not purges.read().ids:
        return None
    state = (read_states(path.parent) or {}).get(path.name)
    if header is None or state is None:
        return PurgeFilter(purges, _ALL)
    return PurgeFilter(purges, None if state.names(header) else state.returned.get(header.generation, _ALL))


def _read_data(entry: Entry, codec: Codec) -> bytes:
    """Return an entry's fields as JSON, perhaps with more of its line."""
    if codec.key is None:
        end = entry.raw.rfind(_CHECKSUM, -_CHECKSUM_BYTES)
        return entry.raw[entry.raw.find(_DATA) : end if end > 0 else -1]
    return json.dumps([change.data for change in entry.changes], ensure_ascii=False).encode("utf-8", "surrogatepass")


def _decode_line(line: bytes, codec: Codec) -> Entry | None:
    try:
        return decode_changes(codec, decode_entry(line)) if line else None
    except MalformedLineError:
        return None
