"""The thread's patience: who waits for a lock, for how long, and who gives up."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import BusyError
from agent_memory.storage import worker
from agent_memory.storage.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(worker, "time", time)
    return time


@pytest.fixture
def patient() -> Iterator[Worker]:
    patient = Worker("patient", patience=5)
    yield patient
    patient.close()


async def test_a_write_does_not_give_up_because_of_the_writes_before_it(patient: Worker, time: Time) -> None:
    tries: list[int] = []

    def write(number: int) -> int:
        tries.append(number)
        time.now += 2.0
        if tries.count(number) == 1:
            raise BusyError("somebody else was faster")
        return number

    assert await asyncio.gather(*(patient.write(partial(int, each), write) for each in range(20))) == list(range(20))
    assert time.now == 1000.0 + 20 * 4


async def test_writes_that_wait_for_a_lock_nobody_gives_back_give_up_together(patient: Worker, time: Time) -> None:
    tries: list[int] = []
    all_wait = threading.Event()

    def write(number: int) -> None:
        all_wait.wait(10)
        tries.append(number)
        time.now += 1.0
        raise BusyError("held")

    writes = asyncio.gather(*(patient.write(partial(int, each), write) for each in range(4)), return_exceptions=True)
    await asyncio.sleep(0)  # each of them asks, and none is told anything yet
    all_wait.set()
    refused = await writes
    assert [type(each) for each in refused] == [BusyError] * 4
    assert "more than 5 s" in str(refused[0])
    assert tries == [0, 0, 0, 0, 0, 1, 2, 3]


async def test_an_error_of_a_write_is_told_and_costs_the_next_one_nothing(patient: Worker, time: Time) -> None:
    def fails(_: object) -> None:
        time.now += 4.0
        raise KeyError("mine")

    def busy_then_done(_: object) -> str:
        if time.now < 1008.0:
            time.now += 2.0
            raise BusyError("held")
        return "done"

    writes = (patient.write(int, write) for write in (fails, busy_then_done))
    first, second = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(first, KeyError)
    assert second == "done"


async def test_what_is_left_to_do_behind_an_answer_is_no_failure_of_it_while_another_closes() -> None:
    closing = Worker("closing")
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
