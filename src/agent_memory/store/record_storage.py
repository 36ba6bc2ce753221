"""`RecordStorage`: one agent's records of one kind, on an event loop."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_memory.errors import ValidationError
from agent_memory.index import Question
from agent_memory.models import check_id, check_limit, check_texts
from agent_memory.models.kind import R
from agent_memory.store.alike import alike
from agent_memory.store.changes import to_touch
from agent_memory.store.cleaning import Redacted, cleaned_fields, cleaned_record, cleaned_records
from agent_memory.store.listing import list_records
from agent_memory.store.past import forgotten, forgotten_with, load_changes, versions_of
from agent_memory.store.releasing import WithTraces
from agent_memory.store.state import Changed, State, seq_of, snapshot
from agent_memory.store.surroundings import current_of, surroundings_of
from agent_memory.store.tally import tally_of
from agent_memory.store.threaded import WARM_AT_ONCE, Threaded
from agent_memory.store.trouble import Trouble, trouble_of_embedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence
    from datetime import datetime

    from agent_memory.embeddings.protocol import Matrix, Vector
    from agent_memory.models import Listing, ListPage, RecordCounts, RecordVersion, SearchRequest, Surroundings
    from agent_memory.store.answer import Answer
    from agent_memory.store.migration_plan import Built, Estimate, Progress
    from agent_memory.store.past import RecordChange
    from agent_memory.store.recency import Order

_LOADED_AT_ONCE: Final = 500
"""Sealed records that are loaded while other callers wait: some 20 ms."""
_MOST_UNREAD: Final = 64
"""Records whose words are read while a store waits: some 0.1 ms each."""


class WithPast(Threaded[R], Generic[R]):
    """`Versioned`: what records said before, and what became of them."""

    @property
    def grace(self) -> timedelta | None:
        """How long at least the text of what is forgotten stays and can be brought back; None: not at all."""
        return self._backend.grace

    async def superseded(self) -> dict[str, str]:
        """Return which records are replaced: id to the id of the record that replaces it."""
        return await self._look(lambda state: state.replacements.all(self._clock()))

    async def older_versions(self, record_id: str) -> list[str]:
        """Return the ids that a record replaced, directly or through others, newest first."""
        check_id(record_id)
        return await self._look(lambda state: state.replacements.older(record_id))

    async def tally(self) -> RecordCounts:
        """See `Reporting.tally`."""
        return await self._look(lambda state: tally_of(state, self._clock()))

    async def last_change(self) -> str | None:
        """See `Versioned.last_change`."""
        return await self._look(lambda state: state.last_change)

    async def changed_after(self, seq: int) -> Changed:
        """Return which records were stored or changed after a change, in the order of these; without gone ones."""

        def of(state: State[R], last: int) -> Changed:
            here = (one for one in state.since(seq) if one in state.records)
            return Changed(sorted((seq_of(state, one), one) for one in here), last)

        return await self._run(lambda replica: of(replica.refresh(), replica.log.watermark[1]))

    async def gone_after(self, seq: int) -> set[str]:
        """Return which records were deleted after a change, as far as the log still knows."""
        return await self._look(lambda state: {one for one in state.since(seq) if one not in state.records})

    async def history(self, record_id: str) -> list[RecordVersion[R]]:
        """See `Versioned.history`."""
        check_id(record_id)
        return await self._run(lambda replica: versions_of(replica.state, record_id, replica.log.naming([record_id])))

    async def load_changes(self, record_ids: Collection[str]) -> list[RecordChange[R]]:
        """See `Versioned.load_changes`."""
        ids = frozenset(record_ids)
        return await self._run(lambda replica: load_changes(replica.state, ids, replica.log.naming(ids)))

    async def forgotten_with(self, record_id: str) -> list[R]:
        """See `Versioned.forgotten_with`."""
        check_id(record_id)
        return await self._run(lambda replica: forgotten_with(replica.refresh(), record_id, replica.log.naming))

    async def forgotten(self) -> list[tuple[R, datetime]]:
        """See `Versioned.forgotten`."""
        return await self._run(lambda replica: forgotten(replica.state, replica.log.naming(None)))

    async def was_forgotten(self, text: str) -> bool:
        """Tell whether this text was stored once, was forgotten, and stands in the log still."""
        check_texts([text], "texts")
        return await self._look(lambda state: state.was_forgotten(text))

    async def forgotten_among(self, texts: Collection[str]) -> set[str]:
        """Return those of these texts for which `was_forgotten` holds."""
        check_texts(texts, "texts")
        return await self._look(lambda state: {text for text in texts if state.was_forgotten(text)})


class WithLists(Threaded[R], Generic[R]):
    """Which records there are, without a search."""

    async def browse(self, listing: Listing) -> ListPage[R]:
        """Return a part of a list of records, loading no others."""
        return await self._look(lambda state: list_records(state, listing, self._clock()))

    async def replaced_by(self, record_ids: Collection[str]) -> dict[str, str]:
        """Return which of some records are replaced: id to the id of the record that replaces it."""
        check_texts(record_ids, "ids")

        def of(state: State[R]) -> dict[str, str]:
            now = self._clock()
            pairs = ((one, state.replacements.of(one, now)) for one in record_ids if one in state.records)
            return {one: by for one, by in pairs if by is not None}

        return await self._look(of)

    async def linked_to(self, record_id: str) -> list[R]:
        """Return all records that are linked to one, of whatever kind that is, the latest first."""
        return (await self.linked_to_each([record_id]))[record_id]

    async def linked_to_each(self, record_ids: Collection[str]) -> dict[str, list[R]]:
        """Return for each of some IDs all records that are linked to it, the latest first."""
        for record_id in record_ids:
            check_id(record_id)

        def of(state: State[R]) -> dict[str, list[R]]:
            linked = {record_id: state.links.leading_to(record_id, None) for record_id in record_ids}
            return {
                record_id: [record for link in links if (record := state.records.get(link.id)) is not None]
                for record_id, links in linked.items()
            }

        return await self._look(of)

    async def texts_of(self, record_ids: Collection[str]) -> dict[str, str]:
        """Return the texts of those of these records that are known, superseded and expired ones too."""
        check_texts(record_ids, "ids")

        def of(state: State[R]) -> dict[str, str]:
            found = ((one, state.records.get(one)) for one in record_ids)
            return {one: self.kind.text_of(record) for one, record in found if record is not None}

        return await self._look(of)

    async def get_many(self, record_ids: Collection[str]) -> dict[str, R]:
        """Return the known records among some IDs, superseded and expired ones too."""
        check_texts(record_ids, "ids")

        def of(state: State[R]) -> dict[str, R]:
            found = ((record_id, state.get(record_id)) for record_id in record_ids)
            return {record_id: record for record_id, record in found if record is not None}

        return await self._look(of)

    async def surroundings(self, record_ids: Collection[str], group: str | None = None) -> dict[str, Surroundings]:
        """See `Versioned.surroundings`."""
        check_texts(record_ids, "ids")

        def of(state: State[R]) -> dict[str, Surroundings]:
            now = self._clock()
            found = ((one, state.records.get(one)) for one in record_ids)
            return {one: surroundings_of(state, record, now, group) for one, record in found if record is not None}

        return await self._look(of)

    async def alike(self, text: str, count: int, *, at_once: bool = False) -> list[R] | None:
        """Return the valid records that share most with a text by their words, best first.

        Args:
            text: What they are compared with.
            count: How many at most.
            at_once: Return None rather than open files or read many records for it.
        """
        if at_once:
            return await self._run(lambda replica: alike(replica, text, count, most_unread=_MOST_UNREAD))
        while not await self._run(lambda replica: replica.index.warm(WARM_AT_ONCE)):
            pass  # in portions, so that other calls get in between
        return await self._run(lambda replica: alike(replica, text, count))

    async def undecided(self) -> list[tuple[R, R]]:
        """Return the records with a link that says so: they are suspected not to be right with older ones.

        Each with what counts in its place now: itself, or what replaced it. Without those of which nothing does.
        """

        def of(state: State[R]) -> list[tuple[R, R]]:
            now = self._clock()
            pairs = ((one, current_of(state, one.id, now)) for one in state.links.undecided())
            return [(state.records[one.id], current) for one, current in pairs if current is not None]

        return await self._look(of)

    async def valid_among(self, record_ids: Collection[str]) -> dict[str, R]:
        """Return those of some records that are known and neither expired nor superseded."""
        check_texts(record_ids, "ids")

        def of(state: State[R]) -> dict[str, R]:
            now = self._clock()
            found = ((one, state.records.get(one)) for one in record_ids)
            return {one: record for one, record in found if record is not None and state.is_valid(record, now)}

        return await self._look(of)

    async def valid(self) -> list[R]:
        """Return what an agent may be shown: neither expired nor superseded, in the order of storing; loads all."""

        def of(state: State[R]) -> list[R]:
            now = self._clock()
            return [record for record in state.records.values() if state.is_valid(record, now)]

        return await self._look(of)


class WithEngine(Threaded[R], Generic[R]):
    """`Movable`, and how search by embeddings stands."""

    @property
    def backend(self) -> str:
        """What answers searches: `file`, `vector` or `server`."""
        return self._upkeep.backend

    @property
    def can_migrate(self) -> bool:
        """Whether this agent can be moved to the vector engine and back while it is in use."""
        return self._upkeep.can_migrate

    async def estimate(self) -> Estimate:
        """See `Movable.estimate`."""
        return await self._upkeep.estimate()

    async def migrate(self, progress: Progress | None = None) -> Built:
        """See `Movable.migrate`."""
        return await self._upkeep.migrate(progress)

    async def migration_begun(self) -> bool:
        """Tell whether a migration was begun, here or in an earlier session, and has neither ended nor failed."""
        return await self._upkeep.migration_begun()

    async def note_migration(self, *, begun: bool) -> None:
        """Note that a migration has begun, or has come to an end; what cannot be noted costs nothing else."""
        await self._upkeep.note_migration(begun=begun)

    async def rollback(self) -> bool:
        """See `Movable.rollback`."""
        return await self._upkeep.rollback()

    async def prepare(self, patience: float | None = None) -> bool:
        """Get ready to search, by embeddings too where there is an embedder; tell whether searches are hybrid now.

        Args:
            patience: Seconds to wait at most; None waits until every record has its vector.

        Raises:
            StorageError: The records cannot be read.
        """
        await self._read_all()
        ready = await self.opened.embeddings.ready(patience)
        self._upkeep.before_search()
        return ready

    async def _read_all(self) -> None:
        """Read the words of all records in batches, between other calls."""
        while not await self._look(lambda _: self._replica.warm(WARM_AT_ONCE)):
            pass

    async def vectors_of(self, texts: Sequence[str]) -> Matrix | None:
        """Return a unit vector for each text, by the embedder of the records; None where there is none or it fails."""
        await self._look(lambda _: None)
        return await asyncio.to_thread(self.opened.embeddings.embedded, texts)

    def embedding_status(self) -> dict[str, Any]:
        """See `Reporting.embedding_status`."""
        if self._is_open:
            return self.opened.embeddings.describe()
        return {"status": "loading", "reason": "not connected yet"}

    def embedding_cost(self) -> float:
        """Return what the embedder has charged so far, in US dollars."""
        return self.opened.embeddings.cost if self._is_open else 0.0

    def troubles(self) -> list[Trouble]:
        """See `Reporting.troubles`."""
        trouble = trouble_of_embedder(self.embedding_status())
        return [*([trouble] if trouble is not None else []), *self._upkeep.troubles()]


class RecordStorage(WithTraces[R], WithPast[R], WithLists[R], WithEngine[R], Generic[R]):
    """A `Versioned`, `Movable` `Storage`; these protocols document its methods."""

    async def answer(self, request: SearchRequest) -> Answer[R]:
        """See `Storage.answer`."""
        self._upkeep.before_search()
        await self._get_ready(request)
        question = None
        if self._is_open and self.opened.embeddings.is_ready:
            parsed = await self._run(lambda replica: replica.parse_question(request))
            question = await asyncio.to_thread(self._replica.index.embed_question, parsed)
        return await self._run(lambda replica: replica.search(request, question))

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
        answer = await self._run(lambda replica: replica.search(replace(request, text=""), question))
        pairs = zip(answer.records, answer.ranking.hits, strict=True)
        similarities = [(record, hit.parts["cosine"]) for record, hit in pairs if "cosine" in hit.parts]
        return sorted(similarities, key=itemgetter(1), reverse=True)

    async def store(self, record: R | Redacted[R], *, unique: bool = False) -> str:
        """See `Storage.store`."""
        return await self._write(
            lambda: cleaned_record(self.kind, record), lambda replica, cleaned: replica.store(cleaned, unique=unique)
        )

    async def store_many(self, records: Sequence[R | Redacted[R]]) -> None:
        """See `Storage.store_many`."""
        await self._write(
            lambda: cleaned_records(self.kind, records),
            lambda replica, cleaned: replica.store_many(cleaned),
        )

    async def update(
        self, record_id: str, changes: Mapping[str, Any] | Redacted[dict[str, Any]], *, expect_seq: int | None = None
    ) -> R:
        """See `Storage.update`."""
        check_id(record_id)
        return await self._write(
            lambda: cleaned_fields(self.kind, changes),
            self._dropping(lambda replica, cleaned: replica.update(record_id, cleaned, expect_seq)),
        )

    async def delete(self, record_id: str) -> R:
        """See `Storage.delete`."""
        check_id(record_id)
        return (await self.forget_many([record_id]))[0]

    async def touch(self, record_ids: Collection[str]) -> None:
        """See `Storage.touch`."""
        check_texts(record_ids, "ids")
        await self._write(
            lambda: None, lambda replica, _: replica.make(lambda state: to_touch(state, record_ids)), indexed=False
        )

    async def get(self, record_id: str) -> R | None:
        """Return one record, also a superseded or expired one, or None."""
        check_id(record_id)
        return await self._look(lambda state: state.get(record_id))

    async def list_recent(self, limit: int = 10) -> list[R]:
        """Return the newest valid records, newest first."""
        check_limit(limit)
        return await self._look(lambda state: state.latest(limit, self._clock()))

    async def recent(self, order: Order) -> list[R]:
        """See `Storage.recent`."""
        return await self._worker.run_shared(("recent", order), lambda: self._shown.recent(self._replica, order))

    async def still_true(self, shown: Sequence[R]) -> bool:
        """Tell whether records that were shown may be shown on, whoever changed something meanwhile.

        False once one of them was forgotten, replaced or reworded, has expired, or is no longer trusted.

        Raises:
            StorageError: The records cannot be read.
        """
        if self._is_open and self._shown.is_known_true(self._replica, shown, self._clock()):
            return True
        return await self._run(lambda replica: self._shown.still_true(replica, shown))

    async def iter_all(self) -> AsyncIterator[R]:
        """Yield every record in the order of storing, as of the moment of the first step."""
        records = await self._look(snapshot)
        while some := await self._worker.run(lambda: list(islice(records, _LOADED_AT_ONCE))):
            for record in some:
                yield record

    async def count(self) -> int:
        """Return how many records there are, superseded and expired ones included."""
        return await self._look(lambda state: len(state.records))

    async def health(self) -> dict[str, Any]:
        """See `Storage.health`."""
        return {**await self._run(lambda replica: replica.health()), **self._upkeep.health()}

    async def compact(self, grace: timedelta | None = None) -> None:
        """See `Storage.compact`."""
        if grace is not None and not isinstance(grace, timedelta):
            raise ValidationError(f"The grace is a timedelta, got {type(grace).__name__}; nothing was changed.")
        await self._worker.aside(self._compact, grace, self._backend.wait)
