"""`QdrantServerStorage` over real HTTP on loopback: what goes over the wire, and a server that fails in every way."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.server_storage import ServerLimits, connect
from agent_memory.errors import AgentMemoryError, ConfigurationError, StorageError
from agent_memory.memories import QdrantServerStorage
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import detect_storage
from tests.qdrant_server import QUIET, Answer, QdrantHttpServer
from tests.rows import check_rows
from tests.support import FrozenClock, memory_of, raises

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


pytestmark = [pytest.mark.enable_socket, *QUIET]
QUICK = ServerLimits(pauses=(0.001, 0.001))
KEY = "not-" + "a-real-key"


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch) -> Iterator[QdrantHttpServer]:
    monkeypatch.delenv("QDRANT_API_KEY", raising=False)
    running = QdrantHttpServer()
    yield running
    running.close()


def settings_for(url: str) -> ServiceSettings:
    return ServiceSettings(backend="server", embedder="none", qdrant_url=url)


@pytest.fixture
async def bob(http: QdrantHttpServer, clock: FrozenClock) -> AsyncIterator[QdrantServerStorage]:
    storage = QdrantServerStorage("bob", settings=settings_for(http.url), clock=clock, limits=QUICK)
    yield storage
    await storage.close()


async def test_a_whole_life_goes_over_the_wire(
    http: QdrantHttpServer, bob: QdrantServerStorage, clock: FrozenClock
) -> None:
    """What the remote client sends and reads is right by the API's own models, for every request there is."""
    other = QdrantServerStorage("bob", settings=settings_for(http.url), clock=clock, limits=QUICK)
    old = memory_of(
        "“office” in Berlin \u2028 漢字", tags=["a"], metadata={"deep": [1.5, None, {"x": True}]}, access_count=2
    )
    assert await bob.store(old) == await other.store(memory_of("“office” in  Berlin 漢字"), unique=True) == old.id
    new = memory_of("office in Lyon", supersedes=old.id)
    await other.store_many([new, memory_of("tea")])
    await bob.touch([old.id, new.id])
    await other.update(new.id, {"pinned": True, "content": "office in Oslo"})
    for view in (bob, other):
        assert [m.content async for m in view.iter_all()] == [old.content, "office in Oslo", "tea"]
        assert await view.superseded() == {old.id: new.id}
        assert await view.get(old.id) == old.model_copy(update={"access_count": 3, "last_accessed": clock()})
        assert [r.memory.id for r in await view.search("office")] == [new.id]
    await other.delete(new.id)
    assert await bob.count() == 1
    assert await bob.was_forgotten("Office in Oslo")
    clock.advance(days=31)
    await bob.compact()
    fresh = QdrantServerStorage("bob", settings=settings_for(http.url), clock=clock, limits=QUICK)
    assert [m.content async for m in fresh.iter_all()] == ["tea"]
    assert not await fresh.was_forgotten("Office in Oslo")
    await fresh.close()
    await other.close()


async def test_meaning_works_over_http(http: QdrantHttpServer, clock: FrozenClock) -> None:
    storage = QdrantServerStorage(
        "bob", settings=settings_for(http.url), clock=clock, embedder=HashEmbedder(), limits=QUICK
    )
    await storage.store(memory_of("green tea"))
    assert await storage.prepare()
    found = await storage.search("green tea")
    assert (found.mode, found[0].match_type) == ("hybrid", "hybrid")
    await storage.close()


async def test_writes_go_through_the_leader_and_reads_ask_a_majority(
    http: QdrantHttpServer, bob: QdrantServerStorage
) -> None:
    await bob.store(memory_of("tea"))
    for path, parameters in http.queries:
        if path.endswith(("/points", "/points/batch")) and "consistency" not in parameters:
            assert (parameters["ordering"], parameters["wait"]) == (["strong"], ["true"]), path
        elif path.endswith(("/points", "/points/scroll", "/points/query")):
            assert parameters["consistency"] == ["majority"], path


