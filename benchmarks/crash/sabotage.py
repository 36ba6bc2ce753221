"""Ways to spoil the product, in a process that is about to be killed: proof that `benchmarks.crash` would notice."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any, Final

from agent_memory.journal import Change, Entry, JournalUpdate, JournalWriter
from agent_memory.journal.reader import JournalReader
from agent_memory.journal.rewrite import JournalRewrite
from agent_memory.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.journal.writer import LockedJournal


def _acknowledge_first() -> None:
    """Bring a line to the file only when the next one is to be written."""
    real: Any = JournalWriter._write  # noqa: SLF001 - spoiling is what this is for
    poll, poll_open = JournalReader.poll, JournalReader.poll_open
    late: list[bytes] = []

    def write(self: Any, content: bytes) -> None:
        if self._reader.offset == 0:
            real(self, content)
        else:
            late.append(content)

    def poll_late(self: JournalReader, *, thorough: bool = False, most: int | None = None) -> JournalUpdate:
        return JournalUpdate() if late else poll(self, thorough=thorough, most=most)

    def open_late(self: JournalReader, descriptor: int, most: int | None = None) -> JournalUpdate:
        while late:  # the lock is held: somebody wants to write
            os.write(descriptor, late.pop(0))
        return poll_open(self, descriptor, most)

    JournalWriter._write = write  # type: ignore[method-assign] # noqa: SLF001
    JournalReader.poll, JournalReader.poll_open = poll_late, open_late  # type: ignore[method-assign]


def _forget_one_by_one() -> None:
    """Forget the versions of a memory in a line each."""
    real: Any = Store.change

    def change_one_by_one(self: Any, decide: Callable[[Any], tuple[list[Change], Any]]) -> Any:
        changes, answer = decide(self.refresh())
        if sum(change.op == "delete" for change in changes) < 2:
            return real(self, decide)
        settles = [real(self, lambda _, change=change: ([change], None))[1] for change in changes]
        return answer, settles[-1]

    Store.change = change_one_by_one  # type: ignore[method-assign]


def _compact_in_place() -> None:
    """Rewrite the journal instead of replacing it."""

    def put_in_place(self: Any, held: LockedJournal, _at: str) -> None:
        content = self._temporary.read_bytes()
        os.ftruncate(held.descriptor, 0)
        for line in content.splitlines(keepends=True):
            os.write(held.descriptor, line)

    JournalRewrite.put_in_place = put_in_place  # type: ignore[assignment, method-assign]


def _litter() -> None:
    """Leave a file that nobody knows with every line."""
    real: Any = JournalWriter.append

    def append(self: Any, changes: Sequence[Change]) -> Entry:
        (self._reader.path.parent / f"memories.{secrets.token_hex(3)}.bak").touch()
        entry: Entry = real(self, changes)
        return entry

    JournalWriter.append = append  # type: ignore[method-assign]


SABOTAGES: Final[dict[str, Callable[[], None]]] = {
    "ack-before-write": _acknowledge_first,
    "forget-one-by-one": _forget_one_by_one,
    "compact-in-place": _compact_in_place,
    "litter": _litter,
}


def sabotage(name: str) -> None:
    """Spoil this process."""
    SABOTAGES[name]()
