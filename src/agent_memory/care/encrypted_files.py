"""Files of an encrypted agent: recoded in place or packed.

Journals and long texts are recoded in place. Copies and pages cannot be used encrypted: they are packed into
`kept.encrypted`. The pack is whole and synced before the first of them is removed, so after a crash each is in one of
both. The header of each journal names its key, so processes with the key read and write during the recoding.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
import zipfile
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.encryption import AgentBlobs, key_for
from agent_memory.encryption.cipher import MAGIC
from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import make_private_folder, opened, read_file, replace_file, sync_folder, translated
from agent_memory.files.names import KEPT, METADATA, SHORTLIST, is_packed
from agent_memory.journal import AS_IT_STANDS, IDENTITY, Journal
from agent_memory.journal.reader import JournalReader, read_header
from agent_memory.journal.rewrite import open_recoding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from agent_memory.encryption import DataKey
    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal.rewrite import JournalRewrite


_LARGEST: Final = 1 << 30
"""Bytes; AES-GCM of the library takes twice as many in one go."""


def kept_in(folder: Path, key: DataKey) -> dict[str, bytes]:
    """Return the packed files of an agent by name.

    Raises:
        StorageError: It cannot be read, or was changed.
    """
    path = folder / KEPT
    if not path.exists():
        return {}
    with translated(path, "read"):
        content = read_file(path)
    try:
        with zipfile.ZipFile(io.BytesIO(key.decrypt_file(KEPT, content))) as packed:
            return {name: packed.read(name) for name in packed.namelist()}
    except (ValueError, zipfile.BadZipFile):
        raise StorageError(
            f"{KEPT} cannot be decrypted: it was changed, or it is of another memory. Nothing was changed.",
            code="kept_damaged",
            recovery=f"Move {KEPT} away, and try again: it holds copies alone, no memory.",
            path=path,
        ) from None


def write_kept(folder: Path, key: DataKey, files: Mapping[str, bytes]) -> None:
    """Replace the pack; without files, delete it.

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
                "Copies of journals take more than a gigabyte; nothing was packed.",
                code="kept_too_large",
                recovery="`agent-memory doctor` names them: remove those that are not needed, and try again.",
            )
        replace_file(path, key.encrypt_file(KEPT, packed.getvalue()), durable=True)


def pack(folder: Path, key: DataKey, paths: Iterable[Path]) -> list[str]:
    """Pack files together with packed ones and delete them; return their names.

    Raises:
        StorageError: One cannot be read or written; none is lost, and a repetition continues.
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
    """Unpack files except existing ones, and delete the pack; return their names.

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
    """Decrypt the quarantined files of an agent.

    Raises:
        StorageError: One cannot be read or written; a repetition continues.
    """
    for path in sorted(folder.path.iterdir()):
        if not is_packed(path.name) or not path.is_file() or path.is_symlink():
            continue
        with translated(path, "decrypt"):
            content = read_file(path)
            if content.startswith(MAGIC):
                with contextlib.suppress(ValueError):  # of another memory: left as it is
                    replace_file(path, key.decrypt_file(path.name, content), durable=True)


def remove_pad(folder: AgentFolder) -> None:
    """Delete the scratchpad's file, which is rendered from the journal.

    Raises:
        StorageError: It still exists.
    """
    with translated(folder.scratchpad, "remove"):
        folder.scratchpad.unlink(missing_ok=True)


def remove_views(folder: AgentFolder) -> None:
    """Delete derived files that are read at a start.

    These are vectors, lists and the note of the active shard.

    Raises:
        StorageError: Something is there still.
    """
    patterns = (f"{folder.vectors.name}*", f"*{SHORTLIST}", METADATA)
    for path in [path for pattern in patterns for path in folder.path.glob(pattern)]:
        with translated(path, "remove"), contextlib.suppress(FileNotFoundError):
            path.unlink()


TRIES: Final = 50
PAUSE: Final = 0.2
"""Seconds between two attempts, while another process compacts."""


def recode(folder: AgentFolder, progress: Callable[[str], None] = lambda _: None) -> None:
    """Encrypt or decrypt all journals and long texts to the agent's state.

    Args:
        folder: Folder of the agent.
        progress: Called with the name of the next file.

    Raises:
        BusyError: A process has been writing for too long; a repetition continues.
        UnsupportedError: A newer version wrote something; that journal is as it was.
        StorageError: One cannot be read or written; a repetition continues.
    """
    while paths := unlike(folder):
        for path in paths:
            progress(path.name)
            put_in_place(Journal(path, ()), partial(open_recoding, path, key_for(folder.path) or IDENTITY))
    if folder.blobs.is_dir():
        progress(folder.blobs.name)
        AgentBlobs(folder).recode()


def unlike(folder: AgentFolder) -> list[Path]:
    """Return journals that do not match the agent's state.

    Raises:
        StorageError: One cannot be read.
    """
    key = key_for(folder.path)
    name = None if key is None else key.key
    return [path for path in folder.journals() if path.stat().st_size and _key_named_in(path) != name]


def _key_named_in(path: Path) -> str | None:
    reader = JournalReader(path, codec=AS_IT_STANDS)
    with translated(path, "read"), opened(path, os.O_RDONLY) as descriptor:
        header = read_header(reader, descriptor)
    return None if header is None else header.key


def put_in_place(journal: Journal, open_new: Callable[[], AbstractContextManager[JournalRewrite]]) -> None:
    """Replace a journal by a new version while other processes write.

    Raises:
        BusyError: Others wrote all the time; the journal is as it was.
    """
    for _ in range(TRIES):
        try:
            with open_new() as new:
                journal.put_in_place(new)
        except BusyError:
            time.sleep(PAUSE)
        else:
            return
    raise BusyError(f"{journal.path.name} is being written all the time and was not changed. Try again.")
