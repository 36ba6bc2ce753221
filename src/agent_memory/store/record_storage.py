"""`RecordStorage`: one agent's records of one kind, on an event loop."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_memory.errors import UnsupportedError, ValidationError
from agent_memory.index import Question
from agent_memory.models import check_id, check_limit, check_texts
from agent_memory.models.kind import R
from agent_memory.redaction import SecretRedactor, redact_value
from agent_memory.store.alike import alike
from agent_memory.store.changes import to_add_traces, to_move_out, to_touch, to_update_many
from agent_memory.store.cleaning import Redacted, cleaned_fields, cleaned_record, cleaned_records
from agent_memory.store.listing import list_records
from agent_memory.store.past import Taken, forgotten, forgotten_with, load_changes, taken_with, versions_of
from agent_memory.store.state import Changed, State, released, seq_of, snapshot
from agent_memory.store.storage_edge import StorageEdge
from agent_memory.store.store import WARM_AT_ONCE
from agent_memory.store.surroundings import current_of, surroundings_of
from agent_memory.store.tally import tally_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.embeddings.protocol import Matrix, Vector
    from agent_memory.index import Hit
    from agent_memory.models import Listing, ListPage, RecordCounts, RecordVersion, SearchRequest, Surroundings, Trace
    from agent_memory.store.answer import Answer
    from agent_memory.store.past import RecordChange
    from agent_memory.store.recency import Order
    from agent_memory.store.store import Store

_LOADED_AT_ONCE: Final = 500
"""Sealed records that are loaded while other callers wait: some 20 ms."""
_MOST_UNREAD: Final = 64
"""Records whose words are read while a store waits: some 0.1 ms each."""


class RecordStorage(StorageEdge[R], Generic[R]):
    """One agent's records of one kind behind one interface, whatever the backend.

    Asynchronous at this edge, synchronous below: each call runs in the storage's own worker thread, one at a time,
    reads and writes each in the order of the calls; a read does not wait for a write that waits for another process.
    A cancelled call still finishes; its result is dropped.

    Secrets are redacted here from what is stored or changed, unless it is marked as `Redacted`.

    A method that reads raises `StorageError` if the records cannot be read; one that writes raises it if nothing was
    written, unless the message says that this is not known.

    Args:
        backend: Where the records are, and how they are opened.

    Attributes:
        agent_id: Name of the agent.
        kind: Kind of the records.
        worker: Thread of the records.
    """

    # -- searching ----------------------------------------------------------------------------------------------------

    async def answer(self, request: SearchRequest, keeps: Callable[[Hit], bool] | None = None) -> Answer[R]:
        """Return the best matches, best first. Does not count as an access.

        Args:
            request: Text, filters and limit.
            keeps: Returns True for a hit whose record is wanted; None wants all.
        """
        if (upkeep := self._upkeep) is not None:
            upkeep.look_after(is_changed=False)
        await self._get_ready(request)
        question = None
        if self._is_open and self.opened.embeddings.is_ready:
            parsed = await self._run(lambda store: store.parse_question(request))
            question = await asyncio.to_thread(self.opened.index.embed_question, parsed)
        return await self._run(lambda store: store.search(request, question, keeps))

    async def _get_ready(self, request: SearchRequest) -> None:
        """Wait for the model, or up to `patience` for all vectors."""
        patience = self._backend.patience if request.patience is None else request.patience
        if patience is None and not (self._is_open and self.opened.embeddings.is_warm):
            await self._read_all()
            await self.opened.embeddings.warm_up()
        elif patience and (not self._is_open or self.opened.embeddings.is_there):
            await self.prepare(patience)

    async def nearest(self, vector: Vector, request: SearchRequest) -> list[tuple[R, float]]:
        """Return the records nearest to a vector of the storage's own embedder, with their cosines, best first.

        Args:
            vector: Shape (dimension,), of length 1.
            request: Its limit and filters count; its text does not.
        """
        await self._get_ready(request)
        question = Question({}, frozenset(), asks_time=False, embedded_text="", vector=vector)
        answer = await self._run(lambda store: store.search(replace(request, text=""), question))
        pairs = zip(answer.records, answer.ranking.hits, strict=True)
        similarities = [(record, hit.parts["cosine"]) for record, hit in pairs if "cosine" in hit.parts]
        return sorted(similarities, key=itemgetter(1), reverse=True)

    async def alike(self, text: str, count: int, *, at_once: bool = False) -> list[R] | None:
        """Return the valid records that share most with a text by their words, best first.

        Args:
            text: Text to compare with.
            count: Number of records to return at most.
            at_once: Return None rather than open files or read many records for it.
        """
        if at_once:
            return await self._run(lambda store: alike(store, text, count, most_unread=_MOST_UNREAD))
        while not await self._run(lambda store: store.index.warm(WARM_AT_ONCE)):
            pass  # in portions, so that other calls get in between
        return await self._run(lambda store: alike(store, text, count))

    async def prepare(self, patience: float | None = None) -> bool:
        """Get ready to search, by embeddings too where there is an embedder; return True if searches are hybrid now.

        Args:
            patience: Seconds to wait at most; None waits until every record has its vector.
        """
        await self._read_all()
        is_ready = await self.opened.embeddings.ready(patience)
        if (upkeep := self._upkeep) is not None:
            upkeep.look_after(is_changed=False)
        return is_ready

    async def _read_all(self) -> None:
        """Index the words of all records in batches, between other calls."""
        while not await self._look(lambda _: self.opened.warm(WARM_AT_ONCE)):
            pass

    async def vectors_of(self, texts: Sequence[str]) -> Matrix | None:
        """Return a unit vector for each text, by the embedder of the records; None where there is none or it fails."""
        await self._look(lambda _: None)
        return await asyncio.to_thread(self.opened.embeddings.embedded, texts)

    # -- writing ------------------------------------------------------------------------------------------------------

    async def store(self, memory: R | Redacted[R], *, unique: bool = False) -> str:
        """Store a memory without its secrets; durable when this returns.

        Args:
            memory: Record to store; its `agent_id` must be this storage's.
            unique: Do not store a text that is already known; see `get_duplicate_key`.

        Returns:
            The ID under which the text is now known: that of `memory`, or with `unique` that of the one it repeats.

        Raises:
            ValidationError: The ID is taken by another text, it supersedes an unknown memory, or it is nothing but a
                secret.
        """
        return await self._write(
            lambda store, cleaned: store.store(cleaned, unique=unique),
            memory,
            lambda: cleaned_record(self.kind, memory),
        )

    async def store_many(self, memories: Sequence[R | Redacted[R]]) -> None:
        """Store memories that are not known yet, as one change; what they supersede need not be known.

        For restoring what was stored once: all of them are known afterwards, or none. A server takes some hundred at
        most: they travel in one request.

        Raises:
            ValidationError: One is another agent's, its ID is taken by another text, or it would replace itself through
                others, or is nothing but a secret; nothing was stored.
        """
        await self._write(
            lambda store, cleaned: store.store_many(cleaned), memories, lambda: cleaned_records(self.kind, memories)
        )

    async def update(
        self, memory_id: str, changes: Mapping[str, Any] | Redacted[dict[str, Any]], *, expect_seq: int | None = None
    ) -> R:
        """Change fields of a record; None gives a field its default again. Returns the record as it is now.

        Args:
            memory_id: ID of the record.
            changes: New values by field.
            expect_seq: The number of the record's last change as the caller knows it (`seq` of the last in
                `history`); where another one came after it, nothing is changed. Accesses do not count, but a compaction
                may give the record the number of one: then it is refused, too, and to be read again.

        Raises:
            ConflictError: The record's last change has another number.
            UnknownIdError: There is no such record.
            ValidationError: A field is unknown, cannot be changed, or its value is wrong; nothing was written.
        """
        check_id(memory_id)

        def write(store: Store[R], cleaned: Mapping[str, Any]) -> R:
            record = store.update(memory_id, cleaned, expect_seq)
            self._shown.drop()
            return record

        return await self._write(write, changes, lambda: cleaned_fields(self.kind, changes))

    async def update_many(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Change fields of several records as one change.

        Args:
            changes: New values by record ID, as of `update`.

        Raises:
            UnknownIdError: One of the records does not exist; nothing was changed.
            ValidationError: A value is wrong; nothing was changed.
        """
        check_texts(changes, "ids")

        def write(store: Store[R], cleaned: Mapping[str, Mapping[str, Any]]) -> None:
            store.change(lambda state: to_update_many(state, cleaned))
            self._shown.drop()

        await self._write(
            write,
            changes,
            lambda: {record_id: cleaned_fields(self.kind, fields) for record_id, fields in changes.items()},
        )

    async def delete(self, memory_id: str) -> R:
        """Forget a record, together with the older versions that it replaced, and return it.

        Without them, forgetting a person's address would bring back the previous one.

        Raises:
            UnknownIdError: There is no such record.
        """
        check_id(memory_id)
        return (await self.forget_many([memory_id]))[0]

    async def forget_many(self, gone: Collection[str], *, reason: str = "") -> list[R]:
        """Forget records and the older versions they replaced, as one change.

        Args:
            gone: IDs of records to forget.
            reason: Why, kept without secrets as a trace of each record; empty leaves no trace.

        Returns:
            The forgotten records as they were, each with its older versions after it.

        Raises:
            UnknownIdError: There is no such record.
        """
        check_texts(gone, "ids")

        def write(store: Store[R], why: str) -> list[R]:
            records = store.forget(gone, why)
            self._shown.drop()
            return records

        records = await self._write(write, reason, (lambda: _redact_reason(reason)) if reason else None)
        self.worker.submit(self._forget_vectors)
        return records

    async def move_out(self, records: Sequence[R], to: str, *, whole: bool = True) -> list[str]:
        """Take records out that another journal of the folder has as they are; that is no forgetting.

        One that is not here exactly as it is given stays.

        Args:
            records: Records as the other journal has them, on disk.
            to: Name of the other journal.
            whole: One also stays without which an older record would count again that is not to go, or that is
                replaced by one that is not to go.

        Returns:
            IDs of the records that are out, in the order of `records`.
        """

        def write(store: Store[R], _: object) -> list[str]:
            moved = store.change(lambda state: to_move_out(state, records, to, self._clock(), whole=whole))
            self._shown.drop()
            return moved

        return await self._write(write)

    async def touch(self, memory_ids: Collection[str]) -> None:
        """Count one access for each ID; unknown IDs are skipped."""
        check_texts(memory_ids, "ids")
        await self._write(lambda store, _: store.change(lambda state: to_touch(state, memory_ids)), is_indexed=False)

    async def add_traces(self, traces: Sequence[Trace]) -> int:
        """Add traces of records that are neither here nor have one; return how many were added."""
        if not traces:
            return 0
        return await self._write(
            lambda store, _: store.change(lambda state: to_add_traces(state, traces)), is_indexed=False
        )

    # -- reading ------------------------------------------------------------------------------------------------------

    async def get(self, memory_id: str) -> R | None:
        """Return one record, also a superseded or expired one, or None."""
        check_id(memory_id)
        return await self._look(lambda state: state.get(memory_id))

    async def get_many(self, record_ids: Collection[str]) -> dict[str, R]:
        """Return the known records among some IDs, superseded and expired ones too."""
        check_texts(record_ids, "ids")
        return await self._look(lambda state: dict(_iter_known(state, record_ids)))

    async def valid_among(self, record_ids: Collection[str]) -> dict[str, R]:
        """Return the records among some IDs that are known and neither expired nor superseded."""
        check_texts(record_ids, "ids")
        now = self._clock()
        return await self._look(
            lambda state: {
                record_id: record for record_id, record in _iter_known(state, record_ids) if state.is_valid(record, now)
            }
        )

    async def texts_of(self, record_ids: Collection[str]) -> dict[str, str]:
        """Return the texts of the known records among some IDs, superseded and expired ones too."""
        check_texts(record_ids, "ids")
        text_of = self.kind.text_of
        return await self._look(
            lambda state: {record_id: text_of(record) for record_id, record in _iter_known(state, record_ids)}
        )

    async def list_recent(self, limit: int = 10) -> list[R]:
        """Return the newest valid records, newest first."""
        check_limit(limit)
        return await self._look(lambda state: state.latest(limit, self._clock()))

    async def recent(self, order: Order) -> list[R]:
        """Return what a scratchpad is chosen from, in the order of storing; more than that does no harm.

        Args:
            order: The scratchpad's rule. All pinned records that it admits are wanted, and as many of the others, by
                their moment, as it has places.
        """
        return await self.worker.run_shared(("recent", order), lambda: self._shown.recent(self.opened, order))

    async def still_true(self, shown: Sequence[R]) -> bool:
        """Return True if records that were shown may be shown on, after changes by any process.

        False once one of them was forgotten, replaced or reworded, has expired, or is no longer trusted.
        """
        if self._is_open and self._shown.is_known_true(self.opened, shown, self._clock()):
            return True
        return await self._run(lambda store: self._shown.still_true(store, shown))

    async def valid(self) -> list[R]:
        """Return what an agent may be shown: neither expired nor superseded, in the order of storing; loads all."""

        def list_valid(state: State[R]) -> list[R]:
            now = self._clock()
            return [record for record in state.records.values() if state.is_valid(record, now)]

        return await self._look(list_valid)

    async def browse(self, listing: Listing) -> ListPage[R]:
        """Return a part of a list of records, and how long the whole list is; loads no others."""
        return await self._look(lambda state: list_records(state, listing, self._clock()))

    async def iter_all(self) -> AsyncIterator[R]:
        """Yield every record in the order of storing, as of the moment of the first step."""
        records = await self._look(snapshot)
        while batch := await self.worker.run(lambda: list(islice(records, _LOADED_AT_ONCE))):
            for record in batch:
                yield record

    async def count(self) -> int:
        """Return how many records there are, superseded and expired ones included."""
        return await self._look(lambda state: len(state.records))

    async def tally(self) -> RecordCounts:
        """Count the records by state, category and other facets."""
        return await self._look(lambda state: tally_of(state, self._clock()))

    # -- links and replacements ---------------------------------------------------------------------------------------

    async def linked_to(self, record_id: str) -> list[R]:
        """Return all records that are linked to one, of whatever kind that is, the latest first."""
        return (await self.linked_to_each([record_id]))[record_id]

    async def linked_to_each(self, record_ids: Collection[str]) -> dict[str, list[R]]:
        """Return for each of some IDs all records that are linked to it, the latest first."""
        for record_id in record_ids:
            check_id(record_id)

        def find_linked(state: State[R], record_id: str) -> list[R]:
            links = state.links.leading_to(record_id, None)
            return [record for _, record in _iter_known(state, [link.id for link in links])]

        return await self._look(lambda state: {record_id: find_linked(state, record_id) for record_id in record_ids})

    async def surroundings(self, record_ids: Collection[str], group: str | None = None) -> dict[str, Surroundings]:
        """Return links and doubts of the known records among some IDs; with a group, only what belongs to it."""
        check_texts(record_ids, "ids")
        now = self._clock()
        return await self._look(
            lambda state: {
                record_id: surroundings_of(state, record, now, group)
                for record_id, record in _iter_known(state, record_ids)
            }
        )

    async def undecided(self) -> list[tuple[R, R]]:
        """Return the records with an open conflict link, each with the record that counts in its place now.

        That is the record itself, or what replaced it. Without those in whose place nothing counts.
        """

        def list_undecided(state: State[R]) -> list[tuple[R, R]]:
            now = self._clock()
            pairs = ((record.id, current_of(state, record.id, now)) for record in state.links.undecided())
            return [(state.records[record_id], current) for record_id, current in pairs if current is not None]

        return await self._look(list_undecided)

    async def superseded(self) -> dict[str, str]:
        """Return which records are replaced: ID to the ID of the record that replaces it."""
        return await self._look(lambda state: state.replacements.all(self._clock()))

    async def replaced_by(self, record_ids: Collection[str]) -> dict[str, str]:
        """Return as `superseded` which of some records are replaced."""
        check_texts(record_ids, "ids")

        def find_newer(state: State[R]) -> dict[str, str]:
            now = self._clock()
            pairs = ((one, state.replacements.of(one, now)) for one in record_ids if one in state.records)
            return {record_id: newer for record_id, newer in pairs if newer is not None}

        return await self._look(find_newer)

    async def older_versions(self, memory_id: str) -> list[str]:
        """Return the IDs that a record replaced, directly or through others, newest first."""
        check_id(memory_id)
        return await self._look(lambda state: state.replacements.older(memory_id))

    # -- history ------------------------------------------------------------------------------------------------------

    @property
    def grace(self) -> timedelta | None:
        """Time for which forgotten texts stay at least and can be restored; None for no time."""
        return self._backend.grace

    async def last_change(self) -> str | None:
        """Return when a record was last stored, changed or forgotten, UTC as text; None if never or long ago.

        Accesses do not count.
        """
        return await self._look(attrgetter("last_change"))

    async def changed_after(self, seq: int) -> Changed:
        """Return which records were stored or changed after a change, in the order of these; without deleted ones."""

        def list_changed(store: Store[R]) -> Changed:
            state = store.refresh()
            ids = (record_id for record_id in state.since(seq) if record_id in state.records)
            return Changed(sorted((seq_of(state, record_id), record_id) for record_id in ids), store.log.watermark[1])

        return await self._run(list_changed)

    async def gone_after(self, seq: int) -> set[str]:
        """Return which records were deleted after a change, as far as the log still knows."""
        return await self._look(lambda state: {one for one in state.since(seq) if one not in state.records})

    async def history(self, memory_id: str) -> list[RecordVersion[R]]:
        """Return the versions of a record that are still known, oldest first; empty for an unknown ID.

        Also of one that was forgotten, as long as its text is there. Accesses are no versions.

        Raises:
            UnsupportedError: This storage keeps no versions.
        """
        check_id(memory_id)
        return await self._run(lambda store: versions_of(store.state, memory_id, store.log.naming([memory_id])))

    async def load_changes(self, record_ids: Collection[str]) -> list[RecordChange[R]]:
        """Return the changes of some records that are still known, oldest first.

        Raises:
            UnsupportedError: This storage keeps no versions.
        """
        ids = frozenset(record_ids)
        return await self._run(lambda store: load_changes(store.state, ids, store.log.naming(ids)))

    async def forgotten_with(self, memory_id: str) -> list[R]:
        """Return what forgetting a record took, as it was before: itself first, then the versions it had replaced.

        `store_many` restores them. Records that exist again by now are left out.

        Raises:
            UnknownIdError: It was not forgotten, or so long ago that its text is deleted.
            UnsupportedError: This storage keeps nothing of what was forgotten.
        """
        check_id(memory_id)
        return await self._run(lambda store: forgotten_with(store.refresh(), memory_id, store.log.naming))

    async def taken_with(self, record_id: str) -> Taken[R]:
        """Return what the change took that last forgot a record or clauses of it; nothing where that is not known."""
        check_id(record_id)
        try:
            return await self._run(lambda store: taken_with(store.refresh(), record_id, store.log.naming))
        except UnsupportedError:
            return Taken()

    async def forgotten(self) -> list[tuple[R, datetime]]:
        """Return all that was forgotten and can be restored, as it was, and when; the last first.

        Raises:
            UnsupportedError: This storage keeps nothing of what was forgotten.
        """
        return await self._run(lambda store: forgotten(store.state, store.log.naming(None)))

    async def was_forgotten(self, content: str) -> bool:
        """Return True if this text was stored once, was forgotten, and is still in the log."""
        return content in await self.forgotten_among([content])

    async def forgotten_among(self, texts: Collection[str]) -> set[str]:
        """Return the texts for which `was_forgotten` holds."""
        check_texts(texts, "texts")
        return await self._look(lambda state: {text for text in texts if state.was_forgotten(text)})

    async def traces(self) -> list[Trace]:
        """Return what stays of records that were released, the last first."""
        traces = await self._look(lambda state: list(state.table.traces.values()))
        return sorted(traces, key=attrgetter("at"), reverse=True)

    async def released(self, text: str) -> Trace | None:
        """Return the last trace of a record with this text (ignoring case, width and white space), or None."""
        check_texts([text], "texts")
        if self._is_open and not self.opened.state.table.traces:
            return None  # as of the last look, which a store has just had
        return await self._look(lambda state: released(state, text))

    # -- files and index ----------------------------------------------------------------------------------------------

    async def health(self) -> dict[str, Any]:
        """Return what is wrong with the files, in numbers and short sentences; `{"status": "ok"}` at best."""
        report = await self._run(lambda store: store.health())
        return {**report, **(self._upkeep.describe()[0] if self._upkeep is not None else {})}

    async def compact(self, grace: timedelta | None = None) -> None:
        """Drop what is no longer needed from the files.

        Args:
            grace: What was forgotten or replaced longer ago than this is deleted; the storage's own time (30 days)
                when omitted. With `timedelta(0)` nothing can be restored afterwards.

        Raises:
            StorageError: The files are as they were.
        """
        if grace is not None and not isinstance(grace, timedelta):
            raise ValidationError(f"The grace is a timedelta, got {type(grace).__name__}; nothing was changed.")
        await self.worker.run_aside(self._compact, grace, self._backend.wait)


def _iter_known(state: State[R], record_ids: Iterable[str]) -> Iterator[tuple[str, R]]:
    """Yield the known records among some IDs, superseded and expired ones too."""
    records = ((record_id, state.records.get(record_id)) for record_id in record_ids)
    return ((record_id, record) for record_id, record in records if record is not None)


def _redact_reason(reason: str) -> str:
    cleaned, _ = redact_value(reason, SecretRedactor())
    return str(cleaned)
