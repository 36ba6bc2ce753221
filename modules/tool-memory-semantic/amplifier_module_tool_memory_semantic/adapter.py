"""Memory tools in the form that the host calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplifier_core import ToolResult

if TYPE_CHECKING:
    from agent_memory.tools import AgentTool


class AmplifierTool:
    """Tool whose answers are results of the host.

    Args:
        tool: Agent tool that does the work.
    """

    def __init__(self, tool: AgentTool[Any]) -> None:
        self.name, self.description, self.input_schema = tool.name, tool.description, tool.input_schema
        self.session = tool.session
        self._tool = tool

    async def execute(self, input: Any) -> ToolResult:  # noqa: A002 - the host's name for it
        """Run the tool on the arguments of a model."""
        answer = await self._tool.answer(input)
        return ToolResult(success=answer.error is None, output=answer.output, error=answer.error)
