"""Claims and leases: who may work on what, and for how long.

There is one row for each lease name; it is never deleted or restored. A lease has a fencing number that grows with
every claim: a worker that was thought dead and returns has an old one, and its writes are refused (Kleppmann, "How to
do distributed locking", 2016).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.errors import LeaseError
from agent_memory.files.processes import ProcessIdentity, get_own_identity
from agent_memory.redaction import quoted
from agent_memory.workspace.database.history import ChangeAuthor, Transaction
from agent_memory.workspace.rows.row_values import check_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.workspace.database.schema import Schema

_HOLDER: Final = "holder:"
"""Prefix of the keys in `ws_meta` for the process that holds a lease; older versions ignore them."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A stored lease.

    Attributes:
        owner: Agent that has it, or None.
        is_abandoned: True if the process that claimed it ended without returning it.
    """

    name: str
    owner: str | None
    fence: int
    attempt: int
    epoch: int
    expires_at: datetime | None
    is_abandoned: bool = False

    def held(self, now: datetime, epoch: int) -> bool:
        """Return True if an agent has it and others must wait."""
        return self.lasts(now, epoch) and not self.is_abandoned

    def lasts(self, now: datetime, epoch: int) -> bool:
        """Return True if the lease has not expired.

        The owner may then continue in any process.
        """
        alive = self.expires_at is not None and self.expires_at > now
        return self.owner is not None and alive and self.epoch == epoch


def row_lease(table: str, row_id: int) -> str:
    """Return the name of the lease of a row."""
    return f"row:{table}:{row_id}"


def step_lease(step: str) -> str:
    """Return the name of the lease of a step."""
    return f"step:{step}"


class LeaseTable:
    """Leases of a workspace, within a transaction of the caller."""

    def find(self, transaction: Transaction, name: str) -> Lease | None:
        """Return a lease, or None if it was never claimed."""
        leases = transaction.schema.leases
        stored = transaction.connection.execute(sa.select(leases).where(leases.c.name == name)).first()
        if stored is None:
            return None
        lease = read_lease(stored)
        return _judge(lease, transaction.connection.execute(_holder(transaction.schema, lease)).scalar())

    def every(self, connection: sa.Connection, schema: Schema) -> dict[str, Lease]:
        """Return all leases by name."""
        meta = schema.meta
        holder_rows = connection.execute(sa.select(meta.c.key, meta.c.value).where(meta.c.key.startswith(_HOLDER)))
        holders = {row.key: row.value for row in holder_rows}
        leases = map(read_lease, connection.execute(sa.select(schema.leases)))
        return {lease.name: _judge(lease, holders.get(_holder_key(lease))) for lease in leases}

    def take(
        self, transaction: Transaction, name: str, owner: str, now: datetime, seconds: float, *, attempt: bool
    ) -> Lease:
        """Claim a free lease.

        Args:
            transaction: Transaction of the claim.
            name: Name of the lease.
            owner: Name of the claiming worker.
            now: Time of the claim.
            seconds: Duration of the lease.
            attempt: True if it counts as an attempt.

        Raises:
            LeaseError: Another worker has it.
        """
        check_seconds(seconds)
        before = self.find(transaction, name)
        if before is not None and before.held(now, transaction.epoch):
            raise build_claimed_error(before)
        lease = Lease(
            name,
            owner,
            (before.fence if before else 0) + 1,
            (before.attempt if before else 0) + int(attempt),
            transaction.epoch,
            now + timedelta(seconds=seconds),
        )
        self._write(transaction, lease, is_new=before is None)
        self._keep_holder(transaction, before, lease)
        return lease

    def check(self, transaction: Transaction, claim: Claim | None) -> None:
        """Check that a claim is still valid.

        Raises:
            LeaseError: It has ended, another worker has the lease, or the claim was altered.
        """
        if claim is None:
            return
        if not _is_whole(claim):
            raise _build_altered_error(claim)
        self._check(transaction, claim, claim.lease, claim.fence)
        if claim.row_fence is not None:
            self._check(transaction, claim, row_lease(claim.table or "", claim.row_id or 0), claim.row_fence)

    def check_row(self, transaction: Transaction, table: str, row_id: int, key: Any, claim: Claim | None) -> None:
        """Check that no other claim has the lease of a row.

        Raises:
            LeaseError: Another claim has it.
        """
        name = row_lease(table, row_id)
        if claim is not None and name in (claim.lease, f"row:{claim.table}:{claim.row_id}"):
            self._check(transaction, claim, name, claim.row_fence if claim.row_fence is not None else claim.fence)
            return
        lease = self.find(transaction, name)
        if lease is not None and lease.held(datetime.fromisoformat(transaction.at), transaction.epoch):
            raise LeaseError(
                f"{table} {quoted(key)} is being written by {lease.owner} until {_minute(lease)}. Nothing was written.",
                recovery="Wait until it is released, or write another row.",
            )

    def renew(self, transaction: Transaction, claim: Claim, seconds: float) -> Claim:
        """Extend a claim; return the extended one.

        Raises:
            LeaseError: It has ended.
        """
        check_seconds(seconds)
        until = datetime.fromisoformat(transaction.at) + timedelta(seconds=seconds)
        for name in list_lease_names(claim):
            lease = self.find(transaction, name)
            if name == claim.lease:
                self.check(transaction, claim)
            if lease is not None:
                self._write(transaction, replace(lease, expires_at=until), is_new=False)
                self._keep_holder(transaction, lease, lease)  # another process may have been handed the claim
        return replace(claim, expires_at=until)

    def end(self, transaction: Transaction, claim: Claim) -> None:
        """Return a claim; does nothing if another worker has it now."""
        for lease in self._list_held(transaction, claim):
            self._write(transaction, replace(lease, owner=None, expires_at=None), is_new=False)
            self._drop_holder(transaction, lease)

    def hand_over(self, transaction: Transaction, claim: Claim) -> None:
        """Keep a claim for its time, even if this process ends."""
        for lease in self._list_held(transaction, claim):
            self._drop_holder(transaction, lease)

    def _list_held(self, transaction: Transaction, claim: Claim) -> list[Lease]:
        """Return the leases that a claim still holds."""
        fences = zip(list_lease_names(claim), (claim.fence, claim.row_fence), strict=False)
        leases = [(self.find(transaction, name), fence) for name, fence in fences]
        return [lease for lease, fence in leases if lease is not None and lease.fence == fence]

    def _check(self, transaction: Transaction, claim: Claim, name: str, fence: int) -> None:
        lease = self.find(transaction, name)
        what = claim.step or f"{claim.table} {claim.key!r}"
        if claim.epoch != transaction.epoch:
            raise LeaseError(
                f"The workspace was restored after {what} was claimed; the claim has ended. Nothing was written.",
                code="claim_ended",
                recovery="Ask for the next steps and claim one of them.",
            )
        if lease is None or lease.fence != fence or lease.owner is None:
            by = f"{lease.owner} has it now" if lease is not None and lease.owner else "it was finished or given back"
            raise LeaseError(
                f"The claim on {what} has ended: {by}. Nothing was written.",
                code="claim_ended",
                recovery="Stop this work; ask for the next steps and claim one of them.",
            )
        if lease.owner != claim.owner or (name == claim.lease and lease.attempt != claim.attempt):
            raise _build_altered_error(claim)
        if not lease.lasts(datetime.fromisoformat(transaction.at), transaction.epoch):
            raise LeaseError(
                f"The claim on {what} ended at {_minute(lease)}. Nothing was written.",
                code="claim_ended",
                recovery="Claim it again; renew a claim before it ends if the work takes longer.",
            )

    def _keep_holder(self, transaction: Transaction, before: Lease | None, lease: Lease) -> None:
        """Record that this process holds a lease."""
        if before is not None:
            self._drop_holder(transaction, before)
        if (identity := get_own_identity()) is not None:
            values = {"key": _holder_key(lease), "value": identity.to_json()}
            transaction.connection.execute(sa.insert(transaction.schema.meta).values(values))

    def _drop_holder(self, transaction: Transaction, lease: Lease) -> None:
        meta = transaction.schema.meta
        transaction.connection.execute(sa.delete(meta).where(meta.c.key == _holder_key(lease)))

    def _write(self, transaction: Transaction, lease: Lease, *, is_new: bool) -> None:
        leases = transaction.schema.leases
        values = asdict(lease)
        del values["is_abandoned"]
        values["expires_at"] = lease.expires_at.isoformat() if lease.expires_at else None
        statement = sa.insert(leases) if is_new else sa.update(leases).where(leases.c.name == lease.name)
        transaction.connection.execute(statement.values(values))


def _holder_key(lease: Lease) -> str:
    """Return the key of a claim's holder process in the workspace."""
    return f"{_HOLDER}{lease.fence}:{lease.name}"


