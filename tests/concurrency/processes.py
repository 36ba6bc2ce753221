"""Starting and talking to the other processes of these tests."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 60.0


def environment() -> dict[str, str]:
    """Return this process's environment with the repository importable."""
    places = [str(REPOSITORY), str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), "OMP_NUM_THREADS": "1"}


class Other:
    """A process that runs one function of `workers`."""

    def __init__(self, name: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.workers", name, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env=environment(),
        )

    def hear(self) -> dict[str, Any]:
        """Wait for the next thing it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith("\n"), f"it ended without a word: {line!r}"
        message: dict[str, Any] = json.loads(line)
        return message

    def tell(self) -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self) -> list[dict[str, Any]]:
        """Wait until it ends well; return all that it said and nobody heard."""
        said = self.rest()
        assert self.process.returncode == 0
        return said

    def kill(self) -> list[dict[str, Any]]:
        """Kill it (SIGKILL); return what it said in whole lines and nobody heard."""
        self.process.kill()
        return self.rest()

    def rest(self) -> list[dict[str, Any]]:
        """Wait for its end; return what it said in whole lines and nobody heard."""
        # Not communicate(): that reads past what `hear` has buffered.
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        self.process.wait(PATIENCE)
        return [json.loads(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]


@contextlib.contextmanager
def running(name: str, *arguments: object) -> Iterator[Other]:
    """Run a function of `workers` for the length of the block, killed at its end if need be."""
    other = Other(name, *arguments)
    try:
        yield other
    finally:
        if other.process.poll() is None:
            other.kill()
        for stream in (other.process.stdin, other.process.stdout):
            if stream is not None:
                stream.close()
