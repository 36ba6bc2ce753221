"""Restoration of a snapshot, or of the state before a row's steps.

Old values return as new changes, so nothing of the history is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.errors import RowNotFoundError
from agent_memory.redaction import quoted
from agent_memory.workspace.core import NOBODY, WorkspaceCore
from agent_memory.workspace.database.history import (
    NOT_THERE,
    FoldedRow,
    HistoryEntry,
    Transaction,
    find_changed_rows,
    fold_entries,
    iter_batches,
    load_row,
)
from agent_memory.workspace.database.schema import STEPS, RowState
from agent_memory.workspace.rows.claims import RowCaller
from agent_memory.workspace.snapshots import marks
from agent_memory.workspace.snapshots.snapshot_files import ContentStore, check_places, restore_files

if TYPE_CHECKING:
    from agent_memory.workspace.declaration.model import Declaration
    from agent_memory.workspace.snapshots.snapshot_store import SnapshotStore
    from agent_memory.workspace.step_plan import Step

_BEFORE: Final = "before"
_NEVER: Final = frozenset({"ws_version", "created_at", "updated_at"})
_STEP_NOT_THERE: Final[dict[str, Any]] = {
    "status": "open",
    "done_attempt": None,
    "failures": 0,
    "message": None,
    "ws_trust": None,
}


def restore_rows(transaction: Transaction, declaration: Declaration, seq: int) -> int:
    """Restore rows to the change `seq`; return their number."""
    history = transaction.schema.history
    changed = find_changed_rows(transaction.connection, transaction.schema, history.c.seq > seq)
    work = [
        (table, row_id, *_find_former(declaration, changes, seq, table)) for (table, row_id), changes in changed.items()
    ]
    out_of_the_way = _hide_shown(transaction, declaration, work)
    count = 0
    for table, row_id, values, origins in work:
        stored = load_row(transaction.connection, transaction.schema, table, row_id)
        before = stored | ({"ws_state": int(RowState.SHOWN)} if (table, row_id) in out_of_the_way else {})
        count += transaction.update(table, before, values, op="restore", origins=origins)
        if (table, row_id) in out_of_the_way and values.get("ws_state") == RowState.SHOWN:
            source = transaction.schema.declared[table]
            shown = sa.update(source).where(source.c.id == row_id).values(ws_state=int(RowState.SHOWN))
            transaction.connection.execute(shown)
    return count


def _find_former(
    declaration: Declaration, changes: list[HistoryEntry], seq: int, table: str
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return former values of a row, and their origins.

    A singleton that did not exist yet gets its first values.
    """
    former = fold_entries(changes, seq)
    if former is None and table != STEPS and declaration.tables[table].kind == "singleton":
        former = fold_entries(changes, changes[0].seq)
    if former is None:
        return (dict(_STEP_NOT_THERE) if table == STEPS else dict(NOT_THERE)), {}
    now = fold_entries(changes) or FoldedRow()
    values = {name: former.values.get(name) for name in now.values if name not in _NEVER}
    return values, {name: former.origins[name] for name in values if name in former.origins}


def _hide_shown(
    transaction: Transaction,
    declaration: Declaration,
    work: list[tuple[str, int, dict[str, Any], dict[str, int]]],
) -> set[tuple[str, int]]:
    """Hide shown rows with unique columns during a restore.

    Two of them may have the same value on the way.
    """
    moved: set[tuple[str, int]] = set()
    by_table: dict[str, list[int]] = {}
    for table, row_id, _, _ in work:
        if table != STEPS and declaration.tables[table].unique_columns():
            by_table.setdefault(table, []).append(row_id)
    for table, ids in by_table.items():
        source = transaction.schema.declared[table]
        for batch in iter_batches(ids):
            shown = sa.and_(source.c.id.in_(batch), source.c.ws_state == int(RowState.SHOWN))
            row_ids = transaction.connection.execute(sa.select(source.c.id).where(shown)).scalars()
            moved.update((table, row_id) for row_id in row_ids)
            aside = sa.update(source).where(shown).values(ws_state=int(RowState.ASIDE))
            transaction.connection.execute(aside)
    return moved


@dataclass(frozen=True, slots=True)
class ResumeResult:
    """Result of a way back.

    Attributes:
        kept_as: Snapshot of the state before.
        rows: Number of rows that changed.
        files: Paths of files that changed.
        next_steps: Steps that can run now.
        stale: Finished steps that may rest on undone work.
    """

    kept_as: str
    rows: int
    files: list[str] = field(default_factory=list)
    next_steps: list[Step] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)


