"""First notice of a session: memory is on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.files.atomic import make_private_folder, translated
from agent_memory.files.layout import resolve_root
from agent_memory.files.names import SESSIONS
from agent_memory.integrations.amplifier.hooks.change_lines import AFTER_CAPTURE, has_display, show_line
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.integrations.amplifier.identity import SessionIdentity
    from agent_memory.integrations.amplifier.session import MemorySession
    from agent_memory.settings import ServiceSettings

log = get_logger(__name__)

_REQUEST: Final = "[agent-memory: notice]\nAfter your answer, show the user this line once, word for word:\n{line}"
_LOCAL_EMBEDDERS: Final = ("local", "languages", "none")


async def take_first_notice(identity: SessionIdentity, settings: ServiceSettings) -> str | None:
    """Return the line for the first session of an agent, or None.

    The mark of the agent is written before the line is shown, so that only one session shows it. While memory is off
    or in a mode that asks first, there is neither mark nor line.

    Raises:
        AgentMemoryError: The storage root is wrong, or the mark cannot be written.
    """
    if identity.agent_id is None or not identity.enabled or identity.mode != "autonomous":
        return None
    if not await asyncio.to_thread(_write_mark, resolve_root(settings.storage_root), identity.agent_id):
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


class NoticeDisplay:
    """Handlers that show the first notice.

    If the host displays messages, it is shown at the end of the first turn; else the model shows it in the next turn. A
    `user_message` on a hook's answer, or an injection at the end of a turn, would be lost in both orchestrators.

    Args:
        coordinator: Coordinator of a root session.
        session: Memory of the session.
    """

    def __init__(self, coordinator: Any, session: MemorySession) -> None:
        self._coordinator, self._session = coordinator, session
        self._has_turn = False
        self._line: str | None = None
        self._settled: Any = None

    def register(self, name: str) -> list[Callable[[], None]]:
        """Register the handlers; return functions that unregister them."""
        register = self._coordinator.hooks.register
        return [
            register("orchestrator:complete", self.on_turn_end, priority=AFTER_CAPTURE, name=f"{name}-notice"),
            register("provider:request", self.on_request, priority=AFTER_CAPTURE, name=f"{name}-notice-request"),
        ]

    async def on_turn_end(self, _event: str, _data: Any) -> None:
        """Display the line if the host can."""
        self._line, self._has_turn = None, True
        line = await self._take() if has_display(self._coordinator) else None
        if line is not None:
            await show_line(self._coordinator, line)

    async def on_request(self, _event: str, _data: Any) -> dict[str, Any] | None:
        """Ask the model to show the line, throughout one turn."""
        if self._has_turn and self._line is None:
            self._line = await self._take()
        if self._line is None:
            return None
        return {
            "action": "inject_context",
            "context_injection": _REQUEST.format(line=self._line),
            "context_injection_role": "user",
            "ephemeral": True,
            "suppress_output": True,
        }

    async def _take(self) -> str | None:
        """Return the line of the active agent if it is due."""
        try:
            identity = self._session.identity()
            state = identity.agent_id, identity.enabled, identity.mode
            if state == self._settled:
                return None
            line = await take_first_notice(identity, self._session.settings)
        except AgentMemoryError as error:
            log.warning_once("notice_not_shown", code=error.code, error=error.message)
            return None
        self._settled = state
        return line
