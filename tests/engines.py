"""Engines for tests: one in this process, where a test must be quick, and vectors made in one line. No fixture."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from typing_extensions import override

from agent_memory.engines.ann_index import EngineLimits
from agent_memory.engines.index_maintenance import IndexOptions
from agent_memory.engines.shard import Shard
from agent_memory.engines.shard_process import EngineClient, ShardReader, build_payload, pack_message, unpack_message
from agent_memory.errors import StorageError
from agent_memory.files.names import HOLDER_LOCK
from agent_memory.models import Document
from agent_memory.storage import folder_of
from agent_memory.store.shards import Shards, ShardState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from agent_memory.embeddings import EmbedderIdentity
    from agent_memory.models import Facet

WIDTH = 32


def unit_rows(count: int, *, width: int = WIDTH, seed: int = 0, clusters: int = 0) -> NDArray[np.float32]:
    """Return rows of length 1, around so many centres if told to."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, width)).astype(np.float32)
    if clusters:
        rows = (
            random.normal(size=(clusters, width)).astype(np.float32)[random.integers(0, clusters, count)] + 0.7 * rows
        )
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def payload(number: int, *facets: Facet, **fields: Any) -> dict[str, Any]:
    """Return the payload of a record whose id tells its number."""
    then = datetime.fromtimestamp(fields.pop("timestamp", 0.0), UTC)
    return build_payload(Document(f"mem-{number:012x}", "", facets, then, then, **fields))


class EngineHere(EngineClient):
    """An `EngineClient` that searches a real shard in this process, without the time a process takes to start.

    Attributes:
        asked: How many searches it answered.
    """

    held: ClassVar[set[Path]] = set()
    _lock = threading.Lock()

    def __init__(self, folder: Path) -> None:
        self.asked = 0
        self._folder, self._reader = folder, None
        self._answer: tuple[dict[str, Any], bytes] | None = None
        self._gone = self._abandoned = False
        with self._lock:
            if folder in self.held:
                self._answer = ({"failed": "held", "code": "busy"}, b"")
                return
            self.held.add(folder)
        try:
            (folder.parent / HOLDER_LOCK).touch()
            self._reader = ShardReader(Shard.open(folder))
            self._answer = self._reader.greeting()
        except StorageError as error:
            self.held.discard(folder)
            self._answer = ({"failed": error.message, "code": error.code}, b"")

    @property
    @override
    def is_idle(self) -> bool:
        return not self._gone and self._answer is None

    @override
    def send(self, head: dict[str, Any], body: bytes) -> bool:
        if not self.is_idle or self._reader is None:
            return False
        self.asked += 1
        self._answer = self._reader.nearest(*unpack_message(pack_message(head, body)))
        return True

    @override
    def reply(self, timeout: float = 0) -> tuple[dict[str, Any], bytes] | None:
        answer, self._answer = self._answer, None
        if answer is not None and "failed" in answer[0]:
            raise StorageError(answer[0]["failed"], code=answer[0]["code"])
        return answer

    @override
    def close(self, timeout: float = 0) -> None:
        self._gone = True
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
            self.held.discard(self._folder)

    @override
    def kill(self) -> None:
        self.close()


def options(*, start: Callable[[Path], EngineClient] = EngineHere, **limits: Any) -> IndexOptions:
    """Return options with an engine in this process, which is asked however few memories there are."""
    return IndexOptions(EngineLimits(**{"asked_from": 0, "look_seconds": 0.0, **limits}), start)


def made_index(root: Path, identity: EmbedderIdentity, agent: str = "bob") -> str:
    """Give an agent without memories an empty index that is in use, as a build would; return its shard."""
    shards = Shards(folder_of(agent, root))
    with shards.building() as (shard, unfinished):
        Shard.create(unfinished / "shard", identity.dimension).close()
        shards.finish(shard, unfinished, ShardState(str(identity), identity.dimension, "", 0))
        shards.switch("vector", shard, str(identity))
    return shard
