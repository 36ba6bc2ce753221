"""The bookkeeping of captures in a session: what waits for the end of its turn, what was seen, what the cap allows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval.tokens import query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.models import Observation

_NEAR: Final = 0.8
"""Share of the shorter text's words that the longer one also has, from which both count as the same."""
_TOLD: Final = 0.5
"""The same for what the model stored in this turn: it words a fact anew, so less has to agree."""
_MIN_COMMON_WORDS: Final = 3
_ASKING: Final = frozenset(
    query_terms("please remember keep mind note always user prefer prefers want wants use uses used")
)
"""Words of asking, and of the third person that models put facts into; they tell nothing about the fact."""


def word_set(text: str) -> frozenset[str]:
    """Return the telling words of `text`, stemmed; pairs of characters where a script has no spaces."""
    return frozenset(query_terms(text)) - _ASKING


def is_near_duplicate(one: str, other: str) -> bool:
    """Tell whether the words of the shorter text are (nearly) contained in the longer."""
    first, second = sorted((word_set(one), word_set(other)), key=len)
    if not first:
        return one.strip() == other.strip()
    common = len(first & second)
    return common >= min(_MIN_COMMON_WORDS, len(first)) and common >= _NEAR * len(first)


def is_told(content: str, stored: Sequence[str]) -> bool:
    """Tell whether `content` says what the model stored in this turn, in one memory or spread over several."""
    words = word_set(content)
    told = [other for other in map(word_set, stored) if other]
    if not words:
        return False
    alone = any(len(words & other) >= _TOLD * min(len(words), len(other)) for other in told)
    return alone or len(words & frozenset().union(*told)) >= _TOLD * len(words)


class TurnBuffer:
    """Candidates of the current turn; held back until it ends, since the model may store the same by tool."""

    def __init__(self) -> None:
        self._held: list[Observation] = []

    def hold(self, observations: Iterable[Observation]) -> None:
        """Keep candidates until the turn ends."""
        self._held.extend(observations)

    def __len__(self) -> int:
        return len(self._held)

    def release(self, stored_by_tool: Sequence[str]) -> tuple[list[Observation], Counter[str]]:
        """End the turn.

        Args:
            stored_by_tool: Contents that the model stored by tool in this turn.

        Returns:
            The candidates that are not among them, and how many were dropped for which reason.
        """
        held, self._held = self._held, []
        skipped: Counter[str] = Counter()
        kept = []
        for observation in held:
            if is_told(observation.content, stored_by_tool):
                skipped["stored_by_tool"] += 1
            else:
                kept.append(observation)
        return kept, skipped


class CaptureLedger:
    """What a session has captured: no near-duplicate twice, no more than `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: list[str] = []
        self.captured = 0
        self.skipped: Counter[str] = Counter()

    def admit(self, observations: Iterable[Observation]) -> tuple[list[Observation], Counter[str]]:
        """Return those that are new and fit the session's cap, and how many were dropped for which reason."""
        admitted: list[Observation] = []
        dropped: Counter[str] = Counter()
        for observation in observations:
            if any(is_near_duplicate(observation.content, seen) for seen in self._seen):
                dropped["duplicate"] += 1
            elif len(self._seen) >= self._limit:
                dropped["session_limit"] += 1
            else:
                self._seen.append(observation.content)
                admitted.append(observation)
        self.skipped.update(dropped)
        return admitted, dropped

    def count(self, captured: int, skipped: dict[str, int]) -> None:
        """Add what became of a batch."""
        self.captured += captured
        self.skipped.update(skipped)
