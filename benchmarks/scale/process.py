"""Processes of the scale benchmark, and their memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.scale.figures import BenchmarkFigure, amount

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC: Final = Path("/proc")
_EVERY: Final = 0.05
_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Memory in MB of 1,000,000 bytes.

    Attributes:
        private: Anonymous pages: heap, stacks, arrays, also what a library changed of its own file.
        mapped: All other resident pages: files that are mapped, which the system can drop and processes share.
    """

    private: float
    mapped: float


def memory_of(process: int) -> ProcessMemory:
    """Return the memory of a process with its children; 0 afterwards."""
    private = mapped = 0.0
    for member in _family(process):
        with contextlib.suppress(OSError):
            rolled = (_PROC / str(member) / "smaps_rollup").read_text("ascii").splitlines()[1:]
            sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 / _MEGABYTE for line in rolled}
            private += sizes["Anonymous"]
            mapped += sizes["Rss"] - sizes["Anonymous"]
    return ProcessMemory(private, mapped)


def _family(process: int) -> Iterator[int]:
    yield process
    with contextlib.suppress(OSError):
        for thread in (_PROC / str(process) / "task").iterdir():
            for child in (thread / "children").read_text("ascii").split():
                yield from _family(int(child))


@contextlib.contextmanager
def started(module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run a module in a process for the block, with pipes.

    Raises:
        RuntimeError: It ended with an error.
    """
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{module}", *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise RuntimeError(f"benchmarks.{module} ended with {process.returncode}")


def heard(process: subprocess.Popen[str]) -> Any:
    """Return the next line of JSON that a process says.

    Raises:
        RuntimeError: It ended without one.
    """
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a process of the benchmark ended without an answer")
    return json.loads(line)


def figures_of(module: str, *arguments: object) -> list[BenchmarkFigure]:
    """Return the figures of a measuring process."""
    with started(module, *arguments) as process:
        return [BenchmarkFigure(**fields) for fields in heard(process)]


def wait_for_children() -> None:
    """Wait for child processes, such as those that seal."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def watched(what: str, size: int, module: str, *arguments: object) -> list[BenchmarkFigure]:
    """Return `figures_of` with the peak of private memory.

    It is read twenty times a second.
    """
    largest, over = 0.0, threading.Event()

    def look(process: int) -> None:
        nonlocal largest
        while not over.wait(_EVERY):
            largest = max(largest, memory_of(process).private)

    with started(module, *arguments) as process:
        looking = threading.Thread(target=look, args=(process.pid,), daemon=True)
        looking.start()
        try:
            figures = [BenchmarkFigure(**fields) for fields in heard(process)]
        finally:
            over.set()
            looking.join()
    return [*figures, amount(f"{what}, private memory at most", size, largest, "MB")]