class WorkspaceResumer:
    """Ways back to snapshots, and to before steps."""

    def __init__(self, core: WorkspaceCore, snapshots: SnapshotStore) -> None:
        self._core = core
        self._opened = core.opened
        self._snapshots = snapshots
        self._patterns = list(core.declaration.files.values())
        self._contents = ContentStore(self._opened.hidden / "contents")

    def restore(self, name: str, *, by: str | None = None) -> ResumeResult:
        """Restore rows, steps and files of a snapshot, as new changes.

        The present state becomes a snapshot first, so nothing is lost. Claims end.

        Raises:
            RowNotFoundError: No snapshot of this name.
            StorageError: A file of it is missing or damaged, or a link or folder is in its place; nothing was changed.
        """
        with self._opened.database.reading() as connection:
            snapshot, manifest = marks.load(connection, self._opened.schema, name)
        for content in set(manifest.values()):
            self._contents.read(content)
        check_places(self._opened.folder, manifest)
        kept_as = self._snapshots.make(self._find_free_name(f"{_BEFORE}-{name}"), by=by).name
        with self._core.changing(RowCaller(by)) as transaction:
            self._snapshots.bring_up_to_date(transaction, kept_as)
            rows = restore_rows(transaction, self._core.declaration, snapshot.seq)
            self._end_claims(transaction)
            self._core.set_meta(transaction.connection, "restoring", name)
        files = self.finish_restore()
        return ResumeResult(kept_as, rows, files, self._core.ready())

    def finish_restore(self) -> list[str]:
        """Restore files of a snapshot with restored rows; return the changed paths.

        A process that dies in between leaves this to the next one that opens the workspace.
        """
        with self._opened.database.reading() as connection:
            name = self._core.meta(connection, "restoring")
            if not name:
                return []
            _, manifest = marks.load(connection, self._opened.schema, name)
        changed = restore_files(self._opened.folder, self._patterns, manifest, self._contents)
        with self._core.changing(NOBODY) as transaction:
            if self._core.meta(transaction.connection, "restoring") == name:
                self._core.set_meta(transaction.connection, "restoring", "")
        return changed

    def resume_row(self, table: str, key: Any, phase: str, *, by: str | None = None) -> ResumeResult:
        """Undo and reopen the steps of one row from a phase.

        Steps of the whole workspace in that phase and later ones are reopened too: they rest on all rows.

        Raises:
            RowNotFoundError: No such row, or no such phase.
        """
        names = [declared.name for declared in self._core.declaration.phases]
        if phase not in names:
            raise RowNotFoundError(f"No phase {quoted(phase)}; there are {', '.join(names) or 'none'}.")
        with self._core.reading() as transaction:
            self._core.reader.row_id(transaction.connection, table, key, NOBODY)
        later = set(names[names.index(phase) :])
        kept_as = self._snapshots.make(
            self._find_free_name(f"{_BEFORE}-{table}-{_build_name(key)}-{phase}"), by=by
        ).name
        with self._core.changing(RowCaller(by)) as transaction:
            self._snapshots.bring_up_to_date(transaction, kept_as)
            steps = self._core.working.steps(transaction)
            attempted = [step for step in steps if step.phase in later and step.attempts]
            reopened = [step.name for step in attempted if step.table is None or (step.table, step.key) == (table, key)]
            undone = self._core.working.reopen(transaction, reopened)
            self._end_claims(transaction)
        stale = [
            step.name
            for step in attempted
            if step.status == "done" and step.name not in reopened and self._rests_on(step, key)
        ]
        return ResumeResult(kept_as, undone.aside + undone.changed, [], self._core.ready(), stale)

    def _rests_on(self, step: Step, key: Any) -> bool:
        """Return True if a step may rest on another row."""
        reads = self._core.declaration.phase(step.phase).reads
        return reads == "all" or (reads == "earlier" and step.key > key)

    def _find_free_name(self, wanted: str) -> str:
        taken = {snapshot.name for snapshot in self._snapshots.all()}
        stem = wanted[:80]
        numbered = (f"{stem}-{number}" for number in range(1, len(taken) + 2))
        return next(name for name in numbered if name not in taken)

    def _end_claims(self, transaction: Transaction) -> None:
        """End all claims."""
        self._core.set_meta(transaction.connection, "epoch", str(transaction.epoch + 1))


def _build_name(key: Any) -> str:
    return "".join(character if character.isalnum() else "-" for character in str(key))[:30]
