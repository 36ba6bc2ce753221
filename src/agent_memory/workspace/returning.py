"""The ways back: to a snapshot, or to before what the steps of one row wrote. Both are written forward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import RowNotFoundError
from agent_memory.redaction import quoted
from agent_memory.workspace.core import NOBODY, Core
from agent_memory.workspace.rows import Caller
from agent_memory.workspace.snapshots import Contents, check_places, marks, put_back, restore_rows

if TYPE_CHECKING:
    from agent_memory.workspace.database import Transaction
    from agent_memory.workspace.keeping import Snapshots
    from agent_memory.workspace.steps import Step

_BEFORE: Final = "before"


@dataclass(frozen=True, slots=True)
class Resumed:
    """What going back did.

    Attributes:
        kept_as: The snapshot of what there was before.
        rows: How many rows are different now.
        files: Paths of files that are different now.
        next_steps: What can run now.
        stale: Steps that are done and may rest on what was taken back.
    """

    kept_as: str
    rows: int
    files: list[str] = field(default_factory=list)
    next_steps: list[Step] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)


class Returning:
    """Goes back to snapshots, and to before steps."""

    def __init__(self, core: Core, snapshots: Snapshots) -> None:
        self._core = core
        self._opened = core.opened
        self._snapshots = snapshots
        self._patterns = list(core.declaration.files.values())
        self._contents = Contents(self._opened.hidden / "contents")

    def restore(self, name: str, *, by: str | None = None) -> Resumed:
        """Give rows, steps and files the state of a snapshot, as new changes; a snapshot of now is made first.

        Claims end. Nothing that was written since is lost: it is in the snapshot that is made first.

        Raises:
            RowNotFoundError: There is no snapshot of this name.
            StorageError: A file of it is missing or damaged, or a link or folder is in its place; nothing was changed.
        """
        with self._opened.database.reading() as connection:
            snapshot = marks.get(connection, self._opened.schema, name)
            manifest = marks.manifest(connection, self._opened.schema, snapshot)
        for content in set(manifest.values()):
            self._contents.read(content)
        check_places(self._opened.folder, manifest)
        kept_as = self._snapshots.make(self._free_name(f"{_BEFORE}-{name}"), by=by).name
        with self._core.changing(Caller(by)) as transaction:
            self._snapshots.bring_up_to_date(transaction, kept_as)
            rows = restore_rows(transaction, self._core.declaration, snapshot.seq)
            self._next_epoch(transaction)
            self._core.set_meta(transaction.connection, "restoring", name)
        files = self.finish_restore()
        return Resumed(kept_as, rows, files, self._core.ready())

    def finish_restore(self) -> list[str]:
        """Put the files of a snapshot back whose rows are back already; return the paths that were changed.

        A process that dies between the two leaves this to whoever opens the workspace next.
        """
        with self._opened.database.reading() as connection:
            name = self._core.meta(connection, "restoring")
            if not name:
                return []
            snapshot = marks.get(connection, self._opened.schema, name)
            manifest = marks.manifest(connection, self._opened.schema, snapshot)
        changed = put_back(self._opened.folder, self._patterns, manifest, self._contents)
        with self._core.changing(NOBODY) as transaction:
            if self._core.meta(transaction.connection, "restoring") == name:
                self._core.set_meta(transaction.connection, "restoring", "")
        return changed

    def resume_row(self, table: str, key: Any, phase: str, *, by: str | None = None) -> Resumed:
        """Take back what the steps of one row wrote from a phase on, and have them done again.

        Steps of the whole workspace in that phase and later ones are done again too: they rest on all rows.

        Raises:
            RowNotFoundError: There is no such row, or no such phase.
        """
        names = [each.name for each in self._core.declaration.phases]
        if phase not in names:
            raise RowNotFoundError(f"There is no phase {quoted(phase)}; there are {', '.join(names) or 'none'}.")
        with self._core.reading() as transaction:
            self._core.reader.row_id(transaction.connection, table, key, NOBODY)
        later = set(names[names.index(phase) :])
        kept_as = self._snapshots.make(self._free_name(f"{_BEFORE}-{table}-{_as_name(key)}-{phase}"), by=by).name
        with self._core.changing(Caller(by)) as transaction:
            self._snapshots.bring_up_to_date(transaction, kept_as)
            steps = self._core.working.steps(transaction)
            touched = [each for each in steps if each.phase in later and each.attempts]
            again = [each.name for each in touched if each.table is None or (each.table, each.key) == (table, key)]
            undone = self._core.working.reopen(transaction, again)
            self._next_epoch(transaction)
        stale = [
            each.name for each in touched if each.status == "done" and each.name not in again and self._rests(each, key)
        ]
        return Resumed(kept_as, undone.aside + undone.changed, [], self._core.ready(), stale)

    def _rests(self, step: Step, key: Any) -> bool:
        """Tell whether a step of another row may rest on what was taken back of the row `key`."""
        reads = self._core.declaration.phase(step.phase).reads
        return reads == "all" or (reads == "earlier" and step.key > key)

    def _free_name(self, wanted: str) -> str:
        there = {each.name for each in self._snapshots.all()}
        stem = wanted[:80]
        numbered = (f"{stem}-{number}" for number in range(1, len(there) + 2))
        return next(each for each in numbered if each not in there)

    def _next_epoch(self, transaction: Transaction) -> None:
        """End all claims."""
        self._core.set_meta(transaction.connection, "epoch", str(transaction.epoch + 1))


def _as_name(key: Any) -> str:
    return "".join(each if each.isalnum() else "-" for each in str(key))[:30]
