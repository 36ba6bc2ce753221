"""`RecordStorage`: one agent's records of one kind, for callers on an event loop. One for all backends and kinds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic

from agent_memory.models import check_limit
from agent_memory.models.kind import R
from agent_memory.storage.cleaning import Redacted, cleaned_fields, cleaned_record, cleaned_records
from agent_memory.storage.faces import WithEngine, WithPast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence
    from datetime import timedelta

    from agent_memory.models import SearchRequest
    from agent_memory.storage.answer import Answer
    from agent_memory.storage.recency import Order
    from agent_memory.storage.replica import Replica


class RecordStorage(WithPast[R], WithEngine[R], Generic[R]):
    """A `Storage` that is `Versioned` and `Movable`: promises and errors are said there.

    Args:
        backend: How the records are opened.
    """

    async def answer(self, request: SearchRequest) -> Answer[R]:
        """See `Storage.answer`."""
        self._upkeep.before_search()
        patience = self._of.patience if request.patience is None else request.patience
        if patience and (not self._is_open or self.opened.embeddings.is_there):
            await self.prepare(patience)
        question = None
        if self._is_open and self.opened.embeddings.is_ready:
            question = await asyncio.to_thread(self._replica.index.embedded_question, request)
        return await self._run(lambda replica: replica.search(request, question))

    async def store(self, record: R | Redacted[R], *, unique: bool = False) -> str:
        """Keep a record without its secrets; when this returns, it is on disk.

        Args:
            record: What to keep; its `agent_id` must be this storage's.
            unique: Do not store a text that is already known (ignoring case and white space).

        Returns:
            The id under which the text is now known: that of `record`, or with `unique` that of the one it repeats.

        Raises:
            ValidationError: The id is taken by another text, it supersedes an unknown record, or it is nothing but a
                secret.
            StorageError: Nothing was written.
        """
        return await self._write(
            lambda: cleaned_record(self.kind, record), lambda replica, cleaned: replica.store(cleaned, unique=unique)
        )

    async def store_many(self, records: Sequence[R | Redacted[R]]) -> None:
        """See `Storage.store_many`."""
        await self._write(
            lambda: cleaned_records(self.kind, records),
            lambda replica, cleaned: replica.store_many(cleaned),
        )

    async def update(self, record_id: str, changes: Mapping[str, Any] | Redacted[dict[str, Any]]) -> R:
        """See `Storage.update`."""

        def update(replica: Replica[R], cleaned: Mapping[str, Any]) -> R:
            record = replica.update(record_id, cleaned)
            self._shown.drop()
            return record

        return await self._write(lambda: cleaned_fields(self.kind, changes), update)

    async def delete(self, record_id: str) -> R:
        """See `Storage.delete`."""

        def delete(replica: Replica[R], _: object) -> R:
            record = replica.delete(record_id)
            self._shown.drop()
            return record

        record = await self._write(lambda: None, delete)
        self._worker.submit(self._forget_vectors)
        return record

    async def touch(self, record_ids: Collection[str]) -> None:
        """See `Storage.touch`."""
        await self._write(lambda: None, lambda replica, _: replica.touch(record_ids), indexed=False)

    async def get(self, record_id: str) -> R | None:
        """Return one record, also a superseded or expired one, or None."""
        return await self._look(lambda state: state.get(record_id))

    async def list_recent(self, limit: int = 10) -> list[R]:
        """Return the newest valid records, newest first."""
        check_limit(limit)
        valid = await self.valid()
        valid.reverse()  # among equal times the last stored comes first; sorting is stable
        return sorted(valid, key=lambda record: record.timestamp, reverse=True)[:limit]

    async def recent(self, order: Order) -> list[R]:
        """See `Storage.recent`."""
        return await self._run(lambda replica: self._shown.recent(replica, order))

    async def still_true(self, shown: Sequence[R]) -> bool:
        """Tell whether records that were shown may be shown on, whoever changed something meanwhile.

        False once one of them was forgotten, replaced or reworded, has expired, or is no longer trusted.

        Raises:
            StorageError: The records cannot be read.
        """
        if self._is_open and self._shown.is_known_true(self._replica, shown, self._clock()):
            return True
        return await self._run(lambda replica: self._shown.still_true(replica, shown))

    async def valid(self) -> list[R]:
        """Return what an agent may be shown: neither expired nor superseded, in the order of storing."""
        return await self._look(lambda state: state.valid(self._clock()))

    async def iter_all(self) -> AsyncIterator[R]:
        """Yield every record in the order of storing, as of the moment of the first step."""
        for record in await self._look(lambda state: list(state.records.values())):
            yield record

    async def count(self) -> int:
        """Return how many records there are, superseded and expired ones included."""
        return await self._look(lambda state: len(state.records))

    async def health(self) -> dict[str, Any]:
        """See `Storage.health`."""
        return {**await self._run(lambda replica: replica.health()), **self._upkeep.health()}

    async def compact(self, grace: timedelta | None = None) -> None:
        """See `Storage.compact`."""

        def compact(replica: Replica[R], _: object) -> None:
            replica.compact(grace)
            self._shown.drop()  # it may show what has expired, and is gone from the log now

        await self._write(lambda: None, compact, indexed=False)
