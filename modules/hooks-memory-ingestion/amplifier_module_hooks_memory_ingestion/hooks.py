"""Listener that gives the turns of a session to its intake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.integrations.amplifier.turn_listener import PRIORITY, ListenerOptions, TurnListener
from agent_memory.models import MAX_TEXT_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.knowledge.tool_settings import IngestionSettings
    from amplifier_module_hooks_memory_ingestion.intake import SessionIntake

_FORGET_TOOL: Final = "memory_forget"
_MAX_CHARS: Final = MAX_TEXT_CHARS + 1
"""Characters that are read: a text that is too long is refused instead of cut."""


class IngestionHooks(TurnListener):
    """Hooks of one session.

    Args:
        coordinator: Coordinator of the host.
        session: Memory of the session.
        settings: Which texts are heard.
        intake: Receiver of the turns.
    """

    def __init__(
        self, coordinator: Any, session: MemorySession, settings: IngestionSettings, intake: SessionIntake
    ) -> None:
        options = ListenerOptions(settings.observe_prompts, settings.observe_answers, max_chars=_MAX_CHARS)
        super().__init__(coordinator, session, intake, options)
        self._intake = intake

    def register(self, name: str) -> list[Callable[[], None]]:
        """Register the handlers; return functions that unregister them."""
        register = self._coordinator.hooks.register
        return [
            *super().register(name),
            register("memory:forgotten", self.on_forgotten, priority=PRIORITY, name=f"{name}-forgotten"),
        ]

    async def on_prompt(self, event: str, data: Any) -> None:
        """Begin a turn with the user's words, which may answer a proposal."""
        self._intake.note_answer()
        await super().on_prompt(event, data)

    async def on_tool(self, event: str, data: Any) -> None:
        """Hear the result of a tool.

        A forgetting concerns the whole turn, also before it is done.
        """
        if isinstance(data, dict) and data.get("tool_name") == _FORGET_TOOL:
            self._intake.note_forgetting()
        await super().on_tool(event, data)

    async def on_forgotten(self, _event: str, _data: Any) -> None:
        """Note that the turn repeats what is forgotten."""
        if self._is_open:
            self._intake.note_forgetting()
