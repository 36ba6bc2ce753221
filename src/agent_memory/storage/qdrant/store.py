"""`ServerStore`: what `JournalStore` does, upon a server's log instead of a file: decide, commit, project, search.

The decisions (what is refused, what replaces what, how a search is ranked) are inherited: there is one definition of
each. What differs is who wins: the file's lock lets one writer in at a time, here the loser of a race decides anew.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from typing_extensions import override

from agent_memory.errors import BusyError
from agent_memory.files.layout import AgentFolder
from agent_memory.journal import GRACE, Change, Entry, Update
from agent_memory.models import Clock, content_hash, to_text, utc_now
from agent_memory.storage.changes import lacking
from agent_memory.storage.projection import KIND, Projection
from agent_memory.storage.qdrant.log import LostRaceError, ServerLog, whole_record
from agent_memory.storage.store import JournalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import timedelta

    from agent_memory.journal import JournalWriter
    from agent_memory.models import Memory
    from agent_memory.retrieval import SearchIndex
    from agent_memory.storage.qdrant.client import Payload

T = TypeVar("T")

_ROUNDS: Final = 60
_LONGEST_WAIT: Final = 0.15
"""Seconds; with a wait that doubles from 5 ms on, 60 lost races take about the 5 s a file's lock is waited for."""


class ServerProjection(Projection):
    """The agent's memories; which texts were forgotten is known by hash alone."""

    @override
    def clear(self) -> None:
        super().clear()
        self.forgotten: set[str] = set()

    @override
    def was_forgotten(self, content: str) -> bool:
        return content_hash(content) in self.forgotten and not self._with_text(content)

    @override
    def _note_forgotten(self, change: Change) -> None:
        """Keep no text of what is gone; `forgotten` has its hash."""


class ServerStore(JournalStore):
    """The memories of one agent on a server and in this process. For one thread.

    Args:
        agent_id: Whose memories.
        server: Their order.
        index: Empty search index that this store will own.
        clock: Source of the present.
        pause: Waits some seconds after a lost race; for tests.
    """

    def __init__(
        self,
        agent_id: str,
        server: ServerLog,
        index: SearchIndex,
        clock: Clock = utc_now,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        super().__init__(AgentFolder(Path(agent_id)), index, clock)  # a name, never a place: nothing is opened there
        self._server = server
        self._projection: ServerProjection = ServerProjection(agent_id)
        self._pause = pause

    # -- reading ------------------------------------------------------------------------------------------------------

    @override
    def refresh(self) -> Projection:
        """Bring this process up to date with the server and return the projection.

        Raises:
            StorageError: The server cannot be asked.
        """
        reset, changed = self._server.sync()
        self._project(changed, reset=reset)
        return self._projection

    @override
    def warm(self, at_most: int) -> bool:
        """Read words of what is known already: unlike a file, the server is not asked for every portion."""
        return self._index.warm(at_most)

    @override
    def health(self) -> dict[str, Any]:
        problems = self.refresh().complaints()
        if not problems:
            return {"status": "ok"}
        return {"status": "damaged", "problems": len(problems), "first_problems": problems[:5]}

    @override
    def watermark(self) -> tuple[str, int]:
        return "server", self._server.seq

    # -- writing ------------------------------------------------------------------------------------------------------

    @override
    def store(self, memory: Memory, *, unique: bool) -> str:
        return self._until_won(lambda: super(ServerStore, self).store(memory, unique=unique))

    @override
    def store_many(self, memories: Sequence[Memory]) -> None:
        """See `MemoryStorage.store_many`.

        Raises:
            StorageError: Nothing was stored, unless the message says that this is not known.
        """

        def decide() -> None:
            self.refresh()
            lacks = lacking(self.folder.agent_id, memories, self._projection.memories)
            new = [Change("put", KIND, each.id, each.to_record()) for each in lacks]
            if new:
                self._commit(new)

        self._until_won(decide)

    @override
    def update(self, memory_id: str, changes: Mapping[str, Any]) -> Memory:
        return self._until_won(lambda: super(ServerStore, self).update(memory_id, changes))

    @override
    def delete(self, memory_id: str) -> Memory:
        return self._until_won(lambda: super(ServerStore, self).delete(memory_id))

    @override
    def touch(self, memory_ids: Collection[str]) -> None:
        self._until_won(lambda: super(ServerStore, self).touch(memory_ids))

    @override
    def compact(self, grace: timedelta | None = None) -> None:
        """Drop the marks of what was forgotten longer ago than `grace`, 30 days when omitted."""

        def purge() -> None:
            self.refresh()
            self._server.purge(to_text(self.clock() - (GRACE if grace is None else grace)))

        self._until_won(purge)

    @override
    def compact_if_worthwhile(self) -> bool:
        """Do nothing: a server keeps no past that could pile up."""
        return False

    # -- underneath ---------------------------------------------------------------------------------------------------

    def _until_won(self, attempt: Callable[[], T]) -> T:
        wait = 0.005
        for _ in range(_ROUNDS):
            try:
                return attempt()
            except LostRaceError:
                self._pause(wait * random.uniform(0.5, 1))  # noqa: S311 - keeps clients from racing in step
                wait = min(2 * wait, _LONGEST_WAIT)
        raise BusyError("Other clients change this memory without a break; nothing was written.")

    @override
    @contextmanager
    def _writing(self) -> Iterator[JournalWriter]:
        self.refresh()
        yield cast("JournalWriter", None)  # there is no file to hold open: `_append` does not ask for one

    @override
    def _append(self, writer: JournalWriter, changes: list[Change]) -> None:
        self._commit(changes)

    def _commit(self, changes: list[Change]) -> None:
        self._project(self._server.commit(changes, to_text(self.clock())), reset=False)

    @override
    def _describe_folder(self) -> None:
        """Leave no note: there is no folder."""

    def _project(self, changed: list[str], *, reset: bool) -> None:
        if not changed and not reset:
            return
        rows = [(memory_id, self._server.rows[memory_id]) for memory_id in changed]
        entries = [Entry(row["seq"], "", (_change_to(memory_id, row),), b"") for memory_id, row in rows]
        self._absorb(Update(entries, reset))
        for _, row in rows:
            self._projection.forgotten.update(row["forgotten"])


def _change_to(memory_id: str, row: Payload) -> Change:
    """Return the change that makes a memory what its row says."""
    if row["record"] is None:
        return Change("delete", KIND, memory_id)
    return Change("put", KIND, memory_id, whole_record(row))
