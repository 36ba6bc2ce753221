"""`AgentBlobs`: texts that are too long for a journal line.

Each is in a file of `blobs/` named by its SHA-256. A text is written before the record that names it. Writers hold the
folder with a shared lock until that record is on disk; a sweep holds it alone. So a killed process leaves a file
without a record, and never a record without its text.

If the agent's files are encrypted, a file's name is a keyed hash of the text's name: without the key, possession of a
text does not show whether it is stored.
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

from agent_memory.encryption.keys import data_key, get_key_file, key_for
from agent_memory.errors import StorageError
from agent_memory.files import atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.encryption.cipher import DataKey
    from agent_memory.files.layout import AgentFolder

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_NAMES: Final = re.compile(rb"[0-9a-f]{64}")
_BLOCK: Final = 1 << 24
_OVERLAP: Final = 64


@dataclass(frozen=True, slots=True)
class SweepResult:
    """Number and total bytes of swept texts."""

    count: int = 0
    size: int = 0


class AgentBlobs:
    """Long texts of one agent. Blocking.

    Every method raises what `data_key` does if the texts are encrypted and there is no key.

    Args:
        folder: Folder of the agent; `blobs/` is made by the first write.
    """

    def __init__(self, folder: AgentFolder) -> None:
        self.folder = folder.blobs
        self._agent = folder.path

    @contextlib.contextmanager
    def keeping(self, texts: Collection[str]) -> Iterator[list[str]]:
        """Write texts; sweep none during the block.

        Records should name the texts before the block ends.

        Yields:
            Names of the texts, in the same order.

        Raises:
            StorageError: A text could not be written.
        """
        if not texts:
            yield []
            return
        atomic.make_private_folder(self.folder)
        with self._held(fcntl.LOCK_SH), atomic.translated(self.folder, "write to"):
            names = [self._write(text.encode()) for text in texts]
            atomic.sync_folder(self.folder)
            yield names

    @contextlib.contextmanager
    def prevent_sweep(self) -> Iterator[None]:
        """Keep all texts from being swept during the block.

        Raises:
            StorageError: The folder cannot be opened.
        """
        with self._held(fcntl.LOCK_SH) if self.folder.is_dir() else contextlib.nullcontext():
            yield

    @contextlib.contextmanager
    def bringing(self, texts: Iterable[bytes], files: Iterable[tuple[str, bytes]] = ()) -> Iterator[None]:
        """Write texts one at a time; sweep none during the block.

        Args:
            texts: Texts in UTF-8.
            files: Names and contents of blob files to write unchanged.

        Raises:
            StorageError: A text could not be written.
        """
        atomic.make_private_folder(self.folder)
        with self._held(fcntl.LOCK_SH):
            with atomic.translated(self.folder, "write to"):
                for text in texts:
                    self._write(text)
                for name, content in files:
                    atomic.replace_file(self.folder / name, content, durable=True)
                atomic.sync_folder(self.folder)
            yield

    def recode(self) -> None:
        """Encrypt or decrypt texts to match the agent's state.

        Raises:
            StorageError: A text cannot be read or written; a second call continues.
        """
        key = data_key(self._agent)
        is_plain = key_for(self._agent) is None
        for name in sorted(self.names()):
            content = atomic.read_file(self.folder / name)
            try:
                text = key.decrypt_file(name, content)
            except ValueError:
                text = None
            if is_plain is (text is None):
                continue
            with self.bringing([content if text is None else text]):
                (self.folder / name).unlink()

    def read(self, name: str) -> str:
        """Return a text.

        Raises:
            StorageError: `blob_missing`: no text has this name; `blob_damaged`: the text does not match its name.
        """
        if not _NAME.fullmatch(name):
            raise _build_missing_error(name, self.folder)
        try:
            with atomic.translated(self.folder / name, "read"):
                content = self._read_content(name)
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise _build_missing_error(name, self.folder) from None
            raise
        if content is None or get_name(content) != name:
            raise StorageError(
                f"The text {name[:12]}… in {self.folder.name} is not what was stored; its beginning is in the journal.",
                code="blob_damaged",
                recovery="Put the file of this name from a backup in its place, or ingest the text again.",
                path=self.folder / name,
            )
        return content.decode()

    def names(self) -> dict[str, int]:
        """Return sizes in bytes by file name; empty without a folder.

        Raises:
            OSError: The folder cannot be listed.
        """
        if not self.folder.is_dir():
            return {}
        with os.scandir(self.folder) as entries:
            return {
                entry.name: entry.stat(follow_symlinks=False).st_size
                for entry in entries
                if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            }

    def get_file_name(self, name: str) -> str:
        """Return the file name for a text's name."""
        key = key_for(self._agent)
        return name if key is None else _hash_name(key, name)

    def sweep(
        self,
        files: Callable[[], Collection[Path]],
        older_than: timedelta,
        list_names: Callable[[Path], Iterable[str]] | None = None,
    ) -> SweepResult:
        """Remove old texts that no file names.

        Args:
            files: Returns journals and quarantined files that may name texts; called while no text is written.
            older_than: Minimum age of a text.
            list_names: Returns names of texts in a file; `find_names` when omitted.

        Raises:
            StorageError: A file or the folder cannot be read; nothing more is removed.
        """
        if not self.folder.is_dir():
            return SweepResult()
        with self._held(fcntl.LOCK_EX), atomic.translated(self.folder, "sweep"):
            atomic.remove_leftovers(self.folder)
            unused = {name: size for name, size in self.names().items() if _is_old(self.folder / name, older_than)}
            for file in files() if unused else ():
                for name in (list_names or find_names)(file):
                    unused.pop(name, None)
                    unused.pop(self.get_file_name(name), None)
            for name in unused:
                (self.folder / name).unlink(missing_ok=True)
            if unused:
                atomic.sync_folder(self.folder)
        return SweepResult(len(unused), sum(unused.values()))

    def _write(self, content: bytes) -> str:
        name, key = get_name(content), key_for(self._agent)
        path = self.folder / (name if key is None else _hash_name(key, name))
        with contextlib.suppress(OSError):
            if _has_content(path, content, key):
                os.utime(path)
                with atomic.opened(path, os.O_RDONLY) as descriptor:
                    atomic.sync_file(descriptor)  # its writer may have died before
                return name
        atomic.replace_file(path, content if key is None else key.encrypt_file(path.name, content), durable=True)
        return name

    def _read_content(self, name: str) -> bytes | None:
        """Return a text in UTF-8; None if its file cannot be decrypted."""
        if get_key_file(self._agent) is None:
            return atomic.read_file(self.folder / name)
        key = data_key(self._agent)
        hashed = _hash_name(key, name)
        try:
            content = atomic.read_file(self.folder / hashed)
        except FileNotFoundError:  # encryption is in progress
            return atomic.read_file(self.folder / name)
        try:
            return key.decrypt_file(hashed, content)
        except ValueError:
            return None

    @contextlib.contextmanager
    def _held(self, operation: int) -> Iterator[None]:
        with atomic.translated(self.folder, "open"):
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with contextlib.suppress(OSError):  # without locks, only the age protects a text
                fcntl.flock(descriptor, operation)
            yield
        finally:
            atomic.unlock_and_close(descriptor)


