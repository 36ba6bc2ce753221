"""Temporary files of one run of the page."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Final

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.atomic import hold_folder, opened, replace_file, translated, unlock_and_close, write_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MAX_UPLOAD: Final = 256 << 20
"""Bytes of a file that the page imports."""
_UPLOADS: Final = "agent-memory-import-"
_MAX_STEM: Final = 160
_MAX_SUFFIX: Final = 40
"""Bytes of a name; a file system takes 255 at most."""


def write_opening(folder: Path, address: str) -> Path:
    """Write a file that leads to the address.

    A browser is started with the file, so that the list of processes does not show the token.
    """
    path = folder / "open.html"
    content = f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">\n'
    replace_file(path, content.encode(), durable=False)
    return path


def sweep_uploads() -> None:
    """Delete uploads that killed processes left."""
    for folder in Path(gettempdir()).glob(f"{_UPLOADS}*"):
        with suppress(OSError):  # deleted since, in use, or not removable
            if folder.lstat().st_uid == os.geteuid() and (descriptor := hold_folder(folder)) is not None:
                try:
                    shutil.rmtree(folder)
                finally:
                    unlock_and_close(descriptor)


class UploadFolder:
    """The last dropped file, until it is stored or refused.

    Only this user can read its folder.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._paths: dict[str, Path] = {}

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Write an upload, delete the last one, and return its ID.

        Raises:
            ValidationError: It is empty or too large.
            StorageError: It cannot be written.
        """
        upload_id = secrets.token_hex(8)
        path = self._make_folder() / upload_id / _clean_name(name)
        try:
            with translated(path, "write"):
                path.parent.mkdir(mode=0o700)
                await _write_chunks(path, chunks)
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            raise
        self.delete_all()
        self._paths[upload_id] = path
        return upload_id

    def _make_folder(self) -> Path:
        if self._folder is None:
            folder = TemporaryDirectory(prefix=_UPLOADS, ignore_cleanup_errors=True)
            self._folder = Path(self._stack.enter_context(folder))
            if (descriptor := hold_folder(self._folder)) is not None:
                self._stack.callback(unlock_and_close, descriptor)
        return self._folder

    def get_path(self, upload_id: str) -> Path:
        """Return the file of an upload.

        Raises:
            UnknownIdError: There is none in this run.
        """
        if upload_id not in self._paths:
            raise UnknownIdError("This upload is gone; nothing was imported.", recovery="Choose the file again.")
        return self._paths[upload_id]

    @contextmanager
    def claim_path(self, upload_id: str) -> Iterator[Path]:
        """Yield the file of an upload once, then delete it.

        Raises:
            UnknownIdError: There is none in this run.
        """
        path = self.get_path(upload_id)
        del self._paths[upload_id]  # a later upload does not delete it while it is read
        try:
            yield path
        finally:
            shutil.rmtree(path.parent, ignore_errors=True)

    def delete_all(self) -> None:
        """Delete the uploads that are not being stored."""
        while self._paths:
            shutil.rmtree(self._paths.popitem()[1].parent, ignore_errors=True)

    def close(self) -> None:
        """Delete all uploads and their folder."""
        self._stack.close()
        self._folder = None
        self._paths.clear()


def _clean_name(name: str) -> str:
    """Return a name that every file system takes; its suffix is left."""
    base_name = Path(name.replace("\\", "/")).name.lstrip(".")
    printable = Path("".join(char if char.isprintable() else "_" for char in base_name) or "import")
    suffix = printable.suffix if len(printable.suffix.encode()) <= _MAX_SUFFIX else ""
    stem = printable.name.removesuffix(suffix).encode()[:_MAX_STEM].decode(errors="ignore")
    return stem + suffix


async def _write_chunks(path: Path, chunks: AsyncIterator[bytes]) -> None:
    size = 0
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        async for chunk in chunks:
            size += len(chunk)
            if size > MAX_UPLOAD:
                raise ValidationError(
                    f"The file is larger than {MAX_UPLOAD >> 20} MB; nothing was imported.",
                    code="too_long",
                    recovery="Run `agent-memory import FILE`.",
                )
            write_all(descriptor, chunk)
    if not size:
        raise ValidationError("The file is empty; nothing was imported.", code="usage")
