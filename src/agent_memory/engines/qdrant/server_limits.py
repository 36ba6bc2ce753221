"""How long a server is waited for, and how long a lost race takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Seconds, as a program may want to change them.

    Attributes:
        timeout: Of one attempt; with the pauses a call gives up after some 16 s, and after 5 s while a server is down.
        pauses: Between two attempts of one request.
        longest_wait: After a lost race; with a wait that doubles from 5 ms on, 60 lost races take about the 5 s that a
            file's lock is waited for.
    """

    timeout: int = 5
    pauses: tuple[float, ...] = (0.2, 0.8)
    longest_wait: float = 0.15


SERVER_LIMITS: Final = ServerLimits()
