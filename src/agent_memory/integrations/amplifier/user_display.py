"""The host's display: where a line reaches the user without the model."""

from __future__ import annotations

import inspect
from typing import Any, Final

from agent_memory.logs import get_logger

log = get_logger(__name__)

SOURCE: Final = "agent-memory"
"""Label of a message that the host displays."""
AFTER_CAPTURE: Final = 600
"""Priority of a hook that runs after capture has read the turn (500)."""


def has_display(coordinator: Any) -> bool:
    """Return True if the host displays messages."""
    return callable(getattr(getattr(coordinator, "display_system", None), "show_message", None))


async def show_line(coordinator: Any, line: str) -> bool:
    """Show a line on the host's display; return False on failure.

    An error of the display is logged.
    """
    try:
        shown = coordinator.display_system.show_message(line, "info", SOURCE)
        if inspect.isawaitable(shown):
            await shown
    except Exception as error:  # noqa: BLE001 - the host's code, whose errors are of any class
        log.warning("line_not_displayed", error=type(error).__name__)
        return False
    return True
