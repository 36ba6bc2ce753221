"""Workspace with shared tables, ordered steps and snapshots.

    workspace = Workspace.create(Path("book"), Path("book.yaml"))
    claim = workspace.steps.claim("writer-1", agent="writer")
    me = RowCaller("writer", claim=claim)
    workspace.tables.update("chapters", claim.key, {"draft": "…"}, me)
    workspace.steps.finish(claim)

Every call blocks, and is one transaction that is committed as a whole or not.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_memory.errors import AgentMemoryError, BusyError, StorageError, ValidationError
from agent_memory.workspace.core import NOBODY, OnEvent, OpenWorkspace, WorkspaceCore, create_in_folder, open_folder
from agent_memory.workspace.database.history import list_recent_changes
from agent_memory.workspace.export import canonical, export, import_rows
from agent_memory.workspace.rows.claims import Claim, RowCaller
from agent_memory.workspace.rows.row_reader import RowPage, count_pending
from agent_memory.workspace.rows.row_values import clean_message
from agent_memory.workspace.snapshots.snapshot_store import ResumeResult, SnapshotStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from agent_memory.models.clock import Clock
    from agent_memory.workspace.declaration.model import Declaration
    from agent_memory.workspace.rows.row_writer import SavedRow
    from agent_memory.workspace.step_plan import Step
    from agent_memory.workspace.step_transitions import FailureType


class Workspace:
    """Open workspace. Threads may share it; processes open their own.

    Args:
        opened: Folder, declaration and database.
        on_event: Called for every change, with the event's name and fields without the text of rows.

    Attributes:
        tables: Access to the rows.
        steps: Queue of the steps.
        snapshots: Snapshots of the workspace.
    """

    def __init__(self, opened: OpenWorkspace, on_event: OnEvent | None = None) -> None:
        self._core = core = WorkspaceCore(opened, on_event)
        self._opened = opened
        self.tables = RowTables(core)
        self.snapshots = SnapshotStore(core)
        self.steps = StepQueue(core, self.snapshots)
        core.make_singletons()
        self.snapshots.finish_restore()
        self.snapshots.make_up()

    @classmethod
    def create(
        cls,
        folder: Path,
        declaration: Path,
        *,
        url: str | None = None,
        clock: Clock | None = None,
        on_event: OnEvent | None = None,
    ) -> Workspace:
        """Create a workspace in a folder.

        Args:
            folder: Target folder, created if missing; the declaration is copied into it.
            declaration: YAML file with the declaration.
            url: Address of a PostgreSQL database; None for SQLite in the folder.
            clock: Source of the time; None for the machine's clock, or the database server's.
            on_event: Called for every change.

        Raises:
            DeclarationError: The declaration is wrong.
            ConfigurationError: There is a workspace in the folder.
            UnsupportedError: The folder is shared with other machines, or SQLite is too old.
        """
        return cls(create_in_folder(folder, declaration, url, clock), on_event=on_event)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        url: str | None = None,
        clock: Clock | None = None,
        on_event: OnEvent | None = None,
    ) -> Workspace:
        """Open the workspace of a folder; arguments and errors as of `create`.

        Raises:
            DeclarationError: Its declaration was changed in a way that rows might not fit.
        """
        return cls(open_folder(folder, url, clock), on_event=on_event)

    @property
    def declaration(self) -> Declaration:
        """Declaration of the workspace."""
        return self._opened.declaration

    @property
    def folder(self) -> Path:
        """Folder of the workspace."""
        return self._opened.folder

    def canonical(self) -> str:
        """Return the content as canonical JSON; see `export.canonical`."""
        return canonical(self._core)

    def export(self, path: Path, *, canonical: bool = False) -> int:
        """Write all shown rows to a file; see `export.export`."""
        return export(self._core, path, as_canonical=canonical)

    def bring(self, path: Path) -> int:
        """Import the rows of an export; see `export.import_rows`."""
        return import_rows(self._core, path)

    def history(
        self, *, table: str | None = None, row_id: int | None = None, step: str | None = None, limit: int = 1_000
    ) -> list[dict[str, Any]]:
        """Return changes, optionally of a table, row or step.

        The newest come first.

        Each is a dict of `seq`, `at`, `table`, `row_id`, `op`, `columns`, `agent`, `session`, `step` and `attempt`.
        """
        with self._core.reading() as transaction:
            keys = {
                name: declared.key for name, declared in self.declaration.tables.items() if declared.key is not None
            }
            return list_recent_changes(transaction.connection, transaction.schema, keys, table, row_id, step, limit)

    def close(self) -> None:
        """Close the database; open claims last for their time."""
        with contextlib.suppress(BusyError, StorageError):  # else they last until this process ends
            self.steps.hand_over()
        self._opened.database.close()

    def next_steps(self, agent: str | None = None) -> list[Step]:
        """Return the steps that can run now, of one agent or all."""
        return self.steps.ready(agent)

    def work(self, agent: str | None = None, *, owner: str | None = None) -> Iterator[StepWork]:
        """Claim steps until none can run; finish each after the body.

        A step is released if the body raises or leaves the loop, or if it cannot be finished. `StepWork.fail` fails it.

        Args:
            agent: Agent whose steps are claimed; None for all.
            owner: Name of the worker in claims; None for one by agent and process.

        Raises:
            ValidationError: No phase has such an agent.
        """
        worker = owner or f"{agent or 'worker'}-{os.getpid()}"
        while (claim := self.steps.claim(worker, agent=agent)) is not None:
            work = StepWork(self, claim)
            try:
                yield work
                if not work.has_failed:
                    self.steps.finish(claim)
            except BaseException:
                with contextlib.suppress(AgentMemoryError):  # it has ended by itself, or will
                    self.steps.release(claim)
                raise

    def resume_from_snapshot(self, snapshot_name: str, *, by: str | None = None) -> ResumeResult:
        """Restore rows, steps and files of a snapshot, as new changes.

        The present state becomes a snapshot first, so nothing is lost. Claims end.

        Raises:
            RowNotFoundError: No snapshot of this name.
            StorageError: A file of it is missing or damaged; nothing was changed.
        """
        return self.snapshots.restore(snapshot_name, by=by)

    def resume_from_row(self, table: str, key: Any, phase: str, *, by: str | None = None) -> ResumeResult:
        """Undo and reopen the steps of one row from a phase.

        Steps of the whole workspace in that phase and later ones are reopened too: they rest on all rows.

        Raises:
            RowNotFoundError: No such row, or no such phase.
        """
        return self.snapshots.resume_row(table, key, phase, by=by)

    def resume_from_chapter(self, chapter_num: Any, phase: str | int) -> ResumeResult:
        """Reopen the steps of one row from a phase on, as `resume_from_row`.

        The table is that of the phase.

        Args:
            chapter_num: Key of a row of the phase's table.
            phase: Phase that works on rows, by name, or by number from 1.

        Raises:
            ValidationError: No such phase, or it works on no rows.
        """
        phases = self.declaration.phases
        names = {number: item.name for number, item in enumerate(phases, 1)}
        name = names.get(phase) if isinstance(phase, int) else phase
        over = next((item.over for item in phases if item.name == name), None)
        if name is None or over is None:
            rows = ", ".join(f"{number} {item.name}" for number, item in enumerate(phases, 1) if item.over)
            raise ValidationError(f"A row is resumed from a phase that works on rows: {rows}.", code="unknown_phase")
        return self.resume_from_row(over, chapter_num, name)


class RowTables:
    """Access to the rows; each call is one transaction."""

    def __init__(self, core: WorkspaceCore) -> None:
        self._core = core

    def get(
        self, table: str, key: Any = None, caller: RowCaller = NOBODY, columns: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return a row by its key, or by ID without one.

        A singleton's row needs neither.

        Raises:
            RowNotFoundError: It does not exist, or the caller's phase may not see it.
        """
        with self._core.reading() as transaction:
            return self._core.reader.one(transaction.connection, table, key, caller, columns)

    def many(self, table: str, caller: RowCaller = NOBODY, **how: Any) -> RowPage:
        """Return rows in the order of their key; `how` as of `RowReader.many`."""
        with self._core.reading() as transaction:
            return self._core.reader.many(transaction.connection, table, caller, **how)

    def search(
        self, table: str, query: str, caller: RowCaller = NOBODY, *, columns: Sequence[str] = (), limit: int = 20
    ) -> list[dict[str, Any]]:
        """Return rows with words of `query`, the best first."""
        with self._core.reading() as transaction:
            return self._core.reader.search(transaction.connection, table, query, caller, columns, limit)

    def proposals(self, table: str, caller: RowCaller = NOBODY) -> list[dict[str, Any]]:
        """Return the proposals of a table."""
        with self._core.reading() as transaction:
            return self._core.reader.proposals(transaction.connection, table, caller)

    def pending(self, table: str) -> int:
        """Return the number of rows of unfinished steps."""
        with self._core.reading() as transaction:
            return count_pending(transaction.connection, self._core.reader.table(table))

    def save(self, table: str, values: Mapping[str, Any], caller: RowCaller = NOBODY) -> SavedRow:
        """Add a row; errors as of `RowWriter.prepare` and `RowWriter.add`."""
        if table in self._core.declaration.tables and self._core.declaration.tables[table].kind == "singleton":
            return self.update(table, None, values, caller)
        prepared = self._core.writer.prepare(table, values, caller, is_complete=True)
        with self._core.changing(caller) as transaction:
            saved = self._core.writer.add(transaction, prepared)
        self._core.emit("workspace:row_saved", caller, table=table, row_id=saved.row_id, proposal=saved.proposal)
        return saved

    def update(
        self,
        table: str,
        key: Any,
        values: Mapping[str, Any],
        caller: RowCaller = NOBODY,
        *,
        expected: Mapping[str, Any] | None = None,
    ) -> SavedRow:
        """Change columns of a row; errors as of `RowWriter.prepare` and `RowWriter.change`."""
        prepared = self._core.writer.prepare(table, values, caller, is_complete=False)
        with self._core.changing(caller) as transaction:
            saved = self._core.writer.change(transaction, key, prepared, expected)
        self._core.emit("workspace:row_updated", caller, table=table, row_id=saved.row_id, columns=sorted(values))
        return saved

    @contextlib.contextmanager
    def bulk(self, caller: RowCaller = NOBODY) -> Iterator[Callable[[str, Mapping[str, Any]], SavedRow]]:
        """Add many rows in one transaction, all or none.

        Yields:
            Function that adds a row, as `save`.
        """
        writer = self._core.writer
        with self._core.changing(caller) as transaction:
            yield lambda table, values: writer.add(transaction, writer.prepare(table, values, caller, is_complete=True))
        self._core.emit("workspace:rows_saved", caller)


