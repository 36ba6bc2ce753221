"""Records what this process does to files below one folder, by standing in for functions of `os`. Works anywhere.

Sees what Python code does. Files that C code writes (SQLite, the vector engine) are compared with what is known of them
before each acknowledgement, each rename of a folder and each sync of theirs, and count as written then.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agent_memory.files import exchange
from tests.power.disk import Disk, File
from tests.power.events import NONE, Event, swapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.power.events import Doing, Names, State

_WATCHED = (
    *("open", "dup", "close", "write", "pwrite", "fsync", "fdatasync", "ftruncate"),
    *("replace", "rename", "unlink", "remove", "mkdir", "rmdir"),
)
_ENOUGH = 1 << 11
"""Bytes of a file written by C code that are looked at: the engine's are up to 32 MiB of almost nothing."""


class Recorder:
    """Watches a folder for the length of a `with` block; one order for all threads.

    Args:
        base: The folder; what it holds at the beginning counts as synced.

    Attributes:
        events: What was done.
        fails: Asked about each sync with the path; it fails with EIO where the answer is True.
    """

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.realpath(base))
        self.events: list[Event] = []
        self.disk = Disk()
        self.fails: Callable[[str], bool] = lambda _path: False
        self._real = {name: getattr(os, name) for name in _WATCHED}
        self._calls: dict[str, Callable[..., Any]] = {}
        self._paths: dict[int, str] = {}
        self._marked: int | None = None
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        for name in _WATCHED:
            setattr(os, name, self._standing_in(name))
        for name, real, note in (
            ("swap", exchange.swap, self._note_swap),
            ("move_if_free", exchange.move_if_free, self._note_move),
        ):
            self._calls[name] = real
            setattr(exchange, name, self._noting(real, note))
        return self

    def __exit__(self, *error: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)
        for name, real in self._calls.items():
            setattr(exchange, name, real)

    def mark(self) -> None:
        """Note that a call has returned."""
        with self._lock:
            self._marked = len(self.events)

    def __call__(
        self, label: str, state: State, *, atomic: bool = True, durable: Names = (), refused: State = NONE
    ) -> None:
        """Note what was acknowledged at the mark, or now if there is none."""
        with self._lock:
            self.adopt()
            at, self._marked = len(self.events) if self._marked is None else self._marked, None
            self.events.insert(at, Event("ack", label, state=state, atomic=atomic, durable=durable, refused=refused))

    def adopt(self, below: str = "") -> None:
        """Take note of what C code did behind our back."""
        start = self.base / below
        found = {path.relative_to(self.base).as_posix(): path for path in sorted(start.rglob("*"))}
        for name in sorted({*self.disk.files(below), *self.disk.folders(below)} - found.keys(), reverse=True):
            self._note("unlink", name)
        for name, path in found.items():
            if path.is_dir() and not self.disk.has(name):
                self._note("mkdir", name)
            elif path.is_file():
                self._adopt_file(name)

    def _adopt_file(self, name: str) -> None:
        with (self.base / name).open("rb") as file:
            content = file.read(_ENOUGH)
        if not self.disk.has(name):
            self._note("create", name)
        known = self.disk.find(name)
        assert isinstance(known, File)
        if bytes(known.now[:_ENOUGH]) != content:
            self._note("truncate", name, at=len(content))
            self._note("write", name, data=content)

    # -- standing in --------------------------------------------------------------------------------------------------

    def _standing_in(self, name: str) -> Callable[..., Any]:
        real, watch = self._real[name], getattr(self, f"_on_{name}")

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return watch(real, *args, **kwargs)

        return stand_in

    def _on_open(self, real: Any, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        name = self._name(path, kwargs.get("dir_fd"))
        descriptor: int = real(path, flags, *args, **kwargs)
        self._paths.pop(descriptor, None)
        if name is not None:
            self._paths[descriptor] = name
            if flags & os.O_CREAT and not self.disk.has(name):
                self._note("create", name)
            if flags & os.O_TRUNC:
                self._note("truncate", name, at=0)
        return descriptor

    def _on_dup(self, real: Any, descriptor: int) -> int:
        copy: int = real(descriptor)
        self._paths.pop(copy, None)
        if descriptor in self._paths:
            self._paths[copy] = self._paths[descriptor]
        return copy

    def _on_close(self, real: Any, descriptor: int) -> None:
        self._paths.pop(descriptor, None)
        real(descriptor)

    def _on_write(self, real: Any, descriptor: int, data: Any) -> int:
        name = self._paths.get(descriptor)
        written: int = real(descriptor, data)
        if name is not None:
            end = os.lseek(descriptor, 0, os.SEEK_CUR)  # after a write also of one that appends
            self._note("write", name, data=bytes(data)[:written], at=end - written)
        return written

    def _on_pwrite(self, real: Any, descriptor: int, data: Any, at: int) -> int:
        name = self._paths.get(descriptor)
        written: int = real(descriptor, data, at)
        if name is not None:
            self._note("write", name, data=bytes(data)[:written], at=at)
        return written

    def _on_fsync(self, real: Any, descriptor: int) -> None:
        name = self._paths.get(descriptor)
        if name is None:
            return real(descriptor)  # type: ignore[no-any-return]
        if name and not self.disk.has(name):  # made by C code
            self.adopt(name.split("/", maxsplit=1)[0])
        if isinstance(self.disk.find(name), File):
            self._adopt_file(name)
        if self.fails(name):
            self._note("sync_failed", name)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._note("sync", name)
        return None  # the real disk is not asked: that takes time, and its power is not cut

    _on_fdatasync = _on_fsync

    def _on_ftruncate(self, real: Any, descriptor: int, size: int) -> None:
        real(descriptor, size)
        name = self._paths.get(descriptor)
        if name is not None:
            self._note("truncate", name, at=size)

    def _on_rename(self, real: Any, source: Any, target: Any, **kwargs: Any) -> None:
        old, new = self._name(source), self._name(target)
        if old is not None and (self.base / old).is_dir():
            self.adopt(old)
        real(source, target, **kwargs)
        if old is None or new is None:
            assert old is new, "a file left or entered the watched folder"
            return
        self._paths = {number: name for number, name in self._paths.items() if name != new}  # it has no name any more
        moved = {number: new for number, name in self._paths.items() if name == old}
        self._paths |= moved
        self._note("rename", old, other=new)

    _on_replace = _on_rename

    def _noting(self, real: Callable[..., Any], note: Callable[[str, str], None]) -> Callable[..., Any]:
        """Return what calls the kernel past `os` and notes it if it did something."""

        def standing_in(first: Path, second: Path) -> Any:
            with self._lock:
                done = real(first, second)
                names = self._name(first), self._name(second)
                if done is not False and names[0] is not None and names[1] is not None:
                    note(names[0], names[1])
                return done

        return standing_in

    def _note_swap(self, first: str, second: str) -> None:
        for old, new in swapped(first, second):
            self._note("rename", old, other=new)
        other = {first: second, second: first}
        self._paths = {number: other.get(name, name) for number, name in self._paths.items()}

    def _note_move(self, old: str, new: str) -> None:
        self._note("rename", old, other=new)
        self._paths = {number: new if name == old else name for number, name in self._paths.items()}

    def _on_unlink(self, real: Any, path: Any, *, dir_fd: int | None = None) -> None:
        real(path, dir_fd=dir_fd)
        name = self._name(path, dir_fd)
        if name is not None and self.disk.has(name):
            self._paths = {number: each for number, each in self._paths.items() if each != name}
            self._note("unlink", name)

    _on_remove = _on_rmdir = _on_unlink

    def _on_mkdir(self, real: Any, path: Any, *args: Any, **kwargs: Any) -> None:
        real(path, *args, **kwargs)
        name = self._name(path, kwargs.get("dir_fd"))
        if name is not None:
            self._note("mkdir", name)

    # -- names --------------------------------------------------------------------------------------------------------

    def _name(self, path: Any, dir_fd: int | None = None) -> str | None:
        """Return a path as seen from the watched folder, `` for the folder itself, None for one outside."""
        text = os.fsdecode(path)
        if dir_fd is not None and not Path(text).is_absolute():
            parent = self._paths.get(dir_fd)
            return None if parent is None else f"{parent}/{text}".lstrip("/")
        full = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(text))), os.path.basename(text))  # noqa: PTH118, PTH120, PTH100, PTH119
        if full == str(self.base):
            return ""
        return full[len(str(self.base)) + 1 :] if full.startswith(f"{self.base}{os.sep}") else None

    def _note(self, do: Doing, path: str, *, other: str = "", data: bytes = b"", at: int = 0) -> None:
        event = Event(do, path, other, data, at)
        self.disk.apply(event)
        self.events.append(event)
