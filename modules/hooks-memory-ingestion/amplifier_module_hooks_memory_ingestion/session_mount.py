"""Mount of the hooks of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amplifier_core import ChatRequest, Message

from agent_memory.integrations.amplifier import MemorySession
from agent_memory.integrations.amplifier.hooks.session_model import SessionModel
from agent_memory.integrations.amplifier.hooks.turn_intake import IngestionHooks, SessionIntake
from agent_memory.integrations.amplifier.session import build_cleanup
from agent_memory.knowledge.tool_settings import IngestionSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID: Final = "hooks-memory-ingestion"
STATISTICS_CAPABILITY: Final = "agent_memory.ingestion_statistics"
"""Name of a function that returns the counts of this session, which `memory_status` has under `ingestion`."""

__all__ = ["MODULE_ID", "STATISTICS_CAPABILITY", "IngestionHooks", "SessionIntake", "mount"]


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Listen to a session; open nothing.

    A sub-session, or a wrong configuration, keeps nothing.
    """
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, IngestionSettings, config)
    leaving = session.leaving()
    if settings is not None:
        session.group_settings.add_settings(settings.tenant_id, settings.group)  # of sub-sessions, too
    if settings is None or session.is_child:
        return build_cleanup(leaving.aclose)
    if isinstance((config or {}).get("model"), list | tuple):
        session.warn([f"{MODULE_ID}: `model` is `off` or `session`; a list with `items` counts as `session`."])
    model = SessionModel(coordinator, _build_request) if settings.model == "session" else None
    intake = SessionIntake(session, settings, model=model)
    leaving.push_async_callback(intake.close)
    for undo in IngestionHooks(coordinator, session, settings, intake).register(MODULE_ID):
        leaving.callback(undo)
    session.counters["ingestion"] = intake.get_statistics
    coordinator.register_capability(STATISTICS_CAPABILITY, intake.get_statistics)
    return build_cleanup(leaving.aclose)


def _build_request(prompt: str, tokens: int) -> ChatRequest:
    """Build a request without streaming."""
    return ChatRequest(
        messages=[Message(role="user", content=prompt)], max_output_tokens=tokens, metadata={"stream": False}
    )