def get_name(content: bytes) -> str:
    """Return the name of a text: its SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def replace_names(text: str, renamed: Mapping[str, str]) -> str:
    """Return a text with names of blobs replaced.

    Args:
        text: Text that may name blobs.
        renamed: New names by old names.
    """
    return _NAME.sub(lambda match: renamed.get(match[0], match[0]), text) if renamed else text


def find_names(file: Path) -> Iterator[str]:
    """Yield every possible blob name in a file; none if missing.

    Raises:
        OSError: The file cannot be read.
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


def _hash_name(key: DataKey, name: str) -> str:
    return key.hash_content(name.encode()).hex()


def _has_content(path: Path, content: bytes, key: DataKey | None) -> bool:
    if key is None:
        return path.lstat().st_size == len(content) and atomic.read_file(path) == content
    try:
        return key.decrypt_file(path.name, atomic.read_file(path)) == content
    except ValueError:
        return False


def _is_old(path: Path, older_than: timedelta) -> bool:
    return time.time() - path.lstat().st_mtime >= older_than.total_seconds()


def _build_missing_error(name: str, folder: Path) -> StorageError:
    return StorageError(
        f"The text {name[:12]}… is not in {folder.name}; its beginning is in the journal.",
        code="blob_missing",
        recovery="Restore the file from a backup, or ingest the text again.",
        path=folder / name,
    )
