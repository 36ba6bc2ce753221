"""A migration killed at any moment ends in one of the two backends, whole. `BUILD_KILLS=100` kills it 100 times."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import BusyError
from agent_memory.files.processes import child_environment, python_module
from agent_memory.memories import MigratableStorage
from agent_memory.models import MEMORY
from agent_memory.store.shards import Shards
from tests.concurrency.processes import running
from tests.engines import options
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("BUILD_KILLS", "20"))
MEMORIES = 60
EMBEDDER = HashEmbedder()


async def filled(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=EMBEDDER)
    for number in range(MEMORIES):
        await storage.store(memory_of(f"tea number{number}"))
    await storage.prepare(None)
    await storage.close()


def begin(root: Path) -> subprocess.Popen[bytes]:
    folder = MigratableStorage("bob", root, embedder=EMBEDDER).folder
    command = [
        *python_module("agent_memory.engines.index_builder"),
        str(folder.path),
        MEMORY.place,
        json.dumps(asdict(EMBEDDER.identity)),
        "7",
    ]
    return subprocess.Popen([*command, "--activate"], stdout=subprocess.DEVNULL, env=child_environment())


def is_building(shards: Shards) -> bool:
    try:
        with shards.building():
            return False
    except BusyError:
        return True


async def check_whole(root: Path) -> str:
    """Open what is there, look for everything by word and by meaning, and return the backend."""
    storage = MigratableStorage("bob", root, embedder=EMBEDDER, options=options())
    backend = storage.backend
    index = Shards(storage.folder).active()[1]
    await storage.prepare(None)
    if backend == "vector":
        assert await storage.caught_up(60)
        assert Shards(storage.folder).active()[1] == index, "an index in use that is not whole"
        assert (await storage.health())["index"] == {"status": "in use", "behind": 0}
    assert await storage.count() == MEMORIES
    found = await storage.search("number17 tea", 3)
    assert found[0].memory.content == "tea number17"
    assert found.mode == "hybrid"
    await storage.close()
    return backend


async def test_killed_at_random_moments_a_build_leaves_one_backend_whole(root: Path) -> None:
    await filled(root)
    started = time.monotonic()
    assert begin(root).wait(120) == 0
    whole = time.monotonic() - started
    choose, seen = random.Random(), set()
    for _ in range(KILLS):
        await MigratableStorage("bob", root, embedder=EMBEDDER).rollback()
        build = begin(root)
        time.sleep(choose.uniform(0.2, 1.05) * whole)  # noqa: ASYNC251 - nothing else runs here
        build.kill()
        build.wait()
        seen.add(await check_whole(root))
    assert seen <= {"file", "vector"}
    assert begin(root).wait(120) == 0, "after all that it can still be built"
    assert await check_whole(root) == "vector"
    folders = [each.name for each in (root / "bob" / "memories.db").iterdir() if each.is_dir()]
    assert folders == [Shards(MigratableStorage("bob", root, embedder=EMBEDDER).folder).active()[1]]


@pytest.mark.parametrize("stage", ["load", "index", "check", "switch"])
async def test_an_agent_killed_in_the_middle_leaves_one_backend_whole(root: Path, stage: str) -> None:
    await filled(root)
    with running("migrate", root) as agent:
        while agent.hear()["stage"] != stage:
            pass
        os.kill(agent.process.pid, signal.SIGKILL)
        agent.kill()
    shards = Shards(MigratableStorage("bob", root, embedder=EMBEDDER).folder)
    deadline = time.monotonic() + 60
    while is_building(shards):
        assert time.monotonic() < deadline, "the build goes on though nobody waits for it any more"
        time.sleep(0.02)  # noqa: ASYNC251 - nothing else runs here
    await check_whole(root)
    shards.sweep()
    assert not list((root / "bob" / "memories.db").glob(".new-*"))
