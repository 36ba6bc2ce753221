"""What the engine changes (nothing a caller can see), what it survives, and when its index is built anew."""

from __future__ import annotations

import json
import os
import shutil
import signal
from datetime import timedelta
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from agent_memory.embeddings.embedder_pair import EmbedderPair
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.ann_index import NEAREST
from agent_memory.engines.index_maintenance import IndexOptions
from agent_memory.engines.shard_process import EngineClient
from agent_memory.errors import ConfigurationError
from agent_memory.index import SearchLimits
from agent_memory.memories import VectorStorage
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store import shards
from agent_memory.store.protocols import Built
from tests.engines import made_index, options
from tests.support import NOON, FrozenClock, memory_of, raises
from tests.unit.engines.vector.conftest import facts, index_of, indexed, seen, stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.engines.vector.conftest import Engines, Open


# -- the same search finds the same things ----------------------------------------------------------------------------


FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"category": "task"},
    {"tags": ["a", "b"]},
    {"date_range": {"start": "2025-06-01", "end": "2025-12-31"}},
    {"category": "note", "tags": ["c"], "date_range": {"start": "2025-06-01"}},
    {"min_access_count": 1},
)


async def test_a_search_finds_what_it_finds_without_an_engine(
    storage: VectorStorage,
    engines: Engines,
    embedder: HashEmbedder,
    clock: FrozenClock,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage.opened.index, "limits", SearchLimits(few=-1))  # so few would be looked at one by one
    memories = facts(NEAREST + 100)
    await indexed(storage, memories[:-20])
    await stored(storage, memories[-20:])
    await storage.touch([memory.id for memory in memories[::7]])
    await storage.update(memories[0].id, {"category": "task", "content": "Kafka needs a parser cache"})
    await storage.delete(memories[1].id)
    plain = FileStorage("bob", root, clock=clock, embedder=embedder)
    await plain.prepare(None)
    queries = ("which worker uses Kafka", "number17", "parser cache router", "Redis")
    for query, filters in product(queries, FILTERS):
        found = seen(await storage.search(query, 20, filters))
        assert found == seen(await plain.search(query, 20, filters)), (query, filters)
    assert engines[-1].asked >= len(queries) * len(FILTERS)
    await plain.close()


async def test_period_search_with_engine_finds_all_of_the_period(
    storage: VectorStorage,
    engines: Engines,
    embedder: HashEmbedder,
    clock: FrozenClock,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage.opened.index, "limits", SearchLimits(few=-1))  # so few would be looked at one by one
    near = [memory_of(f"what happened to worker {n}", timestamp=NOON - timedelta(days=60 + n)) for n in range(NEAREST)]
    far = [memory_of(f"peppermint {n}", timestamp=NOON - timedelta(days=10, hours=n)) for n in range(5)]
    await indexed(storage, [*near, *far])
    plain = FileStorage("bob", root, clock=clock, embedder=embedder)
    await plain.prepare(None)
    question = "What happened last week?"
    assert seen(await storage.search(question, 5)) == seen(await plain.search(question, 5))
    assert {hit.memory.id for hit in await storage.search(question, 5)} == {memory.id for memory in far}
    assert engines[-1].asked
    await plain.close()


async def test_what_changed_since_the_build_is_found_by_meaning_all_the_same(
    storage: VectorStorage, engines: Engines
) -> None:
    await indexed(storage, facts(20))
    new = memory_of("Kafka worker zebra")
    gone = (await storage.search("Kafka"))[0].memory.id
    await stored(storage, [new])
    await storage.delete(gone)
    asked = engines[-1].asked
    found = await storage.search("zebra Kafka worker", 100)
    assert engines[-1].asked > asked
    assert found[0].memory.id == new.id
    assert found[0].match_type == "hybrid"
    assert gone not in {hit.memory.id for hit in found}


async def test_a_memory_that_becomes_shorter_is_found_by_its_new_text_alone(
    storage: VectorStorage, engines: Engines
) -> None:
    memory = memory_of("A long story about peppermint. " * 60)
    await indexed(storage, [memory, *facts(5)])
    await storage.update(memory.id, {"content": "short"})
    await storage.prepare(None)
    assert all(hit.memory.id != memory.id for hit in await storage.search("A long story about peppermint."))
    assert (await storage.search("short"))[0].memory.id == memory.id
    assert engines[-1].asked >= 2


async def test_many_changes_are_compared_without_the_engine(
    storage: VectorStorage, engines: Engines, opened: Open
) -> None:
    await storage.close()
    again = await opened(most_changes=3)
    await stored(again, facts(10))
    assert len(await again.search("Kafka number3")) > 0
    assert engines[-1].asked == 0


