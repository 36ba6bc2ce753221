"""Getting ready for searches behind a session's first answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_ANSWER: Final = 0.25
"""Seconds within which a session is shown its scratchpad; reading everything would take the processor from it."""


class WarmUp:
    """Begins something a moment later, unless it is given up before; in the loop that asks."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self._waiting: asyncio.TimerHandle | None = None

    def schedule(self) -> None:
        """Have it begun once the first answer is out."""
        self._waiting = asyncio.get_running_loop().call_later(_FIRST_ANSWER, self._begin)

    def give_up(self) -> None:
        """Leave it, if it has not begun."""
        if self._waiting is not None:
            self._waiting.cancel()
