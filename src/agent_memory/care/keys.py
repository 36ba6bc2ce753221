"""`kept.encrypted`: files beside the journals that cannot be used encrypted, packed as they were until they can be.

Copies that were set aside, copies that somebody made, pages of topics with what people changed in them. The file is
whole and synced before the first of them is removed, so that a killed process leaves each of them in one of both.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from typing import TYPE_CHECKING, Final

from agent_memory.encryption.cipher import MAGIC
from agent_memory.errors import StorageError
from agent_memory.files.atomic import make_private_folder, read_file, replace_file, sync_folder, translated
from agent_memory.files.names import KEPT, METADATA, SHORTLIST, is_packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from agent_memory.encryption import DataKey
    from agent_memory.files.layout import AgentFolder

_LARGEST: Final = 1 << 30
"""Bytes; AES-GCM of the library takes twice as many in one go."""


def kept_in(folder: Path, key: DataKey) -> dict[str, bytes]:
    """Return the packed files of an agent by their names in its folder; none where there is no such file.

    Raises:
        StorageError: It cannot be read, or was changed.
    """
    path = folder / KEPT
    if not path.exists():
        return {}
    with translated(path, "read"):
        content = read_file(path)
    try:
        with zipfile.ZipFile(io.BytesIO(key.decrypted(KEPT, content))) as packed:
            return {name: packed.read(name) for name in packed.namelist()}
    except (ValueError, zipfile.BadZipFile):
        raise StorageError(
            f"{KEPT} cannot be decrypted: something has changed it, or it is of another memory. Nothing was changed.",
            code="kept_damaged",
            recovery=f"Move {KEPT} away, and try again: it holds copies alone, no memory.",
            path=path,
        ) from None


def write_kept(folder: Path, key: DataKey, files: Mapping[str, bytes]) -> None:
    """Put these files in the place of those that are packed; with none, remove the file.

    Raises:
        StorageError: It could not be written; what was packed before still is.
    """
    path, packed = folder / KEPT, io.BytesIO()
    with translated(path, "write"):
        if not files:
            path.unlink(missing_ok=True)
            sync_folder(folder)
            return
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        if len(packed.getvalue()) > _LARGEST:
            raise StorageError(
                "The copies beside the journals take more than a gigabyte; nothing was packed.",
                code="kept_too_large",
                recovery="`agent-memory doctor` names them: remove those that are not needed, and try again.",
            )
        replace_file(path, key.encrypted(KEPT, packed.getvalue()), durable=True)


def pack(folder: Path, key: DataKey, paths: Iterable[Path]) -> list[str]:
    """Pack files of an agent's folder with those that are packed already, and remove them; return their names.

    Raises:
        StorageError: One cannot be read or written; none is lost, and doing it again goes on.
    """
    paths = list(paths)
    if not paths:
        return []
    with translated(folder, "pack"):
        files = {path.relative_to(folder).as_posix(): read_file(path) for path in paths}
        write_kept(folder, key, {**kept_in(folder, key), **files})
        for path in paths:
            path.unlink(missing_ok=True)
        sync_folder(folder)
    return sorted(files)


def unpack(folder: Path, key: DataKey) -> list[str]:
    """Put packed files in their places, unless there are others by now, and remove the pack; return their names.

    Raises:
        StorageError: As `pack`.
    """
    files = kept_in(folder, key)
    with translated(folder, "unpack"):
        for name, content in files.items():
            path = folder / name
            if path.exists():
                continue
            make_private_folder(path.parent)
            replace_file(path, content, durable=True)
    write_kept(folder, key, {})
    return sorted(files)


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
