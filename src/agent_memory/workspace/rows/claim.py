"""Who asks: an agent, perhaps with a claim on a step or a row. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_memory.workspace.database import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a step, or to write a row, until it ends.

    Attributes:
        lease: The name of its lease.
        owner: Who has it.
        fence: Grows with every claim of the same lease: what is written with an older one is refused.
        attempt: Which attempt at the step it is; 0 for a row.
        epoch: How often the workspace had been restored: a restore ends all claims.
        expires_at: When it ends, unless it is renewed.
        step: The name of the step, `phase/agent/key`; None for a row.
        table: The table of the row; None for a step of the whole workspace.
        row_fence: Of the row's own lease, where the step took that too.
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
        """Return what an agent or a driver needs to know of it, as JSON can carry it."""
        told = {
            "step": self.step,
            "phase": self.phase,
            "agent": self.agent,
            "table": self.table,
            "key": self.key,
            "attempt": self.attempt,
            "fence": self.fence,
            "owner": self.owner,
            "expires_at": self.expires_at.isoformat(timespec="seconds"),
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who reads or writes.

    Attributes:
        agent: Its name; None for a person or a driver, who may write what the declaration allows to anyone.
        session: The session it runs in.
        claim: What it works on.
        is_low: A stranger's words may be in what it writes: the rows it writes are of low trust from then on.
        on_low: Is called for each row of low trust that it is shown, with the table and the row.
    """

    agent: str | None = None
    session: str | None = None
    claim: Claim | None = None
    is_low: bool = False
    on_low: Callable[[str, dict[str, Any]], None] | None = field(default=None, compare=False)

    @property
    def acting(self) -> str | None:
        """The agent that counts: who works under a claim and gives no name is the agent of the claim."""
        return self.agent if self.agent is not None or self.claim is None else self.claim.agent

    def as_writer(self) -> Writer:
        """Return whom the history names."""
        claim = self.claim
        step, attempt = (claim.step, claim.attempt) if claim else (None, None)
        return Writer(self.acting, self.session, step, attempt, self.is_low)
