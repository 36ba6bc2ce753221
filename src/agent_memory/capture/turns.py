"""Bookkeeping of a session's captures: buffer of a turn, and limits."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agent_memory.language.similarity import is_near_duplicate, is_restated
from agent_memory.models import is_stated, may_stand_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.models import Observation


class TurnBuffer:
    """Candidates of a turn, held until it ends.

    The model may store the same by tool.
    """

    def __init__(self) -> None:
        self._held: list[Observation] = []

    def hold(self, observations: Iterable[Observation]) -> None:
        """Keep candidates until the turn ends."""
        self._held.extend(observations)

    def __len__(self) -> int:
        return len(self._held)

    def release(
        self, stored_by_tool: Sequence[str], *, low_trust: bool = False
    ) -> tuple[list[Observation], Counter[str]]:
        """End the turn.

        Args:
            stored_by_tool: Contents that the model stored by tool in this turn.
            low_trust: True after untrusted output; what was stored then replaces no words of the user.

        Returns:
            The candidates that are not among them, and how many were dropped for which reason.
        """
        held, self._held = self._held, []
        candidates = [
            observation
            for observation in held
            if (low_trust and _is_typed(observation)) or not is_restated(observation.content, stored_by_tool)
        ]
        return candidates, +Counter(stored_by_tool=len(held) - len(candidates))


class CaptureLedger:
    """Captures of a session, without near duplicates and up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: list[Observation] = []
        self.captured = 0
        self.skipped: Counter[str] = Counter()

    def admit(self, observations: Iterable[Observation]) -> tuple[list[Observation], Counter[str]]:
        """Return the new ones within the limit, and counts of dropped ones."""
        admitted: list[Observation] = []
        dropped: Counter[str] = Counter()
        for observation in observations:
            if any(_covers(seen, observation) for seen in self._seen):
                dropped["duplicate"] += 1
            elif len(self._seen) >= self._limit:
                dropped["session_limit"] += 1
            else:
                self._seen.append(observation)
                admitted.append(observation)
        self.skipped.update(dropped)
        return admitted, dropped

    def withdraw(self, observations: Sequence[Observation]) -> None:
        """Take back what was admitted and could not be stored."""
        self._seen = [seen for seen in self._seen if not any(seen is observation for observation in observations)]

    def count(self, captured: int, skipped: dict[str, int]) -> None:
        """Add what became of a batch."""
        self.captured += captured
        self.skipped.update(skipped)


def _is_typed(observation: Observation) -> bool:
    return observation.trust != "low" and is_stated(observation)


def _covers(seen: Observation, observation: Observation) -> bool:
    """Return True if an observation repeats a seen one."""
    return (
        bool(seen.cue or not observation.cue)
        and may_stand_for(seen.trust, observation.trust)
        and is_near_duplicate(observation.content, seen.content)
    )
