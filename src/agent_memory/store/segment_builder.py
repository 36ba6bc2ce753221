"""Seal records of a journal in segments.

Usage: `python -m agent_memory.store.segment_builder AGENT_FOLDER KIND IDENTITY`.

A process of its own with low priority, since a large journal takes seconds. If it is killed, the segments listed before
stay in use, and the next one removes its unfinished files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import uuid
from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.embeddings import EmbedderIdentity, VectorCache
from agent_memory.encryption import is_encrypted
from agent_memory.errors import AgentMemoryError, BusyError, StorageError
from agent_memory.files.atomic import make_private_folder, sync_folder, translated
from agent_memory.files.layout import AgentFolder
from agent_memory.files.lock import index_lock
from agent_memory.files.processes import keep_to_itself
from agent_memory.index.segment import (
    Chain,
    Segment,
    SegmentInfo,
    arrivals,
    check_segments,
    hash_id,
    is_ours,
    list_segments,
    next_arrival,
    open_chain,
    read_listing,
    unlist_segments,
)
from agent_memory.index.segment_vectors import add_vectors, has_vectors, remove_unfinished
from agent_memory.index.segment_writer import PINNED, Row, merge, seal, searched_fields
from agent_memory.journal import Journal, JournalUpdate
from agent_memory.journal.reader import get_position
from agent_memory.logs import get_logger
from agent_memory.models import Kind, content_hash, listed_as
from agent_memory.store.change_log import CompactionPolicy, is_counted
from agent_memory.store.memory_storage import SEALED_AT
from agent_memory.store.segment_opener import (
    COUNTED,
    INVALID,
    LAST_CHANGE,
    PLACE,
    TRACES,
    drop_purged,
    drop_stale,
    open_sealed_records,
    remove_unused,
)
from agent_memory.store.state import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from agent_memory.models import Record

log = get_logger(__name__)

_GROWTH: Final = 3
"""A segment is merged with the later ones once these have a third of its size: so the number of segments grows with the
logarithm of the rows to the base of four, and each row is rewritten about four times in each of them."""
_SMALL: Final = 5_000
"""Rows that are always one segment: a segment takes a start 4 ms to open, and so many rows take 40 ms to merge."""
_MOST_AT_ONCE: Final = 20_000
"""Changed or accessed records of one new segment, about; they take some 120 MB of memory."""
_BYTES_AT_ONCE: Final = 1 << 20
_VECTORS_AT_ONCE: Final = 5_000
_SAMPLED_VECTORS: Final = 100
_MOST_SEGMENTS: Final = 12
"""Segments from which on they are merged while more are sealed: each takes some 50 open files."""
_MOST_INVALID: Final = 1 << 20
"""Bytes of records that break the data model: each start reads them. With more, nothing is sealed until a compaction
removes them."""
_MOST_TRIES: Final = 5
"""Attempts after a purge removed the unfinished segments: a purge has priority."""
_NICENESS: Final = 10


def main(arguments: list[str]) -> None:
    """Seal the records that the command line names."""
    place, name, embedder = arguments
    keep_to_itself()
    os.nice(_NICENESS)
    identity = EmbedderIdentity.from_json(embedder) if embedder else None
    try:
        seal_up(AgentFolder(Path(place)), Kind.at(name), identity)
    except AgentMemoryError as error:
        log.warning("sealing_failed", code=error.code, error=error.message)
        sys.exit(1)


def seal_up(folder: AgentFolder, kind: Kind[Any], identity: EmbedderIdentity | None, least: int = SEALED_AT) -> bool:
    """Seal records, merge segments, add vectors; return True if changed.

    Args:
        folder: Folder of the agent.
        kind: Kind of the records.
        identity: Embedder whose vectors to copy from the cache; None for none.
        least: Changed or accessed records from which on sealing is worth the time.

    Raises:
        StorageError: Without free space, for instance; nothing has changed.
    """
    place = folder.segments(kind.name)
    if not is_ours(place):
        log.warning("segments_behind_a_link", folder=place.name)
        return False
    make_private_folder(place)
    with contextlib.suppress(BusyError), index_lock(place / ".lock", "seal"):
        for _ in range(_MOST_TRIES):
            try:
                return _seal_and_merge(folder, kind, identity, least)
            except (FileNotFoundError, StorageError) as error:
                if not isinstance(error, FileNotFoundError) and not isinstance(error.__cause__, FileNotFoundError):
                    raise
                log.info("sealing_begun_again", error=str(error))  # a purge removed all segments
        raise StorageError(f"Files being written in {place.name} were removed again and again.")
    return False


def _seal_and_merge(folder: AgentFolder, kind: Kind[Any], identity: EmbedderIdentity | None, least: int) -> bool:
    place, done = folder.segments(kind.name), False
    _clean(place)
    drop_stale(folder, kind)
    with contextlib.closing(VectorCache(folder.vectors)) as cache:
        done = _add_vectors(_listed_chain(place, kind), cache, identity)
        while _seal_all(folder, kind, cache, identity, least):  # more may have come during the merge
            done = True
            _merge_due(place, kind, identity)
    _merge_due(place, kind, identity)
    drop_stale(folder, kind)  # a concurrent compaction may have purged a text of a new segment
    _clean(place)
    return done


def _seal_all(
    folder: AgentFolder, kind: Kind[Any], cache: VectorCache, identity: EmbedderIdentity | None, least: int
) -> bool:
    """Seal all unsealed records in batches; return True if any were."""
    place, done = folder.segments(kind.name), False
    while _seal_batch(folder, kind, place, least):
        chain, done = _listed_chain(place, kind), True
        _add_vectors(chain, cache, identity)
        if len(chain.segments) >= _MOST_SEGMENTS:
            _merge_due(place, kind, identity)
    return done


def _clean(place: Path) -> None:
    remove_unused(place, unfinished=True)
    for segment in place.glob("[0-9]*"):
        if not segment.is_symlink():
            remove_unfinished(segment)


def _seal_batch(folder: AgentFolder, kind: Kind[Any], place: Path, least: int) -> bool:
    """Seal records after the last segment, unless they are too few."""
    if is_encrypted(folder.path):
        return False
    journal = Journal(folder.path / kind.journal, {kind.name})
    sealed, notes = open_sealed_records(folder, kind, journal)
    if sealed is not None and drop_purged(place, journal):
        journal, sealed, notes = Journal(journal.path, journal.kinds), None, {}
    chain = Chain() if sealed is None else sealed.chain
    state = State(kind, folder.agent_id, sealed)
    policy = CompactionPolicy()
    policy.resume(notes.get(COUNTED, {}))
    while state.unsealed_count < _MOST_AT_ONCE and (update := journal.poll(most=_BYTES_AT_ONCE)).entries:
        if update.reset:  # it was replaced, and no longer continues these segments
            return _seal_batch(folder, kind, place, least)
        state.absorb(update)
        _count(policy, kind, journal, update)
    last, here = journal.watermark[1], get_position(journal.reader)
    table = state.table
    invalid = {record_id: {"data": table.get_raw(record_id), "why": why} for record_id, why in table.invalid.items()}
    if here is None or state.unsealed_count < least or len(json.dumps(invalid)) > _MOST_INVALID:
        return False
    if state.replacements.circles:  # any change may decide which record of a circle is shown; the doctor breaks circles
        return False
    touched = chain.among({*state.changed_at, *table.records})
    hides = np.array([hash_id(record_id.encode()) for record_id in touched], np.uint64)
    rows = _rows(state, chain)
    about = SegmentInfo(kind.name, chain.last_seq + 1, last, here.header.purged_seq or 0, 0, 0)
    with _make_unfinished(place) as unfinished:
        forgotten = [bytes.fromhex(text_hash) for text_hash in table.forgotten]
        seal(unfinished, rows, about, hides=hides, forgotten=forgotten)
        notes = {PLACE: here.to_json(), COUNTED: policy.to_json(), LAST_CHANGE: state.last_change}
        notes |= {INVALID: invalid, TRACES: {trace.id: trace.to_json() for trace in table.traces.values()}}
        _take_into_use(place, chain.segments, unfinished, last, notes)
    return True


def _count(policy: CompactionPolicy, kind: Kind[Any], journal: Journal, update: JournalUpdate) -> None:
    header = journal.reader.header
    if policy.is_empty:
        policy.clear(header.last_seq if header is not None else 0)
    for entry in update.entries:
        if is_counted(entry, kind):
            policy.add(entry)


def _rows(state: State[Any], chain: Chain) -> list[Row]:
    """Return the rows to seal.

    Records sealed before keep their place in the order of storing.
    """
    records, new = state.table.records, count(next_arrival(chain))
    before = arrivals(chain, [record_id.encode() for record_id in records]).tolist()
    return [
        _row(state, record, arrival if arrival >= 0 else next(new))
        for record, arrival in zip(records.values(), before, strict=True)
    ]


def _row(state: State[Any], record: Record, arrival: int) -> Row:
    kind = state.kind
    searched = searched_fields(kind.document(record))
    # A record whose last change breaks the data model stays as it was; see `INVALID`.
    data = record.to_record() if record.id in state.table.invalid else state.table.get_raw(record.id)
    moments = {"promoted": record.promoted_at, "accessed": record.last_accessed, "expires": record.expires_at}
    fields: dict[str, Any] = {name: moment.timestamp() for name, moment in moments.items() if moment is not None}
    if record.supersedes is not None:
        fields["older"] = record.supersedes
    fields["links"] = listed_as(record.links)
    return Row(
        id=record.id,
        seq=state.get_seq(record.id),
        data=json.dumps(data, ensure_ascii=False).encode(),
        text_hash=bytes.fromhex(content_hash(kind.text_of(record))),
        arrival=arrival,
        **{**searched, **fields, "flags": searched["flags"] | (PINNED if record.pinned else 0)},
    )


def _merge_due(place: Path, kind: Kind[Any], identity: EmbedderIdentity | None) -> None:
    """Merge the last segments while they are relatively large."""
    while (first := _find_due(chain := _listed_chain(place, kind), identity)) is not None:
        due = list(zip(chain.segments, chain.alive, strict=True))[first:]
        purged = min(segment.about.purged_seq for segment in chain.segments[first:])
        try:
            check_segments(segment for segment, _ in due)
        except StorageError as error:  # damaged rows must not get into a new segment
            _discard(place, error)
            return
        with _make_unfinished(place) as unfinished:
            merge(unfinished, due, purged_seq=purged, oldest=first == 0)
            _take_into_use(place, chain.segments[:first], unfinished, chain.last_seq, read_listing(place)[1])
        remove_unused(place, unfinished=True)


def _find_due(chain: Chain, identity: EmbedderIdentity | None) -> int | None:
    """Return the place from which on to merge segments, or None.

    Segments with vectors wait until the others have theirs, unless there are too many segments: a merge with a segment
    without vectors would lose them.
    """
    sizes = [len(segment) + len(segment.columns["hides"]) for segment in chain.segments]
    names = [] if identity is None else list(map(str, identity.members))
    embedded = [tuple([has_vectors(segment.folder, [name]) for name in names]) for segment in chain.segments]
    are_many = len(sizes) >= _MOST_SEGMENTS
    for first in range(len(sizes) - 1):
        is_due = sizes[first] < _GROWTH * sum(sizes[first + 1 :]) or sum(sizes[first:]) <= _SMALL
        if is_due and (are_many or len(set(embedded[first:])) == 1):
            return first
    return None


def _listed_chain(place: Path, kind: Kind[Any]) -> Chain:
    try:
        return open_chain(place, kind.name)
    except StorageError as error:  # damaged, or of another version: rebuilt from the journal
        _discard(place, error)
        return Chain()


def _discard(place: Path, error: StorageError) -> None:
    log.warning("segments_made_anew", error=error.message)
    unlist_segments(place)


def _take_into_use(
    place: Path, before: Sequence[Segment], unfinished: Path, last_seq: int, notes: Mapping[str, Any]
) -> None:
    name = f"{last_seq:012d}-{uuid.uuid4().hex[:8]}"
    with translated(unfinished, "rename"):
        sync_folder(unfinished)
        unfinished.rename(place / name)
        sync_folder(place)
    try:
        list_segments(place, [*(segment.folder.name for segment in before), name], notes)
    except StorageError:
        remove_unused(place)  # a full disk needs its space
        raise


def _add_vectors(chain: Chain, cache: VectorCache, identity: EmbedderIdentity | None) -> bool:
    """Copy complete sets of vectors from the cache to their segments.

    Returns True if any were copied.
    """
    added = False
    identities = () if identity is None else identity.members
    for segment, part in product(chain.segments, identities):
        if has_vectors(segment.folder, [str(part)]):
            continue
        with contextlib.suppress(_NotEmbeddedError):
            # Texts are embedded in this order, so if any vector is missing, the last ones are.
            _load_vectors(segment.columns["piece.hash"][-_SAMPLED_VECTORS:], cache, part)
            add_vectors(segment.folder, str(part), part.dimension, _iter_vectors(segment, cache, part))
            added = True
    return added


class _NotEmbeddedError(Exception):
    """A text of a segment has no vector in the cache yet."""


def _iter_vectors(segment: Segment, cache: VectorCache, identity: EmbedderIdentity) -> Iterator[NDArray[np.float32]]:
    hashes: NDArray[np.uint8] = segment.columns["piece.hash"]
    for begin in range(0, len(hashes), _VECTORS_AT_ONCE):
        yield _load_vectors(hashes[begin : begin + _VECTORS_AT_ONCE], cache, identity)


def _load_vectors(hashes: NDArray[np.uint8], cache: VectorCache, identity: EmbedderIdentity) -> NDArray[np.float32]:
    keys = [text_hash.tobytes() for text_hash in hashes]
    vectors = cache.get_many(identity, keys)
    if any(key not in vectors for key in keys):
        raise _NotEmbeddedError
    return np.stack([vectors[key] for key in keys]) if keys else np.empty((0, identity.dimension), np.float32)


@contextlib.contextmanager
def _make_unfinished(place: Path) -> Iterator[Path]:
    folder = place / f".{uuid.uuid4().hex[:12]}"
    make_private_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
