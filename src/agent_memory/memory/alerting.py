"""`Alerts`: what turned bad in a session, told once for each time. Somebody else says how it is looked at."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from datetime import datetime
    from enum import IntEnum

    from agent_memory.memory.caller import Caller, Report
    from agent_memory.models import Clock

_EVERY: Final = timedelta(minutes=10)
"""A look takes some milliseconds: a disk does not fill faster than that is worth."""
_TIMED: Final = 200
"""Calls of which the times are kept; of fewer than 20 nothing is said."""
_FEW: Final = 20
WARNING: Final = 1
CRITICAL: Final = 2


class Seen(Protocol):
    """What a look says of one thing, such as a `Check` of `lifecycle.health`."""

    @property
    def code(self) -> str:
        """What was looked at."""

    @property
    def level(self) -> IntEnum:
        """How it is: 0 well, 1 a warning, 2 critical; 3 where it could not be seen."""

    @property
    def sentence(self) -> str:
        """What was seen."""

    @property
    def advice(self) -> str:
        """What to do."""


class Alerts:
    """Looks when the session does something and the last look is ten minutes old: there is no timer.

    Args:
        report: Sends events.
        run: Does something behind the answer.
        clock: Source of the present.
    """

    def __init__(self, report: Report, run: Callable[[Coroutine[Any, Any, object]], None], clock: Clock) -> None:
        self._report, self._run, self._clock = report, run, clock
        self._by: Callable[[Caller], Awaitable[Sequence[Seen]]] | None = None
        self._looked: datetime | None = None
        self._bad: dict[str, Seen] = {}
        self._times: dict[str, deque[float]] = {}

    def look_by(self, look: Callable[[Caller], Awaitable[Sequence[Seen]]]) -> None:
        """Look by this from now on."""
        self._by = look

    def note(self, what: str, milliseconds: float, caller: Caller) -> None:
        """Note how long something took; look behind the answer, if it is time to."""
        self._times.setdefault(what, deque(maxlen=_TIMED)).append(milliseconds)
        if self._is_due():
            self._run(self.look(caller))

    def times(self) -> dict[str, list[float]]:
        """Return the milliseconds of the last calls, by what was done; of what was done seldom, none."""
        return {what: list(each) for what, each in self._times.items() if len(each) >= _FEW}

    async def look(self, caller: Caller) -> list[Mapping[str, str]]:
        """Return what is bad, for people; before that, if it is time to, look and send an event for what got worse."""
        if self._is_due():
            await self._look(caller)
        return [_told(each) for each in self._bad.values()]

    async def _look(self, caller: Caller) -> None:
        assert self._by is not None
        self._looked = self._clock()
        bad = {each.code: each for each in await self._by(caller) if each.level in {WARNING, CRITICAL}}
        before, self._bad = self._bad, bad
        for code, each in bad.items():
            if code not in before or each.level > before[code].level:
                await self._report("memory:alert", caller, **_told(each))

    def _is_due(self) -> bool:
        return self._by is not None and (self._looked is None or abs(self._clock() - self._looked) >= _EVERY)


def _told(seen: Seen) -> dict[str, str]:
    return {
        "check": seen.code, "level": seen.level.name.lower(), "message": seen.sentence, "advice": seen.advice,
    }  # fmt: skip
