"""A second embedder for agents in several languages.

The first text or question that is not English is noted in the vector cache. Then all records get a vector of the second
embedder in the background. Vectors that the cache has are not made again, so a later process continues where an earlier
one ended. When all have theirs, the store is replaced by one that uses both embedders. An agent with English alone pays
nothing.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_memory.embeddings.cache import text_hash
from agent_memory.embeddings.schedule import SCHEDULE
from agent_memory.embeddings.worker import CachingEmbedder
from agent_memory.errors import EmbeddingError, StorageError
from agent_memory.language.languages import is_other_language
from agent_memory.language.questions import is_other_question
from agent_memory.language.text_forms import embedded_texts
from agent_memory.logs import get_logger
from agent_memory.models.kind import R

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agent_memory.embeddings import EmbedderIdentity, EmbeddingService, VectorCache
    from agent_memory.embeddings.embedder_pair import EmbedderPair
    from agent_memory.embeddings.protocol import Embedder
    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Kind
    from agent_memory.store.storage_edge import StorageEdge
    from agent_memory.store.store import Store

log = get_logger(__name__)
_RECORDS: Final = 20
"""Records of a step, which is finished before a session ends, so that each session makes progress."""
_CHECKED: Final = 1_000
"""Earlier records whose language is checked, about: evenly spread over all, so that no size makes this slow."""
_HEAD_START_SECONDS: Final = 0.5
_POLL_SECONDS: Final = 0.2
_REST_SECONDS: Final = 30.0
_FAILURES: Final = 3


@dataclass(frozen=True, slots=True)
class SecondModelPlan(Generic[R]):
    """Plan of adding a second model to an agent.

    Attributes:
        kind: Kind of the records.
        pair: Both embedders, the second one last.
        cache: Vector cache of the agent.
        folder: Folder of the agent.
        open_store: Opens the records with both embedders.
        build_columns: Starts a process that copies cached vectors to segments; None if it cannot.
        can_replace: False if only the next start can use the second embedder, since the engine's index is rebuilt.
    """

    kind: Kind[R]
    pair: EmbedderPair
    cache: VectorCache
    folder: AgentFolder
    open_store: Callable[[], tuple[Store[R], EmbeddingService[Any]]]
    build_columns: Callable[[EmbedderIdentity], subprocess.Popen[bytes] | None]
    can_replace: bool = True

    @property
    def second(self) -> Embedder:
        """The embedder to add."""
        return self.pair.parts[-1]

    @property
    def wanted_name(self) -> str:
        """Name in the cache that says that the second embedder is wanted."""
        return str(self.second.identity)

    @property
    def filled_name(self) -> str:
        """Name in the cache that says that all records had their vectors."""
        return f"{self.wanted_name} of every {self.kind.name}"

    @property
    def checked_name(self) -> str:
        """Name in the cache that says that earlier texts were checked."""
        return f"{self.wanted_name} checked {self.kind.name}"

    def check_filled(self) -> bool:
        """Return True if all records had their vectors of the second embedder.

        A cache that is deleted takes its notes along; the segments then say it.
        """
        if self.cache.has_embedder(self.filled_name):
            return True
        is_possible = not self.cache.is_stored or self.cache.has_embedder(self.wanted_name)
        if not (is_possible and self.folder.has_segments(self.kind.name)):
            return False
        from agent_memory.store.segment_opener import are_embedded

        if not are_embedded(self.folder.segments(self.kind.name), self.pair.identity):
            return False
        for name in (self.wanted_name, self.filled_name):
            self.cache.add_embedder(name)
        return True


class SecondModel(Generic[R]):
    """Back-fill of a second model in the background.

    Args:
        storage: Storage of the records, whose store is replaced at the end.
        plan: Embedders and files.
    """

    def __init__(self, storage: StorageEdge[R], plan: SecondModelPlan[R]) -> None:
        self._storage, self._plan = storage, plan
        self._source = CachingEmbedder(plan.second, plan.cache)
        self._is_wanted: bool | None = None
        self._closing = False
        self._ended = threading.Event()
        self._failures = 0
        self._problem = ""
        self._records: Iterator[R] | None = None
        self._read, self._total = 0, 0
        self._child: subprocess.Popen[bytes] | None = None
        self._opened: tuple[Store[R], EmbeddingService[Any]] | None = None
        self._is_next_start = False
        in_use = (self._build_columns, self._open_store, self._replace)
        self._stages = iter((self._fill, *(in_use if plan.can_replace else [self._leave_to_next_start])))
        self._stage = next(self._stages)
        self._unchecked: Iterator[R] | None = None

    def wait(self, seconds: float) -> bool:
        """Wait for the second embedder; return False if that is over.

        It is over once it is in use, fails, or stops.
        """
        if not self._check_wanted() or self._closing or self._failures:
            return False
        return not self._ended.wait(seconds)

    def start(self, embeddings: EmbeddingService[Any]) -> None:
        """Continue what an earlier process began, and check new texts."""
        embeddings.notice_texts(self.note_texts)
        SCHEDULE.add(self, _HEAD_START_SECONDS)

    def note_texts(self, texts: Iterable[str]) -> None:
        """Begin if one of the texts is not English."""
        if not self._is_wanted and any(map(is_other_language, texts)):
            self._begin()

    def note_question(self, question: str) -> None:
        """Begin if a question is not English."""
        if not self._is_wanted and is_other_question(question):
            self._begin()

    def describe(self) -> dict[str, Any]:
        """Return the state of the back-fill, empty if not wanted."""
        if not self._check_wanted():
            return {}
        state: dict[str, Any] = {"records": self._total, "pending": max(0, self._total - self._read)}
        if self._is_next_start:
            state["next_start"] = True
        return {"languages": state | ({"problem": self._problem} if self._problem else {})}

    def close(self) -> None:
        """Stop after the current step; the next process continues."""
        self._closing = True
        self._ended.set()
        SCHEDULE.remove(self, None)
        if self._opened is not None:
            self._opened[1].close()
        self._plan.cache.close()

    def _check_wanted(self) -> bool:
        """Return True if any process noted that the second embedder is wanted."""
        if self._is_wanted is None:
            self._is_wanted = self._plan.cache.has_embedder(self._plan.wanted_name)
        return self._is_wanted

    def _begin(self) -> None:
        self._is_wanted = True
        self._plan.cache.add_embedder(self._plan.wanted_name)
        SCHEDULE.add(self, 0.0)

    def step(self) -> float | None:
        """Do some work; return the seconds until more, or None."""
        if self._closing or self._failures >= _FAILURES:
            return None
        if not self._check_wanted():
            return self._check_earlier_texts()
        try:
            delay: float | None = self._stage()
        except Exception as error:  # noqa: BLE001 - a model is foreign code; words and the first model still find
            self._failures, self._problem = self._failures + 1, _describe_problem(error)
            log.warning("second_model_failed", kind=self._plan.kind.name, error=str(error))
            return _REST_SECONDS
        self._failures, self._problem = 0, ""
        if delay is not None:
            return delay
        stage = next(self._stages, None)
        if stage is None:
            return None
        self._stage = stage
        return 0.0

    def _check_earlier_texts(self) -> float | None:
        """Check some earlier texts; return None after the last."""
        cache = self._plan.cache
        if self._unchecked is None and cache.has_embedder(self._plan.checked_name):
            return None
        try:
            records = self._storage.worker.ask(self._read_unchecked)
        except StorageError:
            return None  # each call of the storage reports it; the next process checks
        if records:
            self.note_texts(map(self._plan.kind.text_of, records))
            return 0.0
        if self._total:  # a new agent's texts are checked when they are embedded
            cache.add_embedder(self._plan.checked_name)
        return None

    def _read_unchecked(self) -> list[R]:
        """Return the next records to check; for the thread of the records."""
        if self._unchecked is None:
            state = self._storage.opened.refresh()
            self._total = len(state.records)
            self._unchecked = state.iter_records(1 + self._total // _CHECKED)
        return list(islice(self._unchecked, _RECORDS))

    def _fill(self) -> float | None:
        """Embed the texts of some records; return None after the last."""
        records = self._storage.worker.ask(self._read_records)
        if not records:
            self._plan.cache.add_embedder(self._plan.filled_name)
            return None
        texts = [text for record in records for text in self._list_texts(record)]
        self._source.documents({text_hash(text): text for text in texts}, load=False, stops=lambda: False)
        self._storage.worker.ask(lambda: self._forget_deleted(records))
        self._read += len(records)
        return 0.0

    def _list_texts(self, record: R) -> list[str]:
        return embedded_texts(self._plan.kind.document(record).text)

    def _read_records(self) -> list[R]:
        """Return the next records; for the thread of the records."""
        if self._records is None:
            state = self._storage.opened.refresh()
            self._total, self._records = len(state.records), iter(state.iter_records())
        return list(islice(self._records, _RECORDS))

    def _forget_deleted(self, records: Sequence[R]) -> None:
        """Delete vectors of texts that were deleted in the meantime."""
        store = self._storage.opened
        pairs = ((record, store.refresh().get(record.id)) for record in records)
        for record, current in pairs:
            texts = self._list_texts(record)
            if current is None or self._list_texts(current) != texts:
                store.embeddings.forget(texts)

    def _leave_to_next_start(self) -> None:
        """Stop waiting; the next start rebuilds the engine's index."""
        self._is_next_start = True
        self._ended.set()

    def _build_columns(self) -> float | None:
        """Wait for the process that copies the vectors to the segments."""
        if self._storage.opened.state.sealed is None:
            return None
        if self._child is None:
            self._child = self._plan.build_columns(self._plan.pair.identity)
        return None if self._child is None or self._child.poll() is not None else _POLL_SECONDS

    def _open_store(self) -> float | None:
        """Open the records with both embedders, all vectors from the cache."""

        def open_store() -> bool:
            if self._opened is None:
                self._opened = self._plan.open_store()
            self._opened[0].refresh()
            return self._opened[0].warm(_RECORDS)

        return None if self._storage.worker.ask(open_store) else 0.0

    def _replace(self) -> float | None:
        """Replace the store once the new one has all vectors."""
        assert self._opened is not None
        store, embeddings = self._opened
        if not embeddings.is_settled:
            embeddings.start()
            return _POLL_SECONDS
        replaced = self._storage.worker.ask(lambda: self._storage.replace_store(store))
        self._opened, self._is_wanted = None, False
        self._ended.set()
        replaced.embeddings.close()
        return None


def _describe_problem(error: Exception) -> str:
    """Return the reason of an error, and its own advice."""
    if not isinstance(error, EmbeddingError) or error.recovery == error.default_recovery:
        return str(error)
    return f"{error}. {error.recovery}"
