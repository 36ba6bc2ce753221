"""Snapshots of a workspace: made, listed, compared, checked, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from agent_memory.errors import StorageError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.copying import Copies, Held
from agent_memory.workspace.core import NOBODY, Core
from agent_memory.workspace.database import STEPS
from agent_memory.workspace.database.history import last_seq
from agent_memory.workspace.declaration import is_snapshot_name
from agent_memory.workspace.rows import Caller
from agent_memory.workspace.snapshots import (
    Contents,
    Difference,
    Pruned,
    Snapshot,
    compare,
    compare_files,
    is_inside,
    manifest_of,
    marks,
    prune_history,
    prune_texts,
    verify_dump,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from agent_memory.workspace.database import Transaction

_TRIES: Final = 3
"""How often files are listed before it is done while nobody may write."""


class Snapshots:
    """Makes, compares, checks and removes snapshots of a workspace.

    Attributes:
        make_up: Writes the copies of the database that are missing, see `Copies`.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._opened = core.opened
        self._patterns = list(core.declaration.files.values())
        self._contents = Contents(self._opened.hidden / "contents")
        self._copies = Copies(core)
        self.make_up = self._copies.make_up

    def make(self, name: str, *, by: str | None = None, dump: bool = False) -> Snapshot:
        """Make a snapshot of what there is now.

        Args:
            name: Letters, digits, `_.@-`.
            by: Who makes it.
            dump: Copy the whole database beside it as well, for moving and for disaster; on SQLite alone.

        Raises:
            ValidationError: There is one of this name, or it is no name.
            StorageError: A file, or the copy, cannot be written; in the second case there is the snapshot without it.
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
        self, named: Callable[[sa.Connection], str | None], by: str | None, *, dump: bool
    ) -> list[tuple[Snapshot, Held | None]]:
        """Make a snapshot; return it, and the database as it is at this moment, where it is to be copied.

        Args:
            named: Returns its name when nobody else writes any more; None where there is none to make.
            by: Who makes it.
            dump: The database is to be copied.
        """
        for attempt in range(_TRIES):
            with self._core.reading() as transaction:
                before = last_seq(transaction.connection, transaction.schema)
            manifest = self._manifest()
            with self._core.changing(Caller(by)) as transaction:
                if (name := named(transaction.connection)) is None:
                    return []
                changed = last_seq(transaction.connection, transaction.schema) != before
                if changed and attempt < _TRIES - 1:
                    continue  # a step that was finished meanwhile may have written files that are not in the list
                if changed or not all(self._contents.has(each) for each in manifest.values()):
                    manifest = self._manifest()  # nobody prunes now what no snapshot names yet
                made = marks.mark(transaction, name, manifest, self._core.declaration.fingerprint(), by)
                return [(made, self._copies.hold(transaction, made) if dump else None)]
        raise AssertionError("the last of the tries is taken whatever was changed")

    def bring_up_to_date(self, transaction: Transaction, name: str) -> None:
        """Let a snapshot that was just made have what was written since, while nobody may write."""
        now = last_seq(transaction.connection, transaction.schema)
        if marks.get(transaction.connection, transaction.schema, name).seq != now:
            marks.bring_forward(transaction, name, now, self._manifest())

    def _manifest(self) -> dict[str, str]:
        return manifest_of(self._opened.folder, self._patterns, self._contents)

    def owed(self) -> list[str]:
        """Return what is missing of snapshots, a sentence each; nothing where all is there."""
        with self._opened.database.reading() as connection:
            due = self._core.meta(connection, "due")
        told = [f"The snapshot of phase {due.split(' ')[0]} is not made yet; whoever claims the next step makes it."]
        missing = [
            f"The copy of the database for {name} is missing; it is made when the workspace is opened next."
            for name in self._copies.unfinished()
        ]
        return (told if due else []) + missing

    def make_due(self) -> list[Snapshot]:
        """Make the snapshots of phases that were finished since their last one; return them.

        A worker that dies between the end of a phase and its snapshot leaves this to whoever claims the next step.
        """
        with self._opened.database.reading() as connection:
            due = self._core.meta(connection, "due")
        if not due:
            return []
        left = {each.phase for each in self._core.steps() if each.status != "done"}
        made: list[Snapshot] = []
        for phase in self._core.declaration.phases:
            if phase.name not in left and phase.snapshot is not None:
                made += self._make_numbered(phase.name, phase.snapshot)
        with self._core.changing(NOBODY) as transaction:
            if self._core.meta(transaction.connection, "due") == due:  # else another phase was finished meanwhile
                self._core.set_meta(transaction.connection, "due", "")
        return made

    def all(self) -> list[Snapshot]:
        """Return all snapshots, the oldest first."""
        with self._opened.database.reading() as connection:
            return marks.all_of(connection, self._opened.schema)

    def get(self, name: str) -> Snapshot:
        """Return a snapshot.

        Raises:
            RowNotFoundError: There is none of this name.
        """
        with self._opened.database.reading() as connection:
            return marks.get(connection, self._opened.schema, name)

    def compare(self, before: str, after: str | None = None) -> Difference:
        """Return what differs between two snapshots, or between one and now."""
        with self._opened.database.reading() as connection:
            first = marks.get(connection, self._opened.schema, before)
            second = marks.get(connection, self._opened.schema, after) if after is not None else None
            until = second.seq if second is not None else last_seq(connection, self._opened.schema)
            rows = compare(
                connection, self._opened.schema, self._core.declaration, self._core.values, (first.seq, until)
            )
            old = marks.manifest(connection, self._opened.schema, first)
            new = marks.manifest(connection, self._opened.schema, second) if second is not None else None
        if new is None:
            new = manifest_of(self._opened.folder, self._patterns)
        return Difference(rows, compare_files(old, new))

    def verify(self, name: str) -> list[str]:
        """Return what is wrong with a snapshot, a sentence each; nothing where it can be restored whole."""
        with self._opened.database.reading() as connection:
            snapshot = marks.get(connection, self._opened.schema, name)
            manifest = marks.manifest(connection, self._opened.schema, snapshot)
        wrong = [fault for each in manifest if (fault := _fault_of(self._contents, each, manifest[each]))]
        if snapshot.dump is not None:
            fault = verify_dump(self._copies.folder / snapshot.dump, snapshot.dump_sha256)
            wrong += [fault] if fault else []
        return wrong

    def prune(self, keep: Collection[str]) -> Pruned:
        """Remove all snapshots but these, and what only they needed of the history, texts, files and copies.

        A snapshot whose files another process has yet to put back stays as well.

        Raises:
            RowNotFoundError: One of `keep` does not exist; nothing was removed.
        """
        with self._core.changing(NOBODY) as transaction:
            connection, schema = transaction.connection, self._opened.schema
            restoring = self._core.meta(connection, "restoring")
            names = {*keep, restoring} - {""}
            staying = sorted((marks.get(connection, schema, each) for each in names), key=lambda each: each.seq)
            gone = [each for each in marks.all_of(connection, schema) if each.name not in names]
            connection.execute(sa.delete(schema.marks).where(schema.marks.c.name.in_([each.name for each in gone])))
            changes = prune_history(connection, schema, sorted({each.seq for each in staying}))
            texts = prune_texts(connection, schema)
            named = {value for each in staying for value in marks.manifest(connection, schema, each).values()}
            kept_dumps = {each.dump for each in staying}
            files = self._contents.sweep(named)
            dumps = self._copies.sweep(kept_dumps)
        return Pruned(changes, texts, files, dumps)

    def _due_name(self, connection: sa.Connection, phase: str, name: str) -> str | None:
        """Return the name of the snapshot to make if a phase was finished after the last one, else None.

        That is `name`, or `name@2` where there is one from before something was done again.
        """
        schema = self._opened.schema
        ids = sa.select(schema.steps.c.id).where(schema.steps.c.name.startswith(f"{phase}/", autoescape=True))
        finished = sa.select(sa.func.max(schema.history.c.seq)).where(
            schema.history.c.tbl == STEPS, schema.history.c.op == "step", schema.history.c.row_id.in_(ids)
        )
        last = connection.execute(finished).scalar() or 0
        there = {each.name: each.seq for each in marks.all_of(connection, schema)}
        if any(each.partition("@")[0] == name and seq >= last for each, seq in there.items()):
            return None
        numbered = (f"{name}@{number}" for number in range(2, len(there) + 3))
        return name if name not in there else next(each for each in numbered if each not in there)

    def _make_numbered(self, phase: str, name: str) -> list[Snapshot]:
        """Make the snapshot of a phase, unless another process was faster."""
        with self._opened.database.reading() as connection:
            if self._due_name(connection, phase, name) is None:
                return []
        marked = self._mark(lambda connection: self._due_name(connection, phase, name), None, dump=True)
        for made, held in marked:
            if held is not None:
                with self._copies.telling(made.name):  # the phase is done, with or without a copy
                    self._copies.write(made.name, held, made.seq)
        return [self.get(made.name) for made, _ in marked]


def _fault_of(contents: Contents, path: str, content: str) -> str | None:
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
