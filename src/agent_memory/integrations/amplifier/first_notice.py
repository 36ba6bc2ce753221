"""The line that says once that memory is on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agent_memory.files.atomic import make_private_folder, translated
from agent_memory.files.layout import root_of
from agent_memory.files.names import SESSIONS

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.integrations.amplifier.session import MemorySession
    from agent_memory.settings import ServiceSettings

_LOCAL_EMBEDDERS: Final = ("local", "none")


async def take_first_notice(session: MemorySession) -> str | None:
    """Return the line for an agent's first session, or None.

    The agent's mark is written before the line is shown, so that only one session shows it. While memory is off or
    in a mode that asks first, neither is made.

    Raises:
        AgentMemoryError: The agent's name or the settings are wrong, or the mark cannot be written.
    """
    identity = session.identity()
    if identity.agent_id is None or not identity.enabled or identity.mode != "autonomous":
        return None
    settings = session.settings
    if not await asyncio.to_thread(_claim, root_of(settings.storage_root), identity.agent_id):
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


def _claim(root: Path, agent_id: str) -> bool:
    """Return True for the first caller of all processes."""
    folder = root / SESSIONS
    make_private_folder(folder)
    path = folder / f"{agent_id.lower()}.shown"
    with translated(path, "write"):
        try:
            path.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return False
    return True
