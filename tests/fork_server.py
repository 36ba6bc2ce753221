"""A process that has imported what its forks need: running a command costs a fork instead of an interpreter's start.

    python -m tests.fork_server SOCKET MODULE…

`CommandForker` is the side of the tests. A fork runs one module as `python -m` does, with arguments, variables,
folder and streams of its own, and ends as an interpreter ends. It differs from a new process in one thing: the
preloaded modules were imported before.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from typing import IO, TYPE_CHECKING, Any, Final

from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_STREAMS: Final = 3
_MAX_REQUEST: Final = 200_000


class CommandForker:
    """The fork server, as seen by tests.

    Args:
        modules: Modules that the server imports before it forks.
    """

    def __init__(self, *modules: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.fork_server", str(theirs.fileno()), *modules]
        self._server = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment(), pass_fds=[theirs.fileno()], start_new_session=True
        )
        theirs.close()

    def close(self) -> None:
        """End the server."""
        self._socket.close()
        self._server.wait()

    def start(
        self, words: list[str], streams: tuple[int, int, int], variables: Mapping[str, str], folder: Path = REPOSITORY
    ) -> None:
        """Run `python -m` with these words in a fork; a terminal as its input becomes its controlling one."""
        request = {"words": words, "variables": dict(variables), "folder": str(folder)}
        socket.send_fds(self._socket, [json.dumps(request).encode()], list(streams))

    def wait(self) -> int:
        """Return the exit status of the command that was started last, negative for a signal."""
        answer = self._socket.recv(_MAX_REQUEST)
        assert answer, "the fork server ended"
        return int(answer)

    def run(
        self, words: list[str], variables: Mapping[str, str], given: str = "", folder: Path = REPOSITORY
    ) -> subprocess.CompletedProcess[str]:
        """Run `python -m` with these words to its end; return its exit status and its output."""
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            stdin.write(given.encode())
            stdin.seek(0)
            self.start(words, (stdin.fileno(), out.fileno(), err.fileno()), variables, folder)
            return subprocess.CompletedProcess(words, self.wait(), _read_all(out), _read_all(err))


def _read_all(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


def serve(connection: socket.socket) -> None:
    """Fork once for each request, and answer with the exit status; return in each fork."""
    while True:
        message, streams, _, _ = socket.recv_fds(connection, _MAX_REQUEST, _STREAMS)
        if not message:
            os._exit(0)
        child = os.fork()
        if child == 0:
            connection.close()
            _prepare(json.loads(message), streams)
            return
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _prepare(request: dict[str, Any], streams: list[int]) -> None:
    """Make this fork look like a new process with its own streams, variables and arguments."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115 - as Python does
    sys.stdout = open(1, "w", os.isatty(1) or -1, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["variables"])
    os.chdir(request["folder"])
    sys.argv = request["words"]


def main() -> None:
    """Import the modules, serve, and in each fork run the module that was requested."""
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