async def test_few_memories_are_compared_without_the_engine_which_is_faster(
    storage: VectorStorage, engines: Engines, opened: Open
) -> None:
    await storage.close()
    again = await opened(asked_from=6)
    await stored(again, facts(5))
    assert (await again.search("Kafka number3")).mode == "hybrid"
    assert engines[-1].asked == 0
    await stored(again, facts(1, seed=1))
    await again.search("Kafka number3")
    assert engines[-1].asked == 1


# -- an index stays as it was built -----------------------------------------------------------------------------------


async def test_what_changed_while_no_process_held_the_index_is_found(
    storage: VectorStorage, engines: Engines, root: Path, clock: FrozenClock, opened: Open
) -> None:
    memories = facts(30)
    index = await indexed(storage, memories)
    await storage.close()
    plain = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    await plain.update(memories[3].id, {"content": "changed while no process held the index"})
    await plain.delete(memories[4].id)
    await plain.touch([memory.id for memory in memories if memory is not memories[4]])
    await plain.close()
    again = await opened()
    assert (await again.health())["index"] == {"status": "in use", "behind": 2}
    found = await again.search("changed while no process held the index", 100)
    assert found[0].memory.id == memories[3].id
    assert memories[4].id not in {hit.memory.id for hit in found}
    assert engines[-1].asked == 1
    assert index_of(again) == index


async def test_a_compaction_by_another_process_changes_nothing(
    storage: VectorStorage, engines: Engines, root: Path, clock: FrozenClock
) -> None:
    await indexed(storage, facts(30))
    clock.advance(days=90)
    other = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    await other.compact()
    await other.close()
    assert len(await storage.search("Kafka")) > 0
    assert (await storage.health())["index"] == {"status": "in use", "behind": 0}


async def test_a_renamed_agent_keeps_its_index(
    storage: VectorStorage, engines: Engines, root: Path, opened: Open
) -> None:
    index = await indexed(storage, facts(8))
    await storage.close()
    (root / "bob").rename(root / "robert")
    renamed = await opened("robert")
    assert (await renamed.health())["index"] == {"status": "in use", "behind": 0}
    assert len(await renamed.search("Kafka number3")) > 0
    assert engines[-1].asked == 1
    assert index_of(renamed) == index


async def test_an_index_behind_by_many_changes_is_built_anew(
    storage: VectorStorage, engines: Engines, opened: Open
) -> None:
    await storage.close()
    first = index_of(storage)
    again = await opened(rebuilt_from=10)
    await stored(again, facts(9))
    await again.search("Kafka")
    assert await again.caught_up(30)
    assert index_of(again) == first
    await stored(again, facts(3, seed=1))
    assert await again.caught_up(60)
    assert index_of(again) != first
    assert (await again.health())["index"] == {"status": "in use", "behind": 0}
    asked = engines[-1].asked
    assert len(await again.search("Kafka number3")) > 0
    assert engines[-1].asked == asked + 1


async def test_an_index_that_is_not_asked_yet_is_not_built_anew(storage: VectorStorage, opened: Open) -> None:
    await storage.close()
    first = index_of(storage)
    again = await opened(rebuilt_from=2, asked_from=7)
    await stored(again, facts(6))
    assert await again.caught_up(30)
    assert index_of(again) == first
    await stored(again, facts(1, seed=1))
    assert await again.caught_up(60)
    assert index_of(again) != first


# -- trouble ----------------------------------------------------------------------------------------------------------


async def test_an_engine_that_dies_costs_nothing_but_speed(
    root: Path, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    clients: list[EngineClient] = []

    def start(folder: Path) -> EngineClient:
        clients.append(EngineClient(folder))
        return clients[-1]

    made_index(root, embedder.identity)
    opened = partial(VectorStorage, "bob", root, clock=clock, embedder=embedder, options=options(start=start))
    storage = opened()
    await stored(storage, facts(10))
    assert await storage.caught_up(60)
    before = seen(await storage.search("Kafka number3", 10))
    os.kill(clients[-1].pid, signal.SIGKILL)
    assert seen(await storage.search("Kafka number3", 10)) == before
    await storage.store(memory_of("after the engine died"))
    assert [r.memory.content for r in await storage.search("died")] == ["after the engine died"]
    await storage.close()
    again = opened()
    await again.prepare(None)
    assert await again.caught_up(60)
    assert [r.memory.content for r in await again.search("died")] == ["after the engine died"]
    await again.close()


def spoil_state(folder: Path) -> None:
    (folder / "state.json").write_text("{")


def spoilt(**fields: Any) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        state = json.loads((folder / "state.json").read_text())
        (folder / "state.json").write_text(json.dumps({**state, **fields}))

    return spoil


def spoil_shard(folder: Path) -> None:
    for file in (folder / "shard").rglob("*.json"):
        file.write_bytes(b"\x00")


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_state,
        spoilt(format=99),
        spoilt(embedder="test:another:64"),
        spoilt(seq=10_000),
        spoil_shard,
        shutil.rmtree,
    ],
)
async def test_an_index_that_is_no_good_is_built_anew_while_searches_go_on(
    storage: VectorStorage, root: Path, clock: FrozenClock, embedder: HashEmbedder, spoil: Callable[[Path], None]
) -> None:
    await stored(storage, facts(20))
    expected = seen(await storage.search("Kafka number3", 10))
    old = index_of(storage)
    await storage.close()
    assert old is not None
    spoil(root / "bob" / "memories.db" / old)
    again = VectorStorage("bob", root, clock=clock, embedder=embedder, options=options())
    await again.prepare(None)
    assert seen(await again.search("Kafka number3", 10)) == expected
    assert await again.caught_up(60)
    assert index_of(again) != old
    assert seen(await again.search("Kafka number3", 10)) == expected
    assert [each.name for each in (root / "bob" / "memories.db").iterdir() if each.is_dir()] == [index_of(again)]
    await again.close()


