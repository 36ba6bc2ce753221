"""`QdrantServerStorage` beyond the contract: whose requests these are, who wins a race, what a crash leaves behind."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import models

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import BusyError, ConfigurationError, EmbeddingError, ReadOnlyError, StorageError
from agent_memory.memories import QdrantServerStorage
from agent_memory.settings import ServiceSettings
from agent_memory.storage.qdrant.client import UnreachableError, Wire
from agent_memory.storage.qdrant.limits import ServerLimits
from agent_memory.storage.qdrant.log import ServerLog
from tests.qdrant_server import QUIET, QdrantServer
from tests.support import memory_of, raises

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support import FrozenClock

pytestmark = QUIET
COLLECTION = "agent_memory"


@pytest.fixture
async def server() -> AsyncIterator[QdrantServer]:
    server = QdrantServer()
    yield server
    await server.close_opened()


@pytest.fixture
def bob(server: QdrantServer, clock: FrozenClock) -> QdrantServerStorage:
    return server.open(clock=clock)


@pytest.fixture
def other(server: QdrantServer, clock: FrozenClock) -> QdrantServerStorage:
    """Return bob's memory on another machine."""
    return server.open(clock=clock)


def points_of(server: QdrantServer, agent: str) -> dict[str, Any]:
    only = models.Filter(must=[models.FieldCondition(key="agent_id", match=models.MatchValue(value=agent))])
    found, _ = server.client.scroll(COLLECTION, only, limit=10_000, with_vectors=True)
    return {str(point.id): (point.payload, point.vector) for point in found}


def dies_before_points(name: str) -> None:
    if name == "batch_update_points":
        raise UnreachableError("The memory server is gone.", maybe_sent=False)


def filters_in(value: Any) -> list[models.Filter]:
    """Return every filter anywhere in a request."""
    if isinstance(value, models.Filter):
        return [value]
    if isinstance(value, list | tuple):
        return [one for item in value for one in filters_in(item)]
    if isinstance(value, dict):
        return filters_in(list(value.values()))
    if hasattr(type(value), "model_fields"):
        return filters_in([getattr(value, name) for name in type(value).model_fields])
    return []


# -- many agents in one collection ------------------------------------------------------------------------------------


async def every_method(storage: QdrantServerStorage, agent: str) -> None:
    first = memory_of("green tea", agent_id=agent)
    await storage.store(first)
    second = await storage.store(memory_of("black tea", agent_id=agent, supersedes=first.id))
    await storage.store(memory_of("black tea", agent_id=agent), unique=True)
    await storage.store_many([memory_of("coffee", agent_id=agent)])
    await storage.prepare()
    await storage.search("tea", explain=True, include_superseded=True)
    await storage.update(second, {"pinned": True})
    await storage.update(second, {"content": "red tea"})
    await storage.touch([first.id, second])
    await storage.update_access_stats(second)
    await storage.get(second)
    await storage.list_recent()
    await storage.older_versions(second)
    await storage.superseded()
    await storage.valid()
    await storage.was_forgotten("tea")
    await storage.count()
    await storage.delete(second)
    await storage.compact()
    await storage.health()


async def test_every_request_about_memories_is_bound_to_its_agent(server: QdrantServer, clock: FrozenClock) -> None:
    storage = server.open(clock=clock, embedder=HashEmbedder())
    await every_method(storage, "bob")
    clock.advance(days=60)
    await storage.compact()
    await storage.close()
    again = server.open(clock=clock)
    await again.count()
    mine = set(points_of(server, "bob"))
    about_points = [c for c in server.calls if c[0] not in {"info", "collection_exists", "get_collection", "close"}]
    about_points = [c for c in about_points if not c[0].startswith("create_")]
    assert {name for name, *_ in about_points} == {
        "retrieve", "scroll", "query_points", "upsert", "batch_update_points",
    }  # fmt: skip
    for name, args, kwargs in about_points:
        filters = filters_in([list(args), kwargs])
        for one in filters:
            first = one.must[0]
            assert (first.key, first.match.value) == ("agent_id", "bob"), name
        if name == "retrieve":
            wire = Wire(server.client, COLLECTION, "bob", "memory")
            assert set(args[1]) <= mine | {wire.point("head:")} | _forgotten_points(server, wire)
        else:
            assert filters, f"{name} without a filter"
        for operation in args[1] if name == "batch_update_points" else ():
            assert filters_in(operation), type(operation).__name__
        if name == "upsert":
            assert all(point.payload["agent_id"] == "bob" for point in args[1])


