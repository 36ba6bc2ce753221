"""A user's own patterns, under a time limit: they may take quadratic time. Built-in rules are not limited."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture.judging import CUSTOM
from agent_memory.capture.rules import Rule
from agent_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.settings import CapturePattern

TIME_LIMIT_SECONDS: Final = 0.05
"""Per pattern and sentence; a sane pattern needs microseconds for the 1,000 characters a sentence can have."""

_SOURCES: Final = frozenset(("user", "assistant", "teammate"))


class TimeLimitedPattern:
    """Looks like a compiled pattern; after running out of time once it never matches again.

    Uses the `regex` package, whose `search` takes a timeout; the standard library's cannot be interrupted.

    Raises:
        ConfigurationError: The package refuses the pattern.
    """

    def __init__(self, pattern: str) -> None:
        regex: Any = importlib.import_module("regex")  # 30 ms that only users with patterns of their own pay

        try:
            self._compiled: Any = regex.compile(pattern, regex.IGNORECASE | regex.VERSION0)
        except regex.error as error:
            raise ConfigurationError(f"hooks-memory-capture: a capture pattern cannot be used: {error}.") from None
        self.disabled = False

    def search(self, text: str) -> Any:
        """Return a match, or None when there is none or the time ran out."""
        if self.disabled:
            return None
        try:
            return self._compiled.search(text, timeout=TIME_LIMIT_SECONDS)
        except TimeoutError:
            self.disabled = True
            return None


def custom_rules(patterns: Sequence[CapturePattern]) -> tuple[Rule, ...]:
    """Return a rule for each configured pattern, in order; all sources but raw tool output are searched."""
    return tuple(
        Rule(
            name=f"custom/{position}",
            pattern=TimeLimitedPattern(entry.pattern),  # type: ignore[arg-type]  # search() is all a rule needs
            category=entry.category,
            confidence=entry.confidence,
            sources=_SOURCES,
            group=CUSTOM,
        )
        for position, entry in enumerate(patterns)
    )
