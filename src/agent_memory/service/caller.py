"""Who calls the service: a session, and how it is told what happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

Emit = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Takes an event's name and payload to whoever listens; must not raise."""


async def nobody_listens(event: str, data: dict[str, Any]) -> None:
    """Drop the event: for use without a host."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The session a call comes from. Several sessions may share one service; events go to the one that called."""

    session_id: str = ""
    emit: Emit = nobody_listens


NOBODY = Caller()
