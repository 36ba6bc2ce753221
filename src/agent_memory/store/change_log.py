"""`FileLog`: the changes of one agent's records in a journal, and when a compaction of it pays."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

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
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import date, timedelta
    from typing import Any

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Entry
    from agent_memory.models import Kind
    from agent_memory.store.protocols import Absorb, Decide, Settle
    from agent_memory.store.state import State

T = TypeVar("T")


class FileLog:
    """A `ChangeLog` in an agent's folder, for one writer at a time.

    Args:
        kind: Kind of the records. A compaction reads them and those of the other kinds in the journal; lines of unknown
            kinds stay as they are.
        folder: Folder of the agent.
        clock: Source of the present.
        grace: Time for which forgotten and replaced texts can be restored.
        wait: Seconds to wait for another process that is writing.

    Attributes:
        journal: Journal of the records.
        policy: Counts of what a compaction would drop.
    """

    def __init__(
        self,
        kind: Kind[Any],
        folder: AgentFolder,
        clock: Clock = utc_now,
        grace: timedelta = GRACE,
        wait: float = WAIT_SECONDS,
    ) -> None:
        self._grace = grace
        self._kind = kind
        self._folder = folder
        self._clock = clock
        path = folder.path / kind.journal
        self._kinds = {each.name: each for each in kind.in_journal}
        self.journal = Journal(path, self._kinds, clock=clock, wait=wait, grace=grace, look_where=folder.look_where)
        self.policy = CompactionPolicy(grace)
        self._generation = ""
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
        return signature(self.journal.path)  # None where that fails: reading it says why

    def poll(self, *, thorough: bool = False) -> Update:
        """See `ChangeLog`; `thorough` reads the whole file again."""
        return self._counted(self.journal.poll(thorough=thorough))

    def hold(self, wait: float) -> AbstractContextManager[None]:
        """See `ChangeLog`."""
        return self.journal.hold(wait)

    def commit(self, absorb: Absorb, decide: Decide[T]) -> tuple[T, Settle]:
        """See `ChangeLog`. Holds the lock for as long as it takes."""
        with self.journal.appending() as writer:
            absorb(self._counted(writer.update))
            changes, answer = decide()
            if changes:
                absorb(self._counted(Update([writer.append(changes)])))
                if changes[0].op == "put":
                    describe_folder(self._folder)  # under the lock, or it might replace what a migration has written
        return answer, writer.receipt.settle if writer.receipt is not None else None

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
        return state.has_expired(now - self._grace)

    @contextlib.contextmanager
    def compacting(self, grace: timedelta | None = None) -> Iterator[Callable[[Absorb], bool]]:
        """See `ChangeLog`."""
        until = self._clock() - (self._grace if grace is None else grace)

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
        header = self.journal.reader.header
        generation = header.generation if header is not None else ""
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
    """Return the number of the last sealed change, or 0."""
    listed = read_json(folder.segments(kind) / SEGMENTS) or {}
    seq = ((listed.get("notes") or {}).get("place") or {}).get("seq")
    return seq if isinstance(seq, int) else 0
