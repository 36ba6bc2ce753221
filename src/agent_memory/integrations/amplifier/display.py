"""Lines on the host's display, and the notice that memory is on."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.atomic import make_private_folder, translated
from agent_memory.files.layout import root_of
from agent_memory.files.names import SESSIONS
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.integrations.amplifier.identity import SessionIdentity
    from agent_memory.settings import ServiceSettings

log = get_logger(__name__)

SOURCE: Final = "agent-memory"
"""Label of a message on the display."""
AFTER_CAPTURE: Final = 600
"""Priority of a hook that runs after capture has read the turn (500)."""
_LOCAL_EMBEDDERS: Final = ("local", "none")


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


async def take_first_notice(identity: SessionIdentity, settings: ServiceSettings) -> str | None:
    """Return the line for the first session of an agent, or None.

    The mark of the agent is written before the line is shown, so that only one session shows it. While memory is off
    or in a mode that asks first, there is neither mark nor line.

    Raises:
        AgentMemoryError: The storage root is wrong, or the mark cannot be written.
    """
    if identity.agent_id is None or not identity.enabled or identity.mode != "autonomous":
        return None
    if not await asyncio.to_thread(_write_mark, root_of(settings.storage_root), identity.agent_id):
        return None
    return compose_notice(identity.agent_id, settings)


def compose_notice(agent_id: str, settings: ServiceSettings) -> str:
    """Return the line for the first session of an agent."""
    is_local = settings.embedder in _LOCAL_EMBEDDERS and settings.backend != "server"
    promise = ", sends nothing anywhere" if is_local else ""
    return (
        f'Memory is on for "{agent_id}". It keeps what you say with words such as "remember" or "always", shows each '
        f'with an undo{promise}. Off: say "memory off" or run agent-memory consent off.'
    )


def _write_mark(root: Path, agent_id: str) -> bool:
    """Write the mark of an agent; return False if it exists."""
    folder = root / SESSIONS
    make_private_folder(folder)
    path = folder / f"{agent_id.lower()}.shown"
    with translated(path, "write"):
        try:
            path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return False
    return True