def _holder(schema: Schema, lease: Lease) -> sa.Select[Any]:
    return sa.select(schema.meta.c.value).where(schema.meta.c.key == _holder_key(lease))


def _judge(lease: Lease, holder: str | None) -> Lease:
    """Return a lease, abandoned if the process that holds it has ended."""
    process = ProcessIdentity.from_json(holder) if holder is not None and lease.owner is not None else None
    return replace(lease, is_abandoned=True) if process is not None and process.has_ended() else lease


def _is_whole(claim: Claim) -> bool:
    """Return True if a claim's parts belong to one step or row."""
    if claim.step is None:
        return claim.lease == row_lease(claim.table or "", claim.row_id or 0)
    step = f"{claim.phase}/{claim.agent}/{'' if claim.key is None else claim.key}"
    return claim.lease == step_lease(step) and claim.step == step


def _build_altered_error(claim: Claim) -> LeaseError:
    return LeaseError(
        f"{claim.owner} holds no such claim on {claim.step or claim.table}. Nothing was written.",
        code="claim_ended",
        recovery="Use the claim as it was given, or claim a step.",
    )


def list_lease_names(claim: Claim) -> list[str]:
    """Return the names of a claim's leases: its own, and its row's."""
    return [claim.lease, *([row_lease(claim.table or "", claim.row_id or 0)] if claim.row_fence is not None else [])]


