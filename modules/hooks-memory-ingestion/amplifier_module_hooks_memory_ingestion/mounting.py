"""Mounts the hooks of a session; none in a sub-session or with a wrong configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amplifier_core import ChatRequest, Message

from agent_memory.integrations.amplifier import MemorySession
from agent_memory.integrations.amplifier.cleanups import callable_anyhow
from agent_memory.integrations.amplifier.provider import SessionModel
from agent_memory.knowledge.tool_settings import IngestionSettings
from amplifier_module_hooks_memory_ingestion.hooks import IngestionHooks
from amplifier_module_hooks_memory_ingestion.intake import Intake

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID: Final = "hooks-memory-ingestion"
STATISTICS_CAPABILITY: Final = "agent_memory.ingestion_statistics"
"""A callable that returns what this session took in, as `memory_status` has it under `ingestion`."""

__all__ = ["MODULE_ID", "STATISTICS_CAPABILITY", "IngestionHooks", "Intake", "mount"]


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Listen to a session. Opens nothing; a wrong configuration or a sub-session takes nothing in."""
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, IngestionSettings, config)
    leaving = session.leaving()
    if settings is not None:
        session.group_settings.add_settings(settings.tenant_id, settings.group)  # of sub-sessions, too
    if settings is None or session.is_child:
        return callable_anyhow(leaving.aclose)
    if isinstance((config or {}).get("model"), list | tuple):
        session.warn([f"{MODULE_ID}: `model` is `off` or `session`; a list with `items` counts as `session`."])
    model = SessionModel(coordinator, _request) if settings.model == "session" else None
    intake = Intake(session, settings, model=model)
    leaving.push_async_callback(intake.close)
    for undo in IngestionHooks(coordinator, session, settings, intake).register():
        leaving.callback(undo)
    session.counters["ingestion"] = intake.statistics
    coordinator.register_capability(STATISTICS_CAPABILITY, intake.statistics)
    return callable_anyhow(leaving.aclose)


def _request(prompt: str, tokens: int) -> ChatRequest:
    """Build a request without streaming."""
    return ChatRequest(
        messages=[Message(role="user", content=prompt)], max_output_tokens=tokens, metadata={"stream": False}
    )
