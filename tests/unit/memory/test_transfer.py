"""Pushing to a server and pulling from it: everything once, as it was, and again after a kill at any moment."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_memory.engines.server_client import UnreachableError
from agent_memory.errors import StorageError, ValidationError
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.memory.caller import NOBODY
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.qdrant_server import QUIET, Answer, QdrantHttpServer, QdrantServer
from tests.support import FrozenClock, memory_of, put_unchecked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator
    from pathlib import Path

    from agent_memory.memories import QdrantServerStorage
    from agent_memory.memory.results import Imported
    from agent_memory.models import Memory
    from tests.unit.memory.conftest import Listener

pytestmark = QUIET
SECRET = "ghp_" + "x7Kq2mZ9" * 4 + "aB3d"


@pytest.fixture
def server() -> QdrantServer:
    return QdrantServer()


@pytest.fixture
async def there(server: QdrantServer, clock: FrozenClock) -> AsyncIterator[QdrantServerStorage]:
    storage = server.open(clock=clock)
    yield storage
    await storage.close()


@pytest.fixture
async def here(root: Path, clock: FrozenClock) -> AsyncIterator[FileStorage]:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    yield storage
    await storage.close()


async def everything(storage: FileStorage | QdrantServerStorage) -> list[Memory]:
    return [memory async for memory in storage.iter_all()]


async def pushed(
    here: FileStorage, there: QdrantServerStorage, each: Callable[[Imported], object] = lambda _: None
) -> list[Imported]:
    """Push what is missing there; return what became of each memory."""
    told: list[Imported] = []
    service = MemoryService(here, ServiceSettings(embedder="none"))
    await service.writer.transfer(await everything(here), lambda one: (told.append(one), each(one)), NOBODY, to=there)
    await service.settle()
    return told


async def pulled(
    there: QdrantServerStorage, here: FileStorage, each: Callable[[Imported], object] = lambda _: None
) -> list[Imported]:
    """Pull what is missing here; return what became of each memory."""
    told: list[Imported] = []
    service = MemoryService(here, ServiceSettings(embedder="none"))
    await service.writer.transfer(await everything(there), lambda one: (told.append(one), each(one)), NOBODY)
    await service.settle()
    return told


def outcomes(told: list[Imported]) -> dict[str, str]:
    return {one.memory_id: one.outcome for one in told}


async def a_life(here: FileStorage, count: int = 25) -> list[Memory]:
    """Store memories that replace each other, were accessed, changed and forgotten; return what is left."""
    ids: list[str] = []
    for number in range(count):
        replaced = ids[-2] if number % 5 == 4 else None
        ids.append(await here.store(memory_of(f"fact {number}", supersedes=replaced, access_count=number % 3)))
    await here.touch(ids[::2])
    await here.update(ids[1], {"pinned": True, "supersedes": ids[-1]})  # replaces one that was stored after it
    await here.delete(ids[7])
    return await everything(here)


async def test_what_was_pushed_is_there_as_it_was_and_pushing_again_stores_nothing_twice(
    here: FileStorage, there: QdrantServerStorage
) -> None:
    memories = await a_life(here)
    moved = await pushed(here, there)
    assert {m.id: m for m in await everything(there)} == {m.id: m for m in memories}
    assert await there.superseded() == await here.superseded()
    assert [one.outcome for one in moved] == ["stored"] * len(memories)
    assert outcomes(await pushed(here, there)) == {m.id: "present" for m in memories}
    assert await there.count() == len(memories)


async def test_there_and_back_is_the_same_memory(
    here: FileStorage, there: QdrantServerStorage, tmp_path: Path, clock: FrozenClock
) -> None:
    memories = await a_life(here)
    await pushed(here, there)
    other = FileStorage("bob", tmp_path / "elsewhere", settings=ServiceSettings(embedder="none"), clock=clock)
    told = await pulled(there, other)
    assert {m.id: m for m in await everything(other)} == {m.id: m for m in memories}
    assert await other.superseded() == await here.superseded()
    assert {one.outcome for one in told} == {"stored"}
    assert {one.outcome for one in await pulled(there, other)} == {"present"}
    await other.close()


async def test_a_push_is_told_as_events_and_noted_in_the_audit_log(
    here: FileStorage, there: QdrantServerStorage, listener: Listener
) -> None:
    await here.store(memory_of("tea"))
    service = MemoryService(here, ServiceSettings(embedder="none"), audit=AuditLog(here.folder.audit))
    await service.writer.transfer(await everything(here), lambda _: None, listener.caller, to=there)
    await service.settle()
    [event] = listener.of("memory:stored")
    assert event["backend"] == "server"
    assert event["memory_id"] in here.folder.audit.read_text()


async def test_what_is_there_stays_as_it_is(here: FileStorage, there: QdrantServerStorage) -> None:
    memory = memory_of("tea", tags=["here"])
    await here.store(memory)
    await there.store(memory_of("coffee", id=memory.id))
    same = await here.store(memory_of("milk"))
    await there.store(memory_of("milk", id=same, access_count=7))
    assert outcomes(await pushed(here, there)) == {memory.id: "differs", same: "present"}
    assert [m.content for m in await everything(there)] == ["coffee", "milk"]


async def test_what_was_forgotten_on_the_other_side_does_not_come_back(
    here: FileStorage, there: QdrantServerStorage
) -> None:
    for text in ("pushed", "pulled"):
        memory = memory_of(f"the office is {text}")
        for storage in (here, there):
            await storage.store(memory)
        await (there if text == "pushed" else here).delete(memory.id)
        told = await (pushed(here, there) if text == "pushed" else pulled(there, here))
        assert outcomes(told)[memory.id] == "forgotten"
        await (here if text == "pushed" else there).delete(memory.id)


async def test_secrets_stay_behind_and_are_no_difference_later(here: FileStorage, there: QdrantServerStorage) -> None:
    kept, bare = memory_of(f"the deploy token is {SECRET}"), memory_of(SECRET)
    put_unchecked(here, (kept, bare))  # as a version before this one could leave them
    told = {one.memory_id: one for one in await pushed(here, there)}
    assert told[kept.id].redacted
    assert (told[bare.id].outcome, getattr(told[bare.id].error, "code", None)) == ("refused", "only_secret")
    assert all(SECRET not in m.content for m in await everything(there))
    assert outcomes(await pushed(here, there))[kept.id] == "present"


async def test_one_that_is_refused_does_not_hold_up_the_others(
    here: FileStorage, there: QdrantServerStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = [memory_of(f"fact {n}") for n in range(5)]
    for memory in memories:
        await here.store(memory)
    asked = there.forgotten_among

    async def ask_while_another_stores(contents: Collection[str]) -> set[str]:
        await there.store(memory_of("something else", id=memories[2].id))  # between looking and storing
        return await asked(contents)

    monkeypatch.setattr(there, "forgotten_among", ask_while_another_stores)
    told = await pushed(here, there)
    assert [one.outcome for one in told] == ["stored", "stored", "refused", "stored", "stored"]
    assert isinstance(told[2].error, ValidationError)
    assert await there.count() == 5


@pytest.mark.parametrize("request_number", [1, 2, 3, 7, 8, 9, 12])
async def test_a_push_that_broke_off_is_completed_by_the_next(
    server: QdrantServer, here: FileStorage, there: QdrantServerStorage, request_number: int
) -> None:
    memories = await a_life(here, 225)
    left = [request_number]

    def breaks(name: str) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise UnreachableError("The memory server is gone.", maybe_sent=False)

    told: list[Imported] = []
    server.before = breaks
    with pytest.raises(StorageError):
        await pushed(here, there, told.append)
    server.before = None
    stored = {m.id for m in await everything(there)}
    assert {one.memory_id for one in told} <= stored  # what was reported is there
    again = outcomes(await pushed(here, there))
    assert {memory_id for memory_id, outcome in again.items() if outcome == "present"} == stored
    assert {m.id: m for m in await everything(there)} == {m.id: m for m in memories}


async def test_a_pull_that_broke_off_is_completed_by_the_next_with_every_link(
    here: FileStorage, there: QdrantServerStorage, tmp_path: Path, clock: FrozenClock
) -> None:
    """A memory that replaces one stored after it must not come without its link: nobody would set it later."""
    memories = await a_life(here, 125)
    await pushed(here, there)
    other = FileStorage("bob", tmp_path / "elsewhere", settings=ServiceSettings(embedder="none"), clock=clock)
    told: list[Imported] = []

    def breaks(imported: Imported) -> None:
        told.append(imported)
        if len(told) == 3:
            raise StorageError("The disk is gone.")

    with pytest.raises(StorageError):
        await pulled(there, other, breaks)
    assert 0 < await other.count() < len(memories)
    await pulled(there, other)
    assert {m.id: m for m in await everything(other)} == {m.id: m for m in memories}
    await other.close()


async def test_upper_and_lower_case_are_one_agent(server: QdrantServer, here: FileStorage, clock: FrozenClock) -> None:
    await here.store(memory_of("tea"))
    upper = server.open("Bob", clock=clock)
    await pushed(here, upper)
    assert [(m.agent_id, m.content) for m in await everything(upper)] == [("Bob", "tea")]
    await upper.close()


# -- a real kill ------------------------------------------------------------------------------------------------------

PUSHER = """
import asyncio, sys
from agent_memory.memory import NOBODY, MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.memories import QdrantServerStorage

