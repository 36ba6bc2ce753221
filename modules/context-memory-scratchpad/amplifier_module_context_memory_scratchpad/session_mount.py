"""Mount of the scratchpad around the session's context manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.integrations.amplifier import MemorySession
from agent_memory.integrations.amplifier.hooks.context import BaseContext
from agent_memory.settings import ScratchpadSettings
from amplifier_module_context_memory_scratchpad.context import ScratchpadContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID = "context-memory-scratchpad"
_COMPACTIONS = ("context:compaction", "context:post_compact")

__all__ = ["MODULE_ID", "ScratchpadContext", "mount"]


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Wrap the mounted context manager; open nothing.

    A wrong configuration shows nothing and is reported.
    """
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, ScratchpadSettings, config)
    context = ScratchpadContext(coordinator.get("context") or _build_context(), session, settings, coordinator)
    await coordinator.mount("context", context)

    async def on_compaction(_event: str, _data: dict[str, Any]) -> None:
        context.note_compaction()

    leaving = session.leaving()
    if context.preface is not None:
        leaving.push_async_callback(context.preface.close)
    for event in _COMPACTIONS:
        leaving.callback(coordinator.hooks.register(event, on_compaction, name=MODULE_ID))
    return leaving.aclose


def _build_context() -> Any:
    """Return the host's simple context manager, or ours without it."""
    try:
        from amplifier_module_context_simple import SimpleContextManager  # optional
    except ImportError:
        return BaseContext()
    return SimpleContextManager()
