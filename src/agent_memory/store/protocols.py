"""Protocols of a backend: log of changes and index upkeep.

A new backend implements `ChangeLog`, and `IndexUpkeep` where it has an index of its own, and gives a `RecordStorage`
the function that opens them. The contract suite in tests/contract checks it.

Two ways to let one writer win: behind a file's lock the others wait (`FileLog`); on
a server the client that was second reads again and decides again (`engines.server_log`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from agent_memory.journal import Change, Entry, JournalUpdate
    from agent_memory.models import SearchResults
    from agent_memory.store.state import State

T = TypeVar("T")
Settle = Callable[[], object] | None
"""Makes a change durable; None if nothing is left to be synced."""
Absorb = Callable[["JournalUpdate"], None]
"""Applies new changes, before and after a decision."""
Decide = Callable[[], tuple[list["Change"], T]]
"""Returns the changes to make and the answer; may be called more than once."""


class ChangeLog(Protocol):
    """The changes of one agent's records, in order.

    For one thread, except where a method says otherwise.
    """

    @property
    def watermark(self) -> tuple[str, int]:
        """Generation and number of the last change read.

        The number is 0 before the first.
        """

    @property
    def rewrite_count(self) -> int:
        """Number of times another program has rewritten the changes."""

    def looks_like(self) -> object:
        """Return a value that differs after each write, without reading.

        None where only `poll` shows a write.
        """

    def poll(self, *, thorough: bool = False) -> JournalUpdate:
        """Return new changes since the last call.

        Args:
            thorough: Also find what another program changed in place.

        Raises:
            StorageError: It cannot be read.
        """

    def hold(self, wait: float) -> AbstractContextManager[None]:
        """Keep other writers out for the length of a block.

        Then `commit` need not wait. Any thread may enter it.

        Args:
            wait: Seconds to wait for another writer; 0 to try once.

        Raises:
            BusyError: Another writer was in for so long.
            StorageError: There is nothing to be held.
        """

    def commit(self, absorb: Absorb, decide: Decide[T]) -> tuple[T, Settle]:
        """Read what is new, decide, and make the changes as one.

        No other writer's changes come in between.

        Returns:
            The answer, and the sync of what was written or read; see `Store.change`.

        Raises:
            StorageError: Nothing was written, unless the message says that this is not known.
        """

    def pays_to_compact(self, state: State[Any]) -> bool:
        """Return True if a compaction is worth its time now."""

    def compacting(self, grace: timedelta | None = None) -> AbstractContextManager[Callable[[Absorb], bool]]:
        """Prepare to drop texts forgotten longer ago than `grace`.

        Replaced ones, too; marks stay. Any thread may enter the block.

        Args:
            grace: Age of what is dropped; the log's own time when omitted.

        Yields:
            The function that does it, to be called like `commit`. It takes milliseconds, with the lock; it returns True
            if the log has to be read again, which may take longer.

        Raises:
            BusyError: Another process compacts.
            StorageError: The log is as it was.
        """

    def naming(self, record_ids: Collection[str] | None) -> list[Entry]:
        """Return at least all entries about some records, in order.

        An entry is returned whole, with its changes of other records. None asks for the deleted ones.

        Raises:
            UnsupportedError: This log keeps no past.
            StorageError: It cannot be read.
        """

    def report(self) -> tuple[list[str], list[str]]:
        """Return problems and notes, a sentence each."""

    def note_current(self, count: int) -> None:
        """Record the journal and its number of records; never raises.

        Called at the end of a session.
        """

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """Write down records that another program removed.

        Raises:
            StorageError: They could not be written.
        """


class IndexUpkeep(Protocol):
    """Work on a search index between the calls of a storage.

    Attributes:
        backend: `file` or `vector`: where searches find their candidates.
        can_migrate: True for an `IndexMaintenance`, which moves an agent to the vector engine and back.
    """

    backend: str
    can_migrate: bool

    def look_after(self, *, is_changed: bool) -> None:
        """Start work in the background, unless it is under way.

        Args:
            is_changed: True after a write; False before a search, where nothing is done for a moment after the last.
        """

    def after_compaction(self) -> None:
        """Remove derived data of texts that were purged. Blocking."""

    def describe(self) -> tuple[dict[str, Any], list[Trouble]]:
        """Return a part of the health report, and what does not work."""

    async def rollback(self) -> bool:
        """Answer from the files alone; return True if that is new.

        Raises:
            StorageError: Nothing has changed.
        """

    async def close(self) -> None:
        """Close the index; the next search opens it again."""


Progress = Callable[[str, int, int], Awaitable[None]]
"""Called with the stage (embed, load, index, check, switch), the number of steps done and the number of all steps."""


@dataclass(frozen=True, slots=True)
class Built:
    """A shard in use.

    Attributes:
        shard: Its name.
        memories: Number of memories when it was built.
        points: Number of its points.
    """

    shard: str
    memories: int
    points: int


@dataclass(frozen=True, slots=True)
class MigrationProgress:
    """Progress of a migration; `VectorStorage.migrate_from_file` returns it at the end.

    Attributes:
        memories_processed: Number of memories that were moved.
        total: Number of memories to move.
    """

    memories_processed: int
    total: int

    @property
    def percent_complete(self) -> float:
        """Progress in percent; 100 if there is nothing to move."""
        return round(100 * self.memories_processed / self.total, 1) if self.total else 100.0

    @property
    def is_complete(self) -> bool:
        """True if all memories were moved."""
        return self.memories_processed >= self.total


class ModelUpkeep(Protocol):
    """Background work that adds a second embedder to an agent."""

    def wait(self, seconds: float) -> bool:
        """Wait for the second embedder; return False if that is over."""

    def note_question(self, question: str) -> None:
        """Begin if a question needs the second embedder."""

    def describe(self) -> dict[str, Any]:
        """Return the state of the work, empty if nothing is to do."""

    def close(self) -> None:
        """Stop; the next process continues."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of a migration.

    Attributes:
        count: Number of memories to move.
        seconds: Time on a machine with two cores.
        dollars: Price of embedding the texts that have no vector yet.
    """

    count: int
    seconds: float
    dollars: float


class MovableIndex(Protocol):
    """Index of an agent that can be moved to the vector engine."""

    async def estimate(self) -> Estimate:
        """Return the expected cost of `migrate`."""

    async def migrate(self, progress: Progress | None = None) -> Built:
        """Build an index and answer from it."""

    async def migration_begun(self) -> bool:
        """Return True if a begun migration has neither ended nor failed."""

    async def note_migration(self, *, begun: bool) -> None:
        """Record that a migration has begun, or has ended."""


_EXPLAINED: Final = "`agent-memory doctor` tells more."
_SOON: Final = "Searching again in a moment finds more."


@dataclass(frozen=True, slots=True)
class Trouble:
    """One part that does not work; memories are still stored and found.

    Attributes:
        component: embedder, engine or audit.
        code: Machine-readable word.
        message: What does not work.
        recovery: What to do.
    """

    component: str
    code: str
    message: str
    recovery: str = _EXPLAINED

    @property
    def sentence(self) -> str:
        """Message and what to do."""
        return f"{self.message} {self.recovery}"


def find_embedder_trouble(state: Mapping[str, Any]) -> Trouble | None:
    """Return the problem of search by embeddings.

    None while it works, is being loaded, or was switched off.

    Args:
        state: Result of `MemoryStorage.embedding_status`.
    """
    if state.get("status") == "off" and not state.get("chosen"):
        return Trouble("embedder", "no_embedder", f"There is no search by meaning: {state['reason']}", "")
    if state.get("status") == "failing":
        problem = str(state["problem"]).rstrip(".")
        what = problem if state.get("loaded", True) else f"model not loaded ({problem})"
        message = f"Search by meaning does not work: {what}."
        return Trouble(
            "embedder", str(state.get("code", "embedder_failed")), message, state.get("recovery", _EXPLAINED)
        )
    if state.get("warning"):
        return Trouble("embedder", "reports", str(state["warning"]), "")
    return None


def find_engine_trouble(state: Mapping[str, Any]) -> Trouble | None:
    """Return the problem of the vector engine in its description, or None."""
    problem = state.get("problem")
    if not problem:
        return None
    message = (
        f"The vector engine is not in use: {str(problem).rstrip('.')}. Searches compare with every memory instead."
    )
    return Trouble("engine", "engine", message)


def describe_weakness(results: SearchResults, state: Mapping[str, Any]) -> str | None:
    """Describe the weakness of a search with a remedy, or return None.

    Args:
        results: Results of the search.
        state: Result of `MemoryStorage.embedding_status`.
    """
    if (
        results.mode == "keyword"
        and (trouble := find_embedder_trouble(state)) is not None
        and trouble.code != "reports"
    ):
        return trouble.sentence.strip()
    pending = int(state.get("pending", 0))
    if results.mode == "keyword" and state.get("status") in {"loading", "found"}:
        rest = f", and {_texts(pending)} still to be read" if pending else ""
        return f"Searched by words alone: the embedding model is being loaded{rest}. {_SOON}"
    if pending and state.get("status") in {"loading", "ready"}:
        searched = (
            "Searched by words alone" if results.mode == "keyword" else "Some memories were searched by words alone"
        )
        return f"{searched}: {_texts(pending)} still to be read by meaning. {_SOON}"
    languages = state.get("languages")
    return None if languages is None else f"Only English is searched by meaning: {_describe_addition(languages)}"


def _describe_addition(languages: Mapping[str, Any]) -> str:
    """Describe how far the addition of a second model is."""
    if languages.get("next_start"):
        return "the model for other languages is used from the next start on."
    if languages.get("problem"):
        return f"a model for other languages failed: {languages['problem']}"
    pending, records = languages["pending"], languages["records"]
    remaining = f" ({pending:,} of {records:,} memories left)" if pending else ""
    return f"a model for other languages is being added{remaining}. {_SOON}"


def describe_missing_languages() -> str:
    """Describe that a question is answered by words, and name the extra."""
    return f"Only English is searched by meaning: the model for other languages is not installed. {advice('languages')}"


def _texts(count: int) -> str:
    return "1 text is" if count == 1 else f"{count:,} texts are"
