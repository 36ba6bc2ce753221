"""Temporary files of one run of the page."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.atomic import opened, replace_file, write_all

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MAX_UPLOAD: Final = 256 << 20
"""Bytes of a file that the page imports."""


def write_opening(folder: Path, address: str) -> Path:
    """Write a file that leads to the address.

    A browser is started with the file, so that the list of processes does not show the token.
    """
    path = folder / "open.html"
    content = f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">\n'
    replace_file(path, content.encode(), durable=False)
    return path


class UploadFolder:
    """Files that a person dropped, until the page ends.

    Only this user can read their folder.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._names: dict[str, str] = {}

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Write an upload; return its ID.

        Raises:
            ValidationError: It is empty or too large.
        """
        if self._folder is None:
            folder = TemporaryDirectory(prefix="agent-memory-import-", ignore_cleanup_errors=True)
            self._folder = Path(self._stack.enter_context(folder))
        upload_id, size = secrets.token_hex(8), 0
        (self._folder / upload_id).mkdir(mode=0o700)
        base_name = Path(name.replace("\\", "/")).name[:200].lstrip(".") or "import"
        with opened(self._folder / upload_id / base_name, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
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
        self._names[upload_id] = base_name
        return upload_id

    def get_path(self, upload_id: str) -> Path:
        """Return the file of an upload.

        Raises:
            UnknownIdError: There is none in this run.
        """
        if self._folder is None or upload_id not in self._names:
            raise UnknownIdError("This upload is gone; nothing was imported.", recovery="Choose the file again.")
        return self._folder / upload_id / self._names[upload_id]

    def close(self) -> None:
        """Delete all uploads."""
        self._stack.close()
        self._names.clear()
