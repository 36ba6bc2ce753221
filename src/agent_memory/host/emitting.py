"""`Emitter`: takes events of ours to a session's hooks; must not fail, whatever the host does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.logs import get_logger
from agent_memory.models import to_text, utc_now
from agent_memory.service.events import payload

if TYPE_CHECKING:
    from agent_memory.errors import AgentMemoryError

log = get_logger(__name__)


class Emitter:
    """Emits to one session.

    Args:
        coordinator: The host's.
    """

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        """Emit an event to this session's hooks. A host that refuses it costs a log line, never the caller's work."""
        try:
            await self._coordinator.hooks.emit(event, data)
        except Exception as error:  # noqa: BLE001 - whatever a host raises, memory must not fail because of it
            log.warning("event_not_emitted", name=event, error=type(error).__name__)

    async def degraded(self, component: str, error: AgentMemoryError) -> None:
        """Tell, by event and log, that something does not work."""
        log.warning("memory_degraded", component=component, code=error.code, error=error.message)
        fields = {"component": component, "code": error.code, "message": error.message}
        common = {"session_id": self._coordinator.session_id, "timestamp": to_text(utc_now())}
        await self.emit("memory:degraded", payload("memory:degraded", {**fields, **common}))
