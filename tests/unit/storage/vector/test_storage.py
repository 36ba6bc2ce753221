"""What the engine changes (nothing one can see), what it survives, and what it is told of changes."""

from __future__ import annotations

import json
import random
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engine import EngineClient
from agent_memory.errors import ConfigurationError
from agent_memory.retrieval import Limits
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.storage.vector.candidates import NEAREST
from agent_memory.storage.vector.storage import MigratableStorage, VectorStorage
from tests.engines import EngineHere, made_index
from tests.support import NOON, FrozenClock, memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from agent_memory.models import Memory, SearchResults

WORDS = ("ledger", "parser", "queue", "cache", "router", "session", "uses", "needs", "Redis", "Kafka", "YAML", "worker")


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[EngineHere]:
    """Let engines work in this process, and return all that were started."""
    started: list[EngineHere] = []

    def start(*arguments: Any) -> EngineHere:
        started.append(EngineHere(*arguments))
        return started[-1]

    monkeypatch.setattr("agent_memory.storage.vector.sync.EngineClient", start)
    monkeypatch.setattr("agent_memory.storage.vector.candidates.PAYS_FROM", 0)
    return started


@pytest.fixture
async def storage(
    root: Path, clock: FrozenClock, embedder: HashEmbedder, engines: list[EngineHere]
) -> AsyncIterator[VectorStorage]:
    """Return a storage that holds an index."""
    made_index(root, embedder.identity)
    storage = await held(root, clock, embedder)
    yield storage
    await storage.close()


async def held(root: Path, clock: FrozenClock, embedder: HashEmbedder) -> VectorStorage:
    storage = VectorStorage("bob", root, clock=clock, embedder=embedder)
    await storage.prepare(None)
    assert await storage.caught_up(30)
    return storage


def facts(count: int, seed: int = 0) -> list[Memory]:
    choose = random.Random(seed)
    return [
        memory_of(
            " ".join(choose.choices(WORDS, k=6)) + f" number{n}. " * choose.choice([1, 1, 1, 60]),
            category=choose.choice(["note", "task"]),
            tags=choose.sample(["a", "b", "c"], choose.randrange(3)),
            timestamp=NOON - timedelta(days=choose.randrange(400)),
        )
        for n in range(count)
    ]


async def stored(storage: FileStorage, memories: list[Memory]) -> None:
    for memory in memories:
        await storage.store(memory)
    await storage.prepare(None)


def seen(results: SearchResults) -> list[tuple[str, float, str]]:
    return [(hit.memory.id, round(hit.relevance_score, 5), hit.match_type) for hit in results]


# -- the same search finds the same things ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"category": "task"},
        {"tags": ["a", "b"]},
        {"date_range": {"start": "2025-06-01", "end": "2025-12-31"}},
        {"category": "note", "tags": ["c"], "date_range": {"start": "2025-06-01"}},
        {"min_access_count": 1},
    ],
)
async def test_a_search_finds_what_it_finds_without_an_engine(
    storage: VectorStorage,
    engines: list[EngineHere],
    embedder: HashEmbedder,
    clock: FrozenClock,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    filters: dict[str, Any],
) -> None:
    monkeypatch.setattr(storage._store.index, "limits", Limits(few=-1))  # so few would be looked at one by one
    memories = facts(NEAREST + 100)
    await stored(storage, memories)
    await storage.touch([memory.id for memory in memories[::7]])
    assert await storage.caught_up(30)
    plain = MigratableStorage("bob", root, clock=clock, embedder=embedder, wanted=False)
    await plain.prepare(None)
    plain._keeper.step = lambda: None  # type: ignore[method-assign]  # this one looks at every memory
    for query in ("which worker uses Kafka", "number17", "parser cache router", "Redis"):
        assert seen(await storage.search(query, 20, filters)) == seen(await plain.search(query, 20, filters))
    assert engines[0].asked == 4
    await plain.close()


