"""Comparison of segments with the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pydantic

from agent_memory.errors import StorageError
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import get_disk_size
from agent_memory.files.wording import counted
from agent_memory.index.segment import check_segments, open_chain, read_listing
from agent_memory.journal import Journal, Records, apply_change
from agent_memory.store.segment_opener import open_sealed_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.care.journal_inspection import InspectedLine
    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Kind
    from agent_memory.store.sealed_records import SealedRecords

_REBUILT: Final = "The next session reads the whole journal, and has them made anew."
_REPAIR: Final = "`agent-memory doctor --repair` makes them anew."


class SegmentCheck:
    """Comparison of the segments of one kind with the journal.

    Args:
        folder: Folder of the agent.
        kind: Kind of the records.
    """

    def __init__(self, folder: AgentFolder, kind: Kind[Any]) -> None:
        self.kind = kind
        self._folder = folder
        self._place = folder.segments(kind.name)
        self._sealed: SealedRecords[Any] | None = None
        self._concern: Concern | None = None
        self._compared = self._differing = 0
        self._counts_missing = True
        if read_listing(self._place)[0]:
            self._load()

    def _load(self) -> None:
        try:
            segments = open_chain(self._place, self.kind.name).segments
            check_segments(segments)
        except StorageError as error:
            what = f"The segments cannot be used: {error.message} {_REBUILT}"
            self._concern = Concern("segments_broken", what, _REPAIR, get_disk_size(self._place))
            return
        journal = Journal(self._folder.path / self.kind.journal, {self.kind.name})
        self._sealed, _ = open_sealed_records(self._folder, self.kind, journal)
        if self._sealed is None:
            what = "The journal does not have the place where the segments end: it was put back, or compacted since."
            self._concern = Concern("segments_stale", f"{what} {_REBUILT}", size=get_disk_size(self._place))
            return
        header = journal.reader.header
        purged = (header.purged_seq if header is not None else None) or 0
        # The journal does not have what a compaction deleted; the next session rebuilds these segments.
        self._counts_missing = all(segment.about.purged_seq >= purged for segment in segments)

    def compare(self, lines: list[InspectedLine]) -> None:
        """Compare the records of some lines.

        All lines of a record come together.
        """
        if self._sealed is None:
            return
        expected, later = self._replay(self._sealed.chain.last_seq, lines)
        numbers = self._sealed.chain.find_numbers([record_id.encode() for record_id in expected])
        for (record_id, data), number in zip(expected.items(), numbers, strict=True):
            self._compared += number is not None
            sealed = self._sealed.chain.record(number)[1] if number is not None else None
            if record_id in self._sealed.invalid:
                sealed = self._sealed.invalid[record_id].data
            if record_id not in later and sealed != data and not self._is_same(record_id, sealed, data):
                self._differing += 1

    def concerns(self) -> Iterator[Concern]:
        """Report the state of the segments, once all lines were compared."""
        if self._concern is not None:
            yield self._concern
        if self._sealed is None:
            return
        chain = self._sealed.chain
        differing = self._differing + (len(chain) - self._compared if self._counts_missing else 0)
        size = get_disk_size(self._place)
        if differing:
            name = self.kind.name
            what = f"The segments differ from the journal in {counted(differing, name, f'{name}s')}."
            yield Concern("segments_untrue", f"{what} The journal is right.", _REPAIR, size)
            return
        sealed, segments = counted(len(chain), "record"), counted(len(chain.segments), "segment")
        yield Concern("segments", f"{sealed} up to change {chain.last_seq:,} are sealed in {segments}.", size=size)

    def _replay(self, last_seq: int, lines: list[InspectedLine]) -> tuple[dict[str, dict[str, Any] | None], set[str]]:
        """Return the journal's records up to a change, None if deleted.

        Also the IDs of records stored or deleted later: a compaction leaves nothing before that.
        """
        records: Records = {}
        ids: dict[str, None] = {}
        later: set[str] = set()
        for line in lines:
            for change in line.part.changes:
                if change.kind != self.kind.name or change.op == "mark":
                    continue
                ids[change.id] = None
                if line.entry.seq <= last_seq:
                    apply_change(records, change, line.entry.at)
                elif change.op in {"put", "delete"}:
                    later.add(change.id)
        return {record_id: records.get(record_id) for record_id in ids}, later

    def _is_same(self, record_id: str, sealed: dict[str, Any] | None, data: dict[str, Any] | None) -> bool:
        """Return True if two raw versions make the same record."""
        if sealed is None or data is None:
            return False
        try:
            record, expected = (self.kind.load(self._folder.agent_id, record_id, raw) for raw in (sealed, data))
        except pydantic.ValidationError:
            return False
        return bool(record == expected)