async def main(root, url):
    here = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    there = QdrantServerStorage("bob", settings=ServiceSettings(embedder="none", qdrant_url=url))
    told = []
    memories = [memory async for memory in here.iter_all()]
    await MemoryService(here).writer.transfer(memories, told.append, NOBODY, to=there)
    print(sum(one.outcome == "stored" for one in told))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def http() -> Iterator[QdrantHttpServer]:
    running = QdrantHttpServer()
    yield running
    running.close()


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    "at_write", [pytest.param(1, marks=pytest.mark.deep), 3, pytest.param(6, marks=pytest.mark.deep)]
)
async def test_a_push_that_was_killed_is_completed_by_the_next(
    http: QdrantHttpServer, here: FileStorage, root: Path, clock: FrozenClock, at_write: int
) -> None:
    memories = await a_life(here, 600)
    children: list[subprocess.Popen[str]] = []
    writes = [0]

    def kills(method: str, path: str) -> Answer | None:
        writes[0] += path.endswith(("/points", "/points/batch")) and method == ("PUT" if path.endswith("s") else "POST")
        if len(children) == 1 and writes[0] == at_write:
            children[0].kill()  # while its request is under way
            children[0].wait()
        return None

    http.trouble = kills
    _, output = [_run_child(children, root, http.url) for _ in range(2)]
    assert children[0].returncode == -9
    assert (children[1].returncode, 0 < int(output) <= len(memories)) == (0, True)
    there = http.open(clock=clock)
    assert {m.id: m for m in await everything(there)} == {m.id: m for m in memories}
    assert await there.superseded() == await here.superseded()
    await there.close()


def _run_child(children: list[subprocess.Popen[str]], root: Path, url: str) -> str:
    command = [sys.executable, "-c", PUSHER, str(root), url]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    children.append(child)
    return child.communicate()[0]
