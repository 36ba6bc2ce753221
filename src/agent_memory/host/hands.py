"""When the model itself may have written scratchpad.yaml: a file tool's words must not pass for a person's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME: Final = "agent-memory-hands"
_EARLY: Final = -1000
"""Hook priority: before whatever may look at the scratchpad."""
_MARGIN: Final = 0.05
"""Seconds: a file system's clock may be some milliseconds behind."""
_REMEMBERED: Final = 50
_NAMES: Final = ("scratchpad", ".amplifier/memory")
_MOST_LOOKED_AT: Final = 1000


class Hands:
    """The moments at which tools of the model worked on the scratchpad's file, in one root session.

    Args:
        now: Seconds since 1970, as files are dated.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._turn_since: float | None = None
        self._call_since: float | None = None
        self._calls: list[tuple[float, float]] = []

    def listen(self, register: Callable[..., Callable[[], None]], *, is_child: bool) -> list[Callable[[], None]]:
        """Follow a session's turns and tools by its hooks; of a sub-session only its tools. Returns how to end that."""

        async def begin_turn(_event: str, _data: dict[str, Any]) -> None:
            self.begin_turn()

        async def end_turn(_event: str, _data: dict[str, Any]) -> None:
            self.end_turn()

        async def begin_call(_event: str, data: dict[str, Any]) -> None:
            self.begin_call(data.get("tool_input"))

        turns = {} if is_child else {"prompt:submit": begin_turn, "orchestrator:complete": end_turn}
        heard = {"tool:pre": begin_call, **turns}
        return [register(event, handler, priority=_EARLY, name=_NAME) for event, handler in heard.items()]

    def begin_turn(self) -> None:
        """Note that the model is at work from now on."""
        self._turn_since, self._call_since = self._now(), None

    def end_turn(self) -> None:
        """Note that it is the user's turn."""
        self._turn_since = self._call_since = None

    def begin_call(self, arguments: Any) -> None:
        """Note that a tool begins to work."""
        if _mentions(arguments):
            self._call_since = self._now()

    def end_call(self, arguments: Any) -> bool:
        """Note that a tool has ended; tell whether it may have written the file."""
        if not _mentions(arguments):
            return False
        since, self._call_since = self._call_since or self._turn_since or self._now(), None
        self._calls = [*self._calls, (since, self._now())][-_REMEMBERED:]
        return True

    def wrote_at(self, moment: float, *, is_tainted: bool) -> bool:
        """Tell whether what was saved at a moment may be the model's.

        A tool was at work that named the file; or, with a stranger's text in the conversation, any time within a turn.
        """
        under_way = [self._call_since, self._turn_since if is_tainted else None]
        windows = [*self._calls, *((since, self._now()) for since in under_way if since is not None)]
        return any(since - _MARGIN <= moment <= until + _MARGIN for since, until in windows)


def _mentions(arguments: Any) -> bool:
    """Tell whether what a tool was given names the file or where it lies."""
    pending, looked_at = [arguments], 0
    while pending and looked_at < _MOST_LOOKED_AT:
        value = pending.pop()
        looked_at += 1
        if isinstance(value, str):
            if any(name in value for name in _NAMES):
                return True
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)
    return False
