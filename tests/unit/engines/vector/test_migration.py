"""Moving to the vector engine and back while memories are stored and searched."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings import PROVIDERS, EmbedderIdentity
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.index_builder import build_index, estimate
from agent_memory.engines.index_maintenance import IndexOptions
from agent_memory.errors import BusyError, ConfigurationError, EmbeddingError, MigrationError
from agent_memory.memories import MigratableStorage, VectorStorage
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, detect_storage
from agent_memory.store.shards import Shards
from tests.support import FrozenClock, memory_of, raises

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.store.protocols import Built


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
async def storage(root: Path, clock: FrozenClock, embedder: HashEmbedder) -> AsyncIterator[MigratableStorage]:
    storage = MigratableStorage("bob", root, clock=clock, embedder=embedder)
    for number in range(12):
        await storage.store(memory_of(f"tea number{number}"))
    yield storage
    await storage.close()


async def contents(storage: FileStorage) -> set[str]:
    return {memory.content async for memory in storage.iter_all()}


async def test_stores_and_searches_go_on_while_it_moves_and_all_are_found(storage: MigratableStorage) -> None:
    stages: list[str] = []

    async def progress(stage: str, _done: int, _total: int) -> None:
        stages.append(stage)

    moving = asyncio.create_task(storage.migrate(progress))
    number = 0
    while not moving.done():
        await storage.store(memory_of(f"meanwhile{number} tea"))
        assert (await storage.search(f"meanwhile{number}"))[0].memory.content == f"meanwhile{number} tea"
        number += 1
        await asyncio.sleep(0.02)
    assert (await moving).memories >= 12
    assert storage.backend == "vector"
    assert [stage for at, stage in enumerate(stages) if stage not in stages[:at]][-4:] == [
        "load",
        "index",
        "check",
        "switch",
    ]
    await storage.prepare(None)
    assert await storage.caught_up(60)
    assert await storage.count() == 12 + number
    assert (await storage.search("meanwhile0"))[0].memory.content == "meanwhile0 tea"


async def test_rolling_back_loses_nothing_that_was_stored_since(storage: MigratableStorage, root: Path) -> None:
    await storage.migrate()
    assert await storage.caught_up(60)
    await storage.store(memory_of("stored since"))
    assert await storage.rollback()
    assert storage.backend == "file"
    assert not await storage.rollback()
    assert "stored since" in await contents(storage)
    assert (await storage.search("since"))[0].memory.content == "stored since"
    assert [each for each in (root / "bob" / "memories.db").iterdir() if each.is_dir()] == []


async def test_another_session_follows_the_switch(
    storage: MigratableStorage, root: Path, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    await storage.migrate()
    assert await storage.caught_up(60)
    other = VectorStorage("bob", root, clock=clock, embedder=embedder, wanted=False)
    assert other.backend == "vector"
    await other.rollback()
    storage.index.look_after(is_changed=True)
    await storage.index.wait_settled()
    assert storage.backend == "file"
    assert not storage.index.sync.is_holding
    await other.close()


@pytest.mark.parametrize(("free", "told"), [(0, "The disk is full: "), (10**12, "was ended (signal 7)")])
async def test_a_build_that_is_killed_is_a_failure_that_changed_nothing(
    storage: MigratableStorage, monkeypatch: pytest.MonkeyPatch, free: int, told: str
) -> None:
    """What maps a file that the disk has no room for is ended by SIGBUS, without a word."""
    real = asyncio.create_subprocess_exec

    async def doomed(*command: str, **options: Any) -> asyncio.subprocess.Process:
        child = await real(*command, **options)
        os.kill(child.pid, signal.SIGBUS)
        return child

    monkeypatch.setattr(asyncio, "create_subprocess_exec", doomed)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    with pytest.raises(MigrationError, match=re.escape(told)) as failed:
        await storage.migrate()
    assert failed.value.recovery
    assert storage.backend == "file"
    assert len(await storage.search("number3")) > 0


@contextlib.contextmanager
def small_files(limit: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_no_room_for_the_index_is_a_failure_that_changed_nothing(storage: MigratableStorage, root: Path) -> None:
    await storage.prepare(None)
    with small_files(200_000), pytest.raises(MigrationError):
        await storage.migrate()
    assert storage.backend == "file"
    assert Shards(storage.folder).active() == ("file", None)
    assert not [each for each in (root / "bob" / "memories.db").iterdir() if each.is_dir()]
    assert len(await contents(storage)) == 12


async def test_a_migration_that_is_cancelled_stops_and_changed_nothing(storage: MigratableStorage) -> None:
    begun = asyncio.Event()

    async def progress(stage: str, _done: int, _total: int) -> None:
        if stage == "load":
            begun.set()
            await asyncio.sleep(3600)

    moving = asyncio.create_task(storage.migrate(progress))
    await begun.wait()
    moving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await moving
    with Shards(storage.folder).building():
        pass  # no process builds any more
    assert storage.backend == "file"


async def test_while_another_process_builds_a_migration_is_refused(storage: MigratableStorage) -> None:
    await storage.prepare(None)
    with Shards(storage.folder).building(), pytest.raises(BusyError):
        await storage.migrate()


async def test_a_migration_takes_the_place_of_the_build_that_its_own_process_began(
    root: Path, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    begun = asyncio.Event()

    async def build(folder: AgentFolder, *what: Any, **how: Any) -> Built:
        if not begun.is_set():  # in the background
            with Shards(folder).building():
                begun.set()
                await asyncio.sleep(3600)
        return await build_index(folder, *what, **how)

    storage = VectorStorage("bob", root, clock=clock, embedder=embedder, options=IndexOptions(build=build))
    await storage.store(memory_of("tea"))
    await begun.wait()
    assert (await storage.migrate()).memories == 1
    await storage.close()


def test_a_migration_works_after_a_loop_that_stopped_while_it_built(
    root: Path, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    begun = asyncio.Event()

    async def build(folder: AgentFolder, *what: Any, **how: Any) -> Built:
        if not begun.is_set():  # in the background
            begun.set()
            await asyncio.sleep(3600)
        return await build_index(folder, *what, **how)

    storage = VectorStorage("bob", root, clock=clock, embedder=embedder, options=IndexOptions(build=build))

    async def begin() -> None:
        await storage.store(memory_of("tea"))
        await storage.prepare(20)
        await begun.wait()

    async def migrate() -> int:
        built = await storage.migrate()
        await storage.close()
        return built.memories

    first = asyncio.new_event_loop()
    first.run_until_complete(begin())
    assert asyncio.run(migrate()) == 1
    left = asyncio.all_tasks(first)
    for task in left:
        task.cancel()
    first.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    first.close()


async def test_an_embedder_that_fails_stops_a_migration_before_it_begins(
    root: Path, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    embedder.failure = EmbeddingError("out of order")
    storage = MigratableStorage("bob", root, clock=clock, embedder=embedder)
    await storage.store(memory_of("tea"))
    with pytest.raises(MigrationError, match="out of order"):
        await storage.migrate()
    assert storage.backend == "file"
    assert not (root / "bob" / "memories.db").exists()
    await storage.close()


async def test_migrating_again_builds_a_new_index(storage: MigratableStorage) -> None:
    first = await storage.migrate()
    assert await storage.caught_up(60)
    second = await storage.migrate()
    assert second.shard != first.shard
    assert await storage.caught_up(60)
    assert Shards(storage.folder).active()[1] == second.shard
    await storage.close()
    assert [each.name for each in storage.folder.index.iterdir() if each.is_dir()] == [second.shard]


# -- estimates --------------------------------------------------------------------------------------------------------


def test_what_is_embedded_already_costs_nothing() -> None:
    paid = EmbedderIdentity("openai", "text-embedding-3-small", 1536)
    free = EmbedderIdentity("local", "minilm", 384)
    assert estimate(5000, 0, 0, paid).dollars == 0
    assert estimate(5000, 5000, 1_000_000, paid).dollars == pytest.approx(0.005)
    assert estimate(5000, 5000, 1_000_000, free).dollars == 0
    assert (
        estimate(5000, 0, 0, free).seconds
        < 5
        < estimate(5000, 5000, 0, free).seconds
        < estimate(100_000, 0, 0, free).seconds
    )


# -- which backend ----------------------------------------------------------------------------------------------------


def test_detection_follows_settings_and_switch(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kind(**settings: Any) -> tuple[type, str]:
        storage = detect_storage("bob", root, settings=ServiceSettings(**settings))
        return type(storage), storage.backend

    assert kind() == (FileStorage, "file")  # nothing to embed with in these tests
    monkeypatch.setitem(PROVIDERS, "local", replace(PROVIDERS["local"], needs=("numpy",)))
    assert kind() == (MigratableStorage, "file")
    assert kind(backend="file") == (FileStorage, "file")
    assert kind(backend="vector") == (VectorStorage, "vector")
    assert kind(embedder="none") == (FileStorage, "file")
    with pytest.raises(ConfigurationError):
        kind(backend="vector", embedder="none")
    shards = Shards(MigratableStorage("bob", root).folder)
    shards.switch("vector", "abc123")
    assert kind() == (VectorStorage, "vector")
    assert kind(backend="file") == (FileStorage, "file")
    assert kind(embedder="none") == (FileStorage, "file")
    shards.switch("file", None)
    assert kind() == (MigratableStorage, "file")


async def test_a_plain_file_storage_says_why_it_cannot_be_moved(root: Path) -> None:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    assert not storage.can_migrate
    assert not await storage.rollback(), "it is where that leads"
    for attempt in (storage.migrate(), storage.estimate()):
        with raises(ConfigurationError, "cannot_migrate") as refused:
            await attempt
        assert "embedder is 'none'" in refused.value.message
    await storage.close()


async def test_every_file_of_the_index_is_private_whatever_the_umask(
    storage: MigratableStorage, root: Path, open_umask: None
) -> None:
    await storage.store(memory_of("tea"))
    await storage.migrate()
    await storage.store(memory_of("coffee"))
    assert await storage.caught_up(60)
    await storage.close()
    modes = {path: path.stat().st_mode & 0o777 for path in root.rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
