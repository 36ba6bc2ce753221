"""Threads that the embedding workers of a process share."""

from __future__ import annotations

import os
import threading
import time
from typing import Final, Protocol

_THREADS: Final = 4
"""Most threads. A local model uses one processor for each, and an API answers that many requests at once."""


class ScheduledWorker(Protocol):
    """Worker that is run step by step."""

    def step(self) -> float | None:
        """Do some work; return the seconds until more, or None."""


class EmbeddingSchedule:
    """Schedule of worker steps in a few shared threads.

    A worker runs one step at a time. A thread ends when no step is left.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all workers: a forked child has none of its parent's threads."""
        self._change = threading.Condition()
        self._due: dict[ScheduledWorker, float] = {}
        self._running: dict[ScheduledWorker, int] = {}
        self._threads = self._idle = 0

    def add(self, worker: ScheduledWorker, delay: float) -> None:
        """Run a step of a worker.

        Args:
            worker: Worker to run, also if it is running now.
            delay: Seconds until then at most; an earlier step stays as it is.

        Raises:
            RuntimeError: No thread can be started.
        """
        with self._change:
            self._put(worker, delay)
            if self._idle or self._threads >= _THREADS:
                self._change.notify()
                return
            # A daemon, because the interpreter waits for other threads before it stops the workers.
            threading.Thread(target=self._serve, name="agent-memory-embedding", daemon=True).start()
            self._threads += 1

    def remove(self, worker: ScheduledWorker, seconds: float | None) -> None:
        """Run no further step of a worker.

        Args:
            worker: Worker to remove.
            seconds: Time to wait for its running step; None waits until it ends.
        """
        with self._change:
            self._due.pop(worker, None)
            thread_id = threading.get_ident()
            self._change.wait_for(lambda: self._running.get(worker, thread_id) == thread_id, seconds)

    def _put(self, worker: ScheduledWorker, delay: float) -> None:
        due = time.monotonic() + delay
        self._due[worker] = min(due, self._due.get(worker, due))

    def _serve(self) -> None:
        while (worker := self._take()) is not None:
            self._run(worker)
            del worker  # it may be closed before the next step

    def _run(self, worker: ScheduledWorker) -> None:
        delay = worker.step()
        with self._change:
            del self._running[worker]
            if delay is not None:
                self._put(worker, delay)
            self._change.notify_all()

    def _take(self) -> ScheduledWorker | None:
        """Wait for the next step; return its worker, or None."""
        with self._change:
            while waiting := self._due.keys() - self._running.keys():
                worker = min(waiting, key=self._due.__getitem__)
                delay = self._due[worker] - time.monotonic()
                if delay <= 0:
                    del self._due[worker]
                    self._running[worker] = threading.get_ident()
                    return worker
                del worker
                self._idle += 1
                self._change.wait(delay)
                self._idle -= 1
            self._threads -= 1
            return None


SCHEDULE: Final = EmbeddingSchedule()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SCHEDULE.reset)
