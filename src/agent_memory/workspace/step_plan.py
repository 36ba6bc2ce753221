"""Plan of all steps: ready, waiting, claimed, done or failed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import sqlalchemy as sa

from agent_memory.workspace.database.schema import LOW, RowState, Schema
from agent_memory.workspace.rows.claims import Lease, LeaseTable, step_lease

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agent_memory.workspace.declaration.model import Declaration, Phase

Status = Literal["done", "claimed", "ready", "waiting", "failed"]


@dataclass(frozen=True, slots=True)
class Step:
    """Work of one agent on one row in one phase.

    Attributes:
        name: Name `phase/agent/key`; the key is empty for a step of the whole workspace.
        status: State of the step; `failed` if no retry is left.
        attempts: Number of claims so far.
        retries_left: Number of failures that are still allowed.
        owner: Agent that has claimed it, or None.
        expires_at: Time at which that claim ends.
        waits_for: Reason why it cannot run yet, for people.
        feedback: Fault of the last attempt.
        is_low: True if untrusted words may be in a text key or the feedback.
        left_by: Owner of an expired claim; the next claim undoes that attempt.
        owner_ended: True if the process of that owner, on this machine, has ended.
    """

    name: str
    phase: str
    agent: str
    table: str | None
    key: Any
    row_id: int | None
    status: Status
    attempts: int
    retries_left: int
    owner: str | None = None
    expires_at: datetime | None = None
    waits_for: str | None = None
    feedback: str | None = None
    is_low: bool = False
    left_by: str | None = None
    owner_ended: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the values for a driver, as JSON."""
        fields = {
            "step": self.name, "phase": self.phase, "agent": self.agent, "table": self.table, "key": self.key,
            "status": self.status, "attempts": self.attempts, "retries_left": self.retries_left, "owner": self.owner,
            "expires_at": self.expires_at.isoformat(timespec="seconds") if self.expires_at else None,
            "waits_for": self.waits_for, "feedback": self.feedback, "trust": LOW if self.is_low else None,
            "left_by": self.left_by, "owner_ended": self.owner_ended or None,
        }  # fmt: skip
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(slots=True)
class _PlanInputs:
    """Inputs of the plan."""

    rows: dict[str, list[tuple[int, Any, bool]]]
    steps: dict[str, Any]
    leases: dict[str, Lease]
    now: datetime
    epoch: int


def build_step_name(phase: str, agent: str, key: Any) -> str:
    """Return the name of a step; without a key for the workspace."""
    return f"{phase}/{agent}/{'' if key is None else key}"


def plan_steps(
    connection: sa.Connection, schema: Schema, declaration: Declaration, now: datetime, epoch: int
) -> list[Step]:
    """Return all steps, by phase, row and agent."""
    state = _PlanInputs(
        rows={
            phase.over: _load_keys(connection, schema, declaration, phase.over)
            for phase in declaration.phases
            if phase.over
        },
        steps={row.name: row for row in connection.execute(sa.select(schema.steps))},
        leases=LeaseTable().every(connection, schema),
        now=now,
        epoch=epoch,
    )
    planned: list[Step] = []
    blocked: str | None = None
    missing: dict[tuple[str, Any], str] = {}
    for phase in declaration.phases:
        steps = list(_plan_phase(phase, state, blocked, missing, declaration))
        planned += steps
        open_count = Counter(step.phase for step in steps if step.status != "done")[phase.name]
        if open_count and blocked is None:
            blocked = f"{phase.name} has {open_count} of {len(steps)} steps to do"
        if not steps and blocked is None:
            blocked = f"{phase.over} has no rows yet, so nothing of {phase.name} is done"
        if phase.over is None and open_count:
            missing[("", None)] = f"{phase.name} is not done"
        for step in steps:
            if step.status != "done" and phase.over:
                missing.setdefault((phase.over, step.key), f"{step.name} is not done")
    return planned


def _plan_phase(
    phase: Phase, state: _PlanInputs, blocked: str | None, missing: dict[tuple[str, Any], str], declaration: Declaration
) -> Iterator[Step]:
    rows = state.rows[phase.over] if phase.over else [(None, None, False)]
    unfinished: str | None = None
    for row_id, key, is_low in rows:
        workspace_reason = missing.get(("", None))
        waits = blocked if phase.after == "all" else (workspace_reason or missing.get((phase.over or "", key)))
        if waits is None and phase.order == "in_order":
            waits = unfinished
        for agent in phase.agents:
            locked = phase.over if phase.over and declaration.tables[phase.over].lock else None
            step = _plan_step(phase, agent.agent, row_id, key, waits, state, locked)
            yield replace(step, is_low=True) if is_low else step
            if step.status != "done":
                waits = waits or f"{step.name} is not done"
                unfinished = unfinished or f"{step.name} is not done"


def _plan_step(
    phase: Phase, agent: str, row_id: int | None, key: Any, waits: str | None, state: _PlanInputs, locked: str | None
) -> Step:
    name = build_step_name(phase.name, agent, key)
    stored, lease = state.steps.get(name), state.leases.get(step_lease(name))
    failures = stored.failures if stored is not None else 0
    status: Status = "ready"
    owner = expires = None
    if stored is not None and stored.status == "done":
        status, waits = "done", None
    elif lease is not None and lease.held(state.now, state.epoch):
        status, owner, expires, waits = "claimed", lease.owner, lease.expires_at, None
    elif failures > phase.retries:
        status, waits = "failed", f"it failed {failures} times"
    elif waits is not None:
        status = "waiting"
    elif locked is not None:
        row = state.leases.get(f"row:{locked}:{row_id}")
        if row is not None and row.held(state.now, state.epoch):
            status, waits = "waiting", f"{row.owner} writes {locked} {key!r}"
    note = stored if stored is not None and status != "done" and stored.message is not None else None
    left_by = _find_last_owner(lease, state) if status in ("ready", "waiting") else None
    return Step(
        name, phase.name, agent, phase.over, key, row_id, status,
        lease.attempt if lease else 0, max(0, phase.retries - failures + 1) if status != "done" else 0,
        owner, expires, waits, note.message if note else None, note is not None and note.ws_trust == LOW,
        left_by, left_by is not None and lease is not None and lease.is_abandoned,
    )  # fmt: skip


def _find_last_owner(lease: Lease | None, state: _PlanInputs) -> str | None:
    """Return the owner of a claim that expired without a restore."""
    is_of_now = lease is not None and lease.epoch == state.epoch and not lease.held(state.now, state.epoch)
    return lease.owner if lease is not None and is_of_now else None


def _load_keys(
    connection: sa.Connection, schema: Schema, declaration: Declaration, table: str
) -> list[tuple[int, Any, bool]]:
    """Return ID, key and low trust of each shown row."""
    source, key = schema.declared[table], declaration.tables[table].key or "id"
    shown = source.c.ws_state == int(RowState.SHOWN)
    statement = sa.select(source.c.id, source.c[key], source.c.ws_trust).where(shown).order_by(source.c[key])
    rows = connection.execute(statement)
    return [(row_id, value, trust == LOW and isinstance(value, str)) for row_id, value, trust in rows]
