"""The handlers: each puts a message on the recorder's queue and returns. No extraction, no disk, no waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amplifier_core import HookResult

from agent_memory.integrations.amplifier.messages import last_assistant_text, text_of_content, text_of_result
from agent_memory.logs import get_logger
from amplifier_module_hooks_memory_capture.recorder import SessionMessage

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.settings import CaptureSettings
    from amplifier_module_hooks_memory_capture.recorder import Recorder

log = get_logger(__name__)

OWN_TOOLS: Final = "memory_"
"""How the names of our tools begin; what they return is never captured."""

_BEFORE_THE_TURN: Final = -1001
"""Runs before the session clears its record of the last turn (-1000), which may have ended without an event."""
_AFTERWARDS: Final = 500


class CaptureHooks:
    """The capture hooks of one session. Every handler answers `continue`, whatever it is given."""

    def __init__(self, coordinator: Any, session: MemorySession, settings: CaptureSettings, recorder: Recorder) -> None:
        self._coordinator = coordinator
        self._session = session
        self._settings = settings
        self._recorder = recorder
        self._turn_open = False

    def register(self) -> list[Callable[[], None]]:
        """Register all handlers; return what undoes it."""
        register = self._coordinator.hooks.register
        handlers: list[tuple[str, Any, int, str]] = [
            ("prompt:submit", self.on_next_turn, _BEFORE_THE_TURN, "hooks-memory-capture-turn"),
            ("prompt:submit", self.on_prompt, _AFTERWARDS, "hooks-memory-capture-prompt"),
            ("tool:post", self.on_tool, _AFTERWARDS, "hooks-memory-capture-tool"),
            ("orchestrator:complete", self.on_turn_end, _AFTERWARDS, "hooks-memory-capture-complete"),
            ("session:end", self.on_session_end, _AFTERWARDS, "hooks-memory-capture-end"),
        ]
        return [register(event, handler, priority=priority, name=name) for event, handler, priority, name in handlers]

    async def on_next_turn(self, _event: str, _data: Any) -> HookResult:
        """End a turn that loop-basic left without `orchestrator:complete`: denied, or failed."""
        await self._end_turn()
        return HookResult()

    async def on_prompt(self, _event: str, data: Any) -> HookResult:
        """Take the user's words."""
        self._turn_open = True
        prompt = data.get("prompt") if isinstance(data, dict) else None
        await self._take_text(text_of_content(prompt), "user")
        return HookResult()

    async def on_tool(self, _event: str, data: Any) -> HookResult:
        """Take a tool's result, unless the tool is ours."""
        if not self._settings.observe_tool_outputs or not isinstance(data, dict):
            return HookResult()
        name = data.get("tool_name")
        if isinstance(name, str) and not name.startswith(OWN_TOOLS):
            result = data.get("result", data.get("tool_result"))
            await self._take_text(text_of_result(result), f"tool:{name}")
        return HookResult()

    async def on_turn_end(self, _event: str, _data: Any) -> HookResult:
        """Take the assistant's last words, then end the turn."""
        if self._settings.observe_turn_completions:
            await self._take_assistant()
        await self._end_turn()
        return HookResult()

    async def on_session_end(self, _event: str, _data: Any) -> HookResult:
        """Finish what waits, within a bound."""
        if self._settings.observe_session_end and self._turn_open:
            await self._take_assistant()
        await self._end_turn()
        await self._recorder.drain()
        return HookResult()

    async def _take_assistant(self) -> None:
        context = self._coordinator.get("context")
        if context is None:
            return
        try:
            messages = await context.get_messages()
        except Exception as error:  # noqa: BLE001 - another module's; the turn has to end anyway
            log.warning("capture_context_unreadable", error=type(error).__name__)
            self._recorder.miss("context_unreadable")
            return
        await self._take_text(last_assistant_text(messages), "assistant")

    async def _take_text(self, text: str, source: str) -> None:
        if text.strip() and not self._session.consent.is_stopped:
            self._turn_open = True
            await self._recorder.take(
                SessionMessage(text, source, low_trust=self._session.taint.by is not None and source != "user")
            )

    async def _end_turn(self) -> None:
        if self._turn_open:
            self._turn_open = False
            await self._recorder.take(self._recorder.turn_end())
