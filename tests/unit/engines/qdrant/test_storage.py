"""`QdrantServerStorage` beyond the contract: whose requests these are, its collection, and its vectors."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import models

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.server_client import ServerRequests
from agent_memory.engines.server_storage import SERVER_LIMITS
from agent_memory.errors import ConfigurationError, EmbeddingError, ReadOnlyError, StorageError
from tests.qdrant_server import QUIET, QdrantServer
from tests.support import memory_of, raises
from tests.unit.engines.qdrant.conftest import COLLECTION, point_of, points_of

if TYPE_CHECKING:
    from agent_memory.memories import QdrantServerStorage
    from tests.support import FrozenClock

pytestmark = QUIET


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
            wire = ServerRequests(server.client, COLLECTION, "bob", "memory", SERVER_LIMITS.pauses)
            assert set(args[1]) <= mine | {wire.point("head:")} | _forgotten_points(server, wire)
        else:
            assert filters, f"{name} without a filter"
        for operation in args[1] if name == "batch_update_points" else ():
            assert filters_in(operation), type(operation).__name__
        if name == "upsert":
            assert all(point.payload["agent_id"] == "bob" for point in args[1])


def _forgotten_points(server: QdrantServer, wire: ServerRequests) -> set[str]:
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


@pytest.mark.parametrize("which", ["head:", "mem-000000000001"])
async def test_a_point_that_another_author_wrote_is_neither_read_nor_overwritten(
    server: QdrantServer, bob: QdrantServerStorage, which: str
) -> None:
    await bob.count()
    point = point_of(server, which)
    server.client.upsert(COLLECTION, [models.PointStruct(id=point, payload={"agent_id": "mallory"}, vector={})])
    with raises(StorageError, "foreign_point"):
        await bob.store(memory_of("tea", id="mem-000000000001"))
    assert server.client.retrieve(COLLECTION, [point])[0].payload == {"agent_id": "mallory"}
    if which != "head:":
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
    assert without.embedding_status() == {"status": "off", "reason": "embedder is set to none", "chosen": True}
    assert await with_vectors.prepare() is True
    assert [r.match_type for r in await with_vectors.search("tea")] == ["hybrid", "hybrid"]


async def test_a_collection_begun_without_an_embedder_stays_searched_by_words(
    server: QdrantServer, bob: QdrantServerStorage, clock: FrozenClock
) -> None:
    await bob.store(memory_of("tea"))
    late = server.open(clock=clock, embedder=HashEmbedder())
    assert len(await late.search("tea")) == 1
    assert late.embedding_status()["status"] == "off"
    assert "begun without an embedder" in late.embedding_status()["reason"]


async def test_a_broken_model_leaves_words(server: QdrantServer, clock: FrozenClock) -> None:
    class Broken(HashEmbedder):
        identity = property(lambda self: (_ for _ in ()).throw(EmbeddingError("no model")), lambda self, value: None)

    storage = server.open(clock=clock, embedder=Broken())
    await storage.store(memory_of("tea"))
    assert (await storage.search("tea")).mode == "keyword"
    assert storage.embedding_status() == {"status": "off", "reason": "no model"}


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
    head = point_of(server)
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
    point = point_of(server, memory_id)
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
    assert left[point_of(server, memory_id)][1] == {}
