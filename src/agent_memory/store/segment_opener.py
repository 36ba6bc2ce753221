"""Open the segments of one kind."""

from __future__ import annotations

import contextlib
import re
import shutil
from typing import TYPE_CHECKING, Any, Final, Generic

import numpy as np

from agent_memory.embeddings.cache import PREFIX_BYTES, HashSet
from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import remove_leftovers
from agent_memory.files.lock import index_lock
from agent_memory.index import SearchIndex
from agent_memory.index.segment import Chain, Segment, is_ours, open_chain, read_about, read_listing, unlist_segments
from agent_memory.index.segment_part import SealedCorpus
from agent_memory.index.segment_vectors import JoinedVectors, PieceVectors, SealedVectors, folder_name, has_vectors
from agent_memory.journal import Journal
from agent_memory.journal.place import ReadPosition
from agent_memory.journal.purge_filter import is_returned
from agent_memory.journal.reader import resume_at
from agent_memory.models import Trace
from agent_memory.models.kind import R
from agent_memory.store.change_log import FileLog
from agent_memory.store.sealed_records import InvalidRecord, SealedRecords

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agent_memory.embeddings import EmbedderIdentity, EmbeddingService
    from agent_memory.files.layout import AgentFolder
    from agent_memory.index import DenseIndex, RankingSettings
    from agent_memory.models import Kind
    from agent_memory.store.protocols import ChangeLog
    from agent_memory.store.store import Store

# Keys in the notes of segments.
PLACE: Final = "place"
"""Place in the journal where they end."""
COUNTED: Final = "counted"
"""State of the `CompactionPolicy` at that place."""
LAST_CHANGE: Final = "last_change"
"""Time of their last change."""
INVALID: Final = "invalid"
"""By ID, records that break the data model; their rows have the last valid version."""
TRACES: Final = "traces"
"""By ID, traces of records that were forgotten for a reason."""

_FINISHED: Final = r"\d{12,}-[0-9a-f]{8}"
_UNFINISHED: Final = r"\.[0-9a-f]{12}"
"""Names of segments, and of those that are being written."""


