"""`blobs/<sha256>`: texts that are too long for a line of a journal, each in a private file under its sha256.

A text is written before the record that names it. Whoever writes one holds the folder of blobs, shared with other
writers, until that record is on the disk; whoever removes what nobody names holds it alone. So a process that dies in
between leaves a file that nobody names, and never a record without its text.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import (
    make_private_folder,
    opened,
    read_file,
    replace_file,
    sync_file,
    sync_folder,
    translated,
)
from agent_memory.files.held import unlock_and_close
from agent_memory.files.temporary import remove_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import timedelta
    from pathlib import Path

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_NAMES: Final = re.compile(rb"[0-9a-f]{64}")
_BLOCK: Final = 1 << 24
_OVERLAP: Final = 64


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep removed: how many texts, and their bytes."""

    count: int = 0
    size: int = 0


class Blobs:
    """The texts in one folder. Blocking.

    Args:
        folder: Where they lie; made by the first that is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def keeping(self, texts: Collection[str]) -> Iterator[list[str]]:
        """Write texts, and let none be swept for the length of the block, at the end of which records name them.

        Yields:
            Their names, in the same order.

        Raises:
            StorageError: One could not be written.
        """
        if not texts:
            yield []
            return
        make_private_folder(self.folder)
        with self._held(fcntl.LOCK_SH), translated(self.folder, "write to"):
            names = [self._write(text.encode()) for text in texts]
            sync_folder(self.folder)
            yield names

    @contextlib.contextmanager
    def unswept(self) -> Iterator[None]:
        """Let no text be swept for the length of the block.

        Raises:
            StorageError: The folder cannot be opened.
        """
        with self._held(fcntl.LOCK_SH) if self.folder.is_dir() else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def bringing(self, texts: Iterable[bytes]) -> Iterator[None]:
        """Write texts like `keeping`, one at a time, in UTF-8.

        Raises:
            StorageError: One could not be written.
        """
        make_private_folder(self.folder)
        with self._held(fcntl.LOCK_SH):
            with translated(self.folder, "write to"):
                for text in texts:
                    self._write(text)
                sync_folder(self.folder)
            yield

    @contextlib.contextmanager
    def bringing_files(self, files: Iterable[tuple[str, bytes]]) -> Iterator[None]:
        """Write files like `bringing`, as they stand, each under its name.

        Raises:
            StorageError: One could not be written.
        """
        make_private_folder(self.folder)
        with self._held(fcntl.LOCK_SH):
            with translated(self.folder, "write to"):
                for name, content in files:
                    replace_file(self.folder / name, content, durable=True)
                sync_folder(self.folder)
            yield

    def read(self, name: str) -> str:
        """Return a text.

        Raises:
            StorageError: `blob_missing`: there is none of this name; `blob_damaged`: it is not what the name says.
        """
        if not _NAME.fullmatch(name):
            raise _missing(name, self.folder)
        try:
            with translated(self.folder / name, "read"):
                content = self._content(name)
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise _missing(name, self.folder) from None
            raise
        if content is None or name_of(content) != name:
            raise StorageError(
                f"The text {name[:12]}… in {self.folder.name} is not what was stored; its beginning is in the journal.",
                code="blob_damaged",
                recovery="Put the file of this name from a backup in its place, or take the text in again.",
                path=self.folder / name,
            )
        return content.decode()

    def names(self) -> dict[str, int]:
        """Return the name of each text with its size in bytes; none where there is no such folder.

        Raises:
            OSError: The folder cannot be listed.
        """
        if not self.folder.is_dir():
            return {}
        with os.scandir(self.folder) as entries:
            return {
                each.name: each.stat(follow_symlinks=False).st_size
                for each in entries
                if _NAME.fullmatch(each.name) and each.is_file(follow_symlinks=False)
            }

    def place_of(self, name: str) -> str:
        """Return the name of the file in which a text of this name lies, or would."""
        return name

    def sweep(
        self,
        files: Callable[[], Collection[Path]],
        older_than: timedelta,
        named: Callable[[Path], Iterable[str]] | None = None,
    ) -> Swept:
        """Remove the texts that are named in no file, nor were written lately.

        Args:
            files: Returns where they may be named, journals and what is set aside of them; asked when nobody writes.
            older_than: How long ago one has to be written.
            named: Returns the names of texts in one of these; `named_in` when omitted.

        Raises:
            StorageError: A file or the folder cannot be read; nothing more is removed.
        """
        if not self.folder.is_dir():
            return Swept()
        with self._held(fcntl.LOCK_EX), translated(self.folder, "sweep"):
            remove_leftovers(self.folder)
            gone = {name: size for name, size in self.names().items() if _is_old(self.folder / name, older_than)}
            for file in files() if gone else ():
                for each in (named or named_in)(file):
                    gone.pop(each, None)
                    gone.pop(self.place_of(each), None)
            for name in gone:
                (self.folder / name).unlink(missing_ok=True)
            if gone:
                sync_folder(self.folder)
        return Swept(len(gone), sum(gone.values()))

    def copy_to(self, folder: Path) -> None:
        """Copy all texts to another folder of blobs, which may not be there yet, and sync them.

        Raises:
            StorageError: One could not be copied.
        """
        if not self.folder.is_dir():
            return
        make_private_folder(folder)
        with self._held(fcntl.LOCK_SH), translated(folder, "copy texts to"):
            for name in self.names():
                replace_file(folder / name, read_file(self.folder / name), durable=True)

    def _write(self, content: bytes) -> str:
        name = name_of(content)
        path = self.folder / self.place_of(name)
        with contextlib.suppress(OSError):
            if self._holds(path, content):
                os.utime(path)
                with opened(path, os.O_RDONLY) as descriptor:
                    sync_file(descriptor)  # who wrote it may have died before
                return name
        replace_file(path, self._stored(path.name, content), durable=True)
        return name

    def _stored(self, place: str, content: bytes) -> bytes:  # noqa: ARG002 - for those that encrypt
        """Return the bytes of the file of a text."""
        return content

    def _content(self, name: str) -> bytes | None:
        """Return a text as it was given, None where its file is not what was stored."""
        return read_file(self.folder / name)

    def _holds(self, path: Path, content: bytes) -> bool:
        return path.lstat().st_size == len(content) and read_file(path) == content

    @contextlib.contextmanager
    def _held(self, how: int) -> Iterator[None]:
        with translated(self.folder, "open"):
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with contextlib.suppress(OSError):  # a file system without locks: the age of a text protects it alone
                fcntl.flock(descriptor, how)
            yield
        finally:
            unlock_and_close(descriptor)


def _is_old(path: Path, older_than: timedelta) -> bool:
    return time.time() - path.lstat().st_mtime >= older_than.total_seconds()


def name_of(content: bytes) -> str:
    """Return the name of a text: its sha256, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def with_new_names(text: str, renamed: Mapping[str, str]) -> str:
    """Return a text in which those names of texts that have a new one, by the old, stand as that."""
    return _NAME.sub(lambda found: renamed.get(found[0], found[0]), text) if renamed else text


def named_in(file: Path) -> Iterator[str]:
    """Yield everything in a file that has the form of a name, block by block; nothing of one that is not there.

    Raises:
        OSError: It cannot be read.
    """
    try:
        content = file.open("rb")
    except FileNotFoundError:
        return
    with content:
        before = b""
        while block := content.read(_BLOCK):
            for match in _NAMES.finditer(before + block):
                yield match[0].decode()
            before = (before + block)[-_OVERLAP + 1 :]


def _missing(name: str, folder: Path) -> StorageError:
    return StorageError(
        f"The text {name[:12]}… is not in {folder.name}; its beginning is in the journal.",
        code="blob_missing",
        recovery="Bring the file back from a backup, or take the text in again.",
        path=folder / name,
    )
