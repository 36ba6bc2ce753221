"""Transitions of steps: claim, finish, release, fail, validate, undo."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import sqlalchemy as sa

from agent_memory.errors import LeaseError, RowNotFoundError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database.history import (
    NOT_THERE,
    HistoryEntry,
    Transaction,
    find_changed_rows,
    fold_entries,
    iter_batches,
    load_row,
)
from agent_memory.workspace.database.schema import LOW, STEPS, RowState
from agent_memory.workspace.rows.claims import Claim, LeaseTable, RowCaller, row_lease, step_lease
from agent_memory.workspace.rows.row_writer import find_rivals, settle_rows
from agent_memory.workspace.step_plan import Step, build_step_name, plan_steps

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_memory.workspace.declaration.model import Declaration
    from agent_memory.workspace.rows.row_reader import RowReader
    from agent_memory.workspace.rows.row_writer import RowWriter

FailureType = Literal["transient", "validation", "quality"]
_SHOWN: Final = 5
_EntryTest: TypeAlias = Callable[[HistoryEntry], bool]
_AUTOMATIC: frozenset[str] = frozenset({"ws_version", "updated_at", "created_at"})
"""Columns that every change sets."""


@dataclass(frozen=True, slots=True)
class UndoneStep:
    """Numbers of hidden rows, and of rows with restored values."""

    aside: int = 0
    changed: int = 0


@dataclass(frozen=True, slots=True)
class StepTransitions:
    """Transitions of steps, within a transaction of the caller."""

    declaration: Declaration
    reader: RowReader
    writer: RowWriter
    leases: LeaseTable

    def steps(self, transaction: Transaction) -> list[Step]:
        """Return all steps."""
        now = datetime.fromisoformat(transaction.at)
        return plan_steps(transaction.connection, transaction.schema, self.declaration, now, transaction.epoch)

    def claim(
        self,
        transaction: Transaction,
        owner: str,
        *,
        step: str | None = None,
        agent: str | None = None,
        seconds: float | None = None,
    ) -> Claim | None:
        """Claim a step by name, or the first that can run.

        An unfinished attempt is undone first.

        Returns:
            None if no step was named and none can run.

        Raises:
            RowNotFoundError: No step of this name.
            LeaseError: It cannot run now; the message says why.
            ValidationError: No phase has such an agent.
        """
        chosen = self._choose(self.steps(transaction), step, agent)
        if chosen is None:
            return None
        phase = self.declaration.phase(chosen.phase)
        now = datetime.fromisoformat(transaction.at)
        lasting = seconds if seconds is not None else phase.lease_seconds
        lease = self.leases.take(transaction, step_lease(chosen.name), owner, now, lasting, attempt=True)
        row_fence = None
        if chosen.table is not None and chosen.row_id is not None and self.declaration.tables[chosen.table].lock:
            name = row_lease(chosen.table, chosen.row_id)
            row_fence = self.leases.take(transaction, name, owner, now, lasting, attempt=False).fence
        if lease.attempt > 1:
            undo_steps(transaction, self.declaration, [chosen.name])
        if lease.expires_at is None:
            raise AssertionError("a lease that was just taken ends some time")
        return Claim(
            lease=lease.name,
            owner=owner,
            fence=lease.fence,
            attempt=lease.attempt,
            epoch=lease.epoch,
            expires_at=lease.expires_at,
            step=chosen.name,
            phase=chosen.phase,
            agent=chosen.agent,
            table=chosen.table,
            row_id=chosen.row_id,
            key=chosen.key,
            row_fence=row_fence,
        )

    def claim_row(self, transaction: Transaction, owner: str, table: str, key: Any, seconds: float) -> Claim:
        """Claim a row for exclusive writes.

        Raises:
            LeaseError: Another worker has it.
            ValidationError: Rows of this table are not locked.
        """
        self.reader.table(table)
        if not self.declaration.tables[table].lock:
            raise ValidationError(f"{table} is not declared with `lock: true`: its rows need no claim.", code="invalid")
        row_id = self.reader.row_id(transaction.connection, table, key, RowCaller())
        now = datetime.fromisoformat(transaction.at)
        lease = self.leases.take(transaction, row_lease(table, row_id), owner, now, seconds, attempt=False)
        return Claim(
            lease.name, owner, lease.fence, 0, lease.epoch, lease.expires_at or now, table=table, row_id=row_id, key=key
        )

    def finish(self, transaction: Transaction, claim: Claim) -> str | None:
        """Finish a step; return a phase that ends with it.

        The rows of the attempt are shown.

        Raises:
            ValidationError: A produced value is missing; the claim remains.
            LeaseError: The claim has ended.
        """
        self.leases.check(transaction, claim)
        if claim.step is None:
            self.leases.end(transaction, claim)
            return None
        self._check_produced(transaction, claim)
        for table in self.declaration.tables:
            source = transaction.schema.declared[table]
            pending = source.c.ws_state.in_([int(RowState.PENDING), int(RowState.PENDING_PROPOSAL)])
            is_own = sa.and_(source.c.ws_step == claim.step, source.c.ws_attempt == claim.attempt, pending)
            ids = list(transaction.connection.execute(sa.select(source.c.id).where(is_own)).scalars())
            if ids:
                settle_rows(transaction, self.declaration, table, ids)
        if self._is_early(transaction, claim):
            self._mark(transaction, claim.step, status="open", done_attempt=None, message=None)
        else:
            self._mark(transaction, claim.step, status="done", done_attempt=claim.attempt, message=None)
        self.leases.end(transaction, claim)
        open_steps = [step for step in self.steps(transaction) if step.phase == claim.phase and step.status != "done"]
        return None if open_steps else claim.phase

    def release(self, transaction: Transaction, claim: Claim) -> UndoneStep:
        """Return a claim and undo its attempt, without a failure."""
        self.leases.check(transaction, claim)
        undone = UndoneStep()
        if claim.step is not None:
            undone = undo_steps(transaction, self.declaration, [claim.step], [claim.attempt])
        self.leases.end(transaction, claim)
        return undone

    def fail(self, transaction: Transaction, claim: Claim, kind: FailureType, message: str) -> int:
        """Record a failed attempt; return the retries left.

        Raises:
            LeaseError: The claim has ended.
            ValidationError: `kind` is not transient, validation or quality.
        """
        if kind not in get_args(FailureType):
            raise ValidationError(f"A failure is one of {', '.join(get_args(FailureType))}.", code="invalid")
        self.release(transaction, claim)
        if claim.step is None or claim.phase is None:
            return 0
        failures = self._count_failure(transaction, claim.step, message)
        fields = {
            "agent_name": claim.agent,
            "phase": claim.phase,
            "attempt_number": claim.attempt,
            "failure_type": kind,
            "failure_message": message,
            "outcome": "fail",
        }
        self._log(transaction, self.declaration.logs.retries, fields, claim.table, claim.key)
        return max(0, self.declaration.phase(claim.phase).retries + 1 - failures)

    def validate(self, transaction: Transaction, step: str, validator: str, failures: Sequence[str]) -> list[str]:
        """Record the validation of a finished step.

        After a failure the step is undone and reopened.

        Returns:
            Later finished steps that may rest on the undone work.

        Raises:
            RowNotFoundError: No such step.
            ValidationError: It is not done.
        """
        steps = self.steps(transaction)
        judged = _find_step(steps, step)
        if judged.status != "done":
            raise ValidationError(f"{quoted(step)} is not done; only what is done can be judged.", code="invalid")
        fields = {
            "validator_name": validator,
            "phase": judged.phase,
            "passed": not failures,
            "failures": list(failures),
        }
        self._log(transaction, self.declaration.logs.validations, fields, judged.table, judged.key)
        if not failures:
            return []
        undo_steps(transaction, self.declaration, [step])
        self._mark(transaction, step, status="open", done_attempt=None)
        self._count_failure(transaction, step, "; ".join(failures))
        later = steps[steps.index(judged) + 1 :]
        return [item.name for item in later if item.status == "done" and item.key in (judged.key, None)]

    def reopen(self, transaction: Transaction, steps: Sequence[str]) -> UndoneStep:
        """Undo steps, and reopen them with all retries."""
        undone = undo_steps(transaction, self.declaration, steps)
        for step in steps:
            self._mark(transaction, step, status="open", done_attempt=None, failures=0, message=None)
        return undone

    def reopen_for_rows(self, transaction: Transaction) -> None:
        """Reopen finished workspace-wide steps after tables with new rows."""
        phases = self.declaration.phases
        first = next((index for index, phase in enumerate(phases) if phase.over in transaction.shown), len(phases))
        for phase in phases[first + 1 :]:
            for agent in phase.agents if phase.over is None and phase.after == "all" else ():
                step = build_step_name(phase.name, agent.agent, None)
                steps = transaction.schema.steps
                is_done = sa.select(steps.c.id).where(steps.c.name == step, steps.c.status == "done")
                if step != transaction.writer.step and transaction.connection.execute(is_done).first() is not None:
                    self._mark(transaction, step, status="open", done_attempt=None)

    def _is_early(self, transaction: Transaction, claim: Claim) -> bool:
        """Return True if new rows left an earlier phase unfinished.

        Applies to steps of the whole workspace only.
        """
        if claim.table is not None or self.declaration.phase(claim.phase or "").after != "all":
            return False
        earlier = itertools.takewhile(lambda step: step.phase != claim.phase, self.steps(transaction))
        return any(step.status != "done" for step in earlier)

    def _choose(self, steps: Sequence[Step], step: str | None, agent: str | None) -> Step | None:
        if step is None:
            agents = dict.fromkeys(item.agent for phase in self.declaration.phases for item in phase.agents)
            if agent is not None and agent not in agents:
                raise ValidationError(
                    f"No step is the work of {quoted(agent)}; there are {', '.join(agents)}.", code="unknown_agent"
                )
            ready = (item for item in steps if item.status == "ready" and agent in (None, item.agent))
            return next(ready, None)
        chosen = _find_step(steps, step)
        if agent not in (None, chosen.agent):
            raise LeaseError(f"{step} is the work of {chosen.agent}, not of {quoted(agent)}.", code="not_ready")
        if chosen.status == "claimed":
            until = chosen.expires_at.isoformat(timespec="seconds") if chosen.expires_at else "now"
            raise LeaseError(f"{step} is claimed by {chosen.owner} until {until}.", code="claimed")
        if chosen.status != "ready":
            raise LeaseError(f"{step} cannot run: {chosen.waits_for or 'it is done'}.", code="not_ready")
        return chosen

    def _check_produced(self, transaction: Transaction, claim: Claim) -> None:
        phase = self.declaration.phase(claim.phase or "")
        wanted = next((phase_agent.produces for phase_agent in phase.agents if phase_agent.agent == claim.agent), ())
        if not wanted or claim.table is None or claim.row_id is None:
            return
        row = load_row(transaction.connection, transaction.schema, claim.table, claim.row_id)
        empty = [name for name in wanted if row[name] is None]
        if empty:
            raise ValidationError(
                f"{claim.step} must produce {', '.join(empty)} of {claim.table} {claim.key!r} before it is done.",
                code="not_produced",
                recovery="Write what is missing and finish again, or say that the step failed.",
            )

    def _mark(self, transaction: Transaction, step: str, **values: Any) -> None:
        """Set the progress of a step in the history, which snapshots restore."""
        steps = transaction.schema.steps
        if "message" in values:
            values["ws_trust"] = LOW if values["message"] and transaction.writer.is_low else None
        stored = transaction.connection.execute(sa.select(steps).where(steps.c.name == step)).mappings().first()
        if stored is None:
            base = {"name": step, "status": "open", "done_attempt": None, "failures": 0}
            base |= {"message": None, "ws_trust": None}
            transaction.insert(STEPS, base | values, op="step")
        else:
            transaction.update(STEPS, dict(stored), values, op="step")

    def _count_failure(self, transaction: Transaction, step: str, message: str) -> int:
        steps = transaction.schema.steps
        before = transaction.connection.execute(sa.select(steps.c.failures).where(steps.c.name == step)).scalar()
        self._mark(transaction, step, status="open", failures=(before or 0) + 1, message=message)
        return int(before or 0) + 1

    def _log(
        self, transaction: Transaction, table: str | None, fields: dict[str, Any], over: str | None, key: Any
    ) -> None:
        """Write the declared columns of a log row."""
        if table is None:
            return
        columns = self.declaration.tables[table].columns
        numbers = {phase.name: number for number, phase in enumerate(self.declaration.phases, 1)}
        if "phase" in columns and columns["phase"].type == "integer":
            fields = fields | {"phase": numbers[fields["phase"]]}
        values = {name: value for name, value in fields.items() if name in columns}
        if over is not None:
            values |= {name: key for name, column in columns.items() if column.references == over}
        self.writer.add(transaction, self.writer.prepare(table, values, RowCaller(), is_complete=True))


def _find_step(steps: Sequence[Step], name: str) -> Step:
    """Return a step by name.

    Raises:
        RowNotFoundError: It does not exist.
    """
    for step in steps:
        if step.name == name:
            return step
    examples = ", ".join(step.name for step in steps[:_SHOWN]) or "none yet"
    raise RowNotFoundError(f"No step {quoted(name)}; a step is phase/agent/key, such as {examples}.")


def undo_steps(
    transaction: Transaction, declaration: Declaration, steps: Collection[str], attempts: Collection[int] | None = None
) -> UndoneStep:
    """Undo the writes of steps, as new changes.

    A value is only undone while it is still the one that the step set; later changes of others stay.

    Args:
        transaction: Transaction of the change.
        declaration: Declaration of the workspace.
        steps: Names of the steps.
        attempts: Numbers of the attempts; None for all.
    """
    history = transaction.schema.history
    theirs = [history.c.step.in_(list(steps)), history.c.tbl != STEPS]
    if attempts is not None:
        theirs.append(history.c.attempt.in_(list(attempts)))
    aside = changed = 0
    unsettled: dict[str, set[int]] = {}
    standing = _list_valid_attempts(transaction)

    def is_theirs(entry: HistoryEntry) -> bool:
        return entry.step in steps and (attempts is None or entry.attempt in attempts)

    def is_void(entry: HistoryEntry) -> bool:
        return is_theirs(entry) or (entry.step is not None and (entry.step, entry.attempt) not in standing)

    for (table, row_id), changes in find_changed_rows(transaction.connection, transaction.schema, *theirs).items():
        row = load_row(transaction.connection, transaction.schema, table, row_id)
        inserted = is_theirs(changes[0])
        values, origins = (dict(NOT_THERE), {}) if inserted else _find_former(changes, is_theirs, is_void)
        unsettled.setdefault(table, set()).update(
            _list_unsettled(transaction, declaration, table, row, values, inserted=inserted)
        )
        if transaction.update(table, row, values, op="undo", origins=origins):
            aside += inserted
            changed += not inserted
    for table, ids in unsettled.items():
        settle_rows(transaction, declaration, table, ids - _list_hidden(transaction, table, ids))
    return UndoneStep(aside, changed)


def _list_unsettled(
    transaction: Transaction,
    declaration: Declaration,
    table: str,
    row: Mapping[str, Any],
    values: dict[str, Any],
    *,
    inserted: bool,
) -> set[int]:
    """Return the ids of rows to settle; `values` loses their state."""
    unique = declaration.tables[table].unique_columns()
    row_ids: set[int] = set()
    gives_up = inserted and row["ws_state"] in (RowState.SHOWN, RowState.PROPOSAL)
    if not inserted and "ws_state" in values:
        values.pop("ws_state")
        row_ids.add(row["id"])
    if not inserted and values.keys() & set(unique) and row["ws_state"] == RowState.SHOWN:
        values["ws_state"] = int(RowState.PROPOSAL)  # until then: another row may have taken its value
        row_ids.add(row["id"])
        gives_up = True
    return row_ids | (find_rivals(transaction, transaction.schema.declared[table], unique, row) if gives_up else set())


def _find_former(
    changes: Sequence[HistoryEntry], is_theirs: _EntryTest, is_void: _EntryTest
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return values without the undone changes, and their origins.

    Earlier values that were undone in between do not return.
    """
    by_seq = {entry.seq: entry for entry in changes}
    now = fold_entries(changes)
    values: dict[str, Any] = {}
    origins: dict[str, int] = {}
    for name, origin in (now.origins if now else {}).items():
        if name in _AUTOMATIC:
            continue
        seq = origin
        is_undone = is_theirs
        while (entry := by_seq.get(seq)) is not None and is_undone(entry):
            is_undone = is_void
            earlier = fold_entries(changes, seq - 1)
            seq = earlier.origins.get(name, 0) if earlier else 0
            values[name] = earlier.values.get(name) if earlier else None
        if name in values and seq:
            origins[name] = seq
    return values, origins


def _list_valid_attempts(transaction: Transaction) -> set[tuple[str, int | None]]:
    """Return the valid attempts at steps.

    These are the finished ones, and the last one at each other step.
    """
    steps, leases = transaction.schema.steps, transaction.schema.leases
    done = transaction.connection.execute(sa.select(steps.c.name, steps.c.done_attempt).where(steps.c.status == "done"))
    finished = {(row.name, row.done_attempt) for row in done}
    get_claim = leases.c.name.startswith("step:", autoescape=True) & leases.c.owner.is_not(None)
    claimed = transaction.connection.execute(sa.select(leases.c.name, leases.c.attempt).where(get_claim))
    return finished | {(row.name.removeprefix("step:"), row.attempt) for row in claimed}


def _list_hidden(transaction: Transaction, table: str, ids: set[int]) -> set[int]:
    source = transaction.schema.declared[table]
    hidden: set[int] = set()
    for batch in iter_batches(sorted(ids)):
        aside = sa.and_(source.c.id.in_(batch), source.c.ws_state == int(RowState.ASIDE))
        hidden.update(transaction.connection.execute(sa.select(source.c.id).where(aside)).scalars())
    return hidden