class StepQueue:
    """Queue of the steps; each call is one transaction."""

    def __init__(self, core: WorkspaceCore, snapshots: SnapshotStore) -> None:
        self._core = core
        self._snapshots = snapshots
        self._claims: dict[tuple[str, int], Claim] = {}  # claims of this process

    def all(self) -> list[Step]:
        """Return all steps, phase by phase."""
        return self._core.steps()

    def ready(self, agent: str | None = None) -> list[Step]:
        """Return the steps that can run now, of one agent or all."""
        return self._core.ready(agent)

    def claim(
        self, owner: str, *, step: str | None = None, agent: str | None = None, seconds: float | None = None
    ) -> Claim | None:
        """Claim a step, or the first that can run; see `StepTransitions.claim`."""
        owner = self._core.name("owner", owner)
        self._snapshots.make_due()
        with self._core.changing(RowCaller(agent)) as transaction:
            claim = self._core.working.claim(transaction, owner, step=step, agent=agent, seconds=seconds)
        if claim is not None:
            self._claims[claim.lease, claim.fence] = claim
            self._core.emit(
                "workspace:claimed", RowCaller(claim.agent), step=claim.step, attempt=claim.attempt, owner=owner
            )
        return claim

    def claim_row(self, owner: str, table: str, key: Any, *, seconds: float = 600) -> Claim:
        """Claim a row for exclusive writes; see `StepTransitions.claim_row`."""
        owner = self._core.name("owner", owner)
        with self._core.changing(NOBODY) as transaction:
            claim = self._core.working.claim_row(transaction, owner, table, key, seconds)
        self._claims[claim.lease, claim.fence] = claim
        return claim

    def renew(self, claim: Claim, *, seconds: float = 600) -> Claim:
        """Extend a claim to `seconds` from now.

        Raises:
            LeaseError: It has ended.
        """
        with self._core.changing(NOBODY) as transaction:
            renewed = self._core.leases.renew(transaction, claim, seconds)
        self._claims[claim.lease, claim.fence] = renewed
        return renewed

    def finish(self, claim: Claim, caller: RowCaller | None = None) -> str | None:
        """Finish a step; return a phase that ends with it. See `StepTransitions.finish`.

        A snapshot or copy of the database that cannot be written is not an error of the step. It is reported by an
        event, and by `SnapshotStore.list_owed`.
        """
        by = replace(caller or RowCaller(claim.agent), claim=claim)
        with self._core.changing(by) as transaction:
            phase = self._core.working.finish(transaction, claim)
            if phase is not None and self._core.declaration.phase(phase).snapshot is not None:
                self._core.set_meta(transaction.connection, "due", f"{phase} {transaction.at}")
        self._claims.pop((claim.lease, claim.fence), None)
        self._core.emit("workspace:finished", by, step=claim.step, attempt=claim.attempt, phase_done=phase)
        if phase is not None:
            try:
                self._snapshots.make_due()
            except StorageError as error:  # the step is done; the next claim makes the snapshot
                self._core.emit("workspace:snapshot_failed", by, phase=phase, code=error.code)
            self._snapshots.make_up()
        return phase

    def release(self, claim: Claim) -> None:
        """Return a claim and undo its attempt."""
        with self._core.changing(RowCaller(claim.agent)) as transaction:
            self._core.working.release(transaction, claim)
        self._claims.pop((claim.lease, claim.fence), None)
        self._core.emit("workspace:released", RowCaller(claim.agent), step=claim.step, attempt=claim.attempt)

    def fail(self, claim: Claim, kind: FailureType, message: str, caller: RowCaller | None = None) -> int:
        """Record a failed attempt; return the retries left."""
        cleaned = clean_message(self._core.redactor, message)
        by = replace(caller or RowCaller(claim.agent), claim=None)  # its writes are undone, and the failure stays
        with self._core.changing(by) as transaction:
            tries_left = self._core.working.fail(transaction, claim, kind, cleaned)
        self._claims.pop((claim.lease, claim.fence), None)
        self._core.emit(
            "workspace:failed",
            RowCaller(claim.agent),
            step=claim.step,
            attempt=claim.attempt,
            kind=kind,
            left=tries_left,
        )
        return tries_left

    def hand_over(self) -> None:
        """Hand over this process's claims, which then last their full time.

        Called when this process closes the workspace.
        """
        claims, self._claims = list(self._claims.values()), {}
        if claims:
            with self._core.changing(NOBODY) as transaction:
                for claim in claims:
                    self._core.leases.hand_over(transaction, claim)

    def validate(self, step: str, validator: str, failures: Sequence[str] = ()) -> list[str]:
        """Record the validation of a step; see `StepTransitions.validate`."""
        cleaned = [clean_message(self._core.redactor, failure) for failure in failures]
        validator = self._core.name("validator", validator)
        with self._core.changing(RowCaller(validator)) as transaction:
            stale = self._core.working.validate(transaction, step, validator, cleaned)
        self._core.emit("workspace:validated", RowCaller(validator), step=step, passed=not failures)
        return stale


@dataclass(slots=True)
class StepWork:
    """Claimed step in a loop over `Workspace.work`.

    Attributes:
        workspace: Workspace of the step.
        claim: Claim on the step, with its agent, phase and key.
        has_failed: True after `fail`.
    """

    workspace: Workspace
    claim: Claim
    has_failed: bool = False

    @property
    def caller(self) -> RowCaller:
        """Reader and writer under the claim."""
        return RowCaller(self.claim.agent, claim=self.claim)

    def read(self, columns: Sequence[str] = ()) -> dict[str, Any]:
        """Return the row of the step."""
        return self.workspace.tables.get(self.claim.table or "", self.claim.key, self.caller, columns)

    def update(self, values: Mapping[str, Any]) -> SavedRow:
        """Change columns of the row of the step."""
        return self.workspace.tables.update(self.claim.table or "", self.claim.key, values, self.caller)

    def save(self, table: str, values: Mapping[str, Any]) -> SavedRow:
        """Add a row to a table."""
        return self.workspace.tables.save(table, values, self.caller)

    def fail(self, message: str, kind: FailureType = "quality") -> int:
        """Fail the step; return the retries left."""
        self.has_failed = True
        return self.workspace.steps.fail(self.claim, kind, message, self.caller)
