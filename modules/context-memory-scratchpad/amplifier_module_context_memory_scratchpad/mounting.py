"""Mounts the scratchpad around the session's context manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.integrations.amplifier import MemorySession
from agent_memory.settings import ScratchpadSettings
from amplifier_module_context_memory_scratchpad.base import make_base
from amplifier_module_context_memory_scratchpad.context import ScratchpadContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID = "context-memory-scratchpad"
_COMPACTIONS = ("context:compaction", "context:post_compact")

__all__ = ["MODULE_ID", "ScratchpadContext", "mount"]


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Wrap the mounted context manager. Opens nothing; a wrong configuration shows nothing and is reported."""
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, ScratchpadSettings, config)
    context = ScratchpadContext(coordinator.get("context") or make_base(), session, settings, coordinator)
    await coordinator.mount("context", context)

    async def on_compaction(_event: str, _data: dict[str, Any]) -> None:
        context.note_compaction()

    leaving = session.leaving()
    leaving.push_async_callback(context.briefed.close)
    for event in _COMPACTIONS:
        leaving.callback(coordinator.hooks.register(event, on_compaction, name=MODULE_ID))
    return leaving.aclose
