"""The thread's patience: who waits for a lock, for how long, and who gives up."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import BusyError
from agent_memory.store import worker
from agent_memory.store.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.store.worker import Hold


class Lock:
    """A lock that is had after a while, by a clock that moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.free_after: list[float] = []
        self.waited: list[float] = []

    def monotonic(self) -> float:
        return self.now

    @contextlib.contextmanager
    def hold(self, wait: float) -> Iterator[None]:
        needed = self.free_after.pop(0)
        self.waited.append(wait)
        self.now += min(wait, needed)
        if needed > wait:
            raise BusyError("held")
        yield

    def look(self) -> Hold:
        return self.hold


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Lock:
    lock = Lock()
    monkeypatch.setattr(worker, "time", lock)
    return lock


@pytest.fixture
def patient() -> Iterator[Worker]:
    patient = Worker(patience=5)
    yield patient
    patient.close()


async def test_a_write_does_not_give_up_because_of_the_writes_before_it(patient: Worker, lock: Lock) -> None:
    lock.free_after = [4.0] * 20
    writes = (patient.write(lambda n: (n, None), lock.look, lambda n=number: n) for number in range(20))
    assert await asyncio.gather(*writes) == list(range(20))
    assert set(lock.waited) == {5.0}


async def test_write_held_lock_looks_once_before_waiting(patient: Worker, lock: Lock) -> None:
    lock.free_after = [1.0, 1.0]
    steps: list[str] = []
    write = patient.write(
        lambda _: (steps.append("write"), None), lock.look, look=lambda: steps.append(f"look {len(lock.waited)}")
    )
    await write
    assert steps == ["look 0", "write"]
    assert lock.waited == [0.0, 5.0]


async def test_writes_that_wait_for_a_lock_nobody_gives_back_give_up_together(patient: Worker, lock: Lock) -> None:
    lock.free_after = [60.0] * 4
    all_wait = threading.Event()
    writes = asyncio.gather(
        *(patient.write(lambda _: (None, None), lock.look, lambda: all_wait.wait(10)) for _ in range(4)),
        return_exceptions=True,
    )
    await asyncio.sleep(0)  # each of them asks, and none is told anything yet
    all_wait.set()
    assert [type(each) for each in await writes] == [BusyError] * 4
    assert lock.waited[0] == 5.0
    assert set(lock.waited[1:]) <= {0.0}


async def test_an_error_of_a_write_is_told_and_costs_the_next_one_nothing(patient: Worker, lock: Lock) -> None:
    lock.free_after = [4.0, 4.0]

    def fails(_: object) -> tuple[None, None]:
        raise KeyError("mine")

    first, second = await asyncio.gather(
        patient.write(fails, lock.look, bool),
        patient.write(lambda _: ("done", None), lock.look, bool),
        return_exceptions=True,
    )
    assert isinstance(first, KeyError)
    assert second == "done"


async def test_worker_lock_free_write_takes_it_without_waiting(patient: Worker, lock: Lock) -> None:
    lock.free_after = [0.0]
    threads: list[str] = []

    def write(_: object) -> tuple[str, None]:
        threads.append(threading.current_thread().name.rpartition("_")[0])
        return "done", None

    assert await patient.write(write, lock.look) == "done"
    assert threads == ["agent-memory-store"]
    assert lock.waited == [0.0]


async def test_worker_lock_busy_reads_do_not_wait(patient: Worker, lock: Lock) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def hold(wait: float) -> Iterator[None]:
        if not wait:
            raise BusyError("held")
        begun.set()
        go_on.wait(10)
        yield

    write = asyncio.ensure_future(patient.write(lambda _: ("written", None), lambda: hold))
    await asyncio.to_thread(begun.wait, 10)
    later = asyncio.ensure_future(patient.write(lambda _: ("later", None), lambda: contextlib.nullcontext))
    assert [await patient.run(lambda: "read") for _ in range(3)] == ["read"] * 3
    assert not write.done()
    assert not later.done()
    go_on.set()
    assert [await write, await later] == ["written", "later"]


