"""A process that tidies is killed at any moment: nothing is in neither file, and all of it comes back."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING

from agent_memory.care.tidying.tidy_runs import Tidying
from tests.concurrency.archiving import memories, opened
from tests.concurrency.processes import PATIENCE, REPOSITORY, environment

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.models import Memory

KILLS = 12


def kill_one(root: Path, after: int) -> None:
    """Start a process that tidies, and kill it while it does the step behind so many."""
    command = [sys.executable, "-m", "tests.concurrency.archiving", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY, env=environment()) as process:
        assert process.stdout is not None
        for _ in range(after):
            assert process.stdout.readline()
        process.kill()
        process.wait(PATIENCE)


async def test_a_kill_at_any_moment_loses_nothing_and_undo_brings_all_back(root: Path) -> None:
    known = {memory.id: memory for memory in memories()}
    service, archive = opened(root)
    await service.writer.put_back(list(known.values()), was="archived")
    valid = set(await service.storage.valid_among(list(known)))
    await archive.close()
    await service.close()
    choose = random.Random(7)
    for _ in range(KILLS):
        kill_one(root, choose.randint(1, 7))
        service, archive = opened(root)
        live = {memory.id: memory for memory in await service.searcher.list_all()}
        away = {each.id: each.memory for each in await archive.everything()}
        assert live.keys() | away.keys() == known.keys()
        assert not live.keys() & away.keys()
        assert all(_without_tags(memory) == _without_tags(known[one]) for one, memory in (live | away).items())
        assert set(await service.storage.valid_among(list(live))) <= valid, "what was replaced counts again"
        await archive.close()
        await service.close()
    service, archive = opened(root)
    tidying = Tidying(archive)
    for _ in [each for each in await tidying.runs() if each.state != "undone"]:
        await tidying.undo()
    if away := {each.id: each.memory for each in await archive.everything()}:
        await archive.restore(away)
    assert {memory.id: memory for memory in await service.searcher.list_all()} == known
    await archive.close()
    await service.close()


def _without_tags(memory: Memory) -> Memory:
    """Return a memory without its tags: what another one was merged into has those of both until the run is undone."""
    return memory.model_copy(update={"tags": []})
