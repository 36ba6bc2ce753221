"""`ToolSession`: who calls the tools, and the one claim it works under."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, LeaseError, ValidationError
from agent_memory.models.clock import Clock, utc_now
from agent_memory.workspace.rows import Caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.workspace.rows import Claim
    from agent_memory.workspace.steps import Step
    from agent_memory.workspace.workspace import Workspace

UNNAMED: Final = "agent"
"""Who writes where neither a setting nor a claim says it: what is declared for named agents is not for this one."""


class ToolSession:
    """One worker at one workspace. It holds one claim at a time, and every call is made under it.

    A claim that has ended is kept until another is taken: without it, a worker that was thought dead and comes back
    would write as if it had never claimed anything.

    Args:
        workspace: What it works on; closed by whoever opened it.
        owner: Names the worker in claims, such as the id of the host's session.
        agent: The agent it is; None where it is whichever agent the step that it claims is for.
        clock: Tells the time of columns that are written with `now`.
        knows_strangers: Tells whether a stranger's words are in what the worker knows, and so may be in what it writes.

    Attributes:
        low_seen: How often it was shown what may be a stranger's words: rows and steps of low trust.
    """

    def __init__(
        self,
        workspace: Workspace,
        owner: str,
        agent: str | None = None,
        clock: Clock = utc_now,
        knows_strangers: Callable[[], bool] = lambda: False,
    ) -> None:
        self.workspace = workspace
        self.owner = owner
        self.agent = agent
        self.clock = clock
        self.claim: Claim | None = None
        self.low_seen = 0
        self._knows_strangers = knows_strangers

    def caller(self) -> Caller:
        """Return who reads and writes now."""
        of_claim = self.claim.agent if self.claim is not None else None
        is_low = self.low_seen > 0 or self._knows_strangers()
        return Caller(self.agent or of_claim or UNNAMED, self.owner, self.claim, is_low, self._on_low)

    def note_low(self, *steps: Step) -> None:
        """Note that steps were shown: what they are called, or was said of a failure, may be a stranger's words."""
        self.low_seen += sum(each.is_low for each in steps)

    def held(self, step: str | None = None) -> Claim:
        """Return the claim.

        Args:
            step: Of which step it must be; of any where it is None.

        Raises:
            ValidationError: There is none, or it is of another step.
        """
        if self.claim is None:
            raise ValidationError(
                "You have claimed nothing.", code="no_claim", recovery="Claim a step with claim_step first."
            )
        if step not in (None, self.claim.step):
            raise ValidationError(
                f"You work on {self.claim.step or self.claim.key}, not on {step}. Nothing was changed.",
                code="no_claim",
                recovery="Name the step that you claimed.",
            )
        return self.claim

    def make_room(self) -> None:
        """Make sure that another claim can be taken: give back a claim on a row, forget one that has ended.

        Raises:
            LeaseError: A step is being worked on.
        """
        claim = self.claim
        if claim is None:
            return
        if claim.step is None:
            self.leave()
        elif self._is_held(claim):
            raise LeaseError(
                f"You work on {claim.step} until {claim.expires_at.isoformat(timespec='seconds')}.",
                code="claimed",
                recovery="Finish it with finish_step, or give it back with release_step or fail_step.",
            )
        self.claim = None

    def leave(self) -> None:
        """Give the claim back, if there is one; what an unfinished step wrote is taken back."""
        claim, self.claim = self.claim, None
        if claim is not None:
            with contextlib.suppress(AgentMemoryError):  # it has ended by itself, or will
                self.workspace.steps.release(claim)

    def _on_low(self, table: str, row: dict[str, Any]) -> None:
        del table, row
        self.low_seen += 1

    def _is_held(self, claim: Claim) -> bool:
        return any(
            (each.name, each.status, each.owner, each.attempts) == (claim.step, "claimed", claim.owner, claim.attempt)
            for each in self.workspace.steps.all()
        )
