"""Knowledge tools in the form that the host calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplifier_core import ToolResult

if TYPE_CHECKING:
    from agent_memory.tools import AgentTool


class AmplifierTextTool:
    """Tool whose answers are texts.

    Args:
        tool: Agent tool that does the work.
    """

    def __init__(self, tool: AgentTool[Any]) -> None:
        self.name, self.description, self.input_schema = tool.name, tool.description, tool.input_schema
        self.session = tool.session
        self._tool = tool

    async def execute(self, input: Any) -> ToolResult:  # noqa: A002 - the host's name for it
        """Run the tool on the arguments of a model."""
        answer = await self._tool.answer({} if input is None else input)
        if answer.output is None:
            return ToolResult(success=False, error=answer.error)
        warnings = [f"Warning: {warning}" for warning in answer.output.get("warnings", ())]
        return ToolResult(success=True, output="\n".join([answer.output["text"], *warnings]))
