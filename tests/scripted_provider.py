"""A provider of the kernel's contract that answers as it was told to."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from amplifier_core import ChatRequest, ChatResponse, ProviderInfo, TextBlock, ThinkingBlock


class Scripted:
    """A provider of the kernel's contract that answers as it was told to."""

    def __init__(self, *answers: str | Exception | None, name: str = "scripted", priority: int = 100) -> None:
        self.name, self.priority, self.answers = name, priority, list(answers)
        self.requests: list[ChatRequest] = []
        self.options: list[dict[str, Any]] = []

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id=self.name, display_name=self.name)

    async def list_models(self) -> list[Any]:
        return []

    def parse_tool_calls(self, response: ChatResponse) -> list[Any]:
        return response.tool_calls or []

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        self.requests.append(request)
        self.options.append(options)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
        return ChatResponse(content=[ThinkingBlock(thinking="[{"), TextBlock(text=str(answer))])

    def texts(self) -> list[str]:
        """Return the statements of the last prompt."""
        prompt = str(self.requests[-1].messages[0].content)
        return [json.loads(line)["text"] for line in prompt.splitlines() if line.startswith('{"id"')]
