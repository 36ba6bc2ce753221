"""`ChangeLog`: what a replica asks of what keeps the changes; and the log that is a journal in a folder.

Two ways to let one writer win: behind a file's lock the other writers wait (here), on a server the client
that was second looks again and decides anew (`agent_memory.engines.qdrant`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from agent_memory.files.atomic import read_json, signature
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.files.names import SEGMENTS
from agent_memory.journal import GRACE, Change, Journal, Update, deleted_in, keep_lost
from agent_memory.journal.reader import is_put_back
from agent_memory.journal.returned import note_current
from agent_memory.models import Clock, utc_now
from agent_memory.store.changes import expired_before
from agent_memory.store.compaction_policy import CompactionPolicy, is_counted
from agent_memory.store.shards import describe_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import date, timedelta
    from typing import Any

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Entry, Receipt
    from agent_memory.models import Kind
    from agent_memory.store.state import State

T = TypeVar("T")
Settle = Callable[[], object]
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

    def hold(self, wait: float) -> AbstractContextManager[None]:
        """Keep other writers out for the length of a block, in whichever thread, so that `commit` need not wait.

        Args:
            wait: Seconds.

        Raises:
            BusyError: Another writer was in for so long.
            StorageError: There is nothing to be held.
        """

    def commit(self, absorb: Absorb, decide: Decide[T]) -> T:
        """Catch up, decide, and make the changes as one; no other writer's come in between.

        Raises:
            StorageError: Nothing was written, unless the message says that this is not known.
        """

    def take_receipt(self) -> Settle | None:
        """Return what makes durable what the last `commit` wrote or relied upon; None where nothing is left to be done.

        Until it has returned nothing may be acknowledged. It raises `StorageError` (`unknown`) where that failed.
        """

    def pays_to_compact(self, state: State[Any]) -> bool:
        """Tell whether a compaction is worth its time now."""

    def compacting(self, grace: timedelta | None = None) -> AbstractContextManager[Callable[[Absorb], bool]]:
        """Get ready, in whichever thread, to drop what was forgotten or replaced longer ago than `grace`.

        Args:
            grace: The log's own time when omitted.

        Yields:
            What does it, to be called like `commit`; tells whether the next look has to follow. It takes milliseconds,
            with the lock; that look may take longer.

        Raises:
            BusyError: Another process does the same.
            StorageError: The log is as it was.
        """

    def naming(self, record_ids: Collection[str] | None) -> list[Entry]:
        """Return at least what is still known about some records, in order; None asks for those that were deleted.

        Raises:
            UnsupportedError: This log keeps no past.
            StorageError: It cannot be read.
        """

    def report(self) -> tuple[list[str], list[str]]:
        """Return what is wrong, and what else a person should know, a sentence each."""

    def note_current(self, count: int) -> None:
        """Record the current journal and its number of records; never raises."""

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """Write down records that another program removed.

        Raises:
            StorageError: They could not be written.
        """


class FileLog:
    """A `ChangeLog` in an agent's folder: the lock lets one writer in at a time.

    Args:
        kind: The records. A compaction reads them and those of the kinds beside them in the journal; lines of others
            stay as they are.
        folder: Where the file lies.
        clock: Source of the present.
        grace: How long what was forgotten or replaced can be brought back.
        wait: Seconds to wait for another process that is writing.

    Attributes:
        journal: The file.
        policy: What a compaction would drop.
    """

    is_near: Final = True

    def __init__(
        self,
        kind: Kind[Any],
        folder: AgentFolder,
        clock: Clock = utc_now,
        grace: timedelta = GRACE,
        wait: float = WAIT_SECONDS,
    ) -> None:
        self.grace = grace
        self._kind = kind
        self._folder = folder
        self._clock = clock
        path = folder.path / kind.journal
        self._kinds = {each.name: each for each in kind.in_journal}
        self.journal = Journal(path, self._kinds, clock=clock, wait=wait, grace=grace, look_where=folder.look_where)
        self.policy = CompactionPolicy(grace)
        self._generation = ""
        self._receipt: Receipt | None = None
        self._looked_on: date | None = None

    @property
    def watermark(self) -> tuple[str, int]:
        """See `ChangeLog`."""
        return self.journal.watermark

    @property
    def rewritten(self) -> int:
        """See `ChangeLog`."""
        return self.journal.reader.rewritten

    def looks_like(self) -> object:
        """See `ChangeLog`; some 2 µs, which each request of a session pays."""
        return signature(self.journal.path)  # None where it cannot be looked at: reading it says why

    def poll(self, *, thorough: bool = False) -> Update:
        """See `ChangeLog`; `thorough` reads the whole file again."""
        return self._counted(self.journal.poll(thorough=thorough))

    def hold(self, wait: float) -> AbstractContextManager[None]:
        """See `ChangeLog`."""
        return self.journal.hold(wait)

    def commit(self, absorb: Absorb, decide: Decide[T]) -> T:
        """See `ChangeLog`. Holds the lock for as long as it takes."""
        with self.journal.appending() as writer:
            absorb(self._counted(writer.update))
            changes, answer = decide()
            if changes:
                absorb(self._counted(Update([writer.append(changes)])))
                if changes[0].op == "put":  # under the lock, or it might replace what a migration has just written
                    describe_folder(self._folder)
        self._receipt = writer.receipt
        return answer

    def take_receipt(self) -> Settle | None:
        """See `ChangeLog`."""
        receipt, self._receipt = self._receipt, None
        return receipt.settle if receipt is not None else None

    def pays_to_compact(self, state: State[Any]) -> bool:
        """Return True if a rewrite pays off; see `ChangeLog`.

        Checks once a day for records that expired longer ago than the grace time.
        """
        now = self._clock()
        if is_put_back(self.journal.reader) or self.policy.pays(len(state.records), now):
            return True
        if self._looked_on == now.date() or self.policy.is_of_today(now):
            return False
        self._looked_on = now.date()
        return state.has_expired(now - self.grace)

    @contextlib.contextmanager
    def compacting(self, grace: timedelta | None = None) -> Iterator[Callable[[Absorb], bool]]:
        """See `ChangeLog`."""
        until = self._clock() - (self.grace if grace is None else grace)

        def has_ended(put: Change) -> bool:
            return put.kind in self._kinds and expired_before(put.data, until)

        def refusal(put: Change) -> str | None:
            kind = self._kinds.get(put.kind)
            return None if kind is None else kind.refusal(self._folder.agent_id, put.id, put.data)

        with self.journal.folded(
            grace=grace,
            keep=refusal,
            ended=has_ended,
            apart=[_sealed_seq(self._folder, name) for name in self._kinds],
            words=[word for kind in self._kinds.values() for word in (kind.text, *kind.prose)],
        ) as new:

            def finish(_absorb: Absorb) -> bool:
                self.journal.put_in_place(new)
                return True

            yield finish

    def naming(self, record_ids: Collection[str] | None) -> list[Entry]:
        """See `ChangeLog`; reads the whole file."""
        wanted = deleted_in(self.journal.path) if record_ids is None else record_ids
        return self.journal.naming(wanted) if wanted else []

    def report(self) -> tuple[list[str], list[str]]:
        """See `ChangeLog`."""
        reader, name = self.journal.reader, self.journal.path.name
        problems = [f"line {problem.line}: {problem.reason}" for problem in reader.problems]
        if moved := reader.reversed:
            problems.append(f"line {moved[0]}: its number is lower than that of the line before; lines were moved")
        if reader.rewritten:
            problems.append(f"{name} was rewritten by another program; a copy was kept beside it")
        return problems, self.journal.notes

    def note_current(self, count: int) -> None:
        """See `ChangeLog`."""
        note_current(self.journal, None if self._kind.beside() else count)

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """See `ChangeLog`."""
        return keep_lost(self.journal.path, records)

    def _counted(self, update: Update) -> Update:
        header, generation = self.journal.reader.header, self.watermark[0]
        if update.reset or (update.entries and self.policy.is_empty):
            self.policy.clear(header.last_seq if header else 0)
        elif header is not None and self._generation and generation != self._generation:
            self.policy.go_on(header.last_seq, self._clock())
        self._generation = generation
        for entry in update.entries:
            if is_counted(entry, self._kind):
                self.policy.add(entry)
        return update


def _sealed_seq(folder: AgentFolder, kind: str) -> int:
    """Return the number of the last change that is sealed in segments; 0 where none is known."""
    listed = read_json(folder.segments(kind) / SEGMENTS) or {}
    seq = ((listed.get("notes") or {}).get("place") or {}).get("seq")
    return seq if isinstance(seq, int) else 0
