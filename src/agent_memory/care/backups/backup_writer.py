"""Backups of an agent, created while other processes write.

Journals only grow, and a compaction replaces the file. So a backup notes within the lock of the folder where each
journal ends, and reads up to there from the open files afterwards. Writers wait milliseconds. Derived files are left
out: vectors would be nine tenths of a backup, and are computed again from the texts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.care.backups.backup_reader import LineTally, check_written, iter_lines
from agent_memory.care.backups.manifest import (
    ASKED,
    MANIFEST,
    ON_FILE,
    PURGES,
    README,
    BackupFile,
    BackupJournal,
    BackupManifest,
    build_name,
    folder_of_backups,
    is_beside,
)
from agent_memory.encryption import AgentBlobs
from agent_memory.errors import StorageError, ValidationError
from agent_memory.files import atomic
from agent_memory.files.exchange import move_if_free
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import ENCRYPTION, SCRATCHPAD
from agent_memory.journal import rewrite_returned
from agent_memory.journal.journal import check_all_present
from agent_memory.models import Clock, utc_now
from agent_memory.settings import PERSON_SECONDS
from agent_memory.settings.installation import installed_version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path
    from typing import IO

    from agent_memory.files.layout import AgentFolder


_BLOCK: Final = 1 << 20
_AT_ONCE: Final = 1 << 16
_MOST_NAMES: Final = 1000


@dataclass(frozen=True, slots=True)
class Backup:
    """Backup on the disk.

    Attributes:
        path: Path of the file.
        size: Size in bytes.
        manifest: Manifest of the backup.
    """

    path: Path
    size: int
    manifest: BackupManifest


class JournalEnd(NamedTuple):
    """Journal at one moment: name, open descriptor and number of bytes."""

    name: str
    descriptor: int
    size: int


def create_backup(folder: AgentFolder, *, clock: Clock = utc_now, place: Path | None = None) -> Backup:
    """Create a backup of an agent and verify it.

    A journal that was put back after a purge is rewritten first, without what was purged.

    Args:
        folder: Folder of the agent.
        clock: Source of the present.
        place: Folder of the backup; that of all backups if omitted.

    Raises:
        ValidationError: There is nothing to back up.
        BusyError: A process has been writing for too long.
        StorageError: Writing or verifying failed, or a journal is missing. No backup was created.
    """
    check_all_present(folder.path)
    if folder.path.is_dir():
        rewrite_returned(folder.journals())
    with contextlib.ExitStack() as reading:
        with folder_lock(folder.path, PERSON_SECONDS):
            moment, cut = clock(), reading.enter_context(open_cut(folder))
        return write_backup(folder, cut, ASKED, moment, place)


@contextlib.contextmanager
def open_cut(folder: AgentFolder) -> Iterator[list[JournalEnd]]:
    """Yield the ends of an agent's journals, with the lock held.

    Raises:
        StorageError: A journal cannot be opened.
        ValidationError: The agent has no journal.
    """
    with contextlib.ExitStack() as opened:
        opened.enter_context(AgentBlobs(folder).prevent_sweep())
        cut: list[JournalEnd] = []
        with atomic.translated(folder.path, "back up"):
            for journal in folder.journals():
                descriptor = atomic.open_private(journal, os.O_RDONLY)
                opened.callback(os.close, descriptor)
                cut.append(JournalEnd(journal.name, descriptor, _find_line_end(descriptor)))
        if not cut:
            message = f"{folder.agent_id} has stored nothing yet; there is nothing to back up."
            recovery = "`agent-memory agents` lists who has memories."
            raise ValidationError(message, code="nothing_to_back_up", recovery=recovery)
        yield cut


def write_backup(
    folder: AgentFolder, cut: list[JournalEnd], reason: str, moment: datetime, place: Path | None = None
) -> Backup:
    """Write an agent's files at one moment to a backup; see `create_backup`.

    Args:
        folder: Folder of the agent.
        cut: Open journals of the folder with their ends.
        reason: `asked` or `before_restore`.
        moment: Moment of the cut, UTC.
        place: Folder of the backup; that of all backups if omitted.
    """
    place = place or folder_of_backups(folder.path.parent)
    atomic.make_private_folder(place)
    atomic.remove_leftovers(place)
    name = build_name(folder.agent_id, moment, reason)
    temporary = place / f".{name}.{secrets.token_hex(4)}.tmp"
    with atomic.translated(place / name, "write"):
        descriptor = atomic.open_private(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            atomic.claim(descriptor)
            with os.fdopen(descriptor, "w+b", closefd=False) as file:
                manifest = _write(file, folder, cut, reason, moment)
            atomic.sync_file(descriptor)
            check_written(temporary, manifest)
            path = _put(temporary, place / name)
            atomic.sync_folder(place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            atomic.unlock_and_close(descriptor)
        return Backup(path, path.stat().st_size, manifest)


def _write(
    file: IO[bytes], folder: AgentFolder, cut: list[JournalEnd], reason: str, moment: datetime
) -> BackupManifest:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, README, moment, iter([ON_FILE.encode()]))
        journals = []
        for name, descriptor, end in cut:
            tally = LineTally()
            _add(archive, name, moment, _count_lines(atomic.iter_blocks(descriptor, 0, end, _BLOCK), tally), end)
            if tally.size != end:
                raise StorageError(f"{name} became shorter while it was read: another program cut it. No backup.")
            journals.append(describe_journal(name, tally))
        files = [_copy_file(archive, folder, name, moment) for name in _beside(folder)]
        manifest = BackupManifest(
            agent_id=folder.agent_id,
            made_at=moment,
            made_by=installed_version(),
            reason=reason,
            journals=tuple(journals),
            files=tuple(entry for entry in files if entry is not None),
        )
        _add(archive, MANIFEST, moment, iter([manifest.encode()]))
    return manifest


def describe_journal(name: str, tally: LineTally) -> BackupJournal:
    """Return the manifest entry of a counted journal."""
    return BackupJournal(
        name=name,
        size=tally.size,
        sha256=tally.sha256,
        generation=tally.header.generation if tally.header else "",
        last_seq=tally.last_seq,
        lines=tally.lines,
        records=tally.records,
        damaged=len(tally.damaged),
    )


def _count_lines(blocks: Iterator[bytes], tally: LineTally) -> Iterator[bytes]:
    for line in iter_lines(blocks):
        tally.add(line)
        yield line


def _beside(folder: AgentFolder) -> list[str]:
    """Return the names of all other files that a backup has."""
    texts = [f"{folder.blobs.name}/{name}" for name in sorted(AgentBlobs(folder).names())]
    pages = [f"{folder.topics.name}/{page.name}" for page in folder.list_pages()]
    return [name for name in (*texts, *pages, SCRATCHPAD, ENCRYPTION, *sorted(PURGES)) if is_beside(name)]


def _copy_file(archive: zipfile.ZipFile, folder: AgentFolder, name: str, moment: datetime) -> BackupFile | None:
    """Copy a whole file; None for a missing file or link."""
    path = folder.path / name
    if path.is_symlink() or not path.is_file():
        return None
    content = atomic.read_file(path)
    _add(archive, name, moment, iter([content]), len(content))
    return BackupFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())


def _add(archive: zipfile.ZipFile, name: str, moment: datetime, blocks: Iterator[bytes], size: int = 0) -> None:
    member = zipfile.ZipInfo(name, moment.timetuple()[:6])
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = atomic.PRIVATE_FILE << 16
    with archive.open(member, "w", force_zip64=size > zipfile.ZIP64_LIMIT // 2) as target:
        for block in blocks:
            target.write(block)


def _find_line_end(descriptor: int) -> int:
    """Return the number of bytes of complete lines in an open journal."""
    end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - _AT_ONCE)
        index = os.pread(descriptor, end - start, start).rfind(b"\n")
        if index >= 0:
            return start + index + 1
        end = start
    return 0


def _put(temporary: Path, place: Path) -> Path:
    """Rename a backup to its name, or to the next free one."""
    for number in range(1, _MOST_NAMES):
        free = place if number == 1 else place.with_name(f"{place.stem}-{number}.zip")
        if move_if_free(temporary, free):
            return free
    raise StorageError(f"No free name for {place.name}.")
