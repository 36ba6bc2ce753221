"""`RecordStorage`: one agent's records of one kind, on an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from itertools import islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from agent_memory.errors import UnknownIdError, UnsupportedError, ValidationError
from agent_memory.index import Question
from agent_memory.models import RecordVersion, check_id, check_limit, check_texts
from agent_memory.models.kind import R
from agent_memory.redaction import SecretRedactor, redact_value
from agent_memory.store.changes import (
    to_add_traces,
    to_forget,
    to_move_out,
    to_store,
    to_store_many,
    to_touch,
    to_update,
    to_update_many,
)
from agent_memory.store.queries import (
    RemovedTexts,
    count_records,
    find_current_record,
    get_surroundings,
    list_records,
    load_changes,
    load_forgotten,
    load_forgotten_with,
    load_removed_with,
)
from agent_memory.store.record_redaction import Redacted, clean_fields, clean_record, clean_records
from agent_memory.store.state import ChangedRecords, State
from agent_memory.store.storage_edge import StorageEdge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.embeddings.protocol import Matrix, Vector
    from agent_memory.models import Listing, ListPage, RecordCounts, SearchRequest, Surroundings, Trace
    from agent_memory.store.lookups import RecencyRule
    from agent_memory.store.queries import RecordChange
    from agent_memory.store.store import Answer, Store

T = TypeVar("T")

_LOADED_AT_ONCE: Final = 500
"""Sealed records that are loaded while other callers wait: some 20 ms."""


class RecordStorage(StorageEdge[R], Generic[R]):
    """One agent's records of one kind behind one interface, whatever the backend.

    Asynchronous at this edge, synchronous below: each call runs in the storage's own worker thread, one at a time,
    reads and writes each in the order of the calls; a read does not wait for a write that waits for another process.
    A cancelled call still finishes; its result is dropped.

    Secrets are redacted here from stored and changed records, unless these are marked as `Redacted`. Each method raises
    `StorageError` if the records cannot be read, or nothing was written, unless the message says that this is unknown.

    Args:
        backend: Where the records are, and how they are opened.

    Attributes:
        agent_id: Name of the agent.
        kind: Kind of the records.
        worker: Thread of the records.
    """

    # -- searching ----------------------------------------------------------------------------------------------------

    async def answer(self, request: SearchRequest) -> Answer[R]:
        """Return the best matches, best first. Does not count as an access."""
        if (upkeep := self._upkeep) is not None:
            upkeep.look_after(is_changed=False)
        if self._is_open and (second := self.opened.second_model) is not None:
            second.note_question(request.text)
        is_embedded = request.loads_model or (self._is_open and self.opened.embeddings.is_ready)
        question = None
        if is_embedded:
            await self._get_ready(request)
        if self._is_embedding_remote or not is_embedded:
            question = await self._look(lambda _: self.opened.index.parse_question(request))
            if is_embedded:
                question = await asyncio.to_thread(self.opened.index.embed_question, question)
        return await self._run(lambda store: store.search(request, question))

    async def _get_ready(self, request: SearchRequest) -> None:
        """Wait for the model, or up to `patience` for all vectors."""
        patience = self._backend.patience if request.patience is None else request.patience
        if patience is None and not (self._is_open and self.opened.embeddings.is_warm):
            await self._read_all()
            await self.opened.embeddings.warm_up()
        elif patience and (not self._is_open or self.opened.embeddings.is_there):
            await self.prepare(patience)

    async def nearest(self, vector: Vector, request: SearchRequest) -> list[tuple[R, float]]:
        """Return the records nearest to a vector with cosines, best first.

        Args:
            vector: Shape (dimension,), of length 1.
            request: Its limit and filters count; its text does not.

        Raises:
            ValidationError: The vector has another dimension than those of the storage.
        """
        await self._get_ready(request)
        identity = self.opened.embeddings.known_identity()
        if identity is not None and len(vector) != identity.dimension:
            raise ValidationError(f"A vector has {identity.dimension} numbers in this memory, got {len(vector)}.")
        question = Question({}, frozenset(), asks_time=False, embedded_text="", vector=vector)
        answer = await self._run(lambda store: store.search(replace(request, text=""), question))
        pairs = zip(answer.records, answer.ranking.hits, strict=True)
        similarities = [(record, hit.parts["cosine"]) for record, hit in pairs if "cosine" in hit.parts]
        return sorted(similarities, key=itemgetter(1), reverse=True)

    async def vectors_of(self, texts: Sequence[str]) -> Matrix | None:
        """Return a unit vector for each text, None without embedder.

        None also if the embedder fails.
        """
        await self._look(lambda _: None)
        return await asyncio.to_thread(self.opened.embeddings.embed_texts, texts)

    # -- writing ------------------------------------------------------------------------------------------------------

    async def store(self, memory: R | Redacted[R], *, unique: bool = False) -> str:
        """Store a memory without its secrets, durably.

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
            lambda state, cleaned: to_store(state, cleaned, self._clock(), unique=unique),
            lambda: clean_record(self.kind, memory),
            is_clean=isinstance(memory, Redacted),
        )

    async def store_many(self, memories: Sequence[R | Redacted[R]]) -> None:
        """Store unknown memories as one change; what they supersede may be unknown.

        Either all of them are known afterwards, or none. A server takes some hundred at most, in one request.

        Raises:
            ValidationError: One is another agent's, its ID is taken by another text, or it would replace itself through
                others, or is nothing but a secret; nothing was stored.
        """
        is_clean = isinstance(memories, list | tuple) and all(isinstance(memory, Redacted) for memory in memories)
        await self._write(to_store_many, lambda: clean_records(self.kind, memories), is_clean=is_clean)

    async def update(
        self, memory_id: str, changes: Mapping[str, Any] | Redacted[dict[str, Any]], *, expect_seq: int | None = None
    ) -> R:
        """Change fields of a record and return the record.

        None gives a field its default again.

        Args:
            memory_id: ID of the record.
            changes: New values by field.
            expect_seq: Expected number of the record's last change (`seq` of the last in `history`). Accesses do not
                count, except that a compaction may give the record the number of one: then read it again.

        Raises:
            ConflictError: The record's last change has another number.
            UnknownIdError: No such record.
            ValidationError: A field is unknown, cannot be changed, or its value is wrong; nothing was written.
        """
        check_id(memory_id)
        return await self._write(
            lambda state, cleaned: to_update(state, memory_id, cleaned, expect_seq),
            lambda: clean_fields(self.kind, changes),
            is_clean=isinstance(changes, Redacted),
            rewords=True,
        )

    async def update_many(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Change fields of several records as one change.

        Args:
            changes: New values by record ID, as of `update`.

        Raises:
            UnknownIdError: One of the records does not exist; nothing was changed.
            ValidationError: A value is wrong; nothing was changed.
        """
        check_texts(changes, "ids")
        await self._write(
            to_update_many,
            lambda: {record_id: clean_fields(self.kind, fields) for record_id, fields in changes.items()},
            is_clean=False,
            rewords=True,
        )

    async def delete(self, memory_id: str) -> R:
        """Forget a record and the versions it replaced; return it.

        Without them, forgetting a person's address would bring back the previous one.

        Raises:
            UnknownIdError: No such record.
        """
        check_id(memory_id)
        return (await self.forget_many([memory_id]))[0]

    async def forget_many(self, gone: Collection[str], *, reason: str = "", archived: Sequence[R] = ()) -> list[R]:
        """Forget records and the older versions they replaced, as one change.

        Args:
            gone: IDs of records to forget.
            reason: Why, kept without secrets as a trace of each record; empty leaves no trace.
            archived: Those among them that only the archive has.

        Returns:
            The forgotten records as they were, each with its older versions after it.

        Raises:
            UnknownIdError: No such record.
        """
        check_texts(gone, "ids")
        records = await self._write(
            lambda state, why: to_forget(state, gone, why, self._clock(), archived),
            lambda: str(redact_value(reason, SecretRedactor())[0]) if reason else "",
            is_clean=not reason,
            rewords=True,
        )
        self.worker.submit(self._forget_vectors, records)
        return records

    async def move_out(self, records: Sequence[R], to: str, *, whole: bool = True) -> list[str]:
        """Delete records that another journal of the folder has.

        Their texts are not forgotten.

        A record that differs from the given one stays.

        Args:
            records: Records as the other journal has them, on disk.
            to: Name of the other journal.
            whole: As in `to_move_out`.

        Returns:
            IDs of the records that are out, in the order of `records`.
        """
        return await self._write(
            lambda state, _: to_move_out(state, records, to, self._clock(), whole=whole), rewords=True
        )

    async def touch(self, memory_ids: Collection[str]) -> None:
        """Count one access for each ID; unknown IDs are skipped."""
        check_texts(memory_ids, "ids")
        await self._write(lambda state, _: to_touch(state, memory_ids), is_indexed=False)

    async def add_traces(self, traces: Sequence[Trace]) -> int:
        """Add traces of unknown records; return how many were added.

        A record that is here or has a trace gets none.
        """
        if not traces:
            return 0
        return await self._write(lambda state, _: to_add_traces(state, traces), is_indexed=False)

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
        """Return the valid records among some IDs.

        Valid is what is neither expired nor superseded.
        """
        check_texts(record_ids, "ids")
        now = self._clock()
        return await self._look(
            lambda state: {
                record_id: record for record_id, record in _iter_known(state, record_ids) if state.is_valid(record, now)
            }
        )

    async def texts_of(self, record_ids: Collection[str]) -> dict[str, str]:
        """Return the texts of the known records among some IDs.

        Superseded and expired ones too.
        """
        check_texts(record_ids, "ids")
        text_of = self.kind.text_of
        return await self._look(
            lambda state: {record_id: text_of(record) for record_id, record in _iter_known(state, record_ids)}
        )

    async def list_recent(self, limit: int = 10) -> list[R]:
        """Return the newest valid records, newest first."""
        check_limit(limit)
        return await self._look(lambda state: state.list_newest(limit, self._clock()))

    async def recent(self, order: RecencyRule) -> list[R]:
        """Return candidates for a scratchpad, in the order of storing.

        More than are needed does no harm.

        Args:
            order: Rule of the scratchpad: all pinned records that it admits are wanted, and the most recent others.
        """
        return await self._run(lambda store: self._shown.load_recent(store, order))

    async def still_true(self, shown: Sequence[R]) -> bool:
        """Return True if shown records are still true.

        Changes of any process count.

        False once one of them was forgotten, replaced or reworded, has expired, or is not trusted any more.
        """
        if self._is_open and self._shown.is_known_true(self.opened, shown, self._clock()):
            return True
        return await self._run(lambda store: self._shown.still_true(store, shown))

    async def valid(self) -> list[R]:
        """Load all valid records, in the order of storing.

        Valid is what is neither expired nor superseded.
        """

        def list_valid(state: State[R]) -> list[R]:
            now = self._clock()
            return [record for record in state.records.values() if state.is_valid(record, now)]

        return await self._look(list_valid)

    async def browse(self, listing: Listing) -> ListPage[R]:
        """Return a part of a list of records and the list's length.

        Loads no others.
        """
        return await self._look(lambda state: list_records(state, listing, self._clock()))

    async def iter_all(self) -> AsyncIterator[R]:
        """Yield every record, in the order of storing.

        As of the moment of the first step.
        """
        records = await self._look(State.iter_records)
        while batch := await self.worker.run(lambda: list(islice(records, _LOADED_AT_ONCE))):
            for record in batch:
                yield record

    async def count(self) -> int:
        """Return the number of records, superseded and expired ones included."""
        return await self._look(lambda state: len(state.records))

    async def tally(self) -> RecordCounts:
        """Count the records by state, category and other facets."""
        return await self._look(lambda state: count_records(state, self._clock()))

    # -- links and replacements ---------------------------------------------------------------------------------------

    async def linked_to(self, record_id: str) -> list[R]:
        """Return all records linked to a record of any kind.

        The latest first.
        """
        return (await self.linked_to_each([record_id]))[record_id]

    async def count_linked(self, record_id: str) -> int:
        """Return the number of records linked to a record."""
        check_id(record_id)
        return await self._look(lambda state: sum(1 for _ in state.links.iter_linked(record_id, None)))

    async def linked_to_each(self, record_ids: Collection[str]) -> dict[str, list[R]]:
        """Return all records linked to each of some IDs.

        The latest first.
        """
        for record_id in record_ids:
            check_id(record_id)

        def find_linked(state: State[R], record_id: str) -> list[R]:
            links = state.links.iter_linked(record_id, None)
            return [record for _, record in _iter_known(state, [link.id for link in links])]

        return await self._look(lambda state: {record_id: find_linked(state, record_id) for record_id in record_ids})

    async def surroundings(self, record_ids: Collection[str], group: str | None = None) -> dict[str, Surroundings]:
        """Return links and doubts of the known records among some IDs.

        With a group, only what belongs to it.
        """
        check_texts(record_ids, "ids")
        now = self._clock()
        return await self._look(
            lambda state: {
                record_id: get_surroundings(state, record, now, group)
                for record_id, record in _iter_known(state, record_ids)
            }
        )

    async def undecided(self) -> list[tuple[R, R]]:
        """Return records with open conflicts, each with itself or its replacement.

        Without records whose replacement is deleted or expired.
        """

        def list_undecided(state: State[R]) -> list[tuple[R, R]]:
            now = self._clock()
            pairs = ((record.id, find_current_record(state, record.id, now)) for record in state.links.iter_undecided())
            return [(state.records[record_id], current) for record_id, current in pairs if current is not None]

        return await self._look(list_undecided)

    async def superseded(self) -> dict[str, str]:
        """Map each replaced record to the record that replaces it."""
        return await self._look(lambda state: state.replacements.map_all(self._clock()))

    async def replaced_by(self, record_ids: Collection[str]) -> dict[str, str]:
        """Map replaced records among some IDs to their replacements."""
        check_texts(record_ids, "ids")

        def find_newer(state: State[R]) -> dict[str, str]:
            now = self._clock()
            known = [record_id for record_id in record_ids if record_id in state.records]
            pairs = ((record_id, state.replacements.get_newer(record_id, now)) for record_id in known)
            return {record_id: newer for record_id, newer in pairs if newer is not None}

        return await self._look(find_newer)

    async def older_versions(self, memory_id: str) -> list[str]:
        """Return the IDs a record replaced, also indirectly, newest first."""
        check_id(memory_id)
        return await self._look(lambda state: state.replacements.list_older(memory_id))

    # -- history ------------------------------------------------------------------------------------------------------

    async def last_change(self) -> str | None:
        """Return the UTC time of the last change, or None.

        Accesses do not count.
        """
        return await self._look(attrgetter("last_change"))

    async def changed_after(self, seq: int) -> ChangedRecords:
        """List the records changed after a change, in this order.

        Without deleted ones.
        """

        def list_changed(store: Store[R]) -> ChangedRecords:
            state = store.refresh()
            ids = (record_id for record_id in state.since(seq) if record_id in state.records)
            return ChangedRecords(
                sorted((state.get_seq(record_id), record_id) for record_id in ids), store.log.watermark[1]
            )

        return await self._run(list_changed)

    async def gone_after(self, seq: int) -> set[str]:
        """List the records deleted after a change, as the log knows."""
        return await self._look(lambda state: {gone for gone in state.since(seq) if gone not in state.records})

    async def history(self, memory_id: str) -> list[RecordVersion[R]]:
        """Return the known versions of a record, oldest first.

        Also of a forgotten record, until its text is deleted. Accesses are not versions.

        Raises:
            UnsupportedError: This storage keeps no versions.
        """
        check_id(memory_id)
        changes = await self.load_changes([memory_id])
        return [RecordVersion(change.seq, change.at, change.op, change.after) for change in changes]

    async def load_changes(self, record_ids: Collection[str]) -> list[RecordChange[R]]:
        """Return the changes of some records that are still known, oldest first.

        Raises:
            UnsupportedError: This storage keeps no versions.
        """
        ids = frozenset(record_ids)
        return await self._run(lambda store: load_changes(store.state, ids, store.log.naming(ids)))

    async def forgotten_with(self, memory_id: str) -> list[R]:
        """Return a forgotten record and the versions forgotten with it.

        `store_many` restores them. Records that exist again are left out.

        Raises:
            UnknownIdError: It was not forgotten, or so long ago that its text is deleted.
            UnsupportedError: This storage keeps nothing of what was forgotten.
        """
        check_id(memory_id)
        return await self._run(lambda store: load_forgotten_with(store.refresh(), memory_id, store.log.naming))

    async def forgotten_of(self, record_ids: Collection[str]) -> dict[str, R]:
        """Return forgotten records by ID, each with those forgotten with it.

        The log is read once for each change, not for each record.

        Raises:
            UnsupportedError: This storage keeps nothing of what was forgotten.
        """
        records: dict[str, R] = {}
        for record_id in record_ids:
            if record_id not in records:
                with contextlib.suppress(UnknownIdError):
                    records |= {record.id: record for record in await self.forgotten_with(record_id)}
        return records

    async def taken_with(self, record_id: str) -> RemovedTexts[R]:
        """Return the texts removed by a record's last deletion or trimming.

        Empty if they are unknown.
        """
        check_id(record_id)
        try:
            return await self._run(lambda store: load_removed_with(store.refresh(), record_id, store.log.naming))
        except UnsupportedError:
            return RemovedTexts()

    async def forgotten(self) -> list[tuple[R, datetime]]:
        """Return all restorable records and when they were forgotten.

        The last first.

        Raises:
            UnsupportedError: This storage keeps nothing of what was forgotten.
        """
        return await self._run(lambda store: load_forgotten(store.state, store.log.naming(None)))

    async def was_forgotten(self, content: str) -> bool:
        """Return True if this text was forgotten and is still logged."""
        return content in await self.forgotten_among([content])

    async def forgotten_among(self, texts: Collection[str]) -> set[str]:
        """Return the texts for which `was_forgotten` holds."""
        check_texts(texts, "texts")
        return await self._look(lambda state: {text for text in texts if state.was_forgotten(text)})

    async def traces(self) -> list[Trace]:
        """Return the traces of released records, the last first."""
        traces = await self._look(lambda state: list(state.table.traces.values()))
        return sorted(traces, key=attrgetter("at"), reverse=True)

    async def released(self, text: str) -> Trace | None:
        """Return the last trace of a record with this text.

        None without one. Case, width and white space are ignored.
        """
        check_texts([text], "texts")
        if self._is_open and not self.opened.state.table.traces:
            return None  # as of the last read, which a store has just done
        return await self._look(lambda state: state.find_trace(text))


def _iter_known(state: State[R], record_ids: Iterable[str]) -> Iterator[tuple[str, R]]:
    """Yield the known records among some IDs, superseded and expired ones too."""
    records = ((record_id, state.records.get(record_id)) for record_id in record_ids)
    return ((record_id, record) for record_id, record in records if record is not None)