def read_lease(row: Any) -> Lease:
    """Build a lease from its row."""
    until = datetime.fromisoformat(row.expires_at) if row.expires_at else None
    return Lease(row.name, row.owner, row.fence, row.attempt, row.epoch, until)


def build_claimed_error(lease: Lease) -> LeaseError:
    """Build the error for a lease that another worker has."""
    what = lease.name.removeprefix("step:")
    return LeaseError(
        f"{what} is claimed by {lease.owner} until {_minute(lease)}.",
        code="claimed",
        recovery="Ask for the next steps and claim another one, or wait.",
    )


def _minute(lease: Lease) -> str:
    return lease.expires_at.isoformat(timespec="seconds") if lease.expires_at else "now"


@dataclass(frozen=True, slots=True)
class Claim:
    """Time-limited right to work on a step or a row.

    Attributes:
        lease: Name of its lease.
        owner: Name of the worker.
        fence: Number that grows with every claim of the lease; writes with an older one are refused.
        attempt: Number of the attempt at the step; 0 for a row.
        epoch: Number of restores before it: a restore ends all claims.
        expires_at: Time of its end, unless it is renewed.
        step: Name of the step, `phase/agent/key`; None for a row.
        table: Table of the row; None for a step of the whole workspace.
        row_fence: Fence of the row's own lease, if the step took that too.
    """

    lease: str
    owner: str
    fence: int
    attempt: int
    epoch: int
    expires_at: datetime
    step: str | None = None
    phase: str | None = None
    agent: str | None = None
    table: str | None = None
    row_id: int | None = None
    key: Any = None
    row_fence: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for an agent or a driver, for JSON."""
        names = ("step", "phase", "agent", "table", "key", "attempt", "fence", "owner")
        fields = {name: getattr(self, name) for name in names}
        fields["expires_at"] = self.expires_at.isoformat(timespec="seconds")
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class RowCaller:
    """Reader or writer of rows.

    Attributes:
        agent: Name of the agent. None for a person or a driver, who may write what any agent may write.
        session: Session that it runs in.
        claim: Claim that it works under.
        is_low: True if untrusted words may be in what it writes; its rows are of low trust from then on.
        on_low: Called for each row of low trust that it is shown, with the table and the row.
    """

    agent: str | None = None
    session: str | None = None
    claim: Claim | None = None
    is_low: bool = False
    on_low: Callable[[str, dict[str, Any]], None] | None = field(default=None, compare=False)

    @property
    def acting(self) -> str | None:
        """Agent that counts: the claim's, if no other is named."""
        return self.agent if self.agent is not None or self.claim is None else self.claim.agent

    def as_writer(self) -> ChangeAuthor:
        """Return the author for the history."""
        claim = self.claim
        step, attempt = (claim.step, claim.attempt) if claim else (None, None)
        return ChangeAuthor(self.acting, self.session, step, attempt, self.is_low)


Caller = RowCaller
