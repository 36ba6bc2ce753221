"""`IndexSync`: holds the shard in use, if this process can have it, and brings it up to date with the journal.

Works in small steps that never wait, so that whoever owns the thread can answer searches in between; returns when it
wants to be called again. Starts no build: it says that one is needed. Not thread-safe.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.engine import EngineClient, Point, namespace_of, wire
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.engine import Opened
    from agent_memory.models import Memory
    from agent_memory.storage.meaning import Meaning
    from agent_memory.storage.store import RecordStore
    from agent_memory.storage.vector.candidates import AnnIndex
    from agent_memory.storage.vector.generations import Generations, State

log = get_logger(__name__)

_SOON: Final = 0.01
_LATER: Final = 0.25
"""Seconds until something slow is looked at again: a shard being opened, vectors being computed."""
_BUSY_SECONDS: Final = 30.0
"""Until a shard that another process holds is tried again."""
_TROUBLE_SECONDS: Final = 60.0
"""Until an engine that failed is tried again."""
_AT_ONCE: Final = 2000
"""Memories checked in one step: about 2 ms."""
_POINTS_AT_ONCE: Final = 32
"""Points in one request: under 5 ms of the engine's time, and less than a pipe holds."""
_FLUSH_AFTER: Final = 500
"""Points after which the engine brings its pages onto the disk, so that its log does not grow for ever."""
_WORN_AFTER: Final = 10_000
"""Points written since a build, from which on a new one pays: each search looks at all of them (1 ms for 10,000)."""
_WARM_AT_ONCE: Final = 200


