"""Mount of the hooks of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.integrations.amplifier import MemorySession
from agent_memory.integrations.amplifier.hooks.capture_recorder import CaptureRecorder, ListenerOptions, TurnListener
from agent_memory.integrations.amplifier.hooks.change_lines import NoticeDisplay
from agent_memory.integrations.amplifier.session import build_cleanup
from agent_memory.settings import CaptureSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID: Final = "hooks-memory-capture"
STATISTICS_CAPABILITY: Final = "agent_memory.capture_statistics"
"""Name of a function that returns `{"captured": n, "waiting": n, "skipped": {reason: n}}` of this session, and
`in_inbox` if something waits for a yes."""

__all__ = ["MODULE_ID", "STATISTICS_CAPABILITY", "mount"]


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Listen to a session; open nothing.

    A sub-session, or a wrong configuration, captures nothing.
    """
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, CaptureSettings, config)
    leaving = session.leaving()
    if settings is None or session.is_child:
        return build_cleanup(leaving.aclose)
    try:
        recorder = CaptureRecorder(settings, session)
    except AgentMemoryError as error:
        session.problem = session.problem or error
        return build_cleanup(leaving.aclose)
    options = ListenerOptions(answers=settings.observe_turn_completions, answer_at_end=settings.observe_session_end)
    listener = TurnListener(coordinator, session, recorder, options)
    leaving.push_async_callback(recorder.close)
    leaving.push_async_callback(listener.close_turn)
    session.lines.drain = recorder.drain
    for undo in [*listener.register(MODULE_ID), *NoticeDisplay(coordinator, session).register(MODULE_ID)]:
        leaving.callback(undo)
    coordinator.register_capability(STATISTICS_CAPABILITY, recorder.get_statistics)
    return build_cleanup(leaving.aclose)
