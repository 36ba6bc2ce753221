"""The context module as a session has it, around a context manager that remembers how it was asked."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations.amplifier import MemorySession
from amplifier_module_context_memory_scratchpad.session_mount import ScratchpadContext, mount
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from amplifier_core import ModuleCoordinator


class Inner:
    """A context manager like the host's: keeps messages, notes the budget it was given, has extras of its own."""

    max_tokens = 10_000
    extra = "an attribute of the inner one"

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.asked: list[tuple[int | None, Any]] = []
        self.factory: Any = None

    async def add_message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    async def get_messages(self) -> list[dict[str, Any]]:
        return list(self.messages)

    async def set_messages(self, messages: list[dict[str, Any]]) -> None:
        self.messages = list(messages)

    async def clear(self) -> None:
        self.messages = []

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Any = None
    ) -> list[dict[str, Any]]:
        self.asked.append((token_budget, provider))
        return list(self.messages)

    async def set_system_prompt_factory(self, factory: Any) -> None:
        self.factory = factory


@dataclasses.dataclass
class Mounted:
    """What a test works with."""

    coordinator: ModuleCoordinator
    context: ScratchpadContext
    inner: Inner | None
    session: MemorySession

    async def remember(self, *texts: str) -> list[str]:
        service = await self.session.require()
        return [(await service.store({"content": text}, self.session.caller)).memory.id for text in texts]

    async def pad(self) -> str:
        """Return the scratchpad of the next request, empty if there is none."""
        view = await self.context.get_messages_for_request()
        pads = [m["content"] for m in view if (m.get("metadata") or {}).get("source") == "agent-memory"]
        assert len(pads) <= 1
        return pads[0] if pads else ""


@pytest.fixture
async def mounted(root: Path) -> AsyncIterator[Callable[..., Awaitable[Mounted]]]:
    """Return a function that mounts the module, around an inner context manager unless told otherwise."""
    cleanups: list[Any] = []

    async def mounting(module_config: Any = None, *, alone: bool = False, **session: Any) -> Mounted:
        coordinator = coordinator_of(**session)
        inner = None if alone else Inner()
        if inner is not None:
            await coordinator.mount("context", inner)
        if module_config is None or isinstance(module_config, dict):
            defaults = {"agent_id": "bob", "storage_root": str(root), "embedder": "none"}
            module_config = {**defaults, **(module_config or {})}
        cleanups.append(await mount(coordinator, module_config))
        memory = MemorySession.of(coordinator)
        cleanups.append(memory.leaving().aclose)
        return Mounted(coordinator, coordinator.get("context"), inner, memory)

    yield mounting
    for cleanup in reversed(cleanups):
        await cleanup()
