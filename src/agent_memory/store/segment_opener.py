"""Open the segments of one kind of record, as far as the journal continues them, or compare both."""

from __future__ import annotations

import contextlib
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic

import numpy as np
import pydantic

from agent_memory.embeddings.cache import PREFIX_BYTES, HashSet
from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import remove_leftovers
from agent_memory.files.concerns import Concern
from agent_memory.files.entries import size_of
from agent_memory.files.lock import index_lock
from agent_memory.files.wording import counted
from agent_memory.index import SearchIndex
from agent_memory.index.segment import (
    Chain,
    Segment,
    check_segments,
    is_ours,
    listed,
    open_chain,
    read_about,
    unlist_segments,
)
from agent_memory.index.segment_part import SealedCorpus
from agent_memory.index.segment_vectors import SealedVectors, Vectors, folder_name
from agent_memory.journal import Journal, Records, apply_change
from agent_memory.journal.place import ReadPosition
from agent_memory.journal.purge_filter import is_returned
from agent_memory.journal.reader import resume_at
from agent_memory.models import Trace
from agent_memory.models.kind import R
from agent_memory.store.change_log import FileLog
from agent_memory.store.sealed_records import Invalid, SealedRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from agent_memory.embeddings import EmbedderIdentity, EmbeddingService
    from agent_memory.files.layout import AgentFolder
    from agent_memory.index import DenseIndex, RankingSettings
    from agent_memory.journal import InspectedLine
    from agent_memory.models import Kind
    from agent_memory.store.protocols import ChangeLog
    from agent_memory.store.store import Store

PLACE: Final = "place"
"""In the notes of segments: where in the journal they end."""
COUNTED: Final = "counted"
"""In the notes of segments: what a compaction would drop of the lines before that."""
LAST_CHANGE: Final = "last_change"
"""In the notes of segments: when their last change was made."""
INVALID: Final = "invalid"
"""In the notes of segments: records that break the data model, which have no row but of what they were before."""
TRACES: Final = "traces"
"""In the notes of segments: what stays of records that were forgotten for a reason, by id."""

_FINISHED: Final = r"\d{12,}-[0-9a-f]{8}"
_UNFINISHED: Final = r"\.[0-9a-f]{12}"
"""The names of segments, and of those that are being written."""


