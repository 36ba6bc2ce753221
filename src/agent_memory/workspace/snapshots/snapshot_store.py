"""Snapshots of a workspace: create, list, compare, check, delete and restore.

Old values return as new changes, so nothing of the history is lost.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.errors import RowNotFoundError, StorageError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.core import NOBODY, WorkspaceCore
from agent_memory.workspace.database.history import (
    NOT_THERE,
    FoldedRow,
    HistoryEntry,
    Transaction,
    find_changed_rows,
    fold_entries,
    get_last_seq,
    iter_batches,
    load_row,
)
from agent_memory.workspace.database.schema import STEPS, RowState
from agent_memory.workspace.declaration.model import is_snapshot_name
from agent_memory.workspace.rows.claims import RowCaller
from agent_memory.workspace.snapshots import marks
from agent_memory.workspace.snapshots.marks import (
    PruneResult,
    Snapshot,
    SnapshotDifference,
    compare,
    compare_files,
    prune_history,
    prune_texts,
)
from agent_memory.workspace.snapshots.snapshot_files import (
    ContentStore,
    DumpStore,
    Held,
    build_manifest,
    check_places,
    is_inside,
    restore_files,
    verify_dump,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from agent_memory.workspace.declaration.model import Declaration
    from agent_memory.workspace.step_plan import Step

_TRIES: Final = 3
"""Attempts at listing files before it is done while nothing may write."""


class SnapshotStore:
    """Snapshots of a workspace.

    Attributes:
        make_up: Writes missing copies of the database, see `DumpStore`.
    """

    def __init__(self, core: WorkspaceCore) -> None:
        self._core = core
        self._opened = core.opened
        self._patterns = list(core.declaration.files.values())
        self._contents = ContentStore(self._opened.hidden / "contents")
        self._copies = DumpStore(core)
        self.make_up = self._copies.make_up

    def make(self, name: str, *, by: str | None = None, dump: bool = False) -> Snapshot:
        """Create a snapshot of the present state.

        Args:
            name: Name of letters, digits and `_.@-`.
            by: Name of its author, or None.
            dump: True to copy the database as well, on SQLite.

        Raises:
            ValidationError: There is one of this name, or it cannot name a snapshot.
            StorageError: A file, or the copy, cannot be written; without the copy the snapshot exists.
        """
        _check_name(name)
        if self._core.redactor.redact(name).text != name:
            raise ValidationError("This looks as if it held a secret; choose another name.", code="invalid")
        by = None if by is None else self._core.name("by", by)
        for made, held in self._mark(lambda _: name, by, dump=dump):
            if held is not None:
                self._copies.write(name, held, made.seq)
        return self.get(name)

    def _mark(
        self, get_name: Callable[[sa.Connection], str | None], by: str | None, *, dump: bool
    ) -> list[tuple[Snapshot, Held | None]]:
        """Create a snapshot; return it with the held database.

        Args:
            get_name: Returns its name while nothing else writes, or None for no snapshot.
            by: Name of its author, or None.
            dump: True to copy the database.
        """
        for attempt in range(_TRIES):
            with self._core.reading() as transaction:
                before = get_last_seq(transaction.connection, transaction.schema)
            manifest = self._manifest()
            with self._core.changing(RowCaller(by)) as transaction:
                if (name := get_name(transaction.connection)) is None:
                    return []
                changed = get_last_seq(transaction.connection, transaction.schema) != before
                if changed and attempt < _TRIES - 1:
                    continue  # a step that finished in between may have written files that are not listed
                if changed or not all(self._contents.has(content) for content in manifest.values()):
                    manifest = self._manifest()  # nothing prunes unnamed contents now
                made = marks.mark(transaction, name, manifest, self._core.declaration.fingerprint(), by)
                return [(made, self._copies.hold(transaction, made) if dump else None)]
        raise AssertionError("the last attempt accepts any change")

    def _manifest(self) -> dict[str, str]:
        return build_manifest(self._opened.folder, self._patterns, self._contents)

    def list_owed(self) -> list[str]:
        """Return a sentence for each missing snapshot or copy."""
        with self._opened.database.reading() as connection:
            due = self._core.meta(connection, "due")
        owed = [f"The snapshot of phase {due.split(' ')[0]} is not made yet; whoever claims the next step makes it."]
        missing = [
            f"The copy of the database for {name} is missing; it is made when the workspace is opened next."
            for name in self._copies.list_unfinished()
        ]
        return (owed if due else []) + missing

    def make_due(self) -> list[Snapshot]:
        """Create snapshots of phases that finished since their last one.

        A worker that dies between the end of a phase and its snapshot leaves this to the next claim.
        """
        with self._opened.database.reading() as connection:
            due = self._core.meta(connection, "due")
        if not due:
            return []
        open_phases = {step.phase for step in self._core.steps() if step.status != "done"}
        made: list[Snapshot] = []
        for phase in self._core.declaration.phases:
            if phase.name not in open_phases and phase.snapshot is not None:
                made += self._make_numbered(phase.name, phase.snapshot)
        with self._core.changing(NOBODY) as transaction:
            if self._core.meta(transaction.connection, "due") == due:  # else another phase finished in between
                self._core.set_meta(transaction.connection, "due", "")
        return made

    def all(self) -> list[Snapshot]:
        """Return all snapshots, the oldest first."""
        with self._opened.database.reading() as connection:
            return marks.list_all(connection, self._opened.schema)

    def get(self, name: str) -> Snapshot:
        """Return a snapshot.

        Raises:
            RowNotFoundError: It does not exist.
        """
        with self._opened.database.reading() as connection:
            return marks.get(connection, self._opened.schema, name)

    def compare(self, before: str, after: str | None = None) -> SnapshotDifference:
        """Return the differences between two snapshots, or one and now."""
        with self._opened.database.reading() as connection:
            schema, new = self._opened.schema, None
            first, old = marks.load(connection, schema, before)
            until = get_last_seq(connection, schema)
            if after is not None:
                second, new = marks.load(connection, schema, after)
                until = second.seq
            rows = compare(connection, schema, self._core.declaration, self._core.values, (first.seq, until))
        if new is None:
            new = build_manifest(self._opened.folder, self._patterns)
        return SnapshotDifference(rows, compare_files(old, new))

    def verify(self, name: str) -> list[str]:
        """Return a sentence for each fault of a snapshot."""
        with self._opened.database.reading() as connection:
            snapshot, manifest = marks.load(connection, self._opened.schema, name)
        wrong = [
            fault for file_name in manifest if (fault := _find_fault(self._contents, file_name, manifest[file_name]))
        ]
        if snapshot.dump is not None:
            fault = verify_dump(self._copies.folder / snapshot.dump, snapshot.dump_sha256)
            wrong += [fault] if fault else []
        return wrong

    def prune(self, keep: Collection[str]) -> PruneResult:
        """Delete all other snapshots, and what only they needed.

        A snapshot whose files are still to be restored stays as well.

        Raises:
            RowNotFoundError: One of `keep` does not exist; nothing was deleted.
        """
        with self._core.changing(NOBODY) as transaction:
            connection, schema = transaction.connection, self._opened.schema
            restoring = self._core.meta(connection, "restoring")
            names = {*keep, restoring} - {""}
            staying = sorted((marks.get(connection, schema, name) for name in names), key=lambda mark: mark.seq)
            discarded = [mark for mark in marks.list_all(connection, schema) if mark.name not in names]
            connection.execute(
                sa.delete(schema.marks).where(schema.marks.c.name.in_([mark.name for mark in discarded]))
            )
            changes = prune_history(connection, schema, sorted({mark.seq for mark in staying}))
            texts = prune_texts(connection, schema)
            named = {value for mark in staying for value in marks.manifest(connection, schema, mark).values()}
            kept_dumps = {mark.dump for mark in staying}
            files = self._contents.sweep(named)
            dumps = self._copies.sweep(kept_dumps)
        return PruneResult(changes, texts, files, dumps)

    def _find_due_name(self, connection: sa.Connection, phase: str, name: str) -> str | None:
        """Return the name of a due snapshot, or None.

        It is `name`, or `name@2` if there is one from before a phase was reopened.
        """
        schema = self._opened.schema
        ids = sa.select(schema.steps.c.id).where(schema.steps.c.name.startswith(f"{phase}/", autoescape=True))
        finished = sa.select(sa.func.max(schema.history.c.seq)).where(
            schema.history.c.tbl == STEPS, schema.history.c.op == "step", schema.history.c.row_id.in_(ids)
        )
        last = connection.execute(finished).scalar() or 0
        seqs = {mark.name: mark.seq for mark in marks.list_all(connection, schema)}
        if any(candidate.partition("@")[0] == name and seq >= last for candidate, seq in seqs.items()):
            return None
        numbered = (f"{name}@{number}" for number in range(2, len(seqs) + 3))
        return name if name not in seqs else next(candidate for candidate in numbered if candidate not in seqs)

    def _make_numbered(self, phase: str, name: str) -> list[Snapshot]:
        """Create a phase's snapshot, unless another process was faster."""
        with self._opened.database.reading() as connection:
            if self._find_due_name(connection, phase, name) is None:
                return []
        marked = self._mark(lambda connection: self._find_due_name(connection, phase, name), None, dump=True)
        for made, held in marked:
            if held is not None:
                with self._copies.reporting(made.name):  # the phase is done, with or without a copy
                    self._copies.write(made.name, held, made.seq)
        return [self.get(made.name) for made, _ in marked]

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
        with self._replacing_state(name, by) as (transaction, kept_as):
            rows = restore_rows(transaction, self._core.declaration, snapshot.seq)
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
        with self._replacing_state(f"{table}-{_build_name(key)}-{phase}", by) as (transaction, kept_as):
            steps = self._core.working.steps(transaction)
            attempted = [step for step in steps if step.phase in later and step.attempts]
            reopened = [step.name for step in attempted if step.table is None or (step.table, step.key) == (table, key)]
            undone = self._core.working.reopen(transaction, reopened)
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

    @contextlib.contextmanager
    def _replacing_state(self, to: str, by: str | None) -> Iterator[tuple[Transaction, str]]:
        """Create a snapshot, change rows in the block, and end all claims.

        Args:
            to: What the snapshot's name says after `before`.
            by: Name of the caller, or None.
        """
        taken, stem = {snapshot.name for snapshot in self.all()}, f"{_BEFORE}-{to}"[:80]
        numbered = (f"{stem}-{number}" for number in range(1, len(taken) + 2))
        kept_as = self.make(next(name for name in numbered if name not in taken), by=by).name
        with self._core.changing(RowCaller(by)) as transaction:
            now = get_last_seq(transaction.connection, transaction.schema)
            if marks.get(transaction.connection, transaction.schema, kept_as).seq != now:
                marks.bring_forward(transaction, kept_as, now, self._manifest())
            yield transaction, kept_as
            self._core.set_meta(transaction.connection, "epoch", str(transaction.epoch + 1))


def _find_fault(contents: ContentStore, path: str, content: str) -> str | None:
    if not is_inside(path):
        return f"{path}: no file of a workspace is called so; somebody changed the database"
    try:
        contents.read(content)
    except StorageError as error:
        return f"{path}: {error}"
    return None


def _check_name(name: str) -> None:
    if not is_snapshot_name(name):
        raise ValidationError(f"{quoted(name)} is no name of a snapshot: letters, digits and _.@- are.", code="invalid")


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
    """Result of a restore or a resumed row.

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


def _build_name(key: Any) -> str:
    return "".join(character if character.isalnum() else "-" for character in str(key))[:30]
