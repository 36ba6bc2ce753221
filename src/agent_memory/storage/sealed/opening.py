"""Open what is sealed of one kind of record, as far as the journal still goes on from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from agent_memory.errors import StorageError
from agent_memory.journal.place import Place
from agent_memory.models.kind import R
from agent_memory.retrieval.sealed import SealedCorpus
from agent_memory.retrieval.sealed_vectors import SealedVectors
from agent_memory.segments import Chain, Vectors, folder_name, listed, open_chain
from agent_memory.storage.sealed.records import SealedRecords

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_memory.embeddings import EmbedderIdentity
    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Journal
    from agent_memory.models import Kind
    from agent_memory.segments import Segment


@dataclass(frozen=True, slots=True)
class Sealed(Generic[R]):
    """What is sealed.

    Attributes:
        records: The records.
        corpus: Them as documents, to be searched.
        unembedded: Those of segments that have no vectors yet.
    """

    records: SealedRecords[R]
    corpus: SealedCorpus
    unembedded: Iterator[R]


def open_sealed(
    folder: AgentFolder, kind: Kind[R], journal: Journal, identity: EmbedderIdentity | None
) -> Sealed[R] | None:
    """Return what is sealed, and let the journal be read from there on; None where all of it is to be replayed.

    Args:
        folder: The agent's.
        kind: Of which records.
        journal: Theirs, not read yet.
        identity: Whose vectors are wanted; None for none.
    """
    chain = chain_of(folder.segments(kind.name), kind, journal)
    if not chain.segments:
        return None
    vectors = [_vectors_of(segment, identity) for segment in chain.segments]
    records = SealedRecords(kind, folder.agent_id, chain)
    without = [at for at, each in enumerate(vectors) if each is None] if identity is not None else []
    return Sealed(records, SealedCorpus(chain, vectors), records.within(without))


def chain_of(place: Path, kind: Kind[Any], journal: Journal) -> Chain:
    """Return the segments of one kind, and let the journal be read from their end on; none where they do not fit."""
    try:
        chain = open_chain(place, kind.name)
    except StorageError:  # damaged, or of another version: they are made anew
        return Chain()
    ends = Place.from_json(listed(place)[1])
    fits = ends is not None and ends.seq == chain.last_seq and journal.go_on(ends)
    return chain if fits else Chain()


def _vectors_of(segment: Segment, identity: EmbedderIdentity | None) -> SealedVectors | None:
    if identity is None:
        return None
    try:
        return SealedVectors(segment, Vectors(segment.folder / folder_name(str(identity))))
    except StorageError:  # not made yet, or damaged
        return None