# -- the key ----------------------------------------------------------------------------------------------------------


async def test_the_key_comes_from_the_environment_and_goes_nowhere_but_to_the_server(
    http: QdrantHttpServer, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    settings = settings_for(http.url)
    storage = QdrantServerStorage("bob", settings=settings, clock=clock, limits=QUICK)
    await storage.store(memory_of("tea"))
    assert {headers.get("api-key") for headers in http.headers} == {KEY}
    http.trouble = lambda method, path: (403, {"status": {"error": f"bad key {KEY}"}})
    with raises(StorageError, "key_refused") as refused:
        await storage.count()
    assert "QDRANT_API_KEY" in refused.value.recovery
    assert KEY not in " ".join([repr(settings), repr(storage), str(storage.__dict__), str(refused.value), caplog.text])
    assert http.url not in repr(settings)
    await storage.close()


async def test_a_key_over_plain_http_to_another_machine_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", KEY)
    for url, warned in (("http://memory.example", True), ("https://memory.example", False), ("http://[::1]", False)):
        caplog.clear()
        connect(settings_for(url)).close()
        assert ("key_travels_unencrypted" in caplog.text) is warned
        assert KEY not in caplog.text


@check_rows("url", ["memory.example", "ftp://memory.example", "http://", f"https://user:{KEY}@memory.example", "::"])
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        connect(settings_for(url))
    assert KEY not in str(refused.value)
    assert "QDRANT_API_KEY" in refused.value.recovery


def test_without_an_address_there_is_no_storage() -> None:
    with pytest.raises(ConfigurationError, match="qdrant_url"):
        QdrantServerStorage("bob", settings=ServiceSettings(backend="server"))


def test_without_the_client_library_there_is_no_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_memory.engines.server_storage.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError) as refused:
        QdrantServerStorage("bob", settings=settings_for("http://localhost:6333"))
    assert "qdrant-client" in refused.value.recovery


async def test_settings_lead_to_the_server(http: QdrantHttpServer, clock: FrozenClock) -> None:
    storage = detect_storage("bob", settings=settings_for(http.url), clock=clock)
    await storage.store(memory_of("tea"))
    assert (storage.backend, await storage.count()) == ("server", 1)
    await storage.close()


# -- a server in trouble ----------------------------------------------------------------------------------------------


def failing(times: int, status: int, body: object = b"") -> Callable[[str, str], Answer | None]:
    left = [times]

    def trouble(method: str, path: str) -> Answer | None:
        left[0] -= 1
        return (status, body) if left[0] >= 0 else None

    return trouble


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_passing_trouble_is_tried_again(http: QdrantHttpServer, bob: QdrantServerStorage, status: int) -> None:
    await bob.count()
    http.trouble = failing(2, status)
    await bob.store(memory_of("tea"))
    assert await bob.count() == 1


async def test_a_lasting_trouble_is_an_error_that_says_what_still_works(
    http: QdrantHttpServer, bob: QdrantServerStorage
) -> None:
    await bob.store(memory_of("tea"))
    await bob.count()  # after what `store` does behind its answer
    http.trouble = failing(10_000, 503)
    before = len(http.queries)
    with raises(StorageError, "server_down") as down:
        await bob.store(memory_of("coffee"))
    assert len(http.queries) - before == 3
    assert "503" in down.value.message
    assert "scratchpad" in down.value.recovery
    with pytest.raises(StorageError):
        await bob.count()
    assert len(http.queries) - before == 4  # while it is down, nobody waits for three attempts again
    http.trouble = failing(0, 503)
    assert await bob.count() == 1


