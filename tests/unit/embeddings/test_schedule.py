"""Threads that embedding workers share."""

from __future__ import annotations

import threading

from agent_memory.embeddings.schedule import EmbeddingSchedule

SECONDS = 20.0


class Steps:
    """A worker that needs some steps, each after a time."""

    def __init__(self, delays: list[float | None], go_on: threading.Event | None = None) -> None:
        self.delays, self.go_on = delays, go_on
        self.running = threading.Lock()
        self.done, self.begun = threading.Event(), threading.Event()

    def step(self) -> float | None:
        assert self.running.acquire(blocking=False)
        self.begun.set()
        if self.go_on is not None:
            assert self.go_on.wait(SECONDS)
        delay = self.delays.pop(0)
        self.running.release()
        if delay is None:
            self.done.set()
        return delay


def test_schedule_runs_steps_until_none_is_left() -> None:
    schedule, workers = EmbeddingSchedule(), [Steps([0.0, 0.001, None]) for _ in range(100)]
    before = threading.active_count()
    for worker in workers:
        schedule.add(worker, 0.0)
    assert threading.active_count() - before <= 4
    assert all(worker.done.wait(SECONDS) for worker in workers)
    assert not any(worker.delays for worker in workers)


def test_schedule_urgent_step_overtakes_delay() -> None:
    schedule, worker = EmbeddingSchedule(), Steps([None])
    schedule.add(worker, 1000.0)
    schedule.add(worker, 2000.0)
    schedule.add(worker, 0.0)
    assert worker.done.wait(SECONDS)


def test_schedule_removal_waits_for_running_step() -> None:
    go_on = threading.Event()
    schedule, worker = EmbeddingSchedule(), Steps([0.0, None], go_on)
    schedule.add(worker, 0.0)
    assert worker.begun.wait(SECONDS)
    schedule.add(worker, 1000.0)
    schedule.remove(worker, 0.01)
    assert worker.running.locked()
    go_on.set()
    schedule.remove(worker, None)
    assert not worker.running.locked()


def test_schedule_removed_worker_takes_no_step() -> None:
    schedule, worker, last = EmbeddingSchedule(), Steps([None]), Steps([None])
    schedule.add(worker, 0.05)
    schedule.remove(worker, None)
    schedule.add(last, 0.1)
    assert last.done.wait(SECONDS)
    assert not worker.begun.is_set()
