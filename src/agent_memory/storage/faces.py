"""The past of records, their moving between engines and their embeddings, as a storage shows them.

Each says in `agent_memory.storage.protocols` what it promises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from agent_memory.models.kind import R
from agent_memory.storage.past import forgotten, forgotten_with, versions_of
from agent_memory.storage.threaded import WARM_AT_ONCE, Threaded
from agent_memory.storage.trouble import Trouble, trouble_of_embedder

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta

    from agent_memory.models import Version
    from agent_memory.storage.vector.migration import Built, Estimate, Progress


class WithPast(Threaded[R], Generic[R]):
    """`Versioned`, over whatever is opened."""

    @property
    def grace(self) -> timedelta | None:
        """How long at least the text of what is forgotten stays and can be brought back; None: not at all."""
        return self._of.grace

    async def superseded(self) -> dict[str, str]:
        """Return which records are replaced: id to the id of the record that replaces it."""
        return await self._look(lambda state: state.replacements.all(self._clock()))

    async def older_versions(self, record_id: str) -> list[str]:
        """Return the ids that a record replaced, directly or through others, newest first."""
        return await self._look(lambda state: state.replacements.older(record_id))

    async def history(self, record_id: str) -> list[Version[R]]:
        """See `Versioned.history`."""
        return await self._run(lambda replica: versions_of(replica.state, record_id, replica.log.naming([record_id])))

    async def forgotten_with(self, record_id: str) -> list[R]:
        """See `Versioned.forgotten_with`."""
        return await self._run(lambda replica: forgotten_with(replica.refresh(), record_id, replica.log.naming))

    async def forgotten(self) -> list[tuple[R, datetime]]:
        """See `Versioned.forgotten`."""
        return await self._run(lambda replica: forgotten(replica.state, replica.log.naming(())))

    async def was_forgotten(self, text: str) -> bool:
        """Tell whether this text was stored once, was forgotten, and the log still remembers that."""
        return await self._look(lambda state: state.was_forgotten(text))

    async def forgotten_among(self, texts: Collection[str]) -> set[str]:
        """Return those of these texts for which `was_forgotten` holds."""
        return await self._look(lambda state: {text for text in texts if state.was_forgotten(text)})


class WithEngine(Threaded[R], Generic[R]):
    """`Movable`, over whatever is opened, and how search by meaning stands."""

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
        """Get ready to search, by meaning too where there is an embedder; tell whether searches are hybrid now.

        Args:
            patience: Seconds to wait at most; None waits until every record has its vector.

        Raises:
            StorageError: The records cannot be read.
        """
        all_read = await self._look(lambda _: self._replica.index.warm(WARM_AT_ONCE))
        while not all_read:  # in portions, so that other calls get in between
            all_read = await self._run(lambda replica: replica.warm(WARM_AT_ONCE))
        ready = await self.opened.embeddings.ready(patience)
        self._upkeep.before_search()
        return ready

    def embedding(self) -> dict[str, Any]:
        """Return how search by meaning stands: `status` off, found (not loaded yet), loading, ready or failing; why."""
        if self._is_open:
            return self.opened.embeddings.describe()
        return {"status": "loading", "reason": "not connected yet"}

    def embedding_cost(self) -> float:
        """Return what the embedder has charged so far, in US dollars."""
        return self.opened.embeddings.cost if self._is_open else 0.0

    def troubles(self) -> list[Trouble]:
        """Return what does not work as it could, without waiting for anything."""
        trouble = trouble_of_embedder(self.embedding())
        return [*([trouble] if trouble is not None else []), *self._upkeep.troubles()]
