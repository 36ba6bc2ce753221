"""The same recording from outside, by `strace`: what the kernel was really asked for, whoever asked.

Understands what a program does to names and to bytes it writes; not memory maps, which only the vector engine and
SQLite's index of its log use.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.concurrency.processes import REPOSITORY, environment
from tests.power.disk import Disk
from tests.power.events import Event, swapped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.power.events import Doing

_CALLS = (
    "open,openat,creat,write,pwrite64,lseek,fsync,fdatasync,ftruncate,"
    "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir"
)
_LINE = re.compile(r"(\d+) +(?:<\.\.\. \w+ resumed>(?P<rest>.*)|(?P<call>\w+\(.*))$", re.DOTALL)
_DONE = re.compile(r"\) += (-?\d+)(?:<([^>]*)>)?[^)]*$")
_PATH = re.compile(r"(?:(AT_FDCWD|\d+)<([^>]*)>(\(deleted\))?)|\"((?:\\x[0-9a-f]{2})*)\"")
_CUT = " <unfinished ...>"


def reason_not_to() -> str | None:
    """Return why system calls cannot be traced here, or None."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], check=False, capture_output=True)
    return None if tried.returncode == 0 else "strace is not allowed to trace here"


def trace(scenario: str, base: Path, log: Path, *sabotages: str) -> list[Event]:
    """Run a scenario of `scenarios` in a process of its own and return what it did below `base`."""
    child = [sys.executable, "-m", "tests.power.scenarios", scenario, str(base), *sabotages]
    watch = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={_CALLS}", "-o", str(log)]
    subprocess.run([*watch, *child], check=True, cwd=REPOSITORY, env=environment(), stdout=subprocess.DEVNULL)
    reader = _Reader(base)
    for line in log.read_text(encoding="ascii", errors="replace").splitlines():
        reader.read(line)
    return reader.events


class _Reader:
    """Turns lines of a trace into events; a call counts when it returns, an acknowledgement when it begins."""

    def __init__(self, base: Path) -> None:
        self.events: list[Event] = []
        self._base = os.path.realpath(base)
        self._disk = Disk()
        self._begun: dict[str, str] = {}
        self._offsets: dict[tuple[str, str], int | None] = {}  # None appends
        self._marked: int | None = None
        self._calls: dict[str, Callable[[str, int], None]] = {
            "write": self._write,
            "pwrite64": self._pwrite,
            "lseek": self._lseek,
            "fsync": self._sync,
            "fdatasync": self._sync,
            "ftruncate": self._truncate,
        }

    def read(self, line: str) -> None:
        found = _LINE.match(line)
        if found is None:
            return
        process = found[1]
        text = self._begun.pop(process, "") + found["rest"] if found["rest"] is not None else found["call"]
        if text.endswith(_CUT):
            self._begun[process] = text = text.removesuffix(_CUT)
        if text.startswith("write(1<") and found["rest"] is None:
            self._hear(text)
            return
        done = _DONE.search(text)
        if done is None or int(done[1]) < 0:
            return
        call = text.partition("(")[0]
        if call in {"open", "openat", "creat"}:
            self._open(text, done[1], done[2])
        elif call in self._calls:
            self._calls[call](text, int(done[1]))
        else:
            self._names(call, text)

    # -- bytes --------------------------------------------------------------------------------------------------------

    def _hear(self, text: str) -> None:
        said = json.loads(_decoded(_PATH.findall(text)[1][3]))
        if "mark" in said:
            self._marked = len(self.events)
            return
        at, self._marked = len(self.events) if self._marked is None else self._marked, None
        told = {**said, "durable": tuple(said["durable"])}
        ack = Event("ack", told.pop("ack"), **told)
        self.events.insert(at, ack)

    def _open(self, text: str, descriptor: str, path: str) -> None:
        name = self._inside(_decoded(path).decode())
        if name is None:
            return
        self._offsets[name, descriptor] = None if "O_APPEND" in text else 0
        if "O_CREAT" in text and not self._disk.has(name):
            self._note("create", name)
        if "O_TRUNC" in text:
            self._note("truncate", name)

    def _write(self, text: str, written: int) -> None:
        descriptor, name, data = self._subject(text)
        if name is None:
            return
        at = self._offsets.get((name, descriptor), 0)
        if at is None:
            at = len(self._disk.files()[name].now)
        else:
            self._offsets[name, descriptor] = at + written
        self._note("write", name, data=data[:written], at=at)

    def _pwrite(self, text: str, written: int) -> None:
        _, name, data = self._subject(text)
        if name is not None:
            at = int(text.rpartition(")")[0].rpartition(", ")[2])
            self._note("write", name, data=data[:written], at=at)

    def _lseek(self, text: str, position: int) -> None:
        descriptor, name, _ = self._subject(text)
        if name is not None and self._offsets.get((name, descriptor)) is not None:
            self._offsets[name, descriptor] = position

    def _sync(self, text: str, _: int) -> None:
        name = self._subject(text)[1]
        if name is not None:
            self._note("sync", name)

    def _truncate(self, text: str, _: int) -> None:
        name = self._subject(text)[1]
        if name is not None:
            self._note("truncate", name, at=int(text.rpartition(")")[0].rpartition(", ")[2]))

    def _subject(self, text: str) -> tuple[str, str | None, bytes]:
        """Return descriptor, name and data of a call on an open file; no name for one outside or without a name."""
        parts = _PATH.findall(text)
        if not parts:
            return "", None, b""
        descriptor, path, deleted, _ = parts[0]
        name = None if deleted else self._inside(_decoded(path).decode())
        if name and not self._disk.has(name):
            name = None
        return descriptor, name, _decoded(parts[1][3]) if len(parts) > 1 else b""

    # -- names --------------------------------------------------------------------------------------------------------

    def _names(self, call: str, text: str) -> None:
        paths: list[str | None] = []
        folder = ""
        for _, at, _, name in _PATH.findall(text.rpartition(") ")[0]):
            if name:
                paths.append(self._inside(os.path.join(folder, _decoded(name).decode())))  # noqa: PTH118 - either kind
            else:
                folder = _decoded(at).decode()
        known = [path for path in paths if path]
        if not known:
            return
        if "RENAME_EXCHANGE" in text:
            for old, new in swapped(known[0], known[1]):
                self._note("rename", old, other=new)
        elif call.startswith("rename"):
            self._note("rename", known[0], other=known[1])
        elif call.startswith("mkdir"):
            self._note("mkdir", known[0])
        else:
            self._note("unlink", known[0])

    def _inside(self, path: str) -> str | None:
        if path == self._base:
            return ""
        return path[len(self._base) + 1 :] if path.startswith(f"{self._base}/") else None

    def _note(self, do: Doing, path: str, *, other: str = "", data: bytes = b"", at: int = 0) -> None:
        event = Event(do, path, other, data, at)
        self._disk.apply(event)
        self.events.append(event)


def _decoded(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))
