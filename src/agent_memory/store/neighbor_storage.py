"""`NeighborStorage`: stored records compared with a text."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from agent_memory.errors import StorageError
from agent_memory.models.kind import R
from agent_memory.store.changes import to_store
from agent_memory.store.record_storage import RecordStorage
from agent_memory.store.store import WARM_AT_ONCE, RecordNeighbors, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.journal import Change
    from agent_memory.models import SearchFilters
    from agent_memory.store.lookups import RecencyRule
    from agent_memory.store.record_redaction import Redacted
    from agent_memory.store.state import State

T = TypeVar("T")
_MOST_UNREAD: Final = 64
"""Records whose words are read while a store waits: some 0.1 ms each."""


class NeighborStorage(RecordStorage[R], Generic[R]):
    """Records of one kind that are compared with texts; see `RecordStorage`."""

    async def alike(self, text: str, count: int) -> list[R] | None:
        """Return valid records that share most words with a text.

        Best first.

        Args:
            text: Text to compare with.
            count: Number of records to return at most.
        """
        while not await self._run(lambda store: store.index.warm(WARM_AT_ONCE)):
            pass  # in batches, so that other calls get in between

        def list_alike(store: Store[R]) -> list[R] | None:
            neighbors = store.find_neighbors(text)
            return None if neighbors is None else [record for record, _ in islice(neighbors.worded, count)]

        return await self._run(list_alike)

    async def compare_neighbors(
        self,
        text: str,
        filters: SearchFilters,
        compare: Callable[[RecordNeighbors[R]], T],
        *,
        floor: float | None = None,
        reads_all: bool = False,
    ) -> T | None:
        """Compare records with the words or the meaning of a text.

        In one call of the thread. Does not wait for a model. None rather than open files or read many records for it.

        Args:
            text: Text to compare with.
            filters: Conditions that all records meet.
            compare: Compares the records in a few milliseconds; called in the storage's thread.
            floor: Lowest cosine of a record near by meaning; None compares words alone.
            reads_all: True to read all records, whatever it takes.
        """
        embed = await self._get_embed(text) if floor is not None else None

        def find(store: Store[R]) -> T | None:
            vector = embed(store) if embed is not None else None
            most_unread = None if reads_all else _MOST_UNREAD
            neighbors = store.find_neighbors(text, filters, vector, floor=floor or 0.0, most_unread=most_unread)
            return None if neighbors is None else compare(neighbors)

        return await self._run(find)

    async def list_near(self, text: str, scopes: Sequence[SearchFilters], floor: float) -> list[tuple[R, float]]:
        """Return valid records near a text by meaning, each with its cosine.

        In one call of the thread, and without a comparison of words. Empty without a loaded model.

        Args:
            text: Text to compare with.
            scopes: Conditions of the records; the nearest of each are returned, best first.
            floor: Lowest cosine of a record, on MiniLM's scale.
        """
        embed = await self._get_embed(text)

        def find(store: Store[R]) -> list[tuple[R, float]]:
            vector = embed(store)
            answers = [store.find_neighbors(text, filters, vector, floor=floor) for filters in scopes]
            return [pair for neighbors in answers if neighbors is not None for pair in neighbors.near]

        return await self._run(find)

    async def _get_embed(self, text: str) -> Callable[[Store[R]], Vector | None]:
        """Return a function that embeds a text in the thread.

        A service has embedded it by then.
        """
        if not self._is_embedding_remote:
            return lambda store: store.index.embed_text(text)
        vector = await asyncio.to_thread(self.opened.index.embed_text, text)
        return lambda _: vector

    async def store_compared(
        self,
        draft: Redacted[R],
        filters: SearchFilters,
        compare: Callable[[RecordNeighbors[R] | None], Redacted[R]],
        order: RecencyRule,
        *,
        unique: bool,
        floor: float | None,
    ) -> tuple[str, list[R] | None]:
        """Compare a memory with its neighbors, then store it.

        In one call of the thread.

        Args:
            draft: Memory to store, as of `store`.
            filters: Conditions that all neighbors meet, and a record whose text is not stored again.
            compare: Returns the memory to store; called before the lock is taken, with None if comparing takes long.
            order: Rule of the scratchpad, as of `recent`.
            unique: As of `store`.
            floor: As of `compare_neighbors`.

        Returns:
            The result of `store`, and that of `recent` after it, or None if it cannot be read.
        """
        text = self.kind.text_of(draft.value)
        embed = await self._get_embed(text) if floor is not None else None
        compared, recent = draft, None

        def reread() -> None:
            nonlocal recent
            with contextlib.suppress(StorageError):  # it is stored, and asked for again
                recent = self._shown.load_recent(self.opened, order)

        def look() -> None:
            nonlocal compared
            neighbors = None
            with contextlib.suppress(StorageError):  # the write itself reports the error
                vector = embed(self.opened) if embed is not None else None
                neighbors = self.opened.find_neighbors(
                    text, filters, vector, floor=floor or 0.0, most_unread=_MOST_UNREAD
                )
            compared = compare(neighbors)

        def decide(state: State[R], _: object) -> tuple[list[Change], str]:
            return to_store(state, compared.value, self._clock(), unique=unique, among=filters.with_items)

        known_as = await self._write(decide, look=look, reread=reread)
        return known_as, recent
