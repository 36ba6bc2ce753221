"""Contents of workspace files, stored once by hash and compressed.

A content is written before the row that names it, so a process that dies in between leaves an unnamed one.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import make_private_folder, read_file, replace_file, sync_folder, translated
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_LEVEL: Final = 1
"""Level of zlib: texts and SVG become a quarter, at 100 MB a second."""
MAX_FILE_BYTES: Final = 100_000_000
DECLARATION: Final = "workspace.yaml"
"""File with the declaration of a workspace; not part of snapshots."""


class ContentStore:
    """Contents of files in a folder, named by SHA-256."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, content: bytes) -> str:
        """Store a content; return its SHA-256."""
        name = hashlib.sha256(content).hexdigest()
        path = self._folder / name
        if not self.has(name):
            make_private_folder(self._folder)
            with translated(path, "write"):
                replace_file(path, zlib.compress(content, _LEVEL), durable=True)
        return name

    def has(self, name: str) -> bool:
        """Return True if a content is stored."""
        return (self._folder / name).exists()

    def read(self, name: str) -> bytes:
        """Return a content.

        Raises:
            StorageError: It is missing, or does not match its name.
        """
        path = self._folder / name
        try:
            with translated(path, "read"):
                # Bounded: a file from another process may unpack to any size.
                content = zlib.decompressobj().decompress(read_file(path), MAX_FILE_BYTES + 1)
        except zlib.error:
            content = b""
        except StorageError:
            if path.exists():
                raise
            content = b""
        if hashlib.sha256(content).hexdigest() != name:
            wrong = "is not what was kept" if path.exists() else "is gone"
            raise StorageError(
                f"A file of a snapshot ({name[:12]}…) {wrong}; the rows of the snapshot are whole.",
                code="content_damaged",
                recovery="Put the file of this name from a backup in its place.",
                path=path,
            )
        return content

    def sweep(self, named: Collection[str]) -> int:
        """Delete contents that are not named; return their number."""
        if not self._folder.is_dir():
            return 0
        unnamed = [path for path in self._folder.iterdir() if _NAME.fullmatch(path.name) and path.name not in named]
        for path in unnamed:
            path.unlink(missing_ok=True)
        sync_folder(self._folder)
        return len(unnamed)


def list_files(folder: Path, patterns: Iterable[str]) -> dict[str, Path]:
    """Return the files of a workspace by relative path.

    Links and hidden folders are left out.
    """
    files: dict[str, Path] = {}
    declaration = folder / DECLARATION  # describes the present rows, not those of a snapshot
    for pattern in patterns:
        for path in folder.glob(pattern):
            relative = path.relative_to(folder)
            hidden = any(part.startswith(".") for part in relative.parts)
            if not hidden and path != declaration and path.is_file() and not _through_a_link(folder, relative):
                files[relative.as_posix()] = path
    return dict(sorted(files.items()))


def build_manifest(folder: Path, patterns: Iterable[str], contents: ContentStore | None = None) -> dict[str, str]:
    """Return the SHA-256 of each file; store contents if `contents` is given.

    Raises:
        StorageError: A file is longer than 100 MB, cannot be read, or has a name that is not UTF-8.
    """
    manifest: dict[str, str] = {}
    for name, path in list_files(folder, patterns).items():
        _check_name(name, path)
        with translated(path, "read"):
            size = path.stat().st_size
            if size > MAX_FILE_BYTES:
                raise StorageError(
                    f"{name} has {size:,} bytes; a file of a workspace may have {MAX_FILE_BYTES:,}.",
                    code="file_too_large",
                    recovery="Move it out of the folders that the declaration names under `files`.",
                    path=path,
                )
            content = path.read_bytes()
        manifest[name] = hashlib.sha256(content).hexdigest() if contents is None else contents.keep(content)
    return manifest


def is_inside(name: str) -> bool:
    """Return True if a path may belong to a workspace.

    It is below the folder, not hidden, and not the declaration.
    """
    parts = name.split("/")
    plain = all(part and not part.startswith(".") for part in parts) and "\\" not in name and "\0" not in name
    return plain and name != DECLARATION and not PureWindowsPath(name).drive


def check_places(folder: Path, manifest: Iterable[str]) -> None:
    """Check that the files of a manifest can be restored.

    Raises:
        StorageError: A path is outside the folder, or a link or folder is in its place; nothing was changed.
    """
    for name in manifest:
        if not is_inside(name):
            raise StorageError(
                f"A snapshot names a file {quoted(name)}, as no file of a workspace is called; nothing was changed.",
                code="content_damaged",
                recovery="Do not use this workspace: somebody changed its database. Take one from a backup.",
                path=folder,
            )
        path, parts = folder, PurePosixPath(name).parts
        for number, part in enumerate(parts, 1):
            path /= part
            wrong = "a link"
            if not path.is_symlink():
                wrong = "a folder" if number == len(parts) and path.is_dir() else ""
                wrong = "a file" if number < len(parts) and path.exists() and not path.is_dir() else wrong
            if wrong:
                raise StorageError(
                    f"{name} cannot be written: {path.relative_to(folder).as_posix()} is {wrong} now.",
                    code="in_the_way",
                    recovery="Move it elsewhere and do this again.",
                    path=path,
                )


def restore_files(folder: Path, patterns: Iterable[str], manifest: dict[str, str], contents: ContentStore) -> list[str]:
    """Restore the files of a manifest; return the changed paths.

    Can be repeated after a kill. A file that the manifest does not name is deleted: the snapshot before a
    restore has it.
    """
    changed: list[str] = []
    check_places(folder, manifest)
    existing = list_files(folder, patterns)
    for name, wanted in manifest.items():
        path = folder.joinpath(*PurePosixPath(name).parts)
        if name in existing and hashlib.sha256(path.read_bytes()).hexdigest() == wanted:
            continue
        with translated(path, "write"):
            make_private_folder(path.parent)
            replace_file(path, contents.read(wanted), durable=True)
        changed.append(name)
    for name in existing.keys() - manifest.keys():
        with translated(existing[name], "remove"):
            existing[name].unlink(missing_ok=True)
        changed.append(name)
    return sorted(changed)


def _check_name(name: str, path: Path) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise StorageError(
            f"The name of {path!r} is not UTF-8; a file of a workspace is named by text.",
            code="file_name",
            recovery="Rename it, or move it out of the folders that the declaration names under `files`.",
        ) from None


def _through_a_link(folder: Path, relative: PurePath) -> bool:
    path = folder
    for part in relative.parts:
        path = path / part
        if path.is_symlink():
            return True
    return False
