"""Texts of a session's turns, from the events of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agent_memory.integrations.amplifier.conversation import (
    MOST_CHARS,
    STEERING,
    find_answer_text,
    get_result_text,
    get_steering,
    get_text,
    is_typed,
    split_attached,
)
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.integrations.amplifier.session import MemorySession

log = get_logger(__name__)

OWN_TOOLS: Final = "memory_"
"""How the names of the memory tools begin; their results are never heard."""
PRIORITY: Final = 500
_BEFORE_TURN: Final = -1001
"""Priority before the session forgets its last turn (-1000), which may have ended without an event."""


class TurnSink(Protocol):
    """Receiver of the texts; `take` and `end_turn` normally only queue them."""

    async def take(self, text: str, role: str, tool: str, *, is_low: bool) -> None:
        """Note a text; `is_low` if it is of low trust."""

    async def end_turn(self) -> None:
        """Note that the turn ended."""

    async def drain(self) -> None:
        """Finish what waits, within a limit."""

    def hears_tool(self, name: str) -> bool:
        """Return True if the results of a tool are heard."""

    def count_miss(self, reason: str) -> None:
        """Count texts that could not be read."""


class ListenerOptions(NamedTuple):
    """Texts that a listener hears.

    Attributes:
        prompts: The user's words.
        answers: The assistant's last words of a turn.
        answer_at_end: The assistant's last words of a turn that the end of the session cuts off.
        max_chars: Characters that are read of each text.
    """

    prompts: bool = True
    answers: bool = True
    answer_at_end: bool = False
    max_chars: int = MOST_CHARS


class TurnListener:
    """Listener to the turns of a root session.

    A turn begins with a prompt and ends with `orchestrator:complete`. loop-basic leaves that event out after a denied
    or failed turn, so the next prompt and the end of the session end a turn, too.

    Args:
        coordinator: Coordinator of the host.
        session: Memory of the session.
        sink: Receiver of the texts.
        options: Texts that are heard.
    """

    def __init__(self, coordinator: Any, session: MemorySession, sink: TurnSink, options: ListenerOptions) -> None:
        self._coordinator, self._session, self._sink, self._options = coordinator, session, sink, options
        self._is_open = False
        self._answer = ""

    def register(self, name: str) -> list[Callable[[], None]]:
        """Register the handlers; return functions that unregister them."""
        handlers: list[tuple[str, Any, int, str]] = [
            ("prompt:submit", self.on_next_turn, _BEFORE_TURN, "turn"),
            ("prompt:submit", self.on_prompt, PRIORITY, "prompt"),
            (STEERING, self.on_steering, PRIORITY, "steering"),
            ("tool:post", self.on_tool, PRIORITY, "tool"),
            ("orchestrator:complete", self.on_turn_end, PRIORITY, "complete"),
            ("session:end", self.on_session_end, PRIORITY, "end"),
        ]
        return [
            self._coordinator.hooks.register(event, handler, priority=priority, name=f"{name}-{suffix}")
            for event, handler, priority, suffix in handlers
        ]

    async def on_next_turn(self, _event: str, _data: Any) -> None:
        """End a turn that had no event for its end."""
        await self.close_turn()

    async def on_prompt(self, _event: str, data: Any) -> None:
        """Begin a turn with the user's words."""
        self._is_open, self._answer = True, ""
        if self._options.prompts and isinstance(data, dict):
            text, attached = split_attached(data, self._options.max_chars)
            await (self._hear(text, "user") if is_typed(data) else self._hear(text, "tool", get_text(data, "origin")))
            await self._hear(attached, "tool", "attached")

    async def on_steering(self, event: str, data: Any) -> None:
        """Handle a message that the user typed while the model works."""
        await self.on_prompt(event, get_steering(data))

    async def on_tool(self, _event: str, data: Any) -> None:
        """Hear the result of a tool."""
        name = data.get("tool_name") if isinstance(data, dict) else None
        if isinstance(name, str) and not name.startswith(OWN_TOOLS) and self._sink.hears_tool(name):
            result = data.get("result", data.get("tool_result"))
            await self._hear(get_result_text(result, self._options.max_chars), "tool", name)

    async def on_turn_end(self, _event: str, _data: Any) -> None:
        """Hear the assistant's last words and end the turn."""
        if self._options.answers:
            await self._hear_answer()
        await self.close_turn()

    async def on_session_end(self, _event: str, _data: Any) -> None:
        """End the turn and finish what waits."""
        if self._options.answer_at_end and self._is_open:
            await self._hear_answer()
        await self.close_turn()
        await self._sink.drain()

    async def close_turn(self) -> None:
        """End the turn if it is open."""
        if self._is_open:
            self._is_open = False
            await self._sink.end_turn()

    async def _hear_answer(self) -> None:
        """Hear the assistant's last words, once a turn.

        A loop that continues by itself ends its turn more than once.
        """
        context = self._coordinator.get("context")
        if context is None:
            return
        try:
            messages = await context.get_messages()
        except Exception as error:  # noqa: BLE001 - another module raises errors of any class; the turn has to end
            log.warning("context_unreadable", error=type(error).__name__)
            self._sink.count_miss("context_unreadable")
            return
        answer = find_answer_text(messages, self._options.max_chars)
        if answer != self._answer:
            self._answer = answer
            await self._hear(answer, "assistant")

    async def _hear(self, text: str, role: str, tool: str = "") -> None:
        if text.strip() and not self._session.consent.is_stopped:
            self._is_open = True
            is_low = role != "user" and self._session.taint.by is not None
            await self._sink.take(text, role, tool, is_low=is_low)
