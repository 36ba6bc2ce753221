"""Opening of the index in use, and the decision to rebuild it.

Works in small steps that never wait, so that the thread can answer searches in between; each returns when the next one
is due. Writes nothing: an index is immutable. Not thread-safe, and not for a forked child, whose storage opens
everything again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.logs import get_logger
from agent_memory.store.store import WARM_AT_ONCE, Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from agent_memory.embeddings import EmbeddingService
    from agent_memory.engines.ann_index import AnnIndex
    from agent_memory.engines.shard_process import EngineClient
    from agent_memory.files.layout import AgentFolder
    from agent_memory.store.memory_storage import SegmentUpkeep
    from agent_memory.store.shards import Shards, ShardState
    from agent_memory.store.worker import Worker

log = get_logger(__name__)

_SOON: Final = 0.01
_OPENING: Final = 0.05
_LATER: Final = 0.25
"""Seconds until something slow is looked at again: words being read, a shard being opened, a model being loaded."""
_BUSY_SECONDS: Final = 30.0
"""Until a shard that another process holds is tried again."""
_TROUBLE_SECONDS: Final = 60.0
"""Until an engine that failed is tried again."""


@dataclass(frozen=True, slots=True)
class IndexSources:
    """Sources of an index, as its storage knows them.

    Attributes:
        folder: Folder of the agent.
        replica: Store with the memories.
        candidates: Index of their vectors.
        embeddings: Embeddings of the memories.
        worker: Thread that reads the store.
        prepare: Waits until every memory has its vector, for a maximum of seconds.
        sizes: Returns the number of memories and their mean number of characters.
        whole: Reads the memories again, none from segments; any thread may call it.
        sealing: Seals the memories while no index is in use.
    """

    folder: AgentFolder
    replica: Store[Any]
    candidates: AnnIndex
    embeddings: EmbeddingService[Any]
    worker: Worker
    prepare: Callable[[float | None], Awaitable[bool]]
    sizes: Callable[[], Awaitable[tuple[int, float]]]
    whole: Callable[[], Store[Any]]
    sealing: SegmentUpkeep[Any]


class IndexSync:
    """Gives searches the engine in use, and collects later changes.

    Args:
        indexed: Memories, read in the thread that calls `step`, and the index that gets the engine.
        shards: Shards of the agent, one of them in use.
        start: Starts the engine's process for a shard's folder.
        wanted: True to use an index even if the switch does not say so yet.

    Attributes:
        wanted: As above.
        needs_build: Reason to build an index, or None.
        problem: Last problem, for people, or None.
    """

    def __init__(
        self, indexed: IndexSources, shards: Shards, start: Callable[[Path], EngineClient], *, wanted: bool
    ) -> None:
        self.wanted = wanted
        self.needs_build: str | None = None
        self.problem: str | None = None
        self._replica, self._index, self._embeddings = indexed.replica, indexed.candidates, indexed.embeddings
        self._shards, self._start = shards, start
        self._client: EngineClient | None = None
        self._closing: threading.Thread | None = None
        self._shard = ""
        self._seq = 0
        self._not_before = 0.0
        self._rewritten = 0

    @property
    def is_holding(self) -> bool:
        """True if searches get their candidates from a shard held here."""
        return self._index.engine is not None

    @property
    def is_current(self) -> bool:
        """True if this process holds an up-to-date shard and has read all."""
        return self.is_holding and self._find_reason() is None and self._has_read(0)

    def _has_read(self, at_most: int) -> bool:
        """Read changes and the words of up to `at_most` memories.

        Return True if all are read.
        """
        self._replica.refresh()
        return self._replica.warm(at_most)

    def step(self) -> float | None:
        """Work for a few milliseconds; return the seconds until the next step.

        None if there is nothing left to do.

        Raises:
            StorageError: The journal cannot be read.
        """
        backend, shard = self._shards.active()
        if not (self.wanted or backend == "vector"):
            self.release()
            return None
        if self._replica.state.sealed is not None:  # another process moved this agent; the next session follows
            return None
        if shard is None or (self._client is not None and shard != self._shard):
            self.release()
        if shard is None:
            self.needs_build = "there is no index yet"
            return None
        try:
            if self._client is None:
                return self._begin(shard)
            return self._check_opening(self._client) if self._index.engine is None else self._look(self._client)
        except StorageError as error:
            self._handle_failure(error)
            return None

    def release(self) -> threading.Thread | None:
        """Close the shard after the running searches; return the closing thread."""
        client, self._client = self._client, None
        opened = self._index.engine is not None
        self._index.engine = None
        self._index.behind.clear()
        if client is not None:
            if not opened:
                client.kill()  # waiting for an opening may take a second
            self._closing = threading.Thread(target=self._close, args=(client, self._shard))
            self._closing.start()
        return self._closing

    def _close(self, client: EngineClient, shard: str) -> None:
        client.close()
        if self._shards.active()[1] != shard:
            with contextlib.suppress(StorageError):  # then it goes with the next sweep
                self._shards.sweep()

    def _begin(self, shard: str) -> float | None:
        if time.monotonic() < self._not_before:
            return None
        if not self._embeddings.is_ready:
            return None if self._embeddings.describe()["status"] == "failing" else _LATER
        if not self._has_read(WARM_AT_ONCE):
            return _SOON
        state = self._shards.state(shard)
        if (unfit := self._unfit(state)) is not None or state is None:
            self.needs_build = unfit
            return None
        self._client = self._start(self._shards.get_path(shard))
        self._shard, self._seq = shard, state.seq
        return _LATER

    def _unfit(self, state: ShardState | None) -> str | None:
        """Return the reason why an index is unusable, or None."""
        if state is None:
            return "the index is missing, half built or of another version"
        if state.embedder != str(self._embeddings.identity()):
            return "the index is of another embedder"
        if state.seq > self._replica.log.watermark[1]:
            return "the index is ahead of the journal, which must have been restored"
        return None

    def _check_opening(self, client: EngineClient) -> float | None:
        try:
            opened = client.read_content()
        except StorageError as error:
            self.release()
            if error.code == "busy":
                self._not_before = time.monotonic() + _BUSY_SECONDS
            else:
                self.needs_build, self.problem = "the index cannot be opened", error.message
            return None
        if opened is None:
            return _OPENING
        self._take_stock(opened)
        return _SOON

    def _take_stock(self, held: dict[str, int]) -> None:
        """Find the changes since the shard was built.

        Later ones are collected by the index itself.
        """
        memories = self._index.texts
        differing = {memory_id for memory_id, keys in memories.items() if held.get(memory_id) != len(keys)}
        self._index.behind = differing | (held.keys() - memories.keys()) | self._replica.state.since(self._seq)
        self._index.engine = self._client
        self._rewritten = self._replica.log.rewrite_count
        self.problem = None

    def _look(self, client: EngineClient) -> float | None:
        """Check whether the shard can be searched, and is worth it."""
        if not client.is_idle:
            client.reply()
        if not self._has_read(WARM_AT_ONCE):
            return _SOON
        self.needs_build = self._find_reason()
        return None

    def _find_reason(self) -> str | None:
        """Return a reason to build a new shard, or None."""
        if self._replica.log.rewrite_count != self._rewritten:  # its numbers may mean other changes now
            return "another program rewrote the journal"
        return "much has changed since the index was built" if self._index.is_outdated else None

    def _handle_failure(self, error: AgentMemoryError) -> None:
        log.warning("vector_engine_failed", code=error.code, error=error.message)
        self.problem = error.message
        if self._client is not None:
            self._client.kill()
        self.release()
        self._not_before = time.monotonic() + _TROUBLE_SECONDS

    def describe(self) -> dict[str, Any]:
        """Return the state of the engine, for people."""
        status = "in use" if self.is_holding else ("opening" if self._client is not None else "not held")
        report: dict[str, Any] = {"status": status, "behind": len(self._index.behind) if self.is_holding else 0}
        return {**report, "problem": self.problem} if self.problem else report
