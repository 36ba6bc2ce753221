"""`ServerChangeLog`: a server's log as a record store asks for it. The loser of a race looks again and decides anew."""

from __future__ import annotations

import contextlib
import random
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory.engines.qdrant.log import LostRaceError, ServerLog, whole_record
from agent_memory.errors import BusyError, UnsupportedError
from agent_memory.journal import GRACE, Change, Entry, JournalUpdate
from agent_memory.models import Clock, to_text
from agent_memory.store.state import FORGOTTEN, RELEASED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from agent_memory.models import Kind
    from agent_memory.store.protocols import Absorb, Decide
    from agent_memory.store.state import State

T = TypeVar("T")

_ROUNDS: Final = 60


class ServerChangeLog:
    """The `ChangeLog` of one agent on a server. For one thread.

    Args:
        kind: Of which records.
        server: Their order.
        clock: Source of the present.
        longest_wait: Seconds after a lost race.
    """

    rewritten: Final = 0

    def __init__(self, kind: Kind[Any], server: ServerLog, clock: Clock, longest_wait: float) -> None:
        self._kind = kind
        self._server = server
        self._clock = clock
        self._longest_wait = longest_wait
        self._has_marks = False

    @property
    def watermark(self) -> tuple[str, int]:
        """See `ChangeLog`."""
        return "server", self._server.seq

    def looks_like(self) -> object:
        """See `ChangeLog`."""
        return None

    def poll(self, *, thorough: bool = False) -> JournalUpdate:  # noqa: ARG002 - a server is believed
        """See `ChangeLog`."""
        reset, changed = self._server.sync()
        return self._update(changed, reset=reset)

    def commit(self, absorb: Absorb, decide: Decide[T]) -> tuple[T, None]:
        """See `ChangeLog`; what a server has answered is safe.

        Raises:
            BusyError: Every race was lost; nothing was written.
        """

        def attempt() -> T:
            absorb(self.poll())
            changes, answer = decide()
            if changes:
                absorb(self._update(self._server.commit(changes, to_text(self._clock())), reset=False))
                self._has_marks = self._has_marks or changes[0].op == "delete"
            return answer

        return self._until_won(attempt), None

    def hold(self, wait: float) -> AbstractContextManager[None]:  # noqa: ARG002 - nobody is kept out
        """See `ChangeLog`."""
        return contextlib.nullcontext()

    def pays_to_compact(self, state: State[Any]) -> bool:  # noqa: ARG002 - nothing piles up
        """Tell whether something was forgotten since old marks were dropped: no other client does that."""
        has_marks, self._has_marks = self._has_marks, False
        return has_marks

    @contextlib.contextmanager
    def compacting(self, grace: timedelta | None = None) -> Iterator[Callable[[Absorb], bool]]:
        """Drop the marks of what was forgotten longer ago than `grace`, 30 days when omitted. Nothing else could go."""

        def finish(absorb: Absorb) -> bool:
            def purge() -> None:
                absorb(self.poll())
                self._server.purge(to_text(self._clock() - (GRACE if grace is None else grace)))

            self._until_won(purge)
            return False

        yield finish

    def naming(self, record_ids: Collection[str] | None) -> list[Entry]:  # noqa: ARG002
        """See `ChangeLog`."""
        raise UnsupportedError(
            "This storage keeps no earlier versions, and nothing of what was forgotten.",
            recovery="Memories in files have both; what a server holds is changed and forgotten for good.",
        )

    def report(self) -> tuple[list[str], list[str]]:
        """See `ChangeLog`."""
        return [], []

    def note_current(self, count: int) -> None:
        """Do nothing: the server keeps one state."""

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """See `ChangeLog`; no other program rewrites what a server has."""

    def _until_won(self, attempt: Callable[[], T]) -> T:
        wait = 0.005
        for _ in range(_ROUNDS):
            try:
                return attempt()
            except LostRaceError:
                time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311 - keeps clients from racing in step
                wait = min(2 * wait, self._longest_wait)
        raise BusyError("Other clients change this memory without a break; nothing was written.")

    def _update(self, changed: list[str], *, reset: bool) -> JournalUpdate:
        """Return what rows became as a journal would say it; which texts were forgotten is known by hash alone."""
        entries = []
        for record_id in changed:
            row, name = self._server.rows[record_id], self._kind.name
            record = None if row["record"] is None else whole_record(row)
            change = Change("delete", name, record_id) if record is None else Change("put", name, record_id, record)
            said: dict[str, Any] = {FORGOTTEN: row["forgotten"]} if row["forgotten"] else {}
            if record is None and row.get(RELEASED):
                said[RELEASED] = row[RELEASED]
            mark = (Change("mark", name, record_id, said),) if said else ()
            entries.append(Entry(row["seq"], "", (change, *mark), b""))
        return JournalUpdate(entries, reset)
