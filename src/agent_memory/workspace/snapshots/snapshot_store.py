"""Snapshots of a workspace: create, list, compare, check, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from agent_memory.errors import StorageError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.core import NOBODY, WorkspaceCore
from agent_memory.workspace.database.history import Transaction, get_last_seq
from agent_memory.workspace.database.schema import STEPS
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
    is_inside,
    verify_dump,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


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

    def bring_up_to_date(self, transaction: Transaction, name: str) -> None:
        """Move a new snapshot to the present, while nothing may write."""
        now = get_last_seq(transaction.connection, transaction.schema)
        if marks.get(transaction.connection, transaction.schema, name).seq != now:
            marks.bring_forward(transaction, name, now, self._manifest())

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