def _forgotten_points(server: QdrantServer, wire: Wire) -> set[str]:
    """Return the points of memories whose marks were purged meanwhile: their ids stand in the upserts of before."""
    batches = [op for name, args, _ in server.calls if name == "batch_update_points" for op in args[1]]
    puts = [op.upsert.points for op in batches if isinstance(op, models.UpsertOperation)]
    ids = {point.id: point.payload["id"] for points in puts for point in points}
    assert all(wire.point(memory_id) == point for point, memory_id in ids.items())
    return set(map(str, ids))


async def test_what_one_agent_does_changes_nothing_of_anothers(server: QdrantServer, clock: FrozenClock) -> None:
    alice = server.open("alice", clock=clock, embedder=HashEmbedder())
    kept = [memory_of(text, agent_id="alice") for text in ("green tea", "black tea", "coffee")]
    for memory in kept:
        await alice.store(memory)
    await alice.prepare()
    before = points_of(server, "alice")
    bob = server.open(clock=clock, embedder=HashEmbedder())
    await every_method(bob, "bob")
    assert points_of(server, "alice") == before
    assert [m async for m in alice.iter_all()] == kept
    assert await alice.count() == 3
    assert {r.memory.agent_id for r in await bob.search("tea coffee", 100)} == {"bob"}


async def test_the_same_id_is_another_memory_for_another_agent(server: QdrantServer, clock: FrozenClock) -> None:
    alice, bob = server.open("alice", clock=clock), server.open(clock=clock)
    theirs = memory_of("hers", agent_id="alice")
    await alice.store(theirs)
    await bob.store(memory_of("his", id=theirs.id))
    await bob.delete(theirs.id)
    assert await alice.get(theirs.id) == theirs


async def test_a_point_that_another_author_wrote_is_neither_read_nor_overwritten(
    server: QdrantServer, bob: QdrantServerStorage
) -> None:
    await bob.count()
    head = Wire(server.client, COLLECTION, "bob", "memory").point("head:")
    server.client.upsert(COLLECTION, [models.PointStruct(id=head, payload={"agent_id": "mallory"}, vector={})])
    with raises(StorageError, "foreign_point"):
        await bob.store(memory_of("tea"))
    assert server.client.retrieve(COLLECTION, [head])[0].payload == {"agent_id": "mallory"}


async def test_a_memorys_point_of_another_author_stays_as_it_is(server: QdrantServer, bob: QdrantServerStorage) -> None:
    await bob.count()
    memory = memory_of("tea")
    point = Wire(server.client, COLLECTION, "bob", "memory").point(memory.id)
    server.client.upsert(COLLECTION, [models.PointStruct(id=point, payload={"agent_id": "mallory"}, vector={})])
    with raises(StorageError, "foreign_point"):
        await bob.store(memory)
    assert server.client.retrieve(COLLECTION, [point])[0].payload == {"agent_id": "mallory"}
    assert await bob.count() == 0


async def test_upper_and_lower_case_are_one_agent(server: QdrantServer, clock: FrozenClock) -> None:
    lower, upper = server.open("bob", clock=clock), server.open("BOB", clock=clock)
    await lower.store(memory_of("tea"))
    assert [m.content async for m in upper.iter_all()] == ["tea"]


# -- the collection ---------------------------------------------------------------------------------------------------


async def test_the_collection_is_made_for_many_agents(server: QdrantServer, clock: FrozenClock) -> None:
    storage = server.open(clock=clock, embedder=HashEmbedder(), qdrant_shards=3, qdrant_replicas=3)
    await storage.count()
    created = next(kwargs for name, _, kwargs in server.calls if name == "create_collection")
    assert (created["shard_number"], created["replication_factor"], created["write_consistency_factor"]) == (3, 3, 2)
    indexes = {args[1]: kwargs["field_schema"] for name, args, kwargs in server.calls if name == "create_payload_index"}
    assert indexes["agent_id"].is_tenant is True
    used = {
        c.key for _, a, k in server.calls for one in filters_in([list(a), k]) for c in one.must if hasattr(c, "key")
    }
    assert used <= indexes.keys()


