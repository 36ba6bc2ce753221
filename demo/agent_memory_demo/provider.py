"""provider-demo: a model that follows a script. What it is sent is real; what it answers was written beforehand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ToolCall
from amplifier_core.models import ProviderInfo

if TYPE_CHECKING:
    from collections.abc import Callable

__amplifier_module_type__ = "provider"


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool. `arguments` may be made from the results of the turn so far."""

    tool: str
    arguments: dict[str, Any] | Callable[[list[dict[str, Any]]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Say:
    """The model answers in words."""

    text: str


@dataclass(slots=True)
class Script:
    """The model's lines for the turn under way, and what it was last sent."""

    steps: list[Call | Say] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)


class DemoProvider:
    """Plays a script."""

    name = "demo"

    def __init__(self, script: Script) -> None:
        self.script = script

    def get_info(self) -> ProviderInfo:
        """Describe a model with a large window."""
        return ProviderInfo(
            id="demo", display_name="Demo", defaults={"context_window": 200_000, "max_output_tokens": 4_000}
        )

    async def list_models(self) -> list[Any]:
        """Return nothing: there is no model."""
        return []

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        """Return the calls of a response."""
        return list(response.tool_calls or [])

    async def complete(self, request: ChatRequest, **_: Any) -> ChatResponse:
        """Answer with the next line of the script."""
        self.script.sent = list(request.messages)
        self.script.results = [_parsed(m.content) for m in _this_turn(request.messages) if m.role == "tool"]
        step = self.script.steps.pop(0)
        if isinstance(step, Say):
            return ChatResponse(content=[TextBlock(text=step.text)])
        arguments = step.arguments(self.script.results) if callable(step.arguments) else step.arguments
        call = ToolCall(id=f"call-{len(request.messages)}", name=step.tool, arguments=arguments)
        return ChatResponse(content=[TextBlock(text="")], tool_calls=[call])


def _this_turn(messages: list[Any]) -> list[Any]:
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=0)
    return messages[last:]


def _parsed(content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else "".join(getattr(block, "text", "") for block in content)
    try:
        value = json.loads(text)
    except ValueError:
        return {"text": text}
    return value if isinstance(value, dict) else {"text": text}


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> None:
    """Mount the scripted model; the script is reached through the capability `demo.script`."""
    script = Script()
    coordinator.register_capability("demo.script", script)
    await coordinator.mount("providers", DemoProvider(script), name="demo")