async def test_what_the_engine_has_not_heard_of_is_found_by_meaning_all_the_same(
    storage: VectorStorage, engines: list[EngineHere], monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(storage, facts(20))
    assert await storage.caught_up(30)
    monkeypatch.setattr(storage._keeper, "step", lambda: None)
    new = memory_of("Kafka worker zebra")
    gone = (await storage.search("Kafka"))[0].memory.id
    await stored(storage, [new])
    await storage.delete(gone)
    asked = engines[0].asked
    found = await storage.search("zebra Kafka worker", 100)
    assert engines[0].asked > asked
    assert found[0].memory.id == new.id
    assert found[0].match_type == "hybrid"
    assert gone not in {hit.memory.id for hit in found}


async def test_many_unheard_changes_are_looked_at_without_the_engine(
    storage: VectorStorage, engines: list[EngineHere], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.vector.candidates._MOST_BEHIND", 3)
    monkeypatch.setattr(storage._keeper, "step", lambda: None)
    await stored(storage, facts(10))
    assert len(await storage.search("Kafka number3")) > 0
    assert engines[0].asked == 0


async def test_few_memories_are_compared_here_which_is_faster_but_the_engine_learns_of_them(
    storage: VectorStorage, engines: list[EngineHere], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.vector.candidates.PAYS_FROM", 6)
    await stored(storage, facts(5))
    assert await storage.caught_up(30)
    assert (await storage.search("Kafka number3")).mode == "hybrid"
    assert engines[0].asked == 0
    await stored(storage, facts(1, seed=1))
    assert await storage.caught_up(30)
    await storage.search("Kafka number3")
    assert engines[0].asked == 1


# -- keeping in step --------------------------------------------------------------------------------------------------


async def test_the_engine_learns_of_each_kind_of_change(storage: VectorStorage, engines: list[EngineHere]) -> None:
    memories = facts(5)
    await stored(storage, memories)
    changed = await storage.update(memories[0].id, {"category": "decision", "tags": ["new"]})
    await storage.delete(memories[1].id)
    assert await storage.caught_up(30)
    host = engines[0]._host
    assert host is not None
    assert set(host._points) == {memory.id for memory in memories} - {memories[1].id}
    assert [r.memory.id for r in await storage.search("number0", filters={"tags": ["new"]})] == [changed.id]


async def test_a_memory_that_becomes_shorter_leaves_no_piece_behind(
    storage: VectorStorage, engines: list[EngineHere]
) -> None:
    memory = memory_of("A long story about peppermint. " * 60)
    await stored(storage, [memory])
    assert await storage.caught_up(30)
    host = engines[0]._host
    assert host is not None
    assert len(host._points[memory.id]) > 1
    await storage.update(memory.id, {"content": "short"})
    await storage.prepare(None)
    assert await storage.caught_up(30)
    assert len(host._points[memory.id]) == host._shard.count() == 1


async def test_who_opens_the_index_begins_where_the_last_one_ended(
    storage: VectorStorage, engines: list[EngineHere], root: Path, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    memories = facts(30)
    await stored(storage, memories)
    assert await storage.caught_up(30)
    await storage.close()
    plain = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    await plain.update(memories[3].id, {"content": "changed while nobody held the index"})
    await plain.delete(memories[4].id)
    await plain.touch([memory.id for memory in memories if memory is not memories[4]])
    await plain.close()
    again = await held(root, clock, embedder)
    sent = [call for call in engines[-1].sent if call[0] != "nearest"]
    assert sorted(sent) == [("delete", [memories[4].id]), ("upsert", [memories[3].id])]
    await again.close()


async def test_a_compaction_by_somebody_else_writes_nothing_anew(
    storage: VectorStorage, engines: list[EngineHere], root: Path, clock: FrozenClock
) -> None:
    await stored(storage, facts(30))
    assert await storage.caught_up(30)
    sent = len(engines[0].sent)
    clock.advance(days=90)
    other = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    await other.compact()
    await other.close()
    assert len(await storage.search("Kafka")) > 0
    assert await storage.caught_up(30)
    assert [call for call in engines[0].sent[sent:] if call[0] == "upsert"] == []


async def test_a_long_session_flushes_and_notes_how_far_it_is(
    storage: VectorStorage, engines: list[EngineHere], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.vector.sync._FLUSH_AFTER", 5)
    await stored(storage, facts(6))
    assert await storage.caught_up(30)
    await storage.caught_up(30)
    while storage._tending is not None and not storage._tending.done():
        await storage._tending
    assert "flush" in {do for do, _ in engines[0].sent}
    state = storage._generations.state(storage._keeper._generation)
    assert state is not None
    assert state.seq == 6


async def test_a_renamed_agent_keeps_its_index(
    storage: VectorStorage, engines: list[EngineHere], root: Path, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    await stored(storage, facts(8))
    assert await storage.caught_up(30)
    await storage.close()
    (root / "bob").rename(root / "robert")
    renamed = VectorStorage("robert", root, clock=clock, embedder=embedder)
    await renamed.prepare(None)
    assert await renamed.caught_up(30)
    assert engines[-1].sent == []
    await renamed.update((await renamed.list_recent(1))[0].id, {"content": "a new text"})
    await renamed.prepare(None)
    assert await renamed.caught_up(30)
    host = engines[-1]._host
    assert host is not None
    assert host._shard.count() == sum(map(len, host._points.values()))
    await renamed.close()


# -- trouble ----------------------------------------------------------------------------------------------------------


async def test_an_engine_that_dies_costs_nothing_but_speed(
    root: Path, clock: FrozenClock, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.vector.candidates.PAYS_FROM", 0)
    made_index(root, embedder.identity)
    storage = VectorStorage("bob", root, clock=clock, embedder=embedder)
    await stored(storage, facts(10))
    assert await storage.caught_up(60)
    before = seen(await storage.search("Kafka number3", 10))
    client = storage._keeper._client
    assert isinstance(client, EngineClient)
    client._process.kill()
    client._process.wait()
    assert seen(await storage.search("Kafka number3", 10)) == before
    await storage.store(memory_of("after the engine died"))
    assert [r.memory.content for r in await storage.search("died")] == ["after the engine died"]
    await storage.close()
    again = await held(root, clock, embedder)
    assert [r.memory.content for r in await again.search("died")] == ["after the engine died"]
    await again.close()


def spoil_state(folder: Path) -> None:
    (folder / "state.json").write_text("{")


def spoil_format(folder: Path) -> None:
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "format": 99}))


def spoil_embedder(folder: Path) -> None:
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "embedder": "test:another:64"}))


def spoil_watermark(folder: Path) -> None:
    state = json.loads((folder / "state.json").read_text())
    (folder / "state.json").write_text(json.dumps({**state, "seq": 10_000}))


def spoil_shard(folder: Path) -> None:
    for file in (folder / "shard").rglob("*.json"):
        file.write_bytes(b"\x00")


def lose_everything(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "spoil", [spoil_state, spoil_format, spoil_embedder, spoil_watermark, spoil_shard, lose_everything]
)
async def test_an_index_that_is_no_good_is_built_anew_while_searches_go_on(
    storage: VectorStorage, root: Path, clock: FrozenClock, embedder: HashEmbedder, spoil: Callable[[Path], None]
) -> None:
    await stored(storage, facts(20))
    assert await storage.caught_up(30)
    expected = seen(await storage.search("Kafka number3", 10))
    old = storage._keeper._generation
    await storage.close()
    spoil(root / "bob" / "memories.db" / old)
    again = VectorStorage("bob", root, clock=clock, embedder=embedder)
    await again.prepare(None)
    assert seen(await again.search("Kafka number3", 10)) == expected
    assert await again.caught_up(60)
    assert again._keeper._generation != old
    assert seen(await again.search("Kafka number3", 10)) == expected
    assert [each.name for each in (root / "bob" / "memories.db").iterdir() if each.is_dir()] == [
        again._keeper._generation
    ]
    await again.close()


async def test_a_build_that_does_not_help_is_not_tried_without_end(
    root: Path, clock: FrozenClock, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds: list[object] = []

    async def useless(*arguments: object, **_options: object) -> None:
        builds.append(arguments)

    monkeypatch.setattr("agent_memory.storage.vector.storage.build_index", useless)
    storage = VectorStorage("bob", root, clock=clock, embedder=embedder)
    await stored(storage, facts(3))
    assert not await storage.caught_up(1)
    assert len(builds) == 1
    assert len(await storage.search("Kafka number1")) > 0
    await storage.close()


async def test_an_index_that_has_changed_much_is_built_anew(
    storage: VectorStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.vector.sync._WORN_AFTER", 10)
    first = storage._keeper._generation
    await stored(storage, facts(12))
    while storage._keeper._generation == first:
        assert await storage.caught_up(60)
    state = storage._generations.state(storage._keeper._generation)
    assert state is not None
    assert state.written == 0


async def test_a_journal_restored_under_us_has_its_index_built_anew(storage: VectorStorage, root: Path) -> None:
    await stored(storage, [memory_of("The office is in Lyon", id="mem-00000000000a")])
    journal = root / "bob" / "memories.yaml"
    backup = journal.read_bytes()
    await storage.update("mem-00000000000a", {"content": "The office is in Oslo"})
    await storage.prepare(None)
    assert await storage.caught_up(30)
    first = storage._keeper._generation
    journal.write_bytes(backup)
    assert (await storage.search("office Lyon"))[0].memory.content == "The office is in Lyon"
    while storage._keeper._generation == first:
        assert await storage.caught_up(60)
    found = await storage.search("office Lyon")
    assert [(hit.memory.content, hit.match_type) for hit in found] == [("The office is in Lyon", "hybrid")]


async def test_both_sides_of_a_fork_go_on(root: Path, clock: FrozenClock, embedder: HashEmbedder) -> None:
    from tests.concurrency.processes import running  # only here

    made_index(root, embedder.identity)
    with running("vector_after_fork", root) as forking:
        (said,) = forking.finish()
    assert said == {"child_found": True, "child_holds": False, "parent_holds": True}


# -- what it takes ----------------------------------------------------------------------------------------------------


def test_without_an_embedder_there_is_no_vector_storage(root: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        VectorStorage("bob", root, settings=ServiceSettings(embedder="none"))
    assert refused.value.code == "no_embedder"


def test_without_the_engine_there_is_no_vector_storage(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_memory.engine.PACKAGE", "a_package_that_is_not_installed")
    with pytest.raises(ConfigurationError) as refused:
        VectorStorage("bob", root, embedder=HashEmbedder())
    assert refused.value.code == "engine_missing"


def test_opening_creates_nothing(root: Path) -> None:
    VectorStorage("bob", root, embedder=HashEmbedder())
    assert not root.exists()


async def test_a_file_where_the_index_should_be_does_no_harm(root: Path, clock: FrozenClock) -> None:
    storage = VectorStorage("bob", root, clock=clock, embedder=HashEmbedder())
    await storage.store(memory_of("tea"))
    (root / "bob" / "memories.db").write_text("not a folder")
    await storage.prepare(None)
    assert [r.memory.content for r in await storage.search("tea")] == ["tea"]
    assert not await storage.caught_up(3)
    assert "problem" in (await storage.health())["index"]
    await storage.close()