class SealedPieces:
    """The texts that were embedded for sealed records.

    Args:
        chain: The records.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    def __len__(self) -> int:
        return sum(len(segment.columns["piece.row"]) for segment in self._chain.segments)

    def hashes(self) -> HashSet:
        """Return the hashes of the texts of those that count."""
        found = [np.empty(0, ">u8")]
        for segment, alive in zip(self._chain.segments, self._chain.alive, strict=True):
            every = segment.columns["piece.hash"][alive[segment.columns["piece.row"]]]
            found.append(np.ascontiguousarray(every[:, :PREFIX_BYTES]).view(">u8").ravel())
        return HashSet(np.concatenate(found).tolist())

    def needs(self, key: bytes) -> bool:
        """Tell whether one that counts has a text of this hash; compares with all, some 10 ms at a million."""
        wanted = np.frombuffer(key, np.uint8)
        for segment, alive in zip(self._chain.segments, self._chain.alive, strict=True):
            every = segment.columns["piece.hash"]
            near = np.flatnonzero(every[:, 0] == wanted[0])
            same = near[(every[near] == wanted).all(axis=1)]
            if alive[segment.columns["piece.row"][same]].any():
                return True
        return False


@dataclass(frozen=True, slots=True)
class SealedOpened(Generic[R]):
    """What is open.

    Attributes:
        index: Searches what is sealed, and what is put into it.
        records: What is sealed; None where everything is to be replayed.
        unembedded: Those of them whose segments have no vectors yet.
    """

    index: SearchIndex
    records: SealedRecords[R] | None = None
    unembedded: Iterable[R] = ()


class Opening(Generic[R]):
    """How the segments of one kind of an agent's records are opened.

    Args:
        kind: Of which records.
        folder: The agent's.
        embeddings: Their vectors.
        ranking: How they are searched.
    """

    def __init__(
        self, kind: Kind[R], folder: AgentFolder, embeddings: EmbeddingService[DenseIndex], ranking: RankingSettings
    ) -> None:
        self._kind = kind
        self._folder = folder
        self._vectors = embeddings.index
        self._ranking = ranking
        self.identity = embeddings.known_identity()

    def open(self, log: FileLog) -> SealedOpened[R]:
        """Open what is sealed, and let the log, not read yet, go on from there."""
        opened = self._open(log)
        self._use(opened)
        return opened

    def _open(self, log: FileLog) -> SealedOpened[R]:
        place = self._folder.segments(self._kind.name)
        chain, notes = chain_of(place, self._kind, log.journal)
        drop_stale(self._folder, self._kind)  # what is open by now stays mapped
        if not chain.segments:
            return SealedOpened(SearchIndex(self._ranking, self._vectors))
        log.policy.resume(notes.get(COUNTED, {}))
        vectors = [_vectors_of(segment, self.identity) for segment in chain.segments]
        index = SearchIndex(self._ranking, self._vectors, sealed=SealedCorpus(chain, vectors))
        last, said = notes.get(LAST_CHANGE), (invalid_in(notes), traces_in(notes))
        records = SealedRecords(self._kind, self._folder.agent_id, chain, last, *said)
        without = [at for at, each in enumerate(vectors) if each is None] if self.identity is not None else []
        return SealedOpened(index, records, records.within(without))

    def last_sealed(self) -> int:
        """Return the number of the last change that is sealed by now, in use here or not; 0 without any."""
        place = ReadPosition.from_json(listed(self._folder.segments(self._kind.name))[1].get(PLACE, {}))
        return place.seq if place is not None else 0

    def _use(self, opened: SealedOpened[R]) -> None:
        """Let the vectors know which texts are sealed; only of a chain that a replica hides rows of."""
        if self._vectors is not None and opened.records is not None:
            self._vectors.elsewhere = SealedPieces(opened.records.chain)

    def drop_purged(self, log: ChangeLog) -> None:
        """Remove the segments if the log has purged what they may hold."""
        if isinstance(log, FileLog):
            drop_purged(self._folder.segments(self._kind.name), log.journal)

    def adopt(self, replica: Store[R]) -> bool:
        """Let a replica take new segments into use, if it has read as far as they go; tell whether it did."""
        if self._is_in_use(replica):
            return False
        log = FileLog(self._kind, self._folder)
        opened = self._open(log)
        generation, seq = replica.log.watermark
        if opened.records is None or log.watermark[0] != generation or opened.records.chain.last_seq > seq:
            return False
        self._use(opened)
        replica.adopt(opened.records, opened.index, opened.unembedded)
        return True

    def _is_in_use(self, replica: Store[R]) -> bool:
        """Tell whether a replica has the segments that are listed, and all of their vectors that there are."""
        sealed = replica.index.parts.sealed
        if sealed is None:
            return False
        names = [segment.folder.name for segment in sealed.chain.segments]
        without = [segment for segment, each in zip(sealed.chain.segments, sealed.vectors, strict=True) if each is None]
        return names == listed(self._folder.segments(self._kind.name))[0] and not any(
            (segment.folder / folder_name(str(self.identity))).is_dir() for segment in without
        )


def chain_of(place: Path, kind: Kind[Any], journal: Journal) -> tuple[Chain, dict[str, Any]]:
    """Return the segments of one kind with what was noted about them, and let the journal be read from their end on.

    None where they do not fit. Another process may list others, and remove these, while they are being opened: then it
    is tried again.
    """
    while True:
        said = listed(place)
        chain, notes = _fitting(place, kind, journal)
        if chain.segments or listed(place) == said:
            return chain, notes


def _fitting(place: Path, kind: Kind[Any], journal: Journal) -> tuple[Chain, dict[str, Any]]:
    try:
        chain = open_chain(place, kind.name) if is_ours(place) else Chain()
        is_current = not chain.segments or not is_returned(journal.path)
    except StorageError:  # damaged, or of another version: they are made anew
        return Chain(), {}
    notes = listed(place)[1]
    ends = ReadPosition.from_json(notes.get(PLACE, {}))
    fits = is_current and ends is not None and ends.seq == chain.last_seq and resume_at(journal.reader, ends)
    return (chain, notes) if fits else (Chain(), {})


def invalid_in(notes: Mapping[str, Any]) -> dict[str, Invalid]:
    """Return what segments noted of records that break the data model."""
    return {one: Invalid(**said) for one, said in notes.get(INVALID, {}).items()}


def traces_in(notes: Mapping[str, Any]) -> dict[str, Trace]:
    """Return what segments noted of records that were forgotten for a reason."""
    found = (Trace.from_json(one, said) for one, said in notes.get(TRACES, {}).items())
    return {trace.id: trace for trace in found if trace is not None}


def drop_purged(place: Path, journal: Journal) -> bool:
    """Remove all segments if one was made before the last purge of the journal, whose header was read; tell whether so.

    A process that maps them goes on with them.
    """
    header, names = journal.reader.header, listed(place)[0]
    if header is None or not header.purged_seq or not names or not is_ours(place):
        return False
    with contextlib.suppress(StorageError):
        if all(read_about(place / str(name)).purged_seq >= header.purged_seq for name in names):
            return False
    unlist_segments(place)
    remove_unused(place)
    with contextlib.suppress(BusyError), index_lock(place / ".lock", "purge"):  # else who seals looks before it ends
        remove_unused(place, unfinished=True)
    return True


def remove_unused(place: Path, *, unfinished: bool = False) -> None:
    """Remove what is not listed; a process that maps it keeps what it mapped.

    Args:
        place: Where segments are.
        unfinished: Also those that are being written: for who has the lock that their writer holds.
    """
    if not is_ours(place):
        return  # what a link leads to is not ours to be removed
    used = listed(place)[0]
    ours = re.compile(f"{_FINISHED}|{_UNFINISHED}" if unfinished else _FINISHED)
    for path in place.iterdir():
        if path.name not in used and ours.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
    remove_leftovers(place)


def drop_stale(folder: AgentFolder, kind: Kind[Any]) -> None:
    """Finish what a process that died in the middle of a compaction left: remove segments with texts it purged."""
    journal = Journal(folder.path / kind.journal, {kind.name})
    with contextlib.suppress(StorageError, OSError):  # a folder that cannot be written; the next one does
        journal.poll(most=1)  # for its header
        drop_purged(folder.segments(kind.name), journal)


def _vectors_of(segment: Segment, identity: EmbedderIdentity | None) -> SealedVectors | None:
    if identity is None:
        return None
    try:
        return SealedVectors(segment, Vectors(segment.folder / folder_name(str(identity))))
    except StorageError:  # not made yet, or damaged
        return None


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

    def compare(self, lines: list[InspectedLine]) -> None:
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

    def _as_sealed(self, lines: list[InspectedLine]) -> tuple[dict[str, dict[str, Any] | None], set[str]]:
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
