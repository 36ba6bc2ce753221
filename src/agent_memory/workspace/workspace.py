"""A workspace: tables that agents share, steps they take in turn, snapshots they can go back to.

    workspace = Workspace.create(Path("book"), Path("book.yaml"))
    claim = workspace.steps.claim("writer-1", agent="writer")
    me = Caller("writer", claim=claim)
    workspace.tables.update("chapters", claim.key, {"draft": "…"}, me)
    workspace.steps.finish(claim)

Everything blocks; each call is one transaction, all of which is there at its end, or nothing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from agent_memory.errors import BusyError, StorageError, ValidationError
from agent_memory.workspace.carrying import bring, export
from agent_memory.workspace.core import Core
from agent_memory.workspace.database.history import recent
from agent_memory.workspace.export import canonical
from agent_memory.workspace.keeping import Snapshots
from agent_memory.workspace.place import OpenWorkspace, begin, open_place
from agent_memory.workspace.returning import Resumed, Returning
from agent_memory.workspace.tables import Tables
from agent_memory.workspace.taking import Steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.models.clock import Clock
    from agent_memory.redaction import Redactor
    from agent_memory.workspace.declaration import Declaration
    from agent_memory.workspace.steps import Step


class Workspace:
    """A workspace that is open. Threads may share it; processes open their own.

    Args:
        opened: Where it is.
        redactor: Takes secrets out of what is written.
        on_event: Is told of every change: the name of an event, and fields without the text of rows.

    Attributes:
        tables: Rows.
        steps: What is to be done, by whom.
        snapshots: What can be gone back to.
    """

    def __init__(
        self,
        opened: OpenWorkspace,
        redactor: Redactor | None = None,
        on_event: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> None:
        self._core = core = Core(opened, redactor, on_event)
        self._opened = opened
        self.tables = Tables(core)
        self.snapshots = Snapshots(core)
        self.steps = Steps(core, self.snapshots)
        self._returning = Returning(core, self.snapshots)
        core.make_singletons()
        self._returning.finish_restore()
        self.snapshots.make_up()

    @classmethod
    def create(
        cls,
        folder: Path,
        declaration: Path,
        *,
        url: str | None = None,
        clock: Clock | None = None,
        on_event: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> Workspace:
        """Begin a workspace in a folder.

        Args:
            folder: Made if it is not there; the declaration is copied into it.
            declaration: A YAML file.
            url: Of a PostgreSQL database; None: SQLite, in the folder.
            clock: Tells the time; the machine's own, or the database server's, where it is None.
            on_event: Is told of every change.

        Raises:
            DeclarationError: The declaration is wrong.
            ConfigurationError: There is a workspace in the folder.
            UnsupportedError: The folder is shared with other machines, or SQLite is too old.
        """
        return cls(begin(folder, declaration, url, clock), on_event=on_event)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        url: str | None = None,
        clock: Clock | None = None,
        on_event: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> Workspace:
        """Open the workspace of a folder; arguments and errors as of `create`.

        Raises:
            DeclarationError: Its declaration was changed in a way that rows might not fit.
        """
        return cls(open_place(folder, url, clock), on_event=on_event)

    @property
    def declaration(self) -> Declaration:
        """What is declared."""
        return self._opened.declaration

    @property
    def folder(self) -> Path:
        """The folder it is in."""
        return self._opened.folder

    def canonical(self) -> str:
        """Return what it holds in a form that is equal for equal workspaces; see `agent_memory.workspace.export`."""
        return canonical(self._core)

    def export(self, path: Path, *, canonical: bool = False) -> int:
        """Write all rows that are shown to a file; return how many. Forms and errors as of `carrying.export`."""
        return export(self._core, path, as_canonical=canonical)

    def bring(self, path: Path) -> int:
        """Add the rows of an export to a workspace that has none; return how many. Errors as of `carrying.bring`."""
        return bring(self._core, path)

    def history(
        self, *, table: str | None = None, row_id: int | None = None, step: str | None = None, limit: int = 1_000
    ) -> list[dict[str, Any]]:
        """Return changes, the newest first; of one table, row or step alone where it is named.

        Each is a dict of `seq`, `at`, `table`, `row_id`, `op`, `columns`, `agent`, `session`, `step` and `attempt`.
        """
        with self._core.reading() as transaction:
            keys = {name: each.key for name, each in self.declaration.tables.items() if each.key is not None}
            return recent(transaction.connection, transaction.schema, keys, table, row_id, step, limit)

    def close(self) -> None:
        """Close the database; claims still held last for their time."""
        with contextlib.suppress(BusyError, StorageError):  # else they last until this process ends
            self.steps.hand_over()
        self._opened.database.close()

    def next_steps(self, agent: str | None = None) -> list[Step]:
        """Return what can run now, for one agent or all."""
        return self.steps.ready(agent)

    def resume_from_snapshot(self, snapshot_name: str, *, by: str | None = None) -> Resumed:
        """Give rows, steps and files the state of a snapshot, as new changes; a snapshot of now is made first.

        Claims end. Nothing that was written since is lost: it is in the snapshot that is made first.

        Raises:
            RowNotFoundError: There is no snapshot of this name.
            StorageError: A file of it is missing or damaged; nothing was changed.
        """
        return self._returning.restore(snapshot_name, by=by)

    def resume_from_row(self, table: str, key: Any, phase: str, *, by: str | None = None) -> Resumed:
        """Take back what the steps of one row wrote from a phase on, and have them done again.

        Steps of the whole workspace in that phase and later ones are done again too: they rest on all rows.

        Raises:
            RowNotFoundError: There is no such row, or no such phase.
        """
        return self._returning.resume_row(table, key, phase, by=by)

    def resume_from_chapter(self, chapter_num: Any, phase: str | int) -> Resumed:
        """Do the steps of one row again from a phase on, as `resume_from_row`; the table is that of the phase.

        Args:
            chapter_num: The key of a row of the table that the phase works on.
            phase: A phase that works on rows, by name, or by number counted from 1.

        Raises:
            ValidationError: There is no such phase, or it works on no rows.
        """
        phases = self.declaration.phases
        names = {number: each.name for number, each in enumerate(phases, 1)}
        name = names.get(phase) if isinstance(phase, int) else phase
        over = next((each.over for each in phases if each.name == name), None)
        if name is None or over is None:
            rows = ", ".join(f"{number} {each.name}" for number, each in enumerate(phases, 1) if each.over)
            raise ValidationError(f"A row is resumed from a phase that works on rows: {rows}.", code="unknown_phase")
        return self.resume_from_row(over, chapter_num, name)
