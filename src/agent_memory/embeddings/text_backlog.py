"""`Backlog`: texts that wait for their vector, in memory.

Must not know threads: its owner has the lock.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings.pieces import estimate_length

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from agent_memory.errors import EmbeddingError

_OF_ONE_TEXT: Final = frozenset({"http_400", "http_413", "http_422", "vector_not_finite"})
"""Errors that may lie in one text of a batch: that one is found by trying them singly, and given up."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Batch size and waiting times of a worker.

    Attributes:
        batch: Texts looked up together, and sent together to an API; a model in this process gets them in pieces.
        window: Oldest texts among which those of a batch are chosen.
        failures: Batches that fail in a row before the embedder is left alone for a while; words still find.
        rest_seconds: How long that is.
        head_start_seconds: Loading a model holds the interpreter for a third of a second. What has just been opened is
            first read, and searched by words, unless a caller waits for the model.
        remote_seconds: What a first search, and closing, wait for an API; a thread that waits for a network can be left
            behind.
    """

    batch: int = 32
    window: int = 256
    failures: int = 3
    rest_seconds: float = 30.0
    head_start_seconds: float = 0.5
    remote_seconds: float = 5.0


class Backlog:
    """Texts that wait for their vector, and what became of those that were tried. Used under the worker's lock."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self.unchecked: OrderedDict[bytes, str] = OrderedDict()
        """Texts not yet looked up in the cache."""
        self.texts: OrderedDict[bytes, str] = OrderedDict()
        """Texts to embed."""
        self.problem: EmbeddingError | None = None
        self._busy = 0
        self._failures = 0
        self._singly = 0
        """Texts still to be tried one by one."""

    @property
    def pending(self) -> int:
        """How many texts have no vector yet."""
        return len(self.unchecked) + len(self.texts) + self._busy

    @property
    def is_resting(self) -> bool:
        """Whether the embedder failed so often that it is left alone."""
        return self._failures >= self._limits.failures

    def rest(self, error: EmbeddingError) -> None:
        """Leave the embedder alone, so that no caller waits for it."""
        self.problem, self._failures = error, self._limits.failures

    def end_rest(self) -> None:
        """Try the embedder again."""
        self._failures = 0

    def withdraw(self, key: bytes) -> None:
        """Drop a text that waits."""
        self.unchecked.pop(key, None)
        self.texts.pop(key, None)

    def checked(self, keys: Iterable[bytes], cached: Container[bytes]) -> None:
        """Queue texts without a cached vector, unless they were withdrawn."""
        for key in keys:
            text = self.unchecked.pop(key, None)
            if text is not None and key not in cached:
                self.texts[key] = text

    def take(self) -> dict[bytes, str]:
        """Take the texts that are tried next: the oldest, and the waiting ones nearest to it in length.

        Texts of one length need no padding: 5,000 memories then cost a model 12 % less.
        """
        size = 1 if self._singly else self._limits.batch
        oldest = list(islice(self.texts.items(), size if self._singly else self._limits.window))
        if len(oldest) > size:
            lengths = {key: estimate_length(text) for key, text in oldest}
            first = lengths[oldest[0][0]]
            oldest.sort(key=lambda item: abs(lengths[item[0]] - first))
        batch = dict(oldest[:size])
        for key in batch:
            del self.texts[key]
        self._singly = max(0, self._singly - len(batch))
        self._busy = len(batch)
        return batch

    def failed(self, batch: dict[bytes, str], error: EmbeddingError, *, ready: bool) -> None:
        """Put a batch back, first in the queue; a single text that the loaded model refuses is given up."""
        self._busy = 0
        self.problem = error
        if ready and error.code in _OF_ONE_TEXT and len(batch) == 1:
            return
        for key, text in batch.items():
            self.unchecked.pop(key, None)
            self.texts.setdefault(key, text)
            self.texts.move_to_end(key, last=False)
        self._singly = len(batch) if error.code in _OF_ONE_TEXT else 0
        self._failures += error.code not in _OF_ONE_TEXT

    def succeeded(self) -> None:
        """Forget what went wrong before."""
        self._busy = self._failures = 0
        self.problem = None
