"""Processes of `benchmarks.crash`: forked with everything imported, heard, killed.

A forked child is a process of its own with a clean slate, as one just started would be, without the second that
starting takes. Owns pipes, process ids and the file calls at which a child kills itself; knows nothing of memories.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import re
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WRITE: Final = os.write  # before a shim is put over it
_CALLS: Final = (
    "open", "write", "fsync", "ftruncate", "replace", "rename", "unlink", "remove", "mkdir", "rmdir", "link", "chmod",
)  # fmt: skip
_SET_CHILD_SUBREAPER: Final = 36
"""`PR_SET_CHILD_SUBREAPER` of `sys/prctl.h`."""
_RANDOM: Final = re.compile(r"(?<=\.)[0-9a-f]{8}(?=\.tmp$)|(?<=^\.new-)[0-9a-f]{12}|^[0-9a-f]{12}$")
"""What differs in a name from one run to the next."""
SITE: Final = '''"""Lets a process that one of ours starts kill itself, too."""

import os
import sys

if any("agent_memory.engines.index_builder" in word for word in sys.orig_argv):
    from benchmarks.crash.process import Shim

    Shim(lambda **_: None).arm(int(os.environ["CRASH_AT"]), os.environ["CRASH_HOW"])
'''
"""A `sitecustomize.py`: found first on the path of a builder, which is another program and cannot be told otherwise."""


class MessagePipe:
    """Pipe from the child: one JSON object a line, past any shim."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self, **message: Any) -> None:
        """Tell the driver something; lines up to a page are never torn."""
        content = json.dumps(message, default=str).encode() + b"\n"
        while content:
            content = content[_WRITE(self._descriptor, content) :]


class CallShim:
    """Counts file changes, and kills its own process at one of them.

    Args:
        say: Told where it strikes.

    """

    def __init__(self, say: Callable[..., None]) -> None:
        self._numbers = itertools.count(1)  # its next() is atomic: threads call at the same time
        self._say = say
        self._at = 0
        self._how = "before"
        for name in _CALLS:
            setattr(os, name, self._around(name, getattr(os, name)))

    def arm(self, at: int, how: str) -> None:
        """Strike at the `at`-th call from now; 0 only counts.

        Args:
            at: From 1.
            how: `before`, `after`, or `torn`: half of what a write should write, elsewhere the same as `before`.
        """
        self._numbers, self._at, self._how = itertools.count(1), at, how

    def calls(self) -> int:
        """Return the number of calls since the last question."""
        before, self._numbers = self._numbers, itertools.count(1)
        return next(before) - 1

    def _around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            if not changes_files(name, arguments):
                return call(*arguments, **options)
            if next(self._numbers) != self._at:
                return call(*arguments, **options)
            if self._how == "torn" and name == "write":
                content = bytes(arguments[1])
                call(arguments[0], content[: len(content) // 2])
            elif self._how == "after":
                call(*arguments, **options)
            how = "before" if self._how == "torn" and name != "write" else self._how
            self._say(struck=f"{how} {name} {_target(name, arguments)}")
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
            return None

        return watched


def changes_files(name: str, arguments: tuple[Any, ...]) -> bool:
    """Return True if a call of this name changes a file."""
    if name == "open":
        return bool(arguments[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    if name == "write":
        return os.path.isfile(_of_descriptor(arguments[0]))  # noqa: PTH113 - Path has it, at ten times the cost
    return True


def _of_descriptor(descriptor: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - no Path needed
    return f"/dev/fd/{descriptor}"


def _target(name: str, arguments: tuple[Any, ...]) -> str:
    """Return the file's name with what is random in it left out."""
    path = arguments[1] if name in {"replace", "rename"} else arguments[0]
    name = Path(_of_descriptor(path) if isinstance(path, int) else os.fsdecode(path)).name
    return _RANDOM.sub("*", name)


class ForkedProcess:
    """A forked process that runs `function(say, *arguments)`; its output goes into `log`."""

    def __init__(self, log: Path, function: Callable[..., object], *arguments: object) -> None:
        receive, send = os.pipe()
        self.log = log
        self.pid = os.fork()
        if self.pid == 0:
            os.close(receive)
            _run(log, MessagePipe(send), function, arguments)
        os.close(send)
        self._receive = receive
        self._buffer = b""
        self._status: int | None = None

    def hear(self, patience: float) -> dict[str, Any] | None:
        """Return the next message; None at its end or after `patience` seconds."""
        deadline = time.monotonic() + patience
        while b"\n" not in self._buffer:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([self._receive], [], [], remaining)[0]:
                return None
            block = os.read(self._receive, 1 << 16)
            if not block:
                return None
            self._buffer += block
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def listen(self, patience: float) -> list[dict[str, Any]]:
        """Return all messages until its end or `patience` seconds of silence."""
        return list(iter(lambda: self.hear(patience), None))

    @property
    def is_alive(self) -> bool:
        """True if it still runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is None

    def kill(self) -> None:
        """Kill it with SIGKILL and wait, unless it has ended."""
        if self.is_alive:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def kill_after(self, seconds: float) -> bool:
        """Kill it after a time; return True if it was running."""
        deadline = time.monotonic() + seconds
        while self.is_alive and time.monotonic() < deadline:
            time.sleep(0.002)
        self.kill()
        return self.wait() != 0

    def wait(self) -> int:
        """Wait for its end; return its exit code, negative for signals."""
        if self._status is None:
            _, self._status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(self._status)

    def close(self) -> None:
        """Kill it if need be, and close the pipe."""
        self.kill()
        os.close(self._receive)

    def children(self) -> list[int]:
        """Return the IDs of its child processes; none except on Linux."""
        return list_children(self.pid)


def list_children(pid: int) -> list[int]:
    """Return the IDs of child processes; none except on Linux."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            children += map(int, task.read_text().split())
    return children


@contextlib.contextmanager
def adopt_orphans() -> Iterator[Callable[[], None]]:
    """Adopt processes whose parent dies; yield a function that ends them.

    A sealing child of a killed process would otherwise write into a folder while it is removed. The function must not
    be called while a `ForkedProcess` is alive.
    """
    before = set(list_children(os.getpid()))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def end_orphans() -> None:
        while orphans := set(list_children(os.getpid())) - before:  # their own children become orphans
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    try:
        yield end_orphans
    finally:
        end_orphans()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _run(log: Path, say: MessagePipe, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    status = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        function(say, *arguments)
        status = 0
    except BaseException:  # noqa: BLE001 - the end of a process: whatever it was, the driver is told
        say(crashed=traceback.format_exc()[-2000:])
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(status)