async def test_a_server_that_is_not_there_is_an_error_and_later_works(
    http: QdrantHttpServer, clock: FrozenClock, unused_port: int
) -> None:
    gone = QdrantServerStorage(
        "bob", settings=settings_for(f"http://127.0.0.1:{unused_port}"), clock=clock, limits=QUICK
    )
    with pytest.raises(StorageError) as down:
        await gone.count()
    assert (down.value.code, "cannot be reached" in down.value.message) == ("server_down", True)
    assert gone.embedding_status()["status"] == "loading"
    await gone.close()


@pytest.fixture
def unused_port() -> int:
    server = QdrantHttpServer()
    server.close()
    return int(server.url.rsplit(":", 1)[1])


async def test_a_server_that_does_not_answer_in_time_is_an_error(http: QdrantHttpServer, clock: FrozenClock) -> None:
    limits = ServerLimits(timeout=1, pauses=())
    storage = QdrantServerStorage("bob", settings=settings_for(http.url), clock=clock, limits=limits)
    await storage.count()

    def hangs(method: str, path: str) -> Answer | None:
        if method == "PUT":
            http.release.wait()
        return None

    http.trouble = hangs
    with pytest.raises(StorageError) as late:
        await storage.store(memory_of("tea"))
    assert "did not answer in time" in late.value.message
    assert late.value.code == "unknown"  # the request may still be under way
    http.release.set()
    await storage.close()


@pytest.mark.parametrize("garbage", [b"", b"<html>login</html>", b"{", b"[]", b'{"result": 5}', b"\xff\xfe\x00"])
async def test_garbage_is_an_error_and_no_crash(
    http: QdrantHttpServer, bob: QdrantServerStorage, garbage: bytes
) -> None:
    await bob.store(memory_of("tea"))
    http.trouble = failing(10_000, 200, garbage)
    for attempt in (bob.count(), bob.store(memory_of("coffee"))):
        with raises(StorageError, "bad_answer"):
            await attempt
    http.trouble = failing(0, 200)
    assert await bob.count() == 1


async def test_a_lost_connection_is_an_error(http: QdrantHttpServer, bob: QdrantServerStorage) -> None:
    await bob.count()

    def breaks(method: str, path: str) -> Answer | None:
        raise ConnectionResetError  # the handler's thread ends, and with it the connection

    http.trouble = breaks
    with raises(StorageError, "server_down"):
        await bob.count()


async def test_an_error_repeats_nothing_of_what_was_sent_or_answered(
    http: QdrantHttpServer, bob: QdrantServerStorage, caplog: pytest.LogCaptureFixture
) -> None:
    await bob.count()
    http.trouble = lambda method, path: (400, b"peppermint " + path.encode()) if method == "PUT" else None
    with pytest.raises(AgentMemoryError) as refused:
        await bob.store(memory_of("peppermint tea"))
    assert "peppermint" not in str(refused.value) + caplog.text


async def test_a_service_answers_from_the_scratchpad_while_the_server_is_down(
    http: QdrantHttpServer, bob: QdrantServerStorage
) -> None:
    service = MemoryService(bob, settings_for(http.url))
    await service.store({"content": "The office is in Lyon", "trust": "high"})
    await service.scratchpad()
    await service.settle()
    http.trouble = failing(10_000, 503)
    found = await service.search("office")
    assert [result.memory.content for result in found.results] == ["The office is in Lyon"]
    assert found.degraded is not None
    status = await service.status()
    assert status.health["status"] == "unreadable"
    http.trouble = failing(0, 503)
    await service.close()


async def test_a_crash_of_the_server_between_commit_and_the_rest_loses_nothing(
    http: QdrantHttpServer, bob: QdrantServerStorage
) -> None:
    await bob.count()
    http.trouble = lambda method, path: (503, b"") if path.endswith("/batch") else None
    memory_id = await bob.store(memory_of("tea"))
    http.trouble = failing(0, 503)
    fresh = QdrantServerStorage("bob", settings=settings_for(http.url), clock=FrozenClock())
    assert await fresh.get(memory_id) is not None
    await fresh.close()
