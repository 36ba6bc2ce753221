"""Sessions with the ingestion hooks mounted on amplifier-core's coordinator, and a look at what they left."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.integrations.amplifier import MemorySession
from agent_memory.integrations.amplifier.hooks.turn_intake import IntakeLimits, SessionIntake
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import Listing
from agent_memory.settings import ServiceSettings
from amplifier_module_hooks_memory_ingestion import session_mount
from amplifier_module_hooks_memory_ingestion.session_mount import STATISTICS_CAPABILITY, mount
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent_memory.models import Episode, Memory, Resource

    Begin = Callable[..., Awaitable["Talk"]]

PATIENT = IntakeLimits(drain_seconds=60, work_seconds=60)
HEARD = (
    *("memory:resource_stored", "memory:episodes_stored", "memory:items_extracted", "memory:background_worked"),
    *("memory:category_consolidated", "memory:ingestion_skipped", "memory:degraded"),
)


class Talk:
    """One session with the hooks mounted, and what it emitted."""

    def __init__(self, root: Path, session_id: str = "", **config: Any) -> None:
        self.root = root
        self.coordinator: Any = coordinator_of(session_id) if session_id else MockCoordinator()
        self.context = MockContextManager()
        self.config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", **config}
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.cleanup: Any = None
        self.stored = asyncio.Event()

    async def begin(self) -> Talk:
        """Mount everything."""
        await self.coordinator.mount("context", self.context)
        for event in HEARD:
            self.coordinator.hooks.register(event, self._note, name="test")
        self.cleanup = await mount(self.coordinator, self.config)
        return self

    async def _note(self, event: str, data: dict[str, Any]) -> None:
        self.events.append((event, data))
        if event == "memory:episodes_stored":
            self.stored.set()

    async def emit(self, event: str, **data: Any) -> Any:
        """Emit an event of the host's."""
        return await self.coordinator.hooks.emit(event, data)

    async def say(self, prompt: Any) -> None:
        """Let the user say something."""
        await self.emit("prompt:submit", prompt=prompt)
        await self.context.add_message({"role": "user", "content": prompt})

    async def tool(self, name: str, result: Any) -> None:
        """Let a tool answer."""
        await self.emit("tool:post", tool_name=name, tool_input={}, result=result)

    async def answer(self, text: str) -> None:
        """Let the assistant answer, which ends the turn."""
        await self.context.add_message({"role": "assistant", "content": [{"type": "text", "text": text}]})
        await self.emit("orchestrator:complete", orchestrator="x", turn_count=1, status="success")

    async def end(self) -> None:
        """End the session."""
        await self.emit("session:end")

    async def whole(self, prompt: str, answer: str = "ok") -> None:
        """Let the user say something, the assistant answer, and the session end."""
        await self.say(prompt)
        await self.answer(answer)
        await self.end()

    @property
    def session(self) -> MemorySession:
        """The session handle the modules share."""
        handle = self.coordinator.get_capability("agent_memory.session")
        assert isinstance(handle, MemorySession)
        return handle

    async def episodes(self, agent_id: str = "bob") -> list[Episode]:
        """Return the turns that are on the disk, in their order."""
        knowledge = self.knowledge(agent_id)
        found = [each async for each in knowledge.episodes.iter_all()]
        await knowledge.close()
        return sorted(found, key=lambda each: each.order)

    async def conversations(self, agent_id: str = "bob") -> list[Resource]:
        """Return the conversations that are on the disk."""
        knowledge = self.knowledge(agent_id)
        found = (await knowledge.resources.browse(Listing())).records
        await knowledge.close()
        return found

    async def items(self) -> list[Memory]:
        """Return what was drawn."""
        every = [memory async for memory in (await self.session.require()).storage.iter_all()]
        return [memory for memory in every if memory.is_item]

    def knowledge(self, agent_id: str) -> Knowledge:
        """Return what an agent was given; to be closed."""
        return Knowledge(agent_id, ServiceSettings(storage_root=str(self.root), embedder="none"))

    def told(self, event: str) -> list[dict[str, Any]]:
        """Return the payloads of an event."""
        return [data for name, data in self.events if name == event]

    def reasons(self) -> dict[str, int]:
        """Return why something was not taken in, as it was told."""
        told: dict[str, int] = {}
        for data in self.told("memory:ingestion_skipped"):
            told[data["reason"]] = told.get(data["reason"], 0) + data["count"]
        return told

    def statistics(self) -> dict[str, Any]:
        """Return the module's counters."""
        result: dict[str, Any] = self.coordinator.get_capability(STATISTICS_CAPABILITY)()
        return result


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[IntakeLimits], None]:
    """Return what bounds the sessions that begin from now on; a busy machine has all the time it needs otherwise."""

    def to(limits: IntakeLimits) -> None:
        monkeypatch.setattr(session_mount, "SessionIntake", partial(SessionIntake, limits=limits))

    to(PATIENT)
    return to


@pytest.fixture
async def begin(root: Path) -> AsyncIterator[Begin]:
    """Return a function that begins a session with some settings; all are cleaned up at the end."""
    begun: list[Talk] = []

    async def begin_talk(**config: Any) -> Talk:
        begun.append(await Talk(root, **config).begin())
        return begun[-1]

    yield begin_talk
    for talk in begun:
        await talk.cleanup()


@pytest.fixture
async def talk(begin: Begin) -> Talk:
    """Return a session with default settings."""
    return await begin()
