"""`ChangeLog`: what a replica asks of what keeps the changes; and the log that is a journal in a folder.

Two ways to let one writer win: behind a file's lock the other writers wait (here), on a server the client
that was second looks again and decides anew (`agent_memory.storage.qdrant`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from agent_memory.files.atomic import signature
from agent_memory.journal import GRACE, Change, Journal, Update, keep_lost
from agent_memory.models import Clock, utc_now
from agent_memory.storage.changes import expired_before
from agent_memory.storage.compaction_policy import CompactionPolicy
from agent_memory.storage.vector.shards import describe_folder
from agent_memory.storage.worker import TURN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import date, datetime, timedelta
    from typing import Any

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Entry
    from agent_memory.models import Kind
    from agent_memory.storage.state import State

T = TypeVar("T")
Absorb = Callable[[Update], None]
"""Takes in what is new, before and after a decision."""
Decide = Callable[[], tuple[list[Change], T]]
"""Returns the changes to make upon what was absorbed, and the answer; may be asked more than once."""


class ChangeLog(Protocol):
    """The changes of one agent's records, in order. For one thread."""

    @property
    def is_near(self) -> bool:
        """Whether a look costs next to nothing."""

    @property
    def grace(self) -> timedelta | None:
        """How long at least the text of what is forgotten stays; None: not at all."""

    @property
    def watermark(self) -> tuple[str, int]:
        """(generation, seq) up to which this object has read."""

    @property
    def rewritten(self) -> int:
        """How often another program was found to have rewritten the changes."""

    def looks_like(self) -> object:
        """Return what tells, without reading, whether something was written since; None where only a look tells."""

    def poll(self, *, thorough: bool = False) -> Update:
        """Return what is new since the last call.

        Raises:
            StorageError: It cannot be read.
        """

    def commit(self, absorb: Absorb, decide: Decide[T]) -> T:
        """Catch up, decide, and make the changes as one; no other writer's come in between.

        Raises:
            StorageError: Nothing was written, unless the message says that this is not known.
        """

    def compact(self, absorb: Absorb, grace: timedelta | None = None) -> None:
        """Drop what was forgotten or replaced longer ago than `grace`; the log's own time when omitted.

        Raises:
            StorageError: The log is as it was.
        """

    def compact_if_worthwhile(self, absorb: Absorb, state: State[Any]) -> bool:
        """Compact once that pays, unless another process was faster; tell whether it did.

        Raises:
            StorageError: The log is as it was.
        """

    def naming(self, record_ids: Collection[str]) -> list[Entry]:
        """Return what is still known about some records, in order; all of it without ids.

        Raises:
            UnsupportedError: This log keeps no past.
            StorageError: It cannot be read.
        """

    def report(self) -> tuple[list[str], list[str]]:
        """Return what is wrong, and what else a person should know, a sentence each."""

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """Write down records that another program removed.

        Raises:
            StorageError: They could not be written.
        """


class FileLog:
    """A `ChangeLog` in an agent's folder: the lock lets one writer in at a time.

    Args:
        kind: The records that a compaction reads; lines of others stay as they are.
        folder: Where the file lies.
        clock: Source of the present.
        grace: How long what was forgotten or replaced can be brought back.
    """

    is_near: Final = True

    def __init__(self, kind: Kind[Any], folder: AgentFolder, clock: Clock = utc_now, grace: timedelta = GRACE) -> None:
        self.grace = grace
        self._kind = kind
        self._folder = folder
        self._clock = clock
        path = folder.path / kind.journal
        # The wait is short: `Worker.write` has patience.
        self._journal = Journal(
            path, {kind.name}, clock=clock, wait=TURN_SECONDS, grace=grace, look_where=folder.look_where
        )
        self._policy = CompactionPolicy(grace)
        self._looked_on: date | None = None

    @property
    def watermark(self) -> tuple[str, int]:
        """See `ChangeLog`."""
        return self._journal.watermark

    @property
    def rewritten(self) -> int:
        """See `ChangeLog`."""
        return self._journal.reader.rewritten

    def looks_like(self) -> object:
        """See `ChangeLog`; some 2 µs, which each request of a session pays."""
        return signature(self._journal.path)  # None where it cannot be looked at: reading it says why

    def poll(self, *, thorough: bool = False) -> Update:
        """See `ChangeLog`; `thorough` reads the whole file again."""
        return self._counted(self._journal.poll(thorough=thorough))

    def commit(self, absorb: Absorb, decide: Decide[T]) -> T:
        """See `ChangeLog`. Holds the lock for as long as it takes."""
        with self._journal.locked() as writer:
            absorb(self._counted(writer.update))
            changes, answer = decide()
            if changes:
                absorb(self._counted(Update([writer.append(changes)])))
                if changes[0].op == "put":  # under the lock, or it might replace what a migration has just written
                    describe_folder(self._folder)
        return answer

    def compact(self, absorb: Absorb, grace: timedelta | None = None) -> None:
        """See `ChangeLog`."""
        self._compact(absorb, grace)

    def compact_if_worthwhile(self, absorb: Absorb, state: State[Any]) -> bool:
        """See `ChangeLog`.

        Raises:
            BusyError: Another process compacts; the next write tries again.
        """
        now = self._clock()
        if self._policy.pays(len(state.records), now) or self._has_ended(state, now):
            self._compact(absorb, generation=self.watermark[0])
            return True
        return False

    def naming(self, record_ids: Collection[str]) -> list[Entry]:
        """See `ChangeLog`; reads the whole file."""
        return self._journal.naming(record_ids)

    def report(self) -> tuple[list[str], list[str]]:
        """See `ChangeLog`."""
        reader, name = self._journal.reader, self._journal.path.name
        problems = [f"line {problem.line}: {problem.reason}" for problem in reader.problems]
        if moved := reader.reversed:
            problems.append(f"line {moved[0]}: its number is lower than that of the line before; lines were moved")
        if reader.rewritten:
            problems.append(f"{name} was rewritten by another program; a copy was kept beside it")
        return problems, self._journal.notes

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """See `ChangeLog`."""
        return keep_lost(self._journal.path, records)

    def _counted(self, update: Update) -> Update:
        if update.reset or (update.entries and self._policy.is_empty):
            header = self._journal.reader.header
            self._policy.clear(header.last_seq if header else 0)
        for entry in update.entries:
            self._policy.add(entry)
        return update

    def _compact(self, absorb: Absorb, grace: timedelta | None = None, generation: str | None = None) -> None:
        until = self._clock() - (self.grace if grace is None else grace)
        update = self._journal.compact(
            grace=grace,
            keep=self._refuse,
            generation=generation,
            ended=lambda put: put.kind == self._kind.name and expired_before(put.data, until),
        )
        absorb(self._counted(update))

    def _has_ended(self, state: State[Any], now: datetime) -> bool:
        """Tell whether a record expired longer ago than the grace time; looks once a day."""
        if self._looked_on == now.date() or self._policy.is_of_today(now):
            return False
        self._looked_on = now.date()
        return state.has_expired(now - self.grace)

    def _refuse(self, change: Change) -> str | None:
        """Return what is wrong with a record that would be kept by a compaction, or None."""
        if change.kind != self._kind.name:
            return None
        return self._kind.refusal(self._folder.agent_id, change.id, change.data)
