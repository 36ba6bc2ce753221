"""Tool of a session whose memory library cannot be loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplifier_core import ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class AbsentStatus:
    """memory_status without a memory."""

    name = "memory_status"
    description = (
        "Memory is off because of an error. Call this when the user asks for memory, and tell what it answers."
    )

    def __init__(self, problem: dict[str, str]) -> None:
        self.input_schema: dict[str, Any] = {"type": "object", "properties": {}}
        self._problem = problem

    async def execute(self, _input: Any) -> ToolResult:
        """Return the problem and the remedy."""
        return ToolResult(success=True, output={"agent_id": None, "enabled": False, **self._problem})


def build_mount(problem: dict[str, str]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a `mount` function that offers this one tool."""

    async def mount(coordinator: Any, _config: dict[str, Any] | None = None) -> None:
        await coordinator.mount("tools", AbsentStatus(problem), name=AbsentStatus.name)

    return mount
