"""The numbers that decide when the engine is asked and when its index is built anew."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """From which numbers on the engine is asked and its index built anew.

    Attributes:
        asked_from: Memories from which the engine is asked once they were moved to it, all vectors being in memory: to
            compare all of them takes .2 ms against .7 at 5,000, 1.6 against 1.9 at 20,000, 7.6 against 1.9 at 100,000.
        rebuilt_from: Changes since the build from which a new index is built, unless too few memories for the engine to
            be asked: comparing 1,000 takes 1.3 ms.
        most_changes: Changes up to which asking the engine pays: comparing 2,000 takes 4 ms, all of 40,000 as long.
        rest_seconds: From one build in the background to the next.
        look_seconds: Between two looks at the engine while nothing is written.
    """

    asked_from: int = 40_000
    rebuilt_from: int = 1000
    most_changes: int = 2000
    rest_seconds: float = 300.0
    look_seconds: float = 1.0