async def test_a_build_that_does_not_help_is_not_tried_without_end(
    root: Path, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    useless = AsyncMock(return_value=Built("0123456789ab", 0, 0))
    storage = VectorStorage("bob", root, clock=clock, embedder=embedder, options=IndexOptions(build=useless))
    await stored(storage, facts(3))
    assert not await storage.caught_up(1)
    assert useless.await_count == 1
    assert len(await storage.search("Kafka number1")) > 0
    await storage.close()


async def test_a_journal_restored_under_us_has_its_index_built_anew(storage: VectorStorage, root: Path) -> None:
    await stored(storage, [memory_of("The office is in Lyon", id="mem-00000000000a")])
    journal = root / "bob" / "memories.yaml"
    backup = journal.read_bytes()
    await storage.update("mem-00000000000a", {"content": "The office is in Oslo"})
    await storage.prepare(None)
    first = index_of(storage)
    journal.write_bytes(backup)
    assert (await storage.search("office Lyon"))[0].memory.content == "The office is in Lyon"
    assert await storage.caught_up(60)
    assert index_of(storage) != first
    found = await storage.search("office Lyon")
    assert [(hit.memory.content, hit.match_type) for hit in found] == [("The office is in Lyon", "hybrid")]


async def test_both_sides_of_a_fork_go_on(root: Path, clock: FrozenClock, embedder: HashEmbedder) -> None:
    from tests.concurrency.processes import running  # only here

    made_index(root, embedder.identity)
    with running("vector_after_fork", root) as forking:
        (said,) = forking.finish()
    assert said == {"child_found": True, "child_holds": False, "parent_holds": True}


# -- what it takes ----------------------------------------------------------------------------------------------------


def test_without_an_embedder_or_the_engine_there_is_no_vector_storage(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raises(ConfigurationError, "no_embedder"):
        VectorStorage("bob", root, settings=ServiceSettings(embedder="none"))
    monkeypatch.setattr(shards, "ENGINE_PACKAGE", "a_package_that_is_not_installed")
    with raises(ConfigurationError, "engine_missing"):
        VectorStorage("bob", root, embedder=HashEmbedder())


async def test_opening_creates_nothing_and_a_file_where_the_index_should_be_does_no_harm(
    root: Path, clock: FrozenClock
) -> None:
    storage = VectorStorage("bob", root, clock=clock, embedder=HashEmbedder())
    assert not root.exists()
    await storage.store(memory_of("tea"))
    (root / "bob" / "memories.db").write_text("not a folder")
    await storage.prepare(None)
    assert [r.memory.content for r in await storage.search("tea")] == ["tea"]
    assert not await storage.caught_up(3)
    assert "problem" in (await storage.health())["index"]
    await storage.close()


async def test_second_model_is_used_from_the_next_start(root: Path, clock: FrozenClock) -> None:
    english, foreign = HashEmbedder(), HashEmbedder(96, {"katze": "cat", "schläft": "sleeps"}, model="foreign")
    made_index(root, english.identity)

    def open_storage() -> VectorStorage:
        return VectorStorage(
            "bob", root, clock=clock, embedder=english, second_embedder=foreign, options=options(rest_seconds=0.0)
        )

    storage = open_storage()
    await storage.store_many([memory_of("The cat sleeps in the kitchen."), memory_of("The car is red.")])
    await storage.search("Wo schläft die Katze?")
    assert await storage.prepare(None)
    assert "next start" in ((await storage.search("Wo schläft die Katze?")).degraded or "")
    assert len(foreign.embedded) == 2
    await storage.close()

    storage = open_storage()
    assert await storage.prepare(None)
    assert await storage.caught_up(60)
    results = await storage.search("Wo schläft die Katze?")
    assert results[0].memory.content == "The cat sleeps in the kitchen."
    assert results.degraded is None
    shard = shards.Shards(storage.folder)
    state = shard.state(index_of(storage) or "")
    assert state is not None
    assert state.embedder == str(EmbedderPair(english, foreign).identity)
    await storage.close()
