"""Mounts the hooks of a session; none in a sub-session or with a wrong configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.integrations.amplifier import MemorySession
from agent_memory.integrations.amplifier.cleanups import callable_anyhow
from agent_memory.settings import CaptureSettings
from amplifier_module_hooks_memory_capture.hooks import CaptureHooks
from amplifier_module_hooks_memory_capture.notice_display import FirstNotice
from amplifier_module_hooks_memory_capture.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID: Final = "hooks-memory-capture"
STATISTICS_CAPABILITY: Final = "agent_memory.capture_statistics"
"""A callable that returns `{"captured": n, "waiting": n, "skipped": {reason: n}}` of this session, and `in_inbox` if
anything went there."""

__all__ = ["MODULE_ID", "STATISTICS_CAPABILITY", "CaptureHooks", "Recorder", "mount"]


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Listen to a session. Opens nothing; a wrong configuration or a sub-session captures nothing."""
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, CaptureSettings, config)
    leaving = session.leaving()
    if settings is None or session.is_child:
        return callable_anyhow(leaving.aclose)
    try:
        recorder = Recorder(settings, session)
    except AgentMemoryError as error:
        session.problem = session.problem or error
        return callable_anyhow(leaving.aclose)
    leaving.push_async_callback(recorder.close)
    session.lines.drain = recorder.drain
    hooks = CaptureHooks(coordinator, session, settings, recorder), FirstNotice(coordinator, session)
    for undo in [undo for handlers in hooks for undo in handlers.register()]:
        leaving.callback(undo)
    coordinator.register_capability(STATISTICS_CAPABILITY, recorder.statistics)
    return callable_anyhow(leaving.aclose)
