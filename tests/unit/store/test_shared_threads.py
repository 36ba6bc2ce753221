"""Threads that storages share: order in a lane, bounded number, an orderly end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from agent_memory.store.shared_threads import SharedThreads

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future


def test_lane_runs_calls_one_at_a_time_in_order() -> None:
    threads, running, order = SharedThreads(), threading.Lock(), list[int]()

    def note(number: int) -> None:
        assert running.acquire(blocking=False)
        order.append(number)
        running.release()

    lanes = threads.acquire()
    calls = [lanes["store"].submit(note, number) for number in range(100)]
    for call in calls:
        call.result(10)
    assert order == list(range(100))
    lanes["store"].shutdown()
    threads.release(lanes)


def test_lane_passes_error_and_skips_cancelled_call() -> None:
    threads, go_on, ran = SharedThreads(), threading.Event(), list[str]()
    lanes = threads.acquire()
    blocking: Future[bool] = lanes["store"].submit(go_on.wait, 10)
    failing: Future[str] = lanes["store"].submit({}.__getitem__, "key")
    cancelled = lanes["store"].submit(ran.append, "cancelled")
    assert lanes["store"].has_waiting
    assert cancelled.cancel()
    go_on.set()
    assert blocking.result(10)
    with pytest.raises(KeyError):
        failing.result(10)
    lanes["store"].shutdown()
    assert not ran
    with pytest.raises(RuntimeError):
        lanes["store"].submit(bool)
    threads.release(lanes)


def test_blocked_lanes_use_no_more_threads_than_pool_has() -> None:
    threads, go_on, before = SharedThreads(), threading.Event(), threading.active_count()
    users = [threads.acquire() for _ in range(100)]
    calls = [lanes["store"].submit(go_on.wait, 10) for lanes in users]
    assert threading.active_count() - before <= 16
    go_on.set()
    assert all(call.result(10) for call in calls)
    for lanes in users:
        lanes["store"].shutdown()
        threads.release(lanes)
        threads.release(lanes)
    assert threading.active_count() == before


@pytest.mark.parametrize("wait", [bool, threading.Event().is_set])
def test_lane_waits_for_lanes_after_it(wait: Callable[[], bool]) -> None:
    threads = SharedThreads()
    users = [threads.acquire() for _ in range(40)]
    calls = [
        lanes["waiting"].submit(lambda lanes=lanes: lanes["store"].submit(wait).result(10) is False) for lanes in users
    ]
    assert all(call.result(10) for call in calls)
    for lanes in users:
        lanes["waiting"].shutdown()
        lanes["store"].shutdown()
        threads.release(lanes)
