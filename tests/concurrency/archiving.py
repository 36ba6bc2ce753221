"""A process that tidies a memory and takes it back, again and again: `python -m tests.concurrency.archiving ROOT`."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent_memory.care.archive import Archive
from agent_memory.care.tidying.tidy_runs import Tidying
from agent_memory.memory import MemoryService
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import NOON, FrozenClock

COUNT = 30


def opened(root: Path) -> tuple[MemoryService, Archive]:
    """Open bob's memory and its archive."""
    settings, clock = ServiceSettings(embedder="none", storage_root=str(root)), FrozenClock()
    service = MemoryService(FileStorage("bob", settings=settings, clock=clock), settings, clock=clock)
    return service, Archive(service, clock=clock)


def memories() -> list[Memory]:
    """Return what bob knows: old questions, in pairs of which one replaced the other, and twins."""
    moment = NOON - timedelta(days=200)
    known: list[Memory] = []
    for number in range(COUNT):
        fields: dict[str, Any] = {"category": "question", "timestamp": moment + timedelta(minutes=number)}
        older = known[-1].id if number % 3 == 1 else None
        said = f"What does number {number - number % 5} mean{'!' if number % 5 else ''}"
        one = f"mem-{number:012x}"
        fields |= {"supersedes": older, "importance": 0.1, "tags": [f"t{number}"]}
        known.append(Memory(agent_id="bob", id=one, content=said, **fields))
    return known


def say(step: str) -> None:
    """Tell whoever listens which step comes."""
    os.write(1, f"{step}\n".encode())


async def tidy(root: Path) -> None:
    """Tidy, restore and take back for ever; a line for each step."""
    _, archive = opened(root)
    tidying = Tidying(archive)
    while True:
        say("apply")
        await tidying.apply(await tidying.plan(budget=12))
        say("restore")
        if away := await archive.everything():
            await archive.restore([away[0].id])
        say("undo")
        if any(each.state != "undone" for each in await tidying.runs()):
            await tidying.undo()


if __name__ == "__main__":
    asyncio.run(tidy(Path(sys.argv[1])))
