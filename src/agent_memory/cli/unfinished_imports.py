"""IDs of interrupted imports, kept below `derived` until they are complete."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.files.names import DERIVED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FOLDER: Final = "imports"


class UnfinishedImport:
    """File with the ID of an import that is not complete.

    Args:
        agent: Folder of the agent.
        source: Path of the source, or its content.
    """

    def __init__(self, agent: Path, source: Path | bytes) -> None:
        name = source if isinstance(source, bytes) else os.fsencode(source.resolve())
        self._path = agent / DERIVED / _FOLDER / hashlib.sha256(name).hexdigest()

    def read_id(self) -> str:
        """Return the ID of the interrupted import, or an empty text."""
        with translated(self._path, "read"):
            return self._path.read_text("utf-8") if self._path.exists() else ""

    @contextmanager
    def hold(self, import_id: str) -> Iterator[None]:
        """Keep the ID until the block ends, also with refused records.

        Raises:
            StorageError: The file cannot be written or deleted.
        """
        make_private_folder(self._path.parent)
        with translated(self._path, "write"):
            replace_file(self._path, import_id.encode(), durable=True)
        try:
            yield
        except typer.Exit:
            self._delete()
            raise
        self._delete()

    def _delete(self) -> None:
        with translated(self._path, "delete"):
            self._path.unlink(missing_ok=True)


def drop_unfinished(agent: Path, import_id: str) -> None:
    """Delete the file of an import that was taken back."""
    for path in (agent / DERIVED / _FOLDER).glob("*"):
        with translated(path, "delete"):
            if path.read_text("utf-8") == import_id:
                path.unlink()
