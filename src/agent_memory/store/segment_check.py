"""Whether segments can be used, and say what the journal says. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pydantic

from agent_memory.errors import StorageError
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import size_of
from agent_memory.files.wording import counted
from agent_memory.index.chain import Chain, check_segments, listed, open_chain, unlist_segments
from agent_memory.journal import Journal, Records, apply_change
from agent_memory.store.segment_opener import chain_of, invalid_in, remove_unused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Line
    from agent_memory.models import Kind
    from agent_memory.store.sealed_records import Invalid

_ANEW = "The next session reads the whole journal, and has them made anew."
_REPAIR = "`agent-memory doctor --repair` makes them anew."


class SegmentCheck:
    """Compares the segments of one kind with the journal, as it is read: what they say with what it said at their end.

    Args:
        folder: The agent's.
        kind: Of which records.
    """

    def __init__(self, folder: AgentFolder, kind: Kind[Any]) -> None:
        self.kind = kind
        self._folder = folder
        self._place = folder.segments(kind.name)
        self._chain = Chain()
        self._invalid: dict[str, Invalid] = {}
        self._concern: Concern | None = None
        self._met = self._differing = 0
        self._counts_missing = True
        if listed(self._place)[0]:
            self._open()

    def _open(self) -> None:
        try:
            chain = open_chain(self._place, self.kind.name)
            check_segments(chain.segments)
        except StorageError as error:
            what = f"The segments cannot be used: {error.message} {_ANEW}"
            self._concern = Concern("segments_broken", what, _REPAIR, size_of(self._place))
            return
        journal = Journal(self._folder.path / self.kind.journal, {self.kind.name})
        fitting, notes = chain_of(self._place, self.kind, journal)
        if not fitting.segments:
            what = "The journal does not have the place where the segments end: it was put back, or compacted since."
            self._concern = Concern("segments_stale", f"{what} {_ANEW}", size=size_of(self._place))
            return
        header = journal.reader.header
        purged = (header.purged_seq if header is not None else None) or 0
        # What a compaction took away, the journal cannot tell of; the next session has these segments made anew.
        self._counts_missing = all(segment.about.purged_seq >= purged for segment in chain.segments)
        self._chain = chain
        self._invalid = invalid_in(notes)

    def compare(self, lines: list[Line]) -> None:
        """Look at all lines of some records."""
        if not self._chain.segments:
            return
        then, later = self._as_sealed(lines)
        ids = [*then]
        for record_id, number in zip(ids, self._chain.numbers_of([each.encode() for each in ids]), strict=True):
            self._met += number is not None
            data = self._chain.record(number)[1] if number is not None else None
            if record_id in self._invalid:
                data = self._invalid[record_id].data
            if record_id not in later and data != then[record_id] and not self._same(record_id, data, then[record_id]):
                self._differing += 1

    def concerns(self) -> Iterator[Concern]:
        """Report how they stand, once all lines were compared; nothing where there are none."""
        if self._concern is not None:
            yield self._concern
            return
        if not self._chain.segments:
            return
        differing = self._differing + (len(self._chain) - self._met if self._counts_missing else 0)
        size = size_of(self._place)
        if differing:
            name = self.kind.name
            what = f"The segments differ from the journal in {counted(differing, name, f'{name}s')}."
            yield Concern("segments_untrue", f"{what} The journal is right.", _REPAIR, size)
            return
        sealed, segments = counted(len(self._chain), "record"), counted(len(self._chain.segments), "segment")
        yield Concern(
            "segments", f"{sealed} up to change {self._chain.last_seq:,} are sealed in {segments}.", size=size
        )

    def _as_sealed(self, lines: list[Line]) -> tuple[dict[str, dict[str, Any] | None], set[str]]:
        """Return the records as the journal had them where the segments end, None for one that was not there.

        And the ids of those that were stored or deleted later: a compaction leaves only that.
        """
        records: Records = {}
        ids: dict[str, None] = {}
        later: set[str] = set()
        for line in lines:
            for change in line.part.changes:
                if change.kind != self.kind.name or change.op == "mark":
                    continue
                ids[change.id] = None
                if line.entry.seq <= self._chain.last_seq:
                    apply_change(records, change, line.entry.at)
                elif change.op in {"put", "delete"}:
                    later.add(change.id)
        return {one: records.get(one) for one in ids}, later

    def _same(self, record_id: str, sealed: dict[str, Any] | None, said: dict[str, Any] | None) -> bool:
        """Tell whether two versions make the same record, however it is written."""
        if sealed is None or said is None:
            return False
        try:
            known, right = (self.kind.load(self._folder.agent_id, record_id, each) for each in (sealed, said))
        except pydantic.ValidationError:
            return False
        return bool(known == right)


def remove_segments(folder: AgentFolder, kind: str) -> None:
    """Remove the segments of one kind; a process that maps them goes on with them."""
    unlist_segments(folder.segments(kind))
    remove_unused(folder.segments(kind))
