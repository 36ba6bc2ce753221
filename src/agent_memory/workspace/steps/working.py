"""Claiming a step, finishing it, giving it back, failing it: what one worker does, whatever other workers do."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import sqlalchemy as sa

from agent_memory.errors import LeaseError, RowNotFoundError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database import LOW, STEPS, State, Transaction
from agent_memory.workspace.database.history import stored_row
from agent_memory.workspace.rows import Caller, Claim, Leases, RowReading, Writing, settle
from agent_memory.workspace.rows.leases import row_lease, step_lease
from agent_memory.workspace.steps.plan import Step, plan, step_name
from agent_memory.workspace.steps.undoing import UndoneStep, undo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.workspace.declaration import Declaration

FailureType = Literal["transient", "validation", "quality"]
_SHOWN: Final = 5


class Working:
    """What workers do with steps, within a transaction of the caller's."""

    def __init__(self, declaration: Declaration, reading: RowReading, writing: Writing, leases: Leases) -> None:
        self._declaration = declaration
        self._reading = reading
        self._writing = writing
        self._leases = leases

    def steps(self, transaction: Transaction) -> list[Step]:
        """Return all steps."""
        now = datetime.fromisoformat(transaction.at)
        return plan(transaction.connection, transaction.schema, self._declaration, now, transaction.epoch)

    def claim(
        self,
        transaction: Transaction,
        owner: str,
        *,
        step: str | None = None,
        agent: str | None = None,
        seconds: float | None = None,
    ) -> Claim | None:
        """Claim a step: this one, or the first that can run (of an agent).

        What an unfinished attempt at it left is taken back first.

        Returns:
            None if no step was named and none can run.

        Raises:
            RowNotFoundError: There is no step of this name.
            LeaseError: It cannot run now; the message says why.
        """
        chosen = self._chosen(self.steps(transaction), step, agent)
        if chosen is None:
            return None
        phase = self._declaration.phase(chosen.phase)
        now = datetime.fromisoformat(transaction.at)
        lasting = seconds if seconds is not None else phase.lease_seconds
        lease = self._leases.take(transaction, step_lease(chosen.name), owner, now, lasting, attempt=True)
        row_fence = None
        if chosen.table is not None and chosen.row_id is not None and self._declaration.tables[chosen.table].lock:
            name = row_lease(chosen.table, chosen.row_id)
            row_fence = self._leases.take(transaction, name, owner, now, lasting, attempt=False).fence
        if lease.attempt > 1:
            undo(transaction, self._declaration, [chosen.name])
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
        """Claim a row, so that nobody else writes it.

        Raises:
            LeaseError: Somebody else has it.
            ValidationError: Rows of this table are not locked.
        """
        self._reading.table(table)
        if not self._declaration.tables[table].lock:
            raise ValidationError(f"{table} is not declared with `lock: true`: its rows need no claim.", code="invalid")
        row_id = self._reading.row_id(transaction.connection, table, key, Caller())
        now = datetime.fromisoformat(transaction.at)
        lease = self._leases.take(transaction, row_lease(table, row_id), owner, now, seconds, attempt=False)
        return Claim(
            lease.name, owner, lease.fence, 0, lease.epoch, lease.expires_at or now, table=table, row_id=row_id, key=key
        )

    def finish(self, transaction: Transaction, claim: Claim) -> str | None:
        """Show what the attempt wrote, and call the step done; return the phase that is done by it, if one is.

        Raises:
            ValidationError: What the step must produce is not there; the claim still stands.
            LeaseError: The claim has ended.
        """
        self._leases.check(transaction, claim)
        if claim.step is None:
            self._leases.end(transaction, claim)
            return None
        self._check_produced(transaction, claim)
        for table in self._declaration.tables:
            source = transaction.schema.declared[table]
            pending = source.c.ws_state.in_([int(State.PENDING), int(State.PENDING_PROPOSAL)])
            is_own = sa.and_(source.c.ws_step == claim.step, source.c.ws_attempt == claim.attempt, pending)
            ids = list(transaction.connection.execute(sa.select(source.c.id).where(is_own)).scalars())
            if ids:
                settle(transaction, self._declaration, table, ids)
        if self._is_early(transaction, claim):
            self._mark(transaction, claim.step, status="open", done_attempt=None, message=None)
        else:
            self._mark(transaction, claim.step, status="done", done_attempt=claim.attempt, message=None)
        self._leases.end(transaction, claim)
        open_steps = [step for step in self.steps(transaction) if step.phase == claim.phase and step.status != "done"]
        return None if open_steps else claim.phase

    def release(self, transaction: Transaction, claim: Claim) -> UndoneStep:
        """Give a claim back: what the attempt wrote is taken back, and it does not count as a failure."""
        self._leases.check(transaction, claim)
        undone = UndoneStep()
        if claim.step is not None:
            undone = undo(transaction, self._declaration, [claim.step], [claim.attempt])
        self._leases.end(transaction, claim)
        return undone

    def fail(self, transaction: Transaction, claim: Claim, kind: FailureType, message: str) -> int:
        """Say that an attempt failed; return how often the step may still be tried.

        Raises:
            LeaseError: The claim has ended.
            ValidationError: `kind` is none of transient, validation, quality.
        """
        if kind not in get_args(FailureType):
            raise ValidationError(f"A failure is one of {', '.join(get_args(FailureType))}.", code="invalid")
        self.release(transaction, claim)
        if claim.step is None or claim.phase is None:
            return 0
        failures = self._failed(transaction, claim.step, message)
        told = {
            "agent_name": claim.agent,
            "phase": claim.phase,
            "attempt_number": claim.attempt,
            "failure_type": kind,
            "failure_message": message,
            "outcome": "fail",
        }
        self._log(transaction, self._declaration.logs.retries, told, claim.table, claim.key)
        return max(0, self._declaration.phase(claim.phase).retries + 1 - failures)

    def validate(self, transaction: Transaction, step: str, validator: str, failures: Sequence[str]) -> list[str]:
        """Write down how a step that is done was judged; what failed is taken back, and the step is to be done again.

        Returns:
            Steps that were done after it and may rest on what was taken back.

        Raises:
            RowNotFoundError: There is no such step.
            ValidationError: It is not done.
        """
        steps = self.steps(transaction)
        judged = next((each for each in steps if each.name == step), None)
        if judged is None:
            raise _unknown(step, steps)
        if judged.status != "done":
            raise ValidationError(f"{quoted(step)} is not done; only what is done can be judged.", code="invalid")
        told = {
            "validator_name": validator,
            "phase": judged.phase,
            "passed": not failures,
            "failures": list(failures),
        }
        self._log(transaction, self._declaration.logs.validations, told, judged.table, judged.key)
        if not failures:
            return []
        undo(transaction, self._declaration, [step])
        self._mark(transaction, step, status="open", done_attempt=None)
        self._failed(transaction, step, "; ".join(failures))
        later = steps[steps.index(judged) + 1 :]
        return [each.name for each in later if each.status == "done" and each.key in (judged.key, None)]

    def reopen(self, transaction: Transaction, steps: Sequence[str]) -> UndoneStep:
        """Take back what steps wrote, and have them done again, with all their retries."""
        undone = undo(transaction, self._declaration, steps)
        for step in steps:
            self._mark(transaction, step, status="open", done_attempt=None, failures=0, message=None)
        return undone

    def reopen_for_rows(self, transaction: Transaction) -> None:
        """Reopen finished workspace-wide steps after tables with new rows."""
        phases = self._declaration.phases
        first = next((index for index, phase in enumerate(phases) if phase.over in transaction.shown), len(phases))
        for phase in phases[first + 1 :]:
            for agent in phase.agents if phase.over is None and phase.after == "all" else ():
                step = step_name(phase.name, agent.agent, None)
                steps = transaction.schema.steps
                is_done = sa.select(steps.c.id).where(steps.c.name == step, steps.c.status == "done")
                if step != transaction.writer.step and transaction.connection.execute(is_done).first() is not None:
                    self._mark(transaction, step, status="open", done_attempt=None)

    def _is_early(self, transaction: Transaction, claim: Claim) -> bool:
        """Return True if new rows left an earlier phase unfinished.

        Applies to steps of the whole workspace only.
        """
        if claim.table is not None or self._declaration.phase(claim.phase or "").after != "all":
            return False
        earlier = itertools.takewhile(lambda step: step.phase != claim.phase, self.steps(transaction))
        return any(step.status != "done" for step in earlier)

    def _chosen(self, steps: Sequence[Step], step: str | None, agent: str | None) -> Step | None:
        if step is None:
            ready = (each for each in steps if each.status == "ready" and agent in (None, each.agent))
            return next(ready, None)
        found = next((each for each in steps if each.name == step), None)
        if found is None:
            raise _unknown(step, steps)
        if agent not in (None, found.agent):
            raise LeaseError(f"{step} is the work of {found.agent}, not of {quoted(agent)}.", code="not_ready")
        if found.status == "claimed":
            until = found.expires_at.isoformat(timespec="seconds") if found.expires_at else "now"
            raise LeaseError(f"{step} is claimed by {found.owner} until {until}.", code="claimed")
        if found.status != "ready":
            raise LeaseError(f"{step} cannot run: {found.waits_for or 'it is done'}.", code="not_ready")
        return found

    def _check_produced(self, transaction: Transaction, claim: Claim) -> None:
        phase = self._declaration.phase(claim.phase or "")
        wanted = next((each.produces for each in phase.agents if each.agent == claim.agent), ())
        if not wanted or claim.table is None or claim.row_id is None:
            return
        row = stored_row(transaction.connection, transaction.schema, claim.table, claim.row_id)
        empty = [name for name in wanted if row[name] is None]
        if empty:
            raise ValidationError(
                f"{claim.step} must produce {', '.join(empty)} of {claim.table} {claim.key!r} before it is done.",
                code="not_produced",
                recovery="Write what is missing and finish again, or say that the step failed.",
            )

    def _mark(self, transaction: Transaction, step: str, **values: Any) -> None:
        """Set how far a step is; part of the history, so that it comes back with a snapshot."""
        steps = transaction.schema.steps
        if "message" in values:
            values["ws_trust"] = LOW if values["message"] and transaction.writer.is_low else None
        found = transaction.connection.execute(sa.select(steps).where(steps.c.name == step)).mappings().first()
        if found is None:
            base = {"name": step, "status": "open", "done_attempt": None, "failures": 0}
            base |= {"message": None, "ws_trust": None}
            transaction.insert(STEPS, base | values, op="step")
        else:
            transaction.update(STEPS, dict(found), values, op="step")

    def _failed(self, transaction: Transaction, step: str, message: str) -> int:
        steps = transaction.schema.steps
        before = transaction.connection.execute(sa.select(steps.c.failures).where(steps.c.name == step)).scalar()
        self._mark(transaction, step, status="open", failures=(before or 0) + 1, message=message)
        return int(before or 0) + 1

    def _log(
        self, transaction: Transaction, table: str | None, told: dict[str, Any], over: str | None, key: Any
    ) -> None:
        """Write into a declared log what it has columns for."""
        if table is None:
            return
        columns = self._declaration.tables[table].columns
        numbers = {phase.name: number for number, phase in enumerate(self._declaration.phases, 1)}
        if "phase" in columns and columns["phase"].type == "integer":
            told = told | {"phase": numbers[told["phase"]]}
        values = {name: value for name, value in told.items() if name in columns}
        if over is not None:
            values |= {name: key for name, column in columns.items() if column.references == over}
        self._writing.add(transaction, self._writing.prepare(table, values, Caller(), whole=True))


def _unknown(step: str, steps: Sequence[Step]) -> RowNotFoundError:
    some = ", ".join(each.name for each in steps[:_SHOWN])
    return RowNotFoundError(
        f"There is no step {quoted(step)}; a step is phase/agent/key, such as {some or 'none yet'}."
    )
