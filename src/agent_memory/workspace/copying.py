"""Copies of the database beside snapshots: one process writes at a time, and what a dead one left is made up for.

A mark that is to have a copy names it from the beginning; the copy's hash is added when it is written. So a mark with a
name and without a hash tells everybody that a copy is missing.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import open_private
from agent_memory.files.lock import WAIT_SECONDS, file_lock
from agent_memory.workspace.core import NOBODY, Core
from agent_memory.workspace.database.history import last_seq
from agent_memory.workspace.snapshots import Dump, Snapshot, marks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from agent_memory.workspace.database import Transaction

_LOCK: Final = "dumps.lock"
_PART: Final = ".part"
Held = Dump | tuple[str, str]
"""The database at one moment, to be copied; or name and SHA-256 of a copy of the same state."""


class Copies:
    """Makes copies of the database for snapshots, and removes them; nothing of it with PostgreSQL."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._opened = core.opened
        self.folder = self._opened.hidden / "dumps"
        self._lock = self._opened.hidden / _LOCK

    def hold(self, transaction: Transaction, made: Snapshot) -> Held | None:
        """Return the database as it is now, while nobody may write; the mark says from now on that it is copied."""
        file = self._opened.database.file
        if file is None:
            return None
        held = self._same(transaction, made) or Dump(file)
        self._note(transaction, made.name, f"{made.name}.db", None)
        return held

    def write(self, name: str, held: Held, seq: int) -> None:
        """Write a copy that is held, and close it.

        Raises:
            StorageError: It cannot be written; the mark is whole, and says that its copy is missing.
        """
        if isinstance(held, tuple):
            with self._core.changing(NOBODY) as transaction:
                self._note(transaction, name, *held)
            return
        try:
            with self._alone(WAIT_SECONDS):
                self._write(name, held, seq)
        finally:
            held.close()

    def unfinished(self) -> list[str]:
        """Return the snapshots whose copy is missing: it is being written, could not be, or its writer died."""
        table = self._opened.schema.marks
        missing = sa.select(table.c.name).where(table.c.dump.is_not(None), table.c.dump_sha256.is_(None))
        with self._opened.database.reading() as connection:
            return list(connection.execute(missing.order_by(table.c.seq, table.c.name)).scalars())

    def make_up(self) -> None:
        """Write the copies that are missing, as the database is now: it has the moments of these snapshots, too.

        Leaves it while another process writes one. What cannot be written is told as an event and stays missing.
        """
        if self._opened.database.file is None or not self.unfinished():
            return
        with contextlib.suppress(BusyError), self._alone(0):
            for name in self.unfinished():
                with self._core.changing(NOBODY) as transaction:
                    seq = last_seq(transaction.connection, transaction.schema)
                    held = Dump(self._opened.database.file)
                with contextlib.closing(held), self.telling(name):
                    self._write(name, held, seq)

    @contextlib.contextmanager
    def telling(self, name: str) -> Iterator[None]:
        """Tell what goes wrong with a copy as an event instead of raising it."""
        try:
            yield
        except StorageError as error:
            self._core.tell("workspace:dump_failed", NOBODY, snapshot=name, code=error.code)

    def sweep(self, kept: Collection[str | None]) -> int:
        """Remove the copies that are not named, and unfinished ones unless a process writes one; return how many."""
        if not self.folder.is_dir():
            return 0
        removed = 0
        with contextlib.ExitStack() as stack:
            alone = True
            try:
                stack.enter_context(self._alone(0))
            except BusyError:
                alone = False
            for path in sorted(self.folder.iterdir()):
                if path.name not in kept and (alone or path.suffix != _PART):
                    path.unlink(missing_ok=True)
                    removed += 1
        return removed

    def _write(self, name: str, held: Dump, seq: int) -> None:
        digest = held.write(self.folder / f"{name}.db", seq)
        with self._core.changing(NOBODY) as transaction:
            self._note(transaction, name, f"{name}.db", digest)

    def _note(self, transaction: Transaction, name: str, dump: str, digest: str | None) -> None:
        table = self._opened.schema.marks
        values = {"dump": dump, "dump_sha256": digest}
        transaction.connection.execute(sa.update(table).where(table.c.name == name).values(values))

    def _same(self, transaction: Transaction, made: Snapshot) -> tuple[str, str] | None:
        """Return the copy that another snapshot has of the same state."""
        for each in reversed(marks.all_of(transaction.connection, self._opened.schema)):
            if each.seq == made.seq and each.dump and each.dump_sha256 and (self.folder / each.dump).exists():
                return each.dump, each.dump_sha256
        return None

    @contextlib.contextmanager
    def _alone(self, wait: float) -> Iterator[None]:
        with file_lock(self._lock, lambda: open_private(self._lock, os.O_RDWR | os.O_CREAT), wait):
            yield
