"""`Sealing`: has what many changes left unsealed be sealed by a child process, behind searches and writes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_memory.encryption import is_encrypted
from agent_memory.errors import StorageError
from agent_memory.files.children import child_environment, python_module
from agent_memory.index.scores import numpy_if_there
from agent_memory.logs import get_logger
from agent_memory.models.kind import R
from agent_memory.store.shards import roll_back

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.files.layout import AgentFolder
    from agent_memory.store.segment_opener import Opening
    from agent_memory.store.store import Store
    from agent_memory.store.trouble import Trouble
    from agent_memory.store.worker import Worker

log = get_logger(__name__)

SEALED_AT: Final = 250
"""Changed or accessed records from which on they are sealed: replaying and indexing them takes a start 11 ms, and
sealing them half a second of processor time, of low priority."""
_REST_SECONDS: Final = 10.0
"""From one child to the next: the second finds what the first left, such as vectors that were still to be made."""

_left: Final[set[subprocess.Popen[bytes]]] = set()
"""Children that outlived their session, until somebody asks how they ended: so that none stays as a zombie."""


class Sealing(Generic[R]):
    """The `IndexUpkeep` of files without an engine.

    Args:
        store: The records.
        opening: Returns how segments are opened; asked for once there are some, or are to be.
        folder: Where the records lie.
        thread: Takes new segments into use.
        least: Changed or accessed records from which on they are sealed.
        is_embedded: Tells whether every text that is known has its vector.
    """

    backend = "file"
    can_migrate = False

    def __init__(
        self,
        store: Store[R],
        opening: Callable[[], Opening[R]],
        folder: AgentFolder,
        thread: Worker,
        least: int = SEALED_AT,
        is_embedded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self.opening = opening
        self._agent = folder
        self._thread = thread
        self._least = least
        self._child: subprocess.Popen[bytes] | None = None
        self._begun = -_REST_SECONDS
        self._is_embedded = is_embedded
        self._enough = least
        self._tried: object = None
        """What `_without_vectors` returned when a child looked for them, in vain if it returns that again."""

    def look_after(self, *, is_changed: bool = False) -> None:  # noqa: ARG002 - a write changes nothing here
        """Have a child seal what there is, once there is enough of it, and take into use what it sealed."""
        if self._child is not None:
            if self._child.poll() is not None:
                self._child = None
                self._thread.submit(self._adopt)
            return
        if time.monotonic() - self._begun < _REST_SECONDS:
            return
        if self._store.state.unsealed >= self._enough:
            self._begin()
        elif (missing := self._without_vectors()) is not None and missing != self._tried and self._is_embedded():
            self._tried = missing
            self._begin()

    async def close(self) -> None:
        """Have a child seal what is left, and add the vectors that were made meanwhile: it goes on by itself."""
        if self._child is not None and self._child.poll() is None:
            _left.add(self._child)
            return  # it looks again before it ends
        missing = self._without_vectors()
        has_vectors = missing is not None and missing != self._tried and self._is_embedded()
        if has_vectors or (self._store.state.unsealed >= self._least and await self._thread.run(self._is_enough)):
            self._tried = missing
            self._begin()
            if self._child is not None:
                _left.add(self._child)

    def _is_enough(self) -> bool:
        """Tell whether there is enough behind what is sealed by now, in use here or not."""
        if numpy_if_there() is None:
            return False
        last = self.opening().last_sealed()
        return sum(seq > last for seq in self._store.state.table.touched_at.values()) >= self._enough

    def _without_vectors(self) -> tuple[bool, tuple[str, ...]] | None:
        """Return whether vectors were asked for, and the names of the segments in use that have none; None if all do.

        Before they were asked for, they may be in the cache from an earlier session.
        """
        sealed = self._store.index.parts.sealed
        if sealed is None:
            return None
        pairs = zip(sealed.chain.segments, sealed.vectors, strict=True)
        names = tuple(segment.folder.name for segment, vectors in pairs if vectors is None)
        return (self._store.asked_for_vectors, names) if names else None

    def _begin(self) -> None:
        self._begun = time.monotonic()
        if numpy_if_there() is None or is_encrypted(self._agent.path):  # segments are arrays, and not encrypted
            return
        identity = self.opening().identity
        self._child = start_child(
            [
                *python_module("agent_memory.store.segment_builder"),
                str(self._agent.path),
                self._store.kind.place,
                json.dumps(asdict(identity)) if identity is not None else "",
            ]
        )

    def describe(self) -> tuple[dict[str, Any], list[Trouble]]:
        """Return nothing: segments are derived, and a problem with them costs time alone."""
        return {}, []

    async def rollback(self) -> bool:
        """Answer from the files alone; needs no engine. See `IndexUpkeep.rollback`."""
        return await asyncio.to_thread(roll_back, self._agent)

    def after_compaction(self) -> None:
        """Remove segments with texts that were purged; the next child makes them anew."""
        if self._agent.has_segments(self._store.kind.name) and numpy_if_there() is not None:
            self.opening().drop_purged(self._store.log)

    def _adopt(self) -> None:
        before = self._store.state.unsealed
        with contextlib.suppress(StorageError):  # the next child makes them anew
            self.opening().adopt(self._store)
        after = self._store.state.unsealed
        # One that could do nothing, on a full disk for instance, is not started again for the same.
        self._enough = self._least if after < max(before, self._least) else after + self._least


def start_child(command: list[str]) -> subprocess.Popen[bytes] | None:
    """Start a child that goes on when this process ends: what it makes is for the next one."""
    _left.difference_update({child for child in _left if child.poll() is not None})
    nothing: Any = subprocess.DEVNULL
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, a module of ours, a path of ours
            command, stdin=nothing, stdout=nothing, stderr=nothing, env=child_environment(), start_new_session=True
        )
    except OSError as error:
        log.warning("sealing_not_started", error=str(error))
        return None
