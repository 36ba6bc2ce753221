"""A real PostgreSQL of the pgserver wheel, on a Unix socket, that keeps nothing; started and stopped.

Its programs are called here, not the module: importing it makes folders in the user's home and warns.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

_NOBODY = "nobody"
"""Whom PostgreSQL runs as where the tests run as root, which it refuses."""
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=60")


def postgres_programs() -> Path | None:
    """Return the folder of initdb and postgres; None where the wheel is not installed."""
    spec = find_spec("pgserver")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "pginstall" / "bin"
    return folder if (folder / "postgres").exists() else None


class PostgresServer:
    """A server in a folder of its own; its texts are UTF-8 and its letters those of Unicode."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short path: that of a socket has 107 bytes at most
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://postgres@/postgres?host={self._folder}"

    def start(self) -> None:
        """Make its data and start it; wait until it answers."""
        programs = postgres_programs()
        assert programs is not None
        how: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self._folder}
        how["env"] = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        if os.geteuid() == 0:
            user = pwd.getpwnam(_NOBODY)
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            programs = self._copied(programs)  # the environment may be in a folder that is closed to nobody
            how |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        data = self._folder / "data"
        made = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--username=postgres"]
        subprocess.run([programs / "initdb", "-D", data, *made], check=True, **how)
        options = [part for each in _FAST for part in ("-c", each)]
        listening = ["-h", "", "-k", str(self._folder)]
        self._process = subprocess.Popen([programs / "postgres", "-D", data, *listening, *options], **how)
        for _ in range(1_000):
            if _is_ready(data / "postmaster.pid"):
                return
            assert self._process.poll() is None, "postgres has ended"
            time.sleep(0.01)
        raise AssertionError("postgres does not answer")

    def _copied(self, programs: Path) -> Path:
        """Copy the programs, with the libraries that they load by relative paths, to where anybody may read them."""
        package = programs.parent.parent
        for each in (package / "pginstall", package.with_name("pgserver.libs")):
            shutil.copytree(each, self._folder / each.relative_to(package.parent), symlinks=True)
        return self._folder / programs.relative_to(package.parent)

    def stop(self) -> None:
        """End it, and all its connections, and remove what it wrote."""
        if self._process is not None:
            self._process.terminate()  # SIGTERM waits for connections to be closed
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()


def _is_ready(file: Path) -> bool:
    """Tell whether the server says so, in the eighth line of its file."""
    try:
        return file.read_text().splitlines()[7].strip() == "ready"
    except (OSError, IndexError):
        return False
