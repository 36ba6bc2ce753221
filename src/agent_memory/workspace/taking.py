"""The steps of a workspace, as workers and drivers take them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from agent_memory.workspace.core import NOBODY, Core
from agent_memory.workspace.rows import Caller, Claim, cleaned_saying

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from agent_memory.workspace.keeping import Snapshots
    from agent_memory.workspace.steps import FailureType, Step


class Steps:
    """Tells what can run, and lets workers claim, finish, give back and fail steps; each call is one transaction."""

    def __init__(self, core: Core, snapshots: Snapshots) -> None:
        self._core = core
        self._snapshots = snapshots
        self._claims: dict[tuple[str, int], Claim] = {}  # taken here, and not given back

    def all(self) -> list[Step]:
        """Return all steps, phase by phase."""
        return self._core.steps()

    def ready(self, agent: str | None = None) -> list[Step]:
        """Return what can run now, for one agent or all."""
        return self._core.ready(agent)

    def claim(
        self, owner: str, *, step: str | None = None, agent: str | None = None, seconds: float | None = None
    ) -> Claim | None:
        """Claim a step, or the first that can run; None where none can. Errors as of `Working.claim`."""
        owner = self._core.name("owner", owner)
        self._snapshots.make_due()
        with self._core.changing(Caller(agent)) as transaction:
            claim = self._core.working.claim(transaction, owner, step=step, agent=agent, seconds=seconds)
        if claim is not None:
            self._claims[claim.lease, claim.fence] = claim
            self._core.tell(
                "workspace:claimed", Caller(claim.agent), step=claim.step, attempt=claim.attempt, owner=owner
            )
        return claim

    def claim_row(self, owner: str, table: str, key: Any, *, seconds: float = 600) -> Claim:
        """Claim a row, so that nobody else writes it; errors as of `Working.claim_row`."""
        owner = self._core.name("owner", owner)
        with self._core.changing(NOBODY) as transaction:
            claim = self._core.working.claim_row(transaction, owner, table, key, seconds)
        self._claims[claim.lease, claim.fence] = claim
        return claim

    def renew(self, claim: Claim, *, seconds: float = 600) -> Claim:
        """Let a claim last `seconds` from now.

        Raises:
            LeaseError: It has ended.
        """
        with self._core.changing(NOBODY) as transaction:
            renewed = self._core.leases.renew(transaction, claim, seconds)
        self._claims[claim.lease, claim.fence] = renewed
        return renewed

    def finish(self, claim: Claim, caller: Caller | None = None) -> str | None:
        """Call a step done; return the name of the phase that is done by it. Errors as of `Working.finish`.

        A snapshot of the phase, or a copy of the database, that cannot be written is told as an event, not raised, and
        by `Snapshots.owed`.
        """
        by = replace(caller or Caller(claim.agent), claim=claim)
        with self._core.changing(by) as transaction:
            phase = self._core.working.finish(transaction, claim)
            if phase is not None and self._core.declaration.phase(phase).snapshot is not None:
                self._core.set_meta(transaction.connection, "due", f"{phase} {transaction.at}")
        self._claims.pop((claim.lease, claim.fence), None)
        self._core.tell("workspace:finished", by, step=claim.step, attempt=claim.attempt, phase_done=phase)
        if phase is not None:
            try:
                self._snapshots.make_due()
            except (
                StorageError
            ) as error:  # the step is done; whoever claims the next one makes the snapshot, or is told
                self._core.tell("workspace:snapshot_failed", by, phase=phase, code=error.code)
            self._snapshots.make_up()
        return phase

    def release(self, claim: Claim) -> None:
        """Give a claim back; what the attempt wrote is taken back."""
        with self._core.changing(Caller(claim.agent)) as transaction:
            self._core.working.release(transaction, claim)
        self._claims.pop((claim.lease, claim.fence), None)
        self._core.tell("workspace:released", Caller(claim.agent), step=claim.step, attempt=claim.attempt)

    def fail(self, claim: Claim, kind: FailureType, message: str, caller: Caller | None = None) -> int:
        """Say that an attempt failed; return how often the step may still be tried."""
        cleaned = cleaned_saying(self._core.redactor, message)
        by = replace(caller or Caller(claim.agent), claim=None)  # what it wrote is taken back, and what is said stays
        with self._core.changing(by) as transaction:
            tries_left = self._core.working.fail(transaction, claim, kind, cleaned)
        self._claims.pop((claim.lease, claim.fence), None)
        self._core.tell(
            "workspace:failed", Caller(claim.agent), step=claim.step, attempt=claim.attempt, kind=kind, left=tries_left
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
        """Write down how a step was judged; with failures it is to be done again. See `Working.validate`."""
        cleaned = [cleaned_saying(self._core.redactor, each) for each in failures]
        validator = self._core.name("validator", validator)
        with self._core.changing(Caller(validator)) as transaction:
            stale = self._core.working.validate(transaction, step, validator, cleaned)
        self._core.tell("workspace:validated", Caller(validator), step=step, passed=not failures)
        return stale
