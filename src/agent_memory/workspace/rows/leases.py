"""Leases: who may work on what, for how long. One row for each name; it is never removed nor brought back.

A lease has a fencing number that grows with every claim: a worker that was thought dead and comes back has an old one,
and nothing it writes is taken (Kleppmann, "How to do distributed locking", 2016).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.errors import LeaseError
from agent_memory.files.processes import ProcessIdentity, get_own_identity
from agent_memory.redaction import quoted
from agent_memory.workspace.rows.naming import check_seconds

if TYPE_CHECKING:
    from agent_memory.workspace.database import Schema, Transaction
    from agent_memory.workspace.rows.claim import Claim


_HOLDER: Final = "holder:"
"""Begins the names under which `ws_meta` keeps which process holds a lease: older versions read past them."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A stored lease.

    `owner`: the agent that has it, or None. `is_abandoned`: the process that claimed it ended without returning it.
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


class Leases:
    """Reads and changes leases, within a transaction of the caller's."""

    def find(self, transaction: Transaction, name: str) -> Lease | None:
        """Return a lease, None if it was never claimed."""
        leases = transaction.schema.leases
        stored = transaction.connection.execute(sa.select(leases).where(leases.c.name == name)).first()
        if stored is None:
            return None
        lease = lease_of(stored)
        return _judge(lease, transaction.connection.execute(_holder(transaction.schema, lease)).scalar())

    def every(self, connection: sa.Connection, schema: Schema) -> dict[str, Lease]:
        """Return all leases by their names."""
        meta = schema.meta
        holder_rows = connection.execute(sa.select(meta.c.key, meta.c.value).where(meta.c.key.startswith(_HOLDER)))
        holders = {row.key: row.value for row in holder_rows}
        leases = map(lease_of, connection.execute(sa.select(schema.leases)))
        return {lease.name: _judge(lease, holders.get(_holder_key(lease))) for lease in leases}

    def take(
        self, transaction: Transaction, name: str, owner: str, now: datetime, seconds: float, *, attempt: bool
    ) -> Lease:
        """Claim a lease that nobody has.

        Args:
            transaction: What it is part of.
            name: Of the lease.
            owner: Who claims it.
            now: The time.
            seconds: How long it lasts.
            attempt: Whether this counts as an attempt.

        Raises:
            LeaseError: Somebody has it.
        """
        check_seconds(seconds)
        before = self.find(transaction, name)
        if before is not None and before.held(now, transaction.epoch):
            raise held_by(before)
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
        """Check that a claim still stands.

        Raises:
            LeaseError: It has ended, somebody else has it now, or it is not what was claimed.
        """
        if claim is None:
            return
        if not _is_whole(claim):
            raise _altered(claim)
        self._check(transaction, claim, claim.lease, claim.fence)
        if claim.row_fence is not None:
            self._check(transaction, claim, row_lease(claim.table or "", claim.row_id or 0), claim.row_fence)

    def check_row(self, transaction: Transaction, table: str, row_id: int, key: Any, claim: Claim | None) -> None:
        """Check that nobody else has the lease of a row.

        Raises:
            LeaseError: Somebody has.
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
        """Let a claim last longer; return it as it is then.

        Raises:
            LeaseError: It has ended.
        """
        check_seconds(seconds)
        until = datetime.fromisoformat(transaction.at) + timedelta(seconds=seconds)
        for name in names_of(claim):
            lease = self.find(transaction, name)
            if name == claim.lease:
                self.check(transaction, claim)
            if lease is not None:
                self._write(transaction, replace(lease, expires_at=until), is_new=False)
                self._keep_holder(transaction, lease, lease)  # another process may have been handed the claim
        return replace(claim, expires_at=until)

    def end(self, transaction: Transaction, claim: Claim) -> None:
        """Give a claim back; does nothing where somebody else has it now."""
        for name, fence in zip(names_of(claim), (claim.fence, claim.row_fence), strict=False):
            lease = self.find(transaction, name)
            if lease is not None and lease.fence == fence:
                self._write(transaction, replace(lease, owner=None, expires_at=None), is_new=False)
                self._drop_holder(transaction, lease)

    def hand_over(self, transaction: Transaction, claim: Claim) -> None:
        """Keep a claim for its time, even if this process ends."""
        for name, fence in zip(names_of(claim), (claim.fence, claim.row_fence), strict=False):
            lease = self.find(transaction, name)
            if lease is not None and lease.fence == fence:
                self._drop_holder(transaction, lease)

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
            raise _altered(claim)
        if not lease.lasts(datetime.fromisoformat(transaction.at), transaction.epoch):
            raise LeaseError(
                f"The claim on {what} ended at {_minute(lease)}. Nothing was written.",
                code="claim_ended",
                recovery="Claim it again; renew a claim before it ends if the work takes longer.",
            )

    def _keep_holder(self, transaction: Transaction, before: Lease | None, lease: Lease) -> None:
        """Write down that this process holds a lease."""
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
        values = {
            "owner": lease.owner,
            "fence": lease.fence,
            "attempt": lease.attempt,
            "epoch": lease.epoch,
            "expires_at": lease.expires_at.isoformat() if lease.expires_at else None,
        }
        if is_new:
            transaction.connection.execute(sa.insert(leases).values(name=lease.name, **values))
        else:
            transaction.connection.execute(sa.update(leases).where(leases.c.name == lease.name).values(values))


def _holder_key(lease: Lease) -> str:
    """Return the key of a claim's holder process in the workspace."""
    return f"{_HOLDER}{lease.fence}:{lease.name}"


def _holder(schema: Schema, lease: Lease) -> sa.Select[Any]:
    return sa.select(schema.meta.c.value).where(schema.meta.c.key == _holder_key(lease))


def _judge(lease: Lease, holder: str | None) -> Lease:
    """Return a lease, abandoned where the process that holds it has ended."""
    process = ProcessIdentity.from_json(holder) if holder is not None and lease.owner is not None else None
    return replace(lease, is_abandoned=True) if process is not None and process.has_ended() else lease


def _is_whole(claim: Claim) -> bool:
    """Tell whether the parts of a claim are those of one step, or of one row."""
    if claim.step is None:
        return claim.lease == row_lease(claim.table or "", claim.row_id or 0)
    step = f"{claim.phase}/{claim.agent}/{'' if claim.key is None else claim.key}"
    return claim.lease == step_lease(step) and claim.step == step


def _altered(claim: Claim) -> LeaseError:
    return LeaseError(
        f"{claim.owner} holds no such claim on {claim.step or claim.table}. Nothing was written.",
        code="claim_ended",
        recovery="Use the claim as it was given, or claim a step.",
    )


def names_of(claim: Claim) -> list[str]:
    """Return the names of the leases that a claim is made of: its own, and that of its row."""
    return [claim.lease, *([row_lease(claim.table or "", claim.row_id or 0)] if claim.row_fence is not None else [])]


def lease_of(row: Any) -> Lease:
    """Return a lease from its row."""
    until = datetime.fromisoformat(row.expires_at) if row.expires_at else None
    return Lease(row.name, row.owner, row.fence, row.attempt, row.epoch, until)


def held_by(lease: Lease) -> LeaseError:
    """Return the error for a lease that somebody has."""
    what = lease.name.removeprefix("step:")
    return LeaseError(
        f"{what} is claimed by {lease.owner} until {_minute(lease)}.",
        code="claimed",
        recovery="Ask for the next steps and claim another one, or wait.",
    )


def _minute(lease: Lease) -> str:
    return lease.expires_at.isoformat(timespec="seconds") if lease.expires_at else "now"
