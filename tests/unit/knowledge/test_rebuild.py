"""A rebuild reads stored sources again, and goes on where it was stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge.intake.drafts import ReceivedDocument
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, rebuild, runner_of
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from tests.support import FrozenClock


class StoppedError(Exception):
    """Raised as a kill between two batches."""


@pytest.fixture
async def service(knowledge: Knowledge, root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    settings = knowledge.settings
    opened = MemoryService(FileStorage("bob", root, settings=settings, clock=clock), settings, clock=clock)
    yield opened
    await opened.close()


async def test_rebuild_stopped_goes_on_with_what_is_left(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    for number in range(120):
        await ingest.resource(ReceivedDocument(f"The shed {number} holds {number + 7} red ladders.", f"shed {number}"))
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    before = {item.id for item in await service.searcher.list_all()}
    dues: list[int] = []

    def stop(done: int, due: int) -> None:
        dues.append(due)
        if done >= 100:
            raise StoppedError

    with pytest.raises(StoppedError):
        await rebuild(knowledge, service, runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY), stop)
    runner = runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY)
    result = await rebuild(knowledge, service, runner, lambda _, due: dues.append(due))

    assert (dues[0], dues[-1]) == (240, 140)
    assert (result.records, result.new, result.failed) == (120, 0, 0)
    assert {item.id for item in await service.searcher.list_all()} == before
    assert (await service.storage.tally()).items == 120
