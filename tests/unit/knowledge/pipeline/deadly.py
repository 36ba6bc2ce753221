"""A process whose reader kills it: `python -m tests.unit.knowledge.pipeline.deadly ROOT OUT [TEXT THAT KILLS]`."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.knowledge.pipeline.background_work import Runner
from agent_memory.knowledge.records import Knowledge
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agent_memory.knowledge.pipeline.stages import Batch

KILLS: set[str] = set()
"""Texts that end this process, and no child of it."""


def read(text: str) -> str:
    """Return a text in capitals, unless it is one that nobody can read."""
    if "poison" in text or text in KILLS:
        os._exit(9)
    if "thistle" in text:
        raise ZeroDivisionError
    if "memory" in text:
        return text * (1 << 30)
    return text.upper()


def look_around(_text: str) -> dict[str, Any]:
    """Return what a reader sees of its process."""
    limits = {name: resource.getrlimit(getattr(resource, name)) for name in ("RLIMIT_CPU", "RLIMIT_AS")}
    return {"environment": dict(os.environ), "pid": os.getpid(), **limits}


@dataclass
class Deadly:
    """Writes what it read into a file."""

    out: Path
    name: str = "deadly"
    version: int = 1
    source: str = "episode"

    async def gone(self) -> Collection[str]:
        """See `Stage.gone`."""
        return ()

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """See `Stage.do`."""
        for record in batch.records:
            line = await batch.run(read, record.content)
            with self.out.open("a", encoding="utf-8") as out:
                out.write(f"{line}\n")
        return {}


def opened(root: Path) -> Knowledge:
    """Return what bob was given."""
    return Knowledge("bob", ServiceSettings(storage_root=str(root), embedder="none"))


def runner_of(knowledge: Knowledge, out: Path) -> Runner:
    """Return what does the work."""
    return Runner(knowledge.folder.tasks_lock, knowledge.marks, knowledge.of, [Deadly(out)], knowledge.clock)


async def main(root: str, out: str, *kills: str) -> None:
    """Do what is due."""
    KILLS.update(kills)
    knowledge = opened(Path(root))
    await runner_of(knowledge, Path(out)).run()
    await knowledge.close()


if __name__ == "__main__":
    from tests.unit.knowledge.pipeline import deadly  # a child finds no function of `__main__`

    asyncio.run(deadly.main(*sys.argv[1:]))
