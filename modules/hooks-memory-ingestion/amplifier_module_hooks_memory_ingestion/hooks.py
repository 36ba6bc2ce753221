"""The handlers: each notes what was said and returns. No disk, no waiting."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from amplifier_core import HookResult

from agent_memory.integrations.amplifier.messages import last_assistant_text, text_of_content, text_of_result
from agent_memory.knowledge.intake.drafting import ReceivedTurn
from agent_memory.logs import get_logger
from agent_memory.models import MAX_TEXT_CHARS, utc_now
from agent_memory.settings import KNOWLEDGE_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.knowledge.tool_settings import IngestionSettings
    from amplifier_module_hooks_memory_ingestion.intake import Intake

log = get_logger(__name__)

_OWN_TOOLS: Final = "memory_"
"""How the names of our tools begin, those of `KNOWLEDGE_TOOLS` apart; what they return was taken in before."""
_FORGETS: Final = "memory_forget"
_MOST: Final = MAX_TEXT_CHARS + 1
"""Characters of a text that are read: one that is too long is to be refused, and not to be kept by half."""

_BEFORE_THE_TURN: Final = -1001
"""Runs before the session clears its record of the last turn (-1000), which may have ended without an event."""
_AFTERWARDS: Final = 500


class IngestionHooks:
    """The hooks of one session. Every handler answers `continue`, whatever it is given."""

    def __init__(self, coordinator: Any, session: MemorySession, settings: IngestionSettings, intake: Intake) -> None:
        self._coordinator = coordinator
        self._session = session
        self._settings = settings
        self._intake = intake
        self._is_open = False
        self._answer = ""

    def register(self) -> list[Callable[[], None]]:
        """Register all handlers; return what undoes it."""
        register = self._coordinator.hooks.register
        handlers: list[tuple[str, Any, int, str]] = [
            ("prompt:submit", self.on_next_turn, _BEFORE_THE_TURN, "hooks-memory-ingestion-turn"),
            ("prompt:submit", self.on_prompt, _AFTERWARDS, "hooks-memory-ingestion-prompt"),
            ("tool:post", self.on_tool, _AFTERWARDS, "hooks-memory-ingestion-tool"),
            ("orchestrator:complete", self.on_turn_end, _AFTERWARDS, "hooks-memory-ingestion-complete"),
            ("memory:forgotten", self.on_forgotten, _AFTERWARDS, "hooks-memory-ingestion-forgotten"),
            ("session:end", self.on_session_end, _AFTERWARDS, "hooks-memory-ingestion-end"),
        ]
        return [register(event, handler, priority=priority, name=name) for event, handler, priority, name in handlers]

    async def on_next_turn(self, _event: str, _data: Any) -> HookResult:
        """End a turn that loop-basic left without `orchestrator:complete`: denied, or failed."""
        self._end_turn()
        return HookResult()

    async def on_prompt(self, _event: str, data: Any) -> HookResult:
        """Take the user's words."""
        self._is_open, self._answer = True, ""
        self._intake.note_answer()
        if self._settings.observe_prompts and isinstance(data, dict):
            self._take(text_of_content(data.get("prompt"), _MOST), "user")
        return HookResult()

    async def on_tool(self, _event: str, data: Any) -> HookResult:
        """Take a tool's result, if it is one of those that were chosen."""
        name = data.get("tool_name") if isinstance(data, dict) else None
        if name == _FORGETS:  # also where it shows first what would be forgotten: the order has been said
            self._intake.note_forgetting()
        if isinstance(name, str) and self._is_chosen(name):
            self._take(text_of_result(data.get("result", data.get("tool_result")), _MOST), "tool", name)
        return HookResult()

    async def on_turn_end(self, _event: str, _data: Any) -> HookResult:
        """Take the assistant's last words, then end the turn."""
        await self._take_answer()
        self._end_turn()
        return HookResult()

    async def on_forgotten(self, _event: str, _data: Any) -> HookResult:
        """Note that the turn is about what is to be forgotten: the order repeats it."""
        if self._is_open:
            self._intake.note_forgetting()
        return HookResult()

    async def on_session_end(self, _event: str, _data: Any) -> HookResult:
        """Have what waits written, within a bound."""
        self._end_turn()  # without an answer: the last one that the context has may be of the turn before
        await self._intake.drain()
        return HookResult()

    def _is_chosen(self, tool: str) -> bool:
        if tool.startswith(_OWN_TOOLS) or tool in KNOWLEDGE_TOOLS:
            return False
        return any(fnmatchcase(tool, pattern) for pattern in self._settings.observe_tools)

    async def _take_answer(self) -> None:
        context = self._coordinator.get("context")
        if context is None or not self._settings.observe_answers:
            return
        try:
            messages = await context.get_messages()
        except Exception as error:  # noqa: BLE001 - another module's; the turn has to end anyway
            log.warning("ingestion_context_unreadable", error=type(error).__name__)
            self._intake.losses.count("context_unreadable")
            return
        answer = last_assistant_text(messages, _MOST)
        if answer != self._answer:  # a loop that goes on by itself ends its turn more than once
            self._answer = answer
            self._take(answer, "assistant")

    def _take(self, text: str, role: str, speaker: str = "") -> None:
        if text.strip() and not self._session.consent.is_stopped:
            self._is_open = True
            is_low = role != "user" and self._session.taint.by is not None
            self._intake.take(ReceivedTurn(text, role, speaker, utc_now(), trust="low" if is_low else "high"))

    def _end_turn(self) -> None:
        if self._is_open:
            self._is_open = False
            self._intake.end_turn()