async def test_another_embedder_is_an_error_that_names_both(server: QdrantServer, clock: FrozenClock) -> None:
    first = server.open(clock=clock, embedder=HashEmbedder(model="one"))
    await first.store(memory_of("tea"))
    second = server.open(clock=clock, embedder=HashEmbedder(model="two"))
    with raises(ConfigurationError, "other_embedder") as refused:
        await second.count()
    assert "test:one:64" in refused.value.message
    assert "test:two:64" in refused.value.message


async def test_who_has_no_embedder_searches_the_same_memories_by_words(
    server: QdrantServer, clock: FrozenClock
) -> None:
    with_vectors, without = server.open(clock=clock, embedder=HashEmbedder()), server.open(clock=clock)
    await with_vectors.store(memory_of("green tea"))
    await without.store(memory_of("black tea"))
    assert [r.match_type for r in await without.search("tea")] == ["keyword", "keyword"]
    assert await without.prepare() is False
    assert without.embedding() == {"status": "off", "reason": "embedder is set to none", "chosen": True}
    assert await with_vectors.prepare() is True
    assert [r.match_type for r in await with_vectors.search("tea")] == ["hybrid", "hybrid"]


async def test_a_collection_begun_without_an_embedder_stays_searched_by_words(
    server: QdrantServer, bob: QdrantServerStorage, clock: FrozenClock
) -> None:
    await bob.store(memory_of("tea"))
    late = server.open(clock=clock, embedder=HashEmbedder())
    assert len(await late.search("tea")) == 1
    assert late.embedding()["status"] == "off"
    assert "begun without an embedder" in late.embedding()["reason"]


async def test_a_broken_model_leaves_words(server: QdrantServer, clock: FrozenClock) -> None:
    class Broken(HashEmbedder):
        identity = property(lambda self: (_ for _ in ()).throw(EmbeddingError("no model")), lambda self, value: None)

    storage = server.open(clock=clock, embedder=Broken())
    await storage.store(memory_of("tea"))
    assert (await storage.search("tea")).mode == "keyword"
    assert storage.embedding() == {"status": "off", "reason": "no model"}


async def test_a_collection_of_something_else_is_left_alone(server: QdrantServer, bob: QdrantServerStorage) -> None:
    server.client.create_collection(COLLECTION, vectors_config={})
    with raises(ConfigurationError, "foreign_collection"):
        await bob.store(memory_of("tea"))
    assert server.client.count(COLLECTION).count == 0


async def test_a_server_without_conditional_writes_is_refused(
    server: QdrantServer, bob: QdrantServerStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.client, "info", lambda: models.VersionInfo(title="qdrant", version="1.15.4"))
    with raises(ConfigurationError, "old_server"):
        await bob.count()


async def test_memories_of_a_newer_version_are_not_read(server: QdrantServer, bob: QdrantServerStorage) -> None:
    await bob.store(memory_of("tea"))
    head = Wire(server.client, COLLECTION, "bob", "memory").point("head:")
    server.client.set_payload(COLLECTION, {"min_reader": 2, "seq": 2}, [head])
    with pytest.raises(ReadOnlyError):
        await bob.count()


# -- vectors ----------------------------------------------------------------------------------------------------------


async def test_a_text_is_embedded_once_for_all_clients(server: QdrantServer, clock: FrozenClock) -> None:
    one, two = HashEmbedder(), HashEmbedder()
    first, second = server.open(clock=clock, embedder=one), server.open(clock=clock, embedder=two)
    await first.store(memory_of("green tea"))
    assert await first.prepare()
    assert await second.prepare()
    assert (await second.search("tea")).mode == "hybrid"
    assert (one.embedded, two.embedded) == (["green tea"], [])


async def test_a_changed_text_gets_a_vector_of_its_own(server: QdrantServer, clock: FrozenClock) -> None:
    embedder = HashEmbedder()
    storage = server.open(clock=clock, embedder=embedder)
    memory_id = await storage.store(memory_of("green tea"))
    await storage.prepare()
    await storage.update(memory_id, {"pinned": True})
    await storage.touch([memory_id])
    await storage.prepare()
    assert embedder.embedded == ["green tea"]
    await storage.update(memory_id, {"content": "a train to Oslo"})
    await storage.prepare()
    assert embedder.embedded == ["green tea", "a train to Oslo"]
    found = await storage.search("train")
    assert found[0].parts["cosine"] > 0.4


