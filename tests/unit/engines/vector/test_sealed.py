"""A memory that can be moved to the engine opens what is sealed until it is moved, and reads everything after that."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.memories import MigratableStorage
from agent_memory.models import MEMORY
from agent_memory.storage import folder_of
from agent_memory.store.segment_builder import seal_up
from agent_memory.store.worker import Worker
from tests.engines import options
from tests.support import memory_of
from tests.unit.engines.vector.conftest import facts, seen, stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.embeddings.testing import HashEmbedder
    from agent_memory.models import SearchResults
    from tests.support import FrozenClock
    from tests.unit.engines.vector.conftest import Engines

QUESTION = "which parser needs Redis"
PATIENCE = 20.0
"""Seconds until a test fails that waits for another thread."""


def same(one: SearchResults, other: SearchResults) -> bool:
    """Tell whether the same is found; sealed vectors are halves of floats, so scores differ in the fourth place."""
    return [hit[::2] for hit in seen(one)] == [hit[::2] for hit in seen(other)]


@pytest.fixture
async def sealed(root: Path, clock: FrozenClock, embedder: HashEmbedder) -> Path:
    """Return the root of an agent with 60 memories in segments and 3 behind them."""
    storage = MigratableStorage("bob", root, clock=clock, embedder=embedder)
    await stored(storage, facts(60))
    await storage.close()
    assert seal_up(folder_of("bob", root), MEMORY, embedder.identity, least=1)
    storage = MigratableStorage("bob", root, clock=clock, embedder=embedder)
    await stored(storage, facts(3, seed=1))
    await storage.close()
    return root


async def test_it_opens_what_is_sealed(sealed: Path, clock: FrozenClock, embedder: HashEmbedder) -> None:
    storage = MigratableStorage("bob", sealed, clock=clock, embedder=embedder)
    assert await storage.count() == 63
    assert len(storage.opened.state.table.records) == 3
    assert (storage.backend, storage.can_migrate) == ("file", True)
    await storage.close()


async def test_moved_in_use_it_finds_the_same_with_the_engine(
    sealed: Path, clock: FrozenClock, embedder: HashEmbedder, engines: Engines
) -> None:
    storage = MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=options(start=engines.start))
    await storage.prepare(None)
    before = await storage.search(QUESTION)
    built = await storage.migrate()
    assert (storage.backend, built.memories) == ("vector", 63)
    assert await storage.caught_up(30)
    assert storage.opened.state.sealed is None
    assert same(await storage.search(QUESTION), before)
    assert engines[-1].asked > 0
    await storage.close()


async def test_moved_by_another_process_it_goes_on_from_what_is_sealed(
    sealed: Path, clock: FrozenClock, embedder: HashEmbedder, engines: Engines
) -> None:
    mine, other = (
        MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=options(start=engines.start))
        for _ in range(2)
    )
    await mine.prepare(None)
    before = await mine.search(QUESTION)
    await other.migrate()
    await other.close()
    mine.index.look_after(is_changed=True)
    await mine.index.wait_settled()
    assert mine.opened.state.sealed is not None
    assert seen(await mine.search(QUESTION)) == seen(before)
    await mine.close()


async def test_a_session_after_the_move_reads_everything(
    sealed: Path, clock: FrozenClock, embedder: HashEmbedder, engines: Engines
) -> None:
    chosen = options(start=engines.start)
    storage = MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=chosen)
    await storage.migrate()
    await storage.close()
    later = MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=chosen)
    await later.prepare(None)
    assert await later.caught_up(30)
    assert later.opened.state.sealed is None
    assert await later.rollback()
    await later.close()
    back = MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=chosen)
    assert await back.count() == 63
    assert back.opened.state.sealed is not None
    await back.close()


@pytest.mark.parametrize("replacing", [True, False])
async def test_search_after_a_move_skips_what_was_forgotten_meanwhile(
    sealed: Path, clock: FrozenClock, embedder: HashEmbedder, engines: Engines, *, replacing: bool
) -> None:
    chosen = options(start=engines.start)
    mine, other = (MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=chosen) for _ in range(2))
    older = await mine.store(memory_of("the router needs YAML"))
    if replacing:  # a search then asks the state of each candidate whether it is replaced
        await mine.store(memory_of("the router needs TOML", supersedes=older))
    forgotten = await mine.store(memory_of(QUESTION))
    await mine.prepare(None)
    await other.delete(forgotten)

    await mine.migrate()  # reads the journal again; the records held so far were never compared with it

    assert forgotten not in [hit.memory.id for hit in await mine.search(QUESTION, limit=50)]
    assert mine.opened.index.vectors.texts.keys() == {memory.id async for memory in mine.iter_all()}
    await mine.close()
    await other.close()


async def test_a_compaction_that_was_begun_before_a_move_is_finished_with_the_lock_it_knows(
    sealed: Path, clock: FrozenClock, embedder: HashEmbedder, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=options(start=engines.start))
    await storage.prepare(None)
    before = storage.opened.log
    folded, moved = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def slowly(grace: timedelta | None) -> Iterator[object]:
        with compacting(grace) as finish:
            folded.set()
            assert moved.wait(PATIENCE)
            yield finish

    compacting = before.compacting
    monkeypatch.setattr(before, "compacting", slowly)
    compaction = asyncio.create_task(storage.compact())
    assert await asyncio.to_thread(folded.wait, PATIENCE)
    await storage.migrate()
    assert storage.opened.log is not before
    moved.set()

    await compaction
    assert await storage.count() == 63
    await storage.close()


async def test_a_log_is_not_exchanged_while_a_write_holds_its_lock(
    sealed: Path, clock: FrozenClock, embedder: HashEmbedder, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=options(start=engines.start))
    await storage.prepare(None)
    before = storage.opened.log
    held, asked = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def slowly(wait: float) -> Iterator[None]:
        with hold(wait):
            held.set()
            assert asked.wait(PATIENCE)
            yield

    def noted(worker: Worker, *arguments: Any) -> object:
        asked.set()
        return change(worker, *arguments)

    hold, change = before.hold, Worker.change
    monkeypatch.setattr(before, "hold", slowly)
    monkeypatch.setattr(Worker, "change", noted)
    writes = [asyncio.create_task(storage.store(memory_of(f"written meanwhile {at}"))) for at in range(20)]
    assert await asyncio.to_thread(held.wait, PATIENCE)
    move = asyncio.create_task(storage.migrate())
    while storage.opened.log is before and not asked.is_set():
        await storage.count()
    asked.set()

    await asyncio.gather(*writes, move)
    assert await storage.count() == 83
    await storage.close()