async def test_worker_queued_read_does_not_wait_for_sync(patient: Worker, lock: Lock) -> None:
    lock.free_after = [0.0]
    begun, go_on, synced = threading.Event(), threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go_on.wait(10)

    before = asyncio.ensure_future(patient.run(wait))
    await asyncio.to_thread(begun.wait, 10)
    write = asyncio.ensure_future(patient.write(lambda _: ("written", lambda: synced.wait(10)), lock.look))
    await asyncio.sleep(0)
    read = asyncio.ensure_future(patient.run(lambda: "read"))
    await asyncio.sleep(0)
    go_on.set()
    assert await read == "read"
    assert not write.done()
    synced.set()
    assert await write == "written"
    await before


async def test_worker_write_is_answered_after_its_sync(patient: Worker, lock: Lock) -> None:
    lock.free_after = [0.0] * 3
    begun, synced = threading.Event(), threading.Event()
    order: list[str] = []

    def sync() -> None:
        begun.set()
        synced.wait(10)
        order.append("synced")

    first = asyncio.ensure_future(patient.write(lambda _: ("first", sync), lock.look))
    await asyncio.to_thread(begun.wait, 10)
    later = [asyncio.ensure_future(patient.write(lambda _: ("later", None), lock.look)) for _ in range(2)]
    await asyncio.sleep(0)
    assert not first.done()
    synced.set()
    first.add_done_callback(lambda _: order.append("answered"))
    assert [await first, *[await write for write in later]] == ["first", "later", "later"]
    assert order == ["synced", "answered"]


def test_worker_closed_while_write_waits_for_lock_writes_first() -> None:
    closing = Worker(patience=5)
    begun, go_on = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def hold(wait: float) -> Iterator[None]:
        if not wait:
            raise BusyError("held")
        begun.set()
        go_on.wait(10)
        yield

    async def write_and_close() -> str:
        write = asyncio.ensure_future(closing.write(lambda _: ("written", None), lambda: hold))
        await asyncio.to_thread(begun.wait, 10)
        end = asyncio.ensure_future(asyncio.to_thread(closing.close))
        await asyncio.sleep(0)
        go_on.set()
        await end
        return await write

    assert asyncio.run(write_and_close()) == "written"


async def test_who_asked_later_does_not_give_up_with_those_whose_time_is_over(patient: Worker, lock: Lock) -> None:
    lock.free_after = [60.0, 60.0, 3.0]
    begun, both_wait = threading.Event(), threading.Event()

    def prepare() -> None:
        begun.set()
        both_wait.wait(10)

    first = asyncio.ensure_future(patient.write(lambda _: (None, None), lock.look, prepare))
    await asyncio.to_thread(begun.wait, 10)
    second = asyncio.ensure_future(patient.write(lambda _: (None, None), lock.look, bool))
    await asyncio.sleep(0)
    lock.now += 4.0
    third = asyncio.ensure_future(patient.write(lambda _: ("done", None), lock.look, bool))
    await asyncio.sleep(0)
    both_wait.set()
    outcomes = await asyncio.gather(first, second, third, return_exceptions=True)
    assert [type(each) for each in outcomes] == [BusyError, BusyError, str]
    assert lock.waited == [1.0, 0.0, 4.0]


async def test_what_is_left_to_do_behind_an_answer_is_no_failure_of_it_while_another_closes() -> None:
    closing = Worker()
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(5)

    closing.submit(work)
    begun.wait(5)
    ending = threading.Thread(target=closing.close)
    ending.start()
    for _ in range(200):  # some of them once the executor takes nothing any more
        closing.submit(lambda: None)
        ending.join(0.001)
    go_on.set()
    ending.join(5)
    assert not ending.is_alive()


async def test_a_defect_in_what_nobody_waits_for_is_told_without_its_words(
    patient: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    patient.submit(lambda: {}["the password is walnut"])
    await patient.run(lambda: None)
    assert "background_work_broke" in caplog.text
    assert "KeyError" in caplog.text
    assert "walnut" not in caplog.text
