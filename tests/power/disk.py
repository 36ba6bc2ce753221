"""A disk with a page cache: what was not synced may be lost, whole or in part, in any order; what was synced stays.

Stricter than any file system in use: a file's sync says nothing of its name, a folder's sync nothing of its files'
bytes, and names of one folder reach the disk in any order. After a failed sync the pages count as clean, though nobody
knows what the disk has of them; a later sync is no proof for them. Knows bytes and names; not what they mean.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from tests.power.events import Event

SECTOR = 512
"""Bytes that a disk writes at once; within one, the model tears at any byte."""
_STALE = 0.1
"""Chance that a sector which the file never had on the disk holds rubbish instead of zeros."""
Fate = Literal["nothing", "everything", "names", "data", "in order", "mixed"]
FATES: tuple[Fate, ...] = ("nothing", "everything", "names", "data", "in order", "mixed", "mixed", "mixed")
"""What becomes of what was not synced: the extremes, and chance."""


@dataclass(eq=False)
class File:
    """One file: its bytes as programs see them, and for each sector every content that the disk may have."""

    now: bytearray = field(default_factory=bytearray)
    sectors: dict[int, list[bytes]] = field(default_factory=dict)
    dirty: set[int] = field(default_factory=set)
    sizes: list[int] = field(default_factory=lambda: [0])

    def write(self, at: int, data: bytes) -> None:
        if at > len(self.now):
            self.now.extend(bytes(at - len(self.now)))
        self.now[at : at + len(data)] = data
        self._touched(at, at + len(data))

    def truncate(self, size: int) -> None:
        before = len(self.now)
        if size > before:
            self.now.extend(bytes(size - before))
        del self.now[size:]
        self._touched(min(size, before), max(size, before))

    def sync(self) -> None:
        for number in self.dirty:
            self.sectors[number] = [self._sector(number)]
        self.dirty.clear()
        self.sizes = [len(self.now)]

    def fail_sync(self) -> None:
        self.dirty.clear()  # the kernel gives up on these pages; each content they had stays possible

    @property
    def is_synced(self) -> bool:
        return len(self.sizes) == 1 and all(len(set(versions)) == 1 for versions in self.sectors.values())

    def survivor(self, fate: Fate, choose: random.Random) -> bytes:
        """Return what the disk has after the power was cut."""
        if fate in {"everything", "data"}:
            return bytes(self.now)
        if fate == "nothing":
            size = self.sizes[0]
        elif fate == "names":  # the size is a property of the name's side: it may be there before the bytes are
            size = choose.choice([self.sizes[0], self.sizes[-1]])
        else:
            size = choose.choice(self.sizes)
            if choose.random() < 0.3:  # the file had grown to here
                size = choose.randint(min(self.sizes), max(self.sizes))
        content = bytearray()
        for number in range(-(-size // SECTOR)):
            versions = self.sectors.get(number, [bytes(SECTOR)])
            chosen = versions[0] if fate in {"nothing", "names"} else _torn(versions, choose)
            content += chosen.ljust(SECTOR, b"\0")
        return bytes(content[:size])

    def _touched(self, begin: int, end: int) -> None:
        if end > begin:
            for number in range(begin // SECTOR, (end - 1) // SECTOR + 1):
                self.sectors.setdefault(number, [bytes(SECTOR)]).append(self._sector(number))
                self.dirty.add(number)
        if self.sizes[-1] != len(self.now):
            self.sizes.append(len(self.now))

    def _sector(self, number: int) -> bytes:
        return bytes(self.now[number * SECTOR : (number + 1) * SECTOR]).ljust(SECTOR, b"\0")


def _torn(versions: list[bytes], choose: random.Random) -> bytes:
    """Return one of the contents a sector had, or two of them cut at some byte, or what lay there before the file."""
    chosen = choose.choice(versions)
    if len(versions) > 1 and not any(versions[0]) and choose.random() < _STALE:
        return choose.randbytes(SECTOR)
    if len(versions) > 1 and choose.random() < 0.5:
        cut = choose.randrange(SECTOR + 1)
        return chosen[:cut] + choose.choice(versions)[cut:]
    return chosen


Step = tuple[str, str, "File | Folder"]
"""A change of names not yet on the disk: the name that goes (or ""), the one that comes (or ""), and what it names."""


@dataclass(eq=False)
class Folder:
    """One folder: its names as programs see them, as the disk has them, and what lies between."""

    now: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)
    pending: list[Step] = field(default_factory=list)

    def change(self, gone: str, came: str, what: File | Folder) -> None:
        if gone:
            del self.now[gone]
        if came:
            self.now[came] = what
        self.pending.append((gone, came, what))

    def sync(self) -> None:
        self.synced = dict(self.now)
        self.pending.clear()

    def survivor(self, fate: Fate, choose: random.Random) -> dict[str, File | Folder]:
        """Return the names that the disk has after the power was cut."""
        steps = list(self.pending)
        if fate in {"nothing", "data"}:
            steps = []
        elif fate == "in order":
            steps = steps[: choose.randrange(len(steps) + 1)]
        elif fate == "mixed":
            share = choose.random()
            steps = [step for step in steps if choose.random() < share]
            choose.shuffle(steps)
        names = dict(self.synced)
        for gone, came, what in steps:
            if gone and not (came and fate == "mixed" and choose.random() < 0.1):  # rarely, both names are there
                names.pop(gone, None)
            if came:
                names[came] = what
        return names


class Disk:
    """The watched folder on this disk. It is there and synced from the beginning."""

    def __init__(self) -> None:
        self.root = Folder()

    def apply(self, event: Event) -> None:
        """Do to this disk what an event tells."""
        do = event.do
        if do in {"create", "mkdir"}:
            folder, name = self._place(event.path)
            if name not in folder.now:
                folder.change("", name, Folder() if do == "mkdir" else File())
        elif do == "write":
            self._file(event.path).write(event.at, event.data)
        elif do == "truncate":
            self._file(event.path).truncate(event.at)
        elif do == "sync":
            self.find(event.path).sync()
        elif do == "sync_failed":
            failed = self.find(event.path)
            if isinstance(failed, File):
                failed.fail_sync()
        elif do == "unlink":
            folder, name = self._place(event.path)
            folder.change(name, "", folder.now[name])
        elif do == "rename":
            self._rename(event.path, event.other)

    def find(self, path: str) -> File | Folder:
        """Return what programs find at a path.

        Raises:
            KeyError: Nothing.
        """
        found: File | Folder = self.root
        for part in filter(None, path.split("/")):
            if not isinstance(found, Folder):
                raise KeyError(path)
            found = found.now[part]
        return found

    def has(self, path: str) -> bool:
        """Tell whether programs find anything at a path."""
        try:
            self.find(path)
        except KeyError:
            return False
        return True

    def files(self, below: str = "") -> dict[str, File]:
        """Return every file that programs find, by its path."""
        return {path: what for path, what in self._walk(below) if isinstance(what, File)}

    def folders(self, below: str = "") -> list[str]:
        """Return the path of every folder that programs find, outermost first."""
        return [path for path, what in self._walk(below) if isinstance(what, Folder)]

    def gap(self, path: str) -> str | None:
        """Return why a power cut now could cost a file, or None if it is safe."""
        folder = self.root
        parts = path.split("/")
        for number, part in enumerate(parts):
            if folder.synced.get(part) is not folder.now.get(part):
                return f"the name of {'/'.join(parts[: number + 1])} is not synced"
            inside = folder.now.get(part)
            if isinstance(inside, Folder):
                folder = inside
            elif inside is not None and not inside.is_synced:
                return f"the bytes of {path} are not synced"
        return None

    def cut(self, fate: Fate, choose: random.Random) -> dict[str, bytes | None]:
        """Return what is there after the power was cut: path to bytes, None for a folder. Changes nothing here."""
        left: dict[str, bytes | None] = {}

        def look(folder: Folder, prefix: str) -> None:
            for name, what in folder.survivor(fate, choose).items():
                if isinstance(what, Folder):
                    left[prefix + name] = None
                    look(what, f"{prefix}{name}/")
                else:
                    left[prefix + name] = what.survivor(fate, choose)

        look(self.root, "")
        return left

    def _walk(self, below: str) -> list[tuple[str, File | Folder]]:
        found: list[tuple[str, File | Folder]] = []

        def look(folder: Folder, prefix: str) -> None:
            for name, what in folder.now.items():
                found.append((prefix + name, what))
                if isinstance(what, Folder):
                    look(what, f"{prefix}{name}/")

        begin = self.find(below)
        if isinstance(begin, Folder):
            look(begin, f"{below}/" if below else "")
        return found

    def _rename(self, old: str, new: str) -> None:
        (source, old_name), (target, new_name) = self._place(old), self._place(new)
        what = source.now[old_name]
        if source is target:
            source.change(old_name, new_name, what)
        else:
            target.change("", new_name, what)
            source.change(old_name, "", what)

    def _place(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        folder = self.find(parent)
        assert isinstance(folder, Folder), f"{parent} is no folder"
        return folder, name

    def _file(self, path: str) -> File:
        found = self.find(path)
        assert isinstance(found, File), f"{path} is no file"
        return found


def digest(left: dict[str, bytes | None]) -> str:
    """Return a fingerprint of what is left, so that the same rubble is looked through once."""
    told = hashlib.sha256()
    for path, content in sorted(left.items()):
        told.update(f"{path}\0{'' if content is None else len(content)}\0".encode())
        told.update(content or b"")
    return told.hexdigest()


def lay_out(left: dict[str, bytes | None], folder: Path) -> None:
    """Write what is left into an empty folder."""
    for path, content in left.items():
        if content is None:
            (folder / path).mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            (folder / path).write_bytes(content)
