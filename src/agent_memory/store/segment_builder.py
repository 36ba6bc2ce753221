"""Seal what a journal says in segments: `python -m agent_memory.store.segment_builder AGENT_FOLDER KIND IDENTITY`.

A process of its own, with low priority, since it reads for seconds where there is much. Killed at any moment it leaves
the segments that were listed before; what it began is removed by the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import uuid
from itertools import count
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
    About,
    Chain,
    Segment,
    arrivals,
    check_segments,
    hash_of,
    is_ours,
    list_segments,
    listed,
    next_arrival,
    open_chain,
    unlist_segments,
)
from agent_memory.index.segment_vectors import add_vectors, folder_name, remove_unfinished
from agent_memory.index.segment_writer import PINNED, Row, merge, seal, searched_fields
from agent_memory.index.terms import talking
from agent_memory.journal import Journal, JournalUpdate
from agent_memory.journal.reader import get_position
from agent_memory.logs import get_logger
from agent_memory.models import Kind, content_hash, listed_as
from agent_memory.store.change_log import CompactionPolicy, is_counted
from agent_memory.store.file_storage import SEALED_AT
from agent_memory.store.sealed_records import SealedRecords
from agent_memory.store.segment_opener import (
    COUNTED,
    INVALID,
    LAST_CHANGE,
    PLACE,
    TRACES,
    chain_of,
    drop_purged,
    drop_stale,
    invalid_in,
    remove_unused,
    traces_in,
)
from agent_memory.store.state import State, seq_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from agent_memory.models import Record

log = get_logger(__name__)

_GROWTH: Final = 3
"""A segment is merged with those behind it once they are together a third of its size: so there are about as many as
the rows can be divided by four, and each row is rewritten about four times in each of them."""
_SMALL: Final = 5_000
"""Rows that are always one segment: each takes a start 4 ms to open, and so many take 40 ms to merge."""
_MOST_AT_ONCE: Final = 20_000
"""Changed or accessed records of one new segment, more or less: what is held in memory, some 120 MB."""
_BYTES_AT_ONCE: Final = 1 << 20
_VECTORS_AT_ONCE: Final = 5_000
_VECTORS_LOOKED_AT: Final = 100
_MOST_SEGMENTS: Final = 12
"""From so many on they are merged while more are sealed: each takes some 50 open files."""
_MOST_INVALID: Final = 1 << 20
"""Bytes of records that break the data model: each start reads them. Where there are more, nothing is sealed until a
compaction has moved them aside."""
_MOST_TRIES: Final = 5
"""How often it begins again because what it writes was removed: a purge that somebody waits for goes first."""
_NICENESS: Final = 10


def main(arguments: list[str]) -> None:
    """Seal what the command line names."""
    place, name, embedder = arguments
    keep_to_itself()
    os.nice(_NICENESS)
    identity = EmbedderIdentity(**json.loads(embedder)) if embedder else None
    try:
        seal_up(AgentFolder(Path(place)), Kind.at(name), identity)
    except AgentMemoryError as error:
        log.warning("sealing_failed", code=error.code, error=error.message)
        sys.exit(1)


def seal_up(folder: AgentFolder, kind: Kind[Any], identity: EmbedderIdentity | None, least: int = SEALED_AT) -> bool:
    """Seal what is not sealed yet, merge what has become many, and add vectors; tell whether anything was done.

    Args:
        folder: The agent's.
        kind: Of which records.
        identity: Whose vectors to take from the cache; None for none.
        least: Changed or accessed records from which on it is worth the time.

    Raises:
        StorageError: No room, for instance; nothing has changed.
    """
    place = folder.segments(kind.name)
    if not is_ours(place):
        log.warning("segments_behind_a_link", folder=place.name)
        return False
    make_private_folder(place)
    with contextlib.suppress(BusyError), index_lock(place / ".lock", "seal"):
        for _ in range(_MOST_TRIES):
            try:
                return _sealed_up(folder, kind, identity, least)
            except (FileNotFoundError, StorageError) as error:
                if not isinstance(error, FileNotFoundError) and not isinstance(error.__cause__, FileNotFoundError):
                    raise
                log.info("sealing_begun_again", error=str(error))  # somebody purged a text, and so all segments
        raise StorageError(f"What is being sealed in {place.name} was removed again and again.")
    return False


def _sealed_up(folder: AgentFolder, kind: Kind[Any], identity: EmbedderIdentity | None, least: int) -> bool:
    place, done = folder.segments(kind.name), False
    _clean(place)
    drop_stale(folder, kind)
    with contextlib.closing(VectorCache(folder.vectors)) as cache:
        done = _add_vectors(_listed_chain(place, kind), cache, identity)
        while _seal_what_came(folder, kind, cache, identity, least):  # while that was merged, more may have come
            done = True
            _merge_due(place, kind, identity)
    _merge_due(place, kind, identity)
    drop_stale(folder, kind)  # a compaction beside this may have purged what is in what was just listed
    _clean(place)
    return done


def _seal_what_came(
    folder: AgentFolder, kind: Kind[Any], cache: VectorCache, identity: EmbedderIdentity | None, least: int
) -> bool:
    """Seal all there is, in stretches; tell whether that was anything."""
    place, done = folder.segments(kind.name), False
    while _seal_stretch(folder, kind, place, least):
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


def _seal_stretch(folder: AgentFolder, kind: Kind[Any], place: Path, least: int) -> bool:
    """Seal what the journal says behind the last segment; tell whether that was enough to be worth it."""
    if is_encrypted(folder.path):
        return False
    journal = Journal(folder.path / kind.journal, {kind.name})
    chain, notes = chain_of(place, kind, journal)
    if chain.segments and drop_purged(place, journal):
        journal, chain, notes = Journal(journal.path, journal.kinds), Chain(), {}
    said = (notes.get(LAST_CHANGE), invalid_in(notes), traces_in(notes))
    sealed = SealedRecords(kind, folder.agent_id, chain, *said)
    state = State(kind, folder.agent_id, sealed)
    policy = CompactionPolicy()
    policy.resume(notes.get(COUNTED, {}))
    while state.unsealed < _MOST_AT_ONCE and (update := journal.poll(most=_BYTES_AT_ONCE)).entries:
        if update.reset:  # it was replaced meanwhile, and does not go on from these segments any more
            return _seal_stretch(folder, kind, place, least)
        state.absorb(update)
        _count(policy, kind, journal, update)
    last, here = journal.watermark[1], get_position(journal.reader)
    invalid = {one: {"data": state.table.as_in_journal(one), "why": why} for one, why in state.table.invalid.items()}
    if here is None or state.unsealed < least or len(json.dumps(invalid)) > _MOST_INVALID:
        return False
    if state.replacements.circles:  # which of one is shown may change with any of it; the doctor breaks them
        return False
    touched = {*state.changed_at, *state.table.records}
    hides = np.array([hash_of(one.encode()) for one in chain.among(touched)], np.uint64)
    rows = _rows(state, chain)
    about = About(kind.name, chain.last_seq + 1, last, here.header.purged_seq or 0, 0, 0)
    with _unfinished(place) as unfinished:
        forgotten = [bytes.fromhex(each) for each in state.table.forgotten]
        seal(unfinished, rows, about, talking=talking, hides=hides, forgotten=forgotten)
        notes = {PLACE: here.to_json(), COUNTED: policy.to_json(), LAST_CHANGE: state.last_change}
        notes |= {INVALID: invalid, TRACES: {one: trace.to_json() for one, trace in state.table.traces.items()}}
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
    """Return what is to be sealed; what was sealed before keeps its place in the order of storing."""
    records, new = state.table.records, count(next_arrival(chain))
    before = arrivals(chain, [one.encode() for one in records]).tolist()
    return [
        _row(state, record, arrival if arrival >= 0 else next(new))
        for record, arrival in zip(records.values(), before, strict=True)
    ]


def _row(state: State[Any], record: Record, arrival: int) -> Row:
    kind = state.kind
    searched = searched_fields(kind.document(record))
    # One whose last change breaks the data model goes on as it was before; see `INVALID`.
    data = record.to_record() if record.id in state.table.invalid else state.table.as_in_journal(record.id)
    moments = {"promoted": record.promoted_at, "accessed": record.last_accessed, "expires": record.expires_at}
    fields: dict[str, Any] = {name: moment.timestamp() for name, moment in moments.items() if moment is not None}
    if record.supersedes is not None:
        fields["older"] = record.supersedes
    fields["links"] = listed_as(record.links)
    return Row(
        id=record.id,
        seq=seq_of(state, record.id),
        data=json.dumps(data, ensure_ascii=False).encode(),
        text_hash=bytes.fromhex(content_hash(kind.text_of(record))),
        arrival=arrival,
        **{**searched, **fields, "flags": searched["flags"] | (PINNED if record.pinned else 0)},
    )


def _merge_due(place: Path, kind: Kind[Any], identity: EmbedderIdentity | None) -> None:
    """Merge the last segments while they are large against the one before them."""
    while (at := _first_due(chain := _listed_chain(place, kind), identity)) is not None:
        some = list(zip(chain.segments, chain.alive, strict=True))[at:]
        purged = min(segment.about.purged_seq for segment in chain.segments[at:])
        try:
            check_segments(segment for segment, _ in some)
        except StorageError as error:  # what is damaged must not be written into a new one
            _begin_anew(place, error)
            return
        with _unfinished(place) as unfinished:
            merge(unfinished, some, talking=talking, purged_seq=purged, oldest=at == 0)
            _take_into_use(place, chain.segments[:at], unfinished, chain.last_seq, listed(place)[1])
        remove_unused(place, unfinished=True)


def _first_due(chain: Chain, identity: EmbedderIdentity | None) -> int | None:
    """Return from which segment on they are to be merged; None where they are not.

    Those with vectors wait for the rest to have theirs, unless that takes too long: merged with one that has none, they
    would lose them.
    """
    sizes = [len(segment) + len(segment.columns["hides"]) for segment in chain.segments]
    embedded = [_is_embedded(segment, identity) for segment in chain.segments]
    many = len(sizes) >= _MOST_SEGMENTS
    for at in range(len(sizes) - 1):
        due = sizes[at] < _GROWTH * sum(sizes[at + 1 :]) or sum(sizes[at:]) <= _SMALL
        if due and (many or len(set(embedded[at:])) == 1):
            return at
    return None


def _listed_chain(place: Path, kind: Kind[Any]) -> Chain:
    try:
        return open_chain(place, kind.name)
    except StorageError as error:  # damaged, or of another version: made anew from the journal
        _begin_anew(place, error)
        return Chain()


def _begin_anew(place: Path, error: StorageError) -> None:
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
        remove_unused(place)  # on a full disk its room is wanted
        raise


def _is_embedded(segment: Segment, identity: EmbedderIdentity | None) -> bool:
    return identity is None or (segment.folder / folder_name(str(identity))).is_dir()


def _add_vectors(chain: Chain, cache: VectorCache, identity: EmbedderIdentity | None) -> bool:
    """Add vectors to the segments all of whose texts have one in the cache; tell whether any were added."""
    added = False
    for segment in chain.segments:
        if identity is None or _is_embedded(segment, identity):
            continue
        with contextlib.suppress(_NotEmbeddedError):
            # They are embedded in this order, so where any is missing the last ones are.
            _vectors_of(segment.columns["piece.hash"][-_VECTORS_LOOKED_AT:], cache, identity)
            add_vectors(segment.folder, str(identity), identity.dimension, _portions(segment, cache, identity))
            added = True
    return added


class _NotEmbeddedError(Exception):
    """A text of a segment has no vector in the cache yet."""


def _portions(segment: Segment, cache: VectorCache, identity: EmbedderIdentity) -> Iterator[NDArray[np.float32]]:
    every: NDArray[np.uint8] = segment.columns["piece.hash"]
    for begin in range(0, len(every), _VECTORS_AT_ONCE):
        yield _vectors_of(every[begin : begin + _VECTORS_AT_ONCE], cache, identity)


def _vectors_of(hashes: NDArray[np.uint8], cache: VectorCache, identity: EmbedderIdentity) -> NDArray[np.float32]:
    wanted = [each.tobytes() for each in hashes]
    known = cache.get_many(identity, wanted)
    if any(each not in known for each in wanted):
        raise _NotEmbeddedError
    return np.stack([known[each] for each in wanted]) if wanted else np.empty((0, identity.dimension), np.float32)


@contextlib.contextmanager
def _unfinished(place: Path) -> Iterator[Path]:
    folder = place / f".{uuid.uuid4().hex[:12]}"
    make_private_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
