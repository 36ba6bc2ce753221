"""loop-demo: the smallest agent loop that a session of amplifier-core needs. Emits what hooks rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplifier_core.message_models import ChatRequest, Message, ToolSpec

if TYPE_CHECKING:
    from amplifier_core import ToolResult

__amplifier_module_type__ = "orchestrator"


class DemoLoop:
    """Asks the model, runs the tools it calls, asks again, until it answers in words."""

    async def execute(
        self,
        prompt: str,
        context: Any,
        providers: dict[str, Any],
        tools: dict[str, Any],
        hooks: Any,
        coordinator: Any = None,
    ) -> str:
        """Run one turn and return the model's words."""
        await hooks.emit("prompt:submit", {"prompt": prompt})
        await context.add_message({"role": "user", "content": prompt})
        provider = next(iter(providers.values()))
        specs = [ToolSpec(name=t.name, description=t.description, parameters=t.input_schema) for t in tools.values()]
        while True:
            await hooks.emit("provider:request", {"provider": provider.name})
            messages = [Message(**message) for message in await context.get_messages_for_request(provider=provider)]
            response = await provider.complete(ChatRequest(messages=messages, tools=specs))
            calls = response.tool_calls or []
            text = "".join(block.text for block in response.content if block.type == "text")
            if not calls:
                await context.add_message({"role": "assistant", "content": text})
                await hooks.emit("orchestrator:complete", {"orchestrator": "loop-demo", "status": "success"})
                return text
            await context.add_message(
                {
                    "role": "assistant",
                    "content": text,
                    "tool_calls": [{"id": c.id, "tool": c.name, "arguments": c.arguments} for c in calls],
                }
            )
            for call in calls:
                result = await self._run(call, tools, hooks)
                content = result.get_serialized_output() if result.success else f"Error: {result.error}"
                await context.add_message({"role": "tool", "tool_call_id": call.id, "content": content})

    async def _run(self, call: Any, tools: dict[str, Any], hooks: Any) -> ToolResult:
        about = {"tool_name": call.name, "tool_input": call.arguments}
        await hooks.emit("tool:pre", about)
        result: ToolResult = await tools[call.name].execute(call.arguments)
        await hooks.emit("tool:post", {**about, "result": result.model_dump()})
        return result


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> None:
    """Mount the loop."""
    await coordinator.mount("orchestrator", DemoLoop())
