"""The log on a Qdrant server: who wins a race, what a crash leaves behind, another past, and what is forgotten."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import models

from agent_memory.engines.server_client import ServerRequests, UnreachableError
from agent_memory.engines.server_log import ServerLog
from agent_memory.engines.server_storage import SERVER_LIMITS, ServerLimits
from agent_memory.errors import BusyError, StorageError
from agent_memory.journal import Change
from agent_memory.memories import QdrantServerStorage
from agent_memory.settings import ServiceSettings
from tests.qdrant_server import QUIET, QdrantServer
from tests.support import memory_of, raises
from tests.unit.engines.qdrant.conftest import COLLECTION, point_of, points_of

if TYPE_CHECKING:
    from tests.support import FrozenClock

pytestmark = QUIET


def dies_before_points(name: str) -> None:
    if name == "batch_update_points":
        raise UnreachableError("The memory server is gone.", maybe_sent=False)


def rival_on(server: QdrantServer) -> ServerLog:
    """Return what another client writes with."""
    return ServerLog(ServerRequests(server.client, COLLECTION, "bob", "memory", SERVER_LIMITS.pauses), "content")


def commit(rival: ServerLog, text: str) -> None:
    rival.sync()
    memory = memory_of(text)
    rival.commit([Change("put", "memory", memory.id, memory.to_record())], "2026-03-01T12:00:00Z")


def restore(server: QdrantServer, backup: dict[str, Any]) -> None:
    """Have the server hold what it held then, and nothing else."""
    server.client.delete(COLLECTION, list(points_of(server, "bob")))
    points = [models.PointStruct(id=point, payload=payload, vector={}) for point, (payload, _) in backup.items()]
    server.client.upsert(COLLECTION, points)


# -- races and crashes ------------------------------------------------------------------------------------------------


async def test_accesses_counted_by_many_clients_all_count(server: QdrantServer, clock: FrozenClock) -> None:
    clients = [server.open(clock=clock) for _ in range(4)]
    memory_id = await clients[0].store(memory_of("tea"))
    await asyncio.gather(*(client.touch([memory_id]) for client in clients for _ in range(6)))
    memory = await clients[0].get(memory_id)
    assert memory.access_count == 24


async def test_who_always_loses_gives_up_and_says_so(
    server: QdrantServer, other: QdrantServerStorage, clock: FrozenClock
) -> None:
    settings, limits = ServiceSettings(backend="server", embedder="none"), ServerLimits(longest_wait=0.0001)
    bob = QdrantServerStorage("bob", settings=settings, clock=clock, client=server.connect, limits=limits)
    rival = rival_on(server)
    await bob.count()
    server.before = lambda name: commit(rival, "again") if name == "upsert" else None
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
    assert point_of(server, new) not in points_of(server, "bob")
    assert [m.content async for m in other.iter_all()] == ["office in Berlin", "office in Lyon"]
    fresh = server.open(clock=clock)
    assert await fresh.superseded() == {old: new}
    await other.touch([new])
    assert point_of(server, new) in points_of(server, "bob")
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
    backup = points_of(server, "bob")
    await bob.store(memory_of("lost one"))
    await bob.store(memory_of("lost two"))
    restore(server, backup)
    assert [m.content async for m in bob.iter_all()] == ["kept"]
    assert list(await bob.search("lost")) == []
    stranger = server.open(clock=clock)
    await stranger.store(memory_of("new"))
    await stranger.store(memory_of("newer"))
    assert [m.content async for m in bob.iter_all()] == ["kept", "new", "newer"]


async def test_a_past_that_went_another_way_is_noticed(server: QdrantServer, bob: QdrantServerStorage) -> None:
    """Restored from a backup, and as many changes later as this client had seen before."""
    await bob.store(memory_of("kept"))
    backup = points_of(server, "bob")
    await bob.store(memory_of("lost"))
    restore(server, backup)
    rival = rival_on(server)
    for text in ("new", "newer"):
        commit(rival, text)
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
    await bob.folds()  # after what `delete` does behind its answer
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
    point = point_of(server, memory_id)
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
    point = point_of(server, broken)
    server.client.set_payload(COLLECTION, {"record": {"content": "", "timestamp": "never"}}, [point])
    fresh = server.open(clock=clock)
    assert [m.content async for m in fresh.iter_all()] == ["tea"]
    health = await fresh.health()
    assert (health["status"], health["problems"]) == ("damaged", 1)