class IndexSync:
    """Keeps an engine in step with one agent's memories.

    Args:
        store: The memories; read in the thread that calls `step`.
        index: Learns what the engine knows and what not.
        memory_of: Returns a memory as it is now, None if there is none.
        generations: Which shard is in use.
        meaning: Whose vectors these are.

    Attributes:
        wanted: Use an index even where the switch does not say so yet.
        needs_build: Why an index must be built, or None.
        problem: What went wrong last, for people; None while all is well.
    """

    def __init__(
        self,
        store: RecordStore[Memory],
        index: AnnIndex,
        memory_of: Callable[[str], Memory | None],
        generations: Generations,
        meaning: Meaning,
        *,
        wanted: bool,
    ) -> None:
        self.wanted = wanted
        self.needs_build: str | None = None
        self.problem: str | None = None
        self._store = store
        self._index = index
        self._memory_of = memory_of
        self._generations = generations
        self._meaning = meaning
        self._client: EngineClient | None = None
        self._closing: threading.Thread | None = None
        self._pid = os.getpid()
        self._generation = ""
        self._state: State | None = None
        self._applied: dict[str, tuple[int, int]] = {}  # memory -> seq of its last change in the shard, points
        self._queue: deque[str] = deque()
        self._flying: dict[str, tuple[int, int] | None] = {}
        self._flushing: tuple[str, int] | None = None
        self._written = 0
        self._not_before = 0.0
        self._rewritten = 0

    @property
    def is_holding(self) -> bool:
        """Whether searches get their candidates from a shard that this process holds."""
        return self._index.engine is not None and self._pid == os.getpid()

    @property
    def is_current(self) -> bool:
        """Whether the shard holds every memory as it is now, and has nothing to do."""
        idle = self._client is not None and self._client.is_idle
        return self.is_holding and idle and not self._index.behind and not self._flying and self._store.warm(0)

    def step(self) -> float | None:
        """Do a few milliseconds of work; return after how many seconds there is more, None when there is none.

        Raises:
            StorageError: The journal cannot be read.
        """
        if self._pid != os.getpid():
            self._forget_parent()
        backend, generation = self._generations.active()
        if not (self.wanted or backend == "vector"):
            self.release()
            return None
        if generation is None or (self._client is not None and generation != self._generation):
            self.release()
        if generation is None:
            self.needs_build = "there is no index yet"
            return None
        if self._client is None:
            return self._begin(generation)
        try:
            return self._open() if self._index.engine is None else self._catch_up()
        except StorageError as error:
            self._failed(error)
            return None

    def release(self) -> threading.Thread | None:
        """Let go of the shard, behind the searches that go on; return what is to be joined to wait for it.

        How far the shard is gets noted; the next to open it begins there.
        """
        state, mark, opened = self._state, self._mark(), self._index.engine is not None
        client, self._client = self._client, None
        self._index.engine = None
        self._index.behind.clear()
        self._applied, self._flying, self._flushing = {}, {}, None
        self._queue.clear()
        if client is None:
            return self._closing  # somebody was faster; its end is waited for all the same
        if not opened:
            client.kill()  # nothing to bring onto the disk, and nobody should wait for an opening
        state, self._written = _worn(state, self._written) if state is not None else None, 0
        self._closing = threading.Thread(target=self._close, args=(client, self._generation, state, mark))
        self._closing.start()
        return self._closing

    def _close(self, client: EngineClient, generation: str, state: State | None, mark: tuple[str, int] | None) -> None:
        if client.close() and mark is not None and state is not None:
            self._note(generation, state, mark)
        if self._generations.active()[1] != generation:
            with contextlib.suppress(StorageError):  # then it goes with the next sweep
                self._generations.sweep()

    # -- opening ------------------------------------------------------------------------------------------------------

    def _begin(self, generation: str) -> float | None:
        if time.monotonic() < self._not_before:
            return None
        state = self._generations.state(generation)
        if not self._meaning.is_ready:
            return None if self._meaning.describe()["status"] == "failing" else _LATER
        if not self._store.warm(_WARM_AT_ONCE):
            return _SOON
        if (unfit := self._unfit(state)) is not None or state is None:
            self.needs_build = unfit
            return None
        try:
            self._client = EngineClient(self._generations.shard(generation), namespace_of(state.agent_id))
        except StorageError as error:
            self._failed(error)
            return None
        self._generation, self._state = generation, state
        return _LATER

    def _unfit(self, state: State | None) -> str | None:
        """Return why a generation cannot be used, or None."""
        if state is None:
            return "the index is missing, half built or of another version"
        if state.embedder != str(self._meaning.identity()):
            return "the index is of another embedder"
        if state.seq > self._store.log.watermark[1]:
            return "the index is ahead of the journal, which must have been restored"
        return None

    def _open(self) -> float | None:
        assert self._client is not None
        assert self._state is not None
        try:
            opened = self._client.opened()
        except StorageError as error:
            if error.code == "busy":
                self.release()
                self._not_before = time.monotonic() + _BUSY_SECONDS
                return None
            self.release()
            self.needs_build, self.problem = "the index cannot be opened", error.message
            return None
        if opened is None:
            return _LATER / 5
        self._take_stock(opened, self._state.seq)
        return _SOON

    def _take_stock(self, opened: Opened, seq: int) -> None:
        memories, changed_at = self._index.memories(), self._store.state.changed_at
        self._applied = {memory_id: (seq, points) for memory_id, points in opened.memories.items()}
        self._index.behind = {
            memory_id
            for memory_id, keys in memories.items()
            if opened.memories.get(memory_id) != len(keys) or changed_at.get(memory_id, 0) > seq
        } | (opened.memories.keys() - memories.keys())
        self._index.engine = self._client
        self._rewritten = self._store.log.rewritten
        self.problem = None

    # -- catching up --------------------------------------------------------------------------------------------------

    def _catch_up(self) -> float | None:
        assert self._client is not None
        if not self._store.warm(_WARM_AT_ONCE):
            return _SOON
        if self._store.log.rewritten != self._rewritten:  # its numbers may stand for other changes now
            self._rewritten, self.needs_build = self._store.log.rewritten, "another program rewrote the journal"
        if not self._client.is_idle:
            if self._client.reply() is None:
                return _SOON
            self._acknowledged()
        if not self._index.behind:
            if self._state is not None and self._state.written + self._written >= _WORN_AFTER:
                self.needs_build = "much has changed since the index was built"
            return self._flush() if self._written >= _FLUSH_AFTER else None
        if not self._queue:
            self._queue.extend(self._index.behind)
        sent = self._send_batch()
        if sent or self._queue:
            return _SOON
        return _LATER if self._index.behind else _SOON  # what is left waits for its vectors

    def _send_batch(self) -> bool:
        """Send the next few changes; False when none of those looked at can be sent now."""
        points: list[Point] = []
        body, gone = [], []
        for _ in range(min(_AT_ONCE, len(self._queue))):
            memory_id = self._queue.popleft()
            if memory_id not in self._index.behind:
                continue
            memory = self._memory_of(memory_id)
            if memory is None or memory_id not in self._index.memories():
                gone.append(memory_id)
            elif not self._is_known(memory_id):
                vectors = self._index.vectors_of(memory_id)
                if vectors is None:
                    continue
                body += vectors
                points += points_of(memory, len(vectors))
                self._flying[memory_id] = (self._store.state.changed_at.get(memory_id, 0), len(vectors))
            else:
                self._index.behind.discard(memory_id)
            if len(points) >= _POINTS_AT_ONCE or len(gone) >= _AT_ONCE:
                break
        return self._send(points, b"".join(wire.floats(row.tolist()) for row in body), gone)

    def _send(self, points: list[Point], body: bytes, gone: list[str]) -> bool:
        assert self._client is not None
        if points:
            self._index.behind.difference_update(self._flying)  # a change from now on puts it back
            self._written += len(points)
            self._client.upsert(points, body)
            return True
        known = [memory_id for memory_id in gone if memory_id in self._applied]
        self._index.behind.difference_update(gone)
        if known:
            self._flying = dict.fromkeys(known)
            self._written += len(known)
            self._client.send("delete", ids=known)
        return bool(known)

    def _acknowledged(self) -> None:
        for memory_id, applied in self._flying.items():
            if applied is None:
                self._applied.pop(memory_id, None)
            else:
                self._applied[memory_id] = applied
        self._flying = {}
        if self._flushing is not None and self._state is not None:
            self._state = self._note(self._generation, _worn(self._state, self._written), self._flushing)
            self._flushing, self._written = None, 0

    def _is_known(self, memory_id: str) -> bool:
        """Tell whether the shard has a memory as it is now: after a compaction all are put again, few have changed."""
        seq, points = self._applied.get(memory_id, (-1, 0))
        keys = self._index.memories()[memory_id]
        return self._store.state.changed_at.get(memory_id, 0) <= seq and points == len(keys)

    def _flush(self) -> float:
        assert self._client is not None
        self._flushing = self._mark()
        self._client.send("flush")
        return _LATER

    def _mark(self) -> tuple[str, int] | None:
        """Return the watermark the shard has reached, None while it is behind."""
        try:
            return self._store.log.watermark if self.is_current else None
        except StorageError:
            return None

    def _note(self, generation: str, state: State, mark: tuple[str, int]) -> State:
        """Write a watermark; without it the next to open the shard does a little more."""
        if mark == (state.journal, state.seq):
            return state
        state = replace(state, journal=mark[0], seq=mark[1])
        try:
            self._generations.write_state(generation, state)
        except StorageError as error:
            log.warning("index_watermark_not_written", code=error.code, error=error.message)
        return state

    # -- trouble ------------------------------------------------------------------------------------------------------

    def _failed(self, error: AgentMemoryError) -> None:
        log.warning("vector_engine_failed", code=error.code, error=error.message)
        self.problem = error.message
        client, self._client = self._client, None
        self._index.engine = None  # before anything else: searches look at every memory from now on
        if client is not None:
            client.kill()
        self.release()
        self._not_before = time.monotonic() + _TROUBLE_SECONDS

    def _forget_parent(self) -> None:
        """A forked child has neither its parent's engine nor the right to talk to it."""
        self._pid = os.getpid()
        self._client = None
        self._index.engine = None
        self.release()

    def describe(self) -> dict[str, Any]:
        """Return how the engine stands, for people."""
        status = "in use" if self.is_holding else ("opening" if self._client is not None else "not held")
        report: dict[str, Any] = {"status": status, "behind": len(self._index.behind) if self.is_holding else 0}
        return {**report, "problem": self.problem} if self.problem else report


def _worn(state: State, written: int) -> State:
    return replace(state, written=state.written + written)


def points_of(memory: Memory, pieces: int) -> list[Point]:
    """Return the points of a memory that has so many pieces."""
    return [
        Point(
            memory_id=memory.id,
            piece=piece,
            category=memory.category,
            tags=tuple(memory.tags),
            timestamp=memory.timestamp.timestamp(),
            access_count=memory.access_count,
            group=memory.created_by_session,
        )
        for piece in range(pieces)
    ]