async def test_a_vector_that_comes_after_its_text_was_changed_is_not_kept(
    server: QdrantServer, clock: FrozenClock, bob: QdrantServerStorage
) -> None:
    embedder = HashEmbedder()
    embedder.gate.clear()
    slow = server.open(clock=clock, embedder=embedder)
    memory_id = await slow.store(memory_of("green tea"))
    filling = asyncio.create_task(slow.prepare())
    await asyncio.sleep(0.05)
    await bob.update(memory_id, {"content": "a train to Oslo"})
    embedder.gate.set()
    await filling
    point = Wire(server.client, COLLECTION, "bob", "memory").point(memory_id)
    assert server.client.retrieve(COLLECTION, [point], with_vectors=True)[0].vector == {}
    assert await slow.prepare()
    assert server.client.retrieve(COLLECTION, [point], with_vectors=True)[0].vector != {}


async def test_a_long_memory_is_found_by_any_of_its_pieces(server: QdrantServer, clock: FrozenClock) -> None:
    storage = server.open(clock=clock, embedder=HashEmbedder(256))
    filler = "\n".join(f"line {n} about nothing in particular and more of it" for n in range(40))
    await storage.store(memory_of(f"{filler}\nzebra zebra zebra zebra zebra\n{filler}"))
    await storage.prepare()
    assert (await storage.search("zebra"))[0].parts["cosine"] > 0.2


async def test_forgetting_takes_the_vector_and_the_text_away(server: QdrantServer, clock: FrozenClock) -> None:
    storage = server.open(clock=clock, embedder=HashEmbedder())
    memory_id = await storage.store(memory_of("peppermint"))
    await storage.prepare()
    await storage.delete(memory_id)
    await storage.touch([await storage.store(memory_of("something else"))])
    left = points_of(server, "bob")
    assert "peppermint" not in json.dumps([payload for payload, _ in left.values()])
    assert left[Wire(server.client, COLLECTION, "bob", "memory").point(memory_id)][1] == {}


# -- races and crashes ------------------------------------------------------------------------------------------------


async def test_accesses_counted_by_many_clients_all_count(server: QdrantServer, clock: FrozenClock) -> None:
    clients = [server.open(clock=clock) for _ in range(4)]
    memory_id = await clients[0].store(memory_of("tea"))
    await asyncio.gather(*(client.touch([memory_id]) for client in clients for _ in range(6)))
    memory = await clients[0].get(memory_id)
    assert memory.access_count == 24


async def test_a_race_for_one_text_has_one_winner(server: QdrantServer, clock: FrozenClock) -> None:
    clients = [server.open(clock=clock) for _ in range(6)]
    ids = await asyncio.gather(*(client.store(memory_of("Tea"), unique=True) for client in clients))
    assert len(set(ids)) == 1
    assert await clients[0].count() == 1


async def test_who_always_loses_gives_up_and_says_so(
    server: QdrantServer, other: QdrantServerStorage, clock: FrozenClock
) -> None:
    settings, limits = ServiceSettings(backend="server", embedder="none"), ServerLimits(longest_wait=0.0001)
    bob = QdrantServerStorage("bob", settings=settings, clock=clock, client=server.connect, limits=limits)
    rival = ServerLog(Wire(server.client, COLLECTION, "bob", "memory"), "content")
    await bob.count()

    def before(name: str) -> None:
        if name == "upsert":
            rival.sync()
            from agent_memory.journal import Change

            memory = memory_of("again")
            rival.commit([Change("put", "memory", memory.id, memory.to_record())], "2026-03-01T12:00:00Z")

    server.before = before
    with pytest.raises(BusyError):
        await bob.store(memory_of("tea"))
    server.before = None
    assert "tea" not in {m.content async for m in other.iter_all()}


async def test_a_writer_that_dies_after_its_commit_has_stored(
    server: QdrantServer, bob: QdrantServerStorage, other: QdrantServerStorage, clock: FrozenClock
) -> None:
    """The head is written and the memories' points are not: readers see the change, the next writer carries it out."""
    old = await bob.store(memory_of("office in Berlin"))
    await bob.touch([old])

    server.before = dies_before_points
    new = await bob.store(memory_of("office in Lyon", supersedes=old))
    server.before = None
    assert Wire(server.client, COLLECTION, "bob", "memory").point(new) not in points_of(server, "bob")
    assert [m.content async for m in other.iter_all()] == ["office in Berlin", "office in Lyon"]
    fresh = server.open(clock=clock)
    assert await fresh.superseded() == {old: new}
    await other.touch([new])
    assert Wire(server.client, COLLECTION, "bob", "memory").point(new) in points_of(server, "bob")
    for view in (bob, other, fresh):
        assert (await view.get(new)).access_count == 1