class SealedPieces:
    """Texts that were embedded for sealed records.

    Args:
        chain: Segments of the records.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    def __len__(self) -> int:
        return sum(len(segment.columns["piece.row"]) for segment in self._chain.segments)

    def hashes(self) -> HashSet:
        """Return the hashes of the texts of visible rows."""
        prefixes = [np.empty(0, ">u8")]
        for segment, alive in zip(self._chain.segments, self._chain.alive, strict=True):
            hashes = segment.columns["piece.hash"][alive[segment.columns["piece.row"]]]
            prefixes.append(np.ascontiguousarray(hashes[:, :PREFIX_BYTES]).view(">u8").ravel())
        return HashSet(np.concatenate(prefixes).tolist())

    def needs(self, key: bytes) -> bool:
        """Return True if a visible row has a text with this hash.

        Compares with all rows, some 10 ms at a million.
        """
        wanted = np.frombuffer(key, np.uint8)
        for segment, alive in zip(self._chain.segments, self._chain.alive, strict=True):
            hashes = segment.columns["piece.hash"]
            near = np.flatnonzero(hashes[:, 0] == wanted[0])
            same = near[(hashes[near] == wanted).all(axis=1)]
            if alive[segment.columns["piece.row"][same]].any():
                return True
        return False


class SegmentOpener(Generic[R]):
    """Opener of the segments of one kind of an agent's records.

    Args:
        kind: Kind of the records.
        folder: Folder of the agent.
        embeddings: Vectors of their texts.
        ranking: Settings of the search index.
    """

    def __init__(
        self, kind: Kind[R], folder: AgentFolder, embeddings: EmbeddingService[DenseIndex], ranking: RankingSettings
    ) -> None:
        self._kind = kind
        self._folder = folder
        self._place = folder.segments(kind.name)
        self._vectors = embeddings.index
        self._ranking = ranking
        self.identity = embeddings.known_identity()

    def open_segments(self, log: FileLog) -> tuple[SearchIndex, SealedRecords[R] | None, Iterable[R]]:
        """Open the segments; an unread log continues where they end.

        Returns:
            Index of the sealed records, and of records that are put into it; the sealed records, None if everything is
            to be replayed; those of them whose segments have no vectors yet.
        """
        index, records, unembedded = self._load(log)
        self._use(records)
        return index, records, unembedded

    def _load(self, log: FileLog) -> tuple[SearchIndex, SealedRecords[R] | None, Iterable[R]]:
        records, notes = open_sealed_records(self._folder, self._kind, log.journal)
        drop_stale(self._folder, self._kind)  # open segments stay mapped
        if records is None:
            return SearchIndex(self._ranking, self._vectors), None, ()
        chain = records.chain
        log.policy.resume(notes.get(COUNTED, {}))
        vectors = [_open_vectors(segment, self.identity) for segment in chain.segments]
        index = SearchIndex(self._ranking, self._vectors, sealed=SealedCorpus(chain, vectors))
        has_embedder = self.identity is not None
        missing = [place for place, segment_vectors in enumerate(vectors) if has_embedder and segment_vectors is None]
        return index, records, records.iter_segments(missing)

    def get_last_sealed(self) -> int:
        """Return the number of the last sealed change, or 0.

        Another process may have sealed it.
        """
        place = ReadPosition.from_json(read_listing(self._place)[1].get(PLACE, {}))
        return place.seq if place is not None else 0

    def _use(self, records: SealedRecords[R] | None) -> None:
        """Report the sealed texts to the vectors.

        Only of a chain in use, which hides changed rows.
        """
        if self._vectors is not None and records is not None:
            self._vectors.elsewhere = SealedPieces(records.chain)

    def drop_purged(self, log: ChangeLog) -> None:
        """Remove the segments if the log has purged their texts."""
        if isinstance(log, FileLog):
            drop_purged(self._place, log.journal)

    def adopt(self, store: Store[R]) -> bool:
        """Replace the segments of a store, unless it has read less.

        Returns True if they were replaced.
        """
        if self._is_in_use(store):
            return False
        log = FileLog(self._kind, self._folder)
        index, records, unembedded = self._load(log)
        generation, seq = store.log.watermark
        if records is None or log.watermark[0] != generation or records.chain.last_seq > seq:
            return False
        self._use(records)
        store.adopt(records, index, unembedded)
        return True

    def _is_in_use(self, store: Store[R]) -> bool:
        """Return True if a store uses all listed segments and vectors."""
        corpus = store.index.parts.sealed
        if corpus is None or [segment.folder.name for segment in corpus.chain.segments] != read_listing(self._place)[0]:
            return False
        pairs = zip(corpus.chain.segments, corpus.vectors, strict=True)
        return not any(
            vectors is None
            and self.identity is not None
            and has_vectors(segment.folder, map(str, self.identity.members))
            for segment, vectors in pairs
        )


def open_sealed_records(
    folder: AgentFolder, kind: Kind[R], journal: Journal
) -> tuple[SealedRecords[R] | None, dict[str, Any]]:
    """Open the segments of one kind, with their notes.

    The journal continues where they end.

    None if there are none, or if they do not fit the journal. Another process may list other segments, and remove
    these, while they are being opened: then it is tried again.
    """
    place = folder.segments(kind.name)
    while True:
        before = read_listing(place)
        chain, notes = _open_fitting(place, kind, journal)
        if chain.segments or read_listing(place) == before:
            break
    if not chain.segments:
        return None, {}
    invalid = {record_id: InvalidRecord(**fields) for record_id, fields in notes.get(INVALID, {}).items()}
    traces = (Trace.from_json(record_id, fields) for record_id, fields in notes.get(TRACES, {}).items())
    by_id = {trace.id: trace for trace in traces if trace is not None}
    return SealedRecords(kind, folder.agent_id, chain, notes.get(LAST_CHANGE), invalid, by_id), notes


def _open_fitting(place: Path, kind: Kind[Any], journal: Journal) -> tuple[Chain, dict[str, Any]]:
    try:
        chain = open_chain(place, kind.name) if is_ours(place) else Chain()
        is_current = not chain.segments or not is_returned(journal.path)
    except StorageError:  # damaged, or of another version: they are rebuilt
        return Chain(), {}
    notes = read_listing(place)[1]
    end = ReadPosition.from_json(notes.get(PLACE, {}))
    fits = is_current and end is not None and end.seq == chain.last_seq and resume_at(journal.reader, end)
    return (chain, notes) if fits else (Chain(), {})


def drop_purged(place: Path, journal: Journal) -> bool:
    """Remove all segments if one is older than the last purge.

    Returns True if they were removed.

    The header of the journal must be read. A process that maps the segments still has them.
    """
    header, names = journal.reader.header, read_listing(place)[0]
    if header is None or not header.purged_seq or not names or not is_ours(place):
        return False
    with contextlib.suppress(StorageError):
        if all(read_about(place / str(name)).purged_seq >= header.purged_seq for name in names):
            return False
    unlist_segments(place)
    remove_unused(place)
    with contextlib.suppress(BusyError), index_lock(place / ".lock", "purge"):  # else the builder checks at its end
        remove_unused(place, unfinished=True)
    return True


def remove_unused(place: Path, *, unfinished: bool = False) -> None:
    """Remove segments that are not listed.

    A process that maps them still has them.

    Args:
        place: Folder of the segments.
        unfinished: True to remove unfinished segments, too; the caller has the lock of their writer.
    """
    if not is_ours(place):
        return  # the target of a link is not ours
    used = read_listing(place)[0]
    ours = re.compile(f"{_FINISHED}|{_UNFINISHED}" if unfinished else _FINISHED)
    for path in place.iterdir():
        if path.name not in used and ours.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
    remove_leftovers(place)


def remove_segments(folder: AgentFolder, kind: str) -> None:
    """Remove the segments of one kind.

    A process that maps them still has them.
    """
    unlist_segments(folder.segments(kind))
    remove_unused(folder.segments(kind))


def drop_stale(folder: AgentFolder, kind: Kind[Any]) -> None:
    """Remove segments with purged texts, which a killed compaction may have left."""
    journal = Journal(folder.path / kind.journal, {kind.name})
    with contextlib.suppress(StorageError, OSError):  # a folder that is not writable; the next process does it
        journal.poll(most=1)  # for its header
        drop_purged(folder.segments(kind.name), journal)


def _open_vectors(segment: Segment, identity: EmbedderIdentity | None) -> SealedVectors | None:
    if identity is None:
        return None
    try:
        parts = [PieceVectors(segment.folder / folder_name(str(part))) for part in identity.members]
        return SealedVectors(segment, parts[0] if len(parts) == 1 else JoinedVectors(parts))
    except StorageError:  # not made yet, or damaged
        return None


def are_embedded(place: Path, identity: EmbedderIdentity) -> bool:
    """Return True if all listed segments have vectors of an embedder."""
    names = read_listing(place)[0]
    return bool(names) and all(has_vectors(place / str(name), map(str, identity.members)) for name in names)
