"""A memory that can be moved to the engine opens what is sealed until it is moved, and reads everything after that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.memories import MigratableStorage
from agent_memory.models import MEMORY
from agent_memory.storage import folder_of
from agent_memory.storage.sealed.sealing import seal_up
from tests.engines import options
from tests.unit.storage.vector.conftest import facts, seen, stored

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.embeddings.testing import HashEmbedder
    from agent_memory.models import SearchResults
    from tests.support import FrozenClock
    from tests.unit.storage.vector.conftest import Engines

QUESTION = "which parser needs Redis"


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
    assert len(storage.opened.replica.state.table.records) == 3
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
    assert storage.opened.replica.state.sealed is None
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
    mine.index.after_write()
    await mine.index.settled()
    assert mine.opened.replica.state.sealed is not None
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
    assert later.opened.replica.state.sealed is None
    assert await later.rollback()
    await later.close()
    back = MigratableStorage("bob", sealed, clock=clock, embedder=embedder, options=chosen)
    assert await back.count() == 63
    assert back.opened.replica.state.sealed is not None
    await back.close()