async def test_a_chain_is_forgotten_whole_although_the_writer_dies(
    server: QdrantServer, bob: QdrantServerStorage, other: QdrantServerStorage
) -> None:
    first = await bob.store(memory_of("Berlin"))
    second = await bob.store(memory_of("Lyon", supersedes=first))

    server.before = dies_before_points
    await bob.delete(second)
    server.before = None
    assert await other.count() == 0
    assert await other.was_forgotten("Berlin")
    await other.store(memory_of("Oslo"))
    assert [
        payload["record"] is None for payload, _ in points_of(server, "bob").values() if payload["kind"] == "memory"
    ].count(True) == 2


async def test_a_change_that_is_carried_out_again_and_late_changes_nothing(
    server: QdrantServer, bob: QdrantServerStorage
) -> None:
    memory_id = await bob.store(memory_of("tea"))
    batches = [args[1] for name, args, _ in server.calls if name == "batch_update_points"]
    await bob.update(memory_id, {"content": "coffee"})
    await bob.touch([memory_id])
    before = points_of(server, "bob")
    for operations in batches:
        server.client.batch_update_points(COLLECTION, operations)
    assert points_of(server, "bob") == before


async def test_an_answer_that_was_lost_is_looked_up(server: QdrantServer, bob: QdrantServerStorage) -> None:
    """The request arrived twice, the second time in vain: the head still names this client."""
    original = server.answer
    monkey = {"done": False}

    def twice(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "upsert" and not monkey["done"]:
            monkey["done"] = True
            original(name, *args, **kwargs)
        return original(name, *args, **kwargs)

    await bob.count()
    server.answer = twice  # type: ignore[method-assign]
    memory_id = await bob.store(memory_of("tea"))
    assert await bob.count() == 1
    assert await bob.get(memory_id) is not None


async def test_when_it_is_not_known_whether_a_change_was_made_the_error_says_so(
    server: QdrantServer, bob: QdrantServerStorage
) -> None:
    memory = memory_of("tea")
    await bob.count()
    sent: list[str] = []

    def lost(name: str) -> None:
        if name == "retrieve" and sent:
            raise UnreachableError("The memory server is gone.", maybe_sent=False)
        if name == "upsert":
            sent.append(name)

    server.before = lost
    with raises(StorageError, "unknown"):
        await bob.store(memory)
    server.before = None
    assert await bob.store(memory) == memory.id  # which is what its recovery says
    assert await bob.count() == 1


# -- another past -----------------------------------------------------------------------------------------------------


async def test_a_server_restored_from_a_backup_is_believed(
    server: QdrantServer, bob: QdrantServerStorage, clock: FrozenClock
) -> None:
    await bob.store(memory_of("kept"))
    backup = {point: payload for point, (payload, _) in points_of(server, "bob").items()}
    await bob.store(memory_of("lost one"))
    await bob.store(memory_of("lost two"))
    server.client.delete(COLLECTION, list(points_of(server, "bob")))
    points = [models.PointStruct(id=point, payload=payload, vector={}) for point, payload in backup.items()]
    server.client.upsert(COLLECTION, points)
    assert [m.content async for m in bob.iter_all()] == ["kept"]
    assert list(await bob.search("lost")) == []
    stranger = server.open(clock=clock)
    await stranger.store(memory_of("new"))
    await stranger.store(memory_of("newer"))
    assert [m.content async for m in bob.iter_all()] == ["kept", "new", "newer"]


async def test_a_past_that_went_another_way_is_noticed(server: QdrantServer, bob: QdrantServerStorage) -> None:
    """Restored from a backup, and as many changes later as this client had seen before."""
    await bob.store(memory_of("kept"))
    backup = {point: payload for point, (payload, _) in points_of(server, "bob").items()}
    await bob.store(memory_of("lost"))
    server.client.delete(COLLECTION, list(points_of(server, "bob")))
    points = [models.PointStruct(id=point, payload=payload, vector={}) for point, payload in backup.items()]
    server.client.upsert(COLLECTION, points)
    rival = ServerLog(Wire(server.client, COLLECTION, "bob", "memory"), "content")
    from agent_memory.journal import Change

    for text in ("new", "newer"):
        rival.sync()
        memory = memory_of(text)
        rival.commit([Change("put", "memory", memory.id, memory.to_record())], "2026-03-01T12:00:00Z")
    assert [m.content async for m in bob.iter_all()] == ["kept", "new", "newer"]


async def test_a_wiped_collection_is_an_empty_memory(server: QdrantServer, bob: QdrantServerStorage) -> None:
    await bob.store(memory_of("tea"))
    server.client.delete(COLLECTION, list(points_of(server, "bob")))
    assert await bob.count() == 0
    await bob.store(memory_of("coffee"))
    assert [m.content async for m in bob.iter_all()] == ["coffee"]


# -- what is forgotten ------------------------------------------------------------------------------------------------


async def test_marks_of_the_forgotten_go_after_thirty_days(
    server: QdrantServer, bob: QdrantServerStorage, clock: FrozenClock
) -> None:
    await bob.delete(await bob.store(memory_of("tea")))
    clock.advance(days=29)
    await bob.compact()
    assert await bob.was_forgotten("tea")
    clock.advance(days=2)
    await bob.compact()
    assert {payload["kind"] for payload, _ in points_of(server, "bob").values()} == {"head"}
    fresh = server.open(clock=clock)
    assert not await fresh.was_forgotten("tea")


async def test_forgetting_drops_old_marks_by_itself(
    server: QdrantServer, bob: QdrantServerStorage, clock: FrozenClock
) -> None:
    await bob.delete(await bob.store(memory_of("tea")))
    recent = await bob.store(memory_of("coffee"))
    clock.advance(days=31)
    await bob.delete(recent)
    await bob.count()  # after what `delete` does behind its answer
    rows = [payload for payload, _ in points_of(server, "bob").values() if payload["kind"] == "memory"]
    assert [row["id"] for row in rows] == [recent]


async def test_a_client_that_slept_through_a_purge_notices_what_was_forgotten(
    server: QdrantServer, bob: QdrantServerStorage, other: QdrantServerStorage, clock: FrozenClock
) -> None:
    gone = await bob.store(memory_of("tea"))
    await bob.store(memory_of("coffee"))
    assert await other.count() == 2
    await bob.delete(gone)
    clock.advance(days=31)
    await bob.compact()
    assert [m.content async for m in other.iter_all()] == ["coffee"]


async def test_an_id_may_be_used_again_and_every_forgotten_text_stays_forgotten(bob: QdrantServerStorage) -> None:
    memory = memory_of("tea")
    await bob.store(memory)
    await bob.delete(memory.id)
    await bob.store(memory_of("coffee", id=memory.id))
    await bob.delete(memory.id)
    assert await bob.was_forgotten("tea")
    assert await bob.was_forgotten("coffee")


async def test_fields_of_a_newer_version_survive_a_change(
    server: QdrantServer, bob: QdrantServerStorage, other: QdrantServerStorage, clock: FrozenClock
) -> None:
    memory_id = await bob.store(memory_of("tea"))
    point = Wire(server.client, COLLECTION, "bob", "memory").point(memory_id)
    record = points_of(server, "bob")[point][0]["record"]
    server.client.set_payload(COLLECTION, {"record": {**record, "mood": "good"}}, [point])
    await other.update(memory_id, {"pinned": True})
    await other.touch([memory_id])
    assert points_of(server, "bob")[point][0]["record"]["mood"] == "good"
    seen = await bob.get(memory_id)
    assert (seen.pinned, seen.access_count) == (True, 1)


async def test_a_record_that_breaks_the_model_is_reported_and_hides_nothing(
    server: QdrantServer, bob: QdrantServerStorage, clock: FrozenClock
) -> None:
    await bob.store(memory_of("tea"))
    broken = await bob.store(memory_of("coffee"))
    point = Wire(server.client, COLLECTION, "bob", "memory").point(broken)
    server.client.set_payload(COLLECTION, {"record": {"content": "", "timestamp": "never"}}, [point])
    fresh = server.open(clock=clock)
    assert [m.content async for m in fresh.iter_all()] == ["tea"]
    health = await fresh.health()
    assert (health["status"], health["problems"]) == ("damaged", 1)


async def test_time_is_the_clients(server: QdrantServer, bob: QdrantServerStorage, clock: FrozenClock) -> None:
    memory_id = await bob.store(memory_of("tea"))
    now = clock.advance(hours=3)
    await bob.touch([memory_id])
    seen = await bob.get(memory_id)
    assert seen.last_accessed == now
    assert seen.timestamp == now - timedelta(hours=3)
