"""Take away what stands unencrypted beside encrypted journals and is derived: it is made anew in memory."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

from agent_memory.encryption.cipher import MAGIC
from agent_memory.files.atomic import read_file, replace_file, translated
from agent_memory.files.names import DERIVED, INDEX, METADATA, SHORTLIST, is_packed

if TYPE_CHECKING:
    from agent_memory.encryption.cipher import DataKey
    from agent_memory.files.layout import AgentFolder


def remove_derived(folder: AgentFolder) -> bool:
    """Remove segments and the vector engine's index; costs two looks where there are none. Tell whether there were any.

    Raises:
        StorageError: They are there still.
    """
    found = False
    for name in (DERIVED, INDEX):
        path = folder.path / name
        with translated(path, "remove"):
            if path.is_symlink():
                path.unlink()
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                continue
            found = True
    return found


def decrypt_aside(folder: AgentFolder, key: DataKey) -> None:
    """Have what was set aside while the files were encrypted stand plain.

    Raises:
        StorageError: One cannot be read or written; doing it again goes on.
    """
    for path in sorted(folder.path.iterdir()):
        if not is_packed(path.name) or not path.is_file() or path.is_symlink():
            continue
        with translated(path, "decrypt"):
            content = read_file(path)
            if content.startswith(MAGIC):
                with contextlib.suppress(ValueError):  # of another memory: left as it is
                    replace_file(path, key.decrypted(path.name, content), durable=True)


def remove_pad(folder: AgentFolder) -> None:
    """Remove the scratchpad's file, which is rendered from the journal.

    Raises:
        StorageError: It is there still.
    """
    with translated(folder.scratchpad, "remove"):
        folder.scratchpad.unlink(missing_ok=True)


def remove_views(folder: AgentFolder) -> None:
    """Remove what is made of the journals and read at a start: vectors, lists, and which shard is in use.

    Raises:
        StorageError: Something is there still.
    """
    patterns = (f"{folder.vectors.name}*", f"*{SHORTLIST}", METADATA)
    for path in [each for pattern in patterns for each in folder.path.glob(pattern)]:
        with translated(path, "remove"), contextlib.suppress(FileNotFoundError):
            path.unlink()
