"""What bob was given, and the way in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory.events import payload
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.memory import Caller
    from tests.support import FrozenClock

Events = list[tuple[str, dict[str, Any]]]


@pytest.fixture
async def knowledge(root: Path, clock: FrozenClock) -> AsyncIterator[Knowledge]:
    opened = Knowledge("bob", ServiceSettings(storage_root=str(root), embedder="none"), clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
def events() -> Events:
    return []


@pytest.fixture
def ingest(knowledge: Knowledge, events: Events) -> Ingest:
    async def report(event: str, caller: Caller, **fields: Any) -> None:
        events.append((event, payload(event, fields)))

    return Ingest(knowledge, report)
