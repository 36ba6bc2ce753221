"""Reader of backups, and their list and pruning.

A backup may come from any source: only files of its manifest are read, and no name of the archive becomes a path.
Files are read block by block and compared with their checksums.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.manifest import (
    MANIFEST,
    MOST_BYTES_OF_MANIFEST,
    README,
    BackupFile,
    BackupJournal,
    BackupManifest,
    agent_in,
    build_foreign_error,
    folder_of_backups,
    moment_in,
)
from agent_memory.errors import AgentMemoryError, StorageError, ValidationError
from agent_memory.files.atomic import remove_leftovers, sync_folder, translated
from agent_memory.files.entries import get_path_type
from agent_memory.journal.format import Header, MalformedLineError, decode_entry, decode_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


_BLOCK: Final = 1 << 20
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError,
    OverflowError, KeyError, IndexError,
)  # fmt: skip
"""Errors of the zip reader for files that are damaged, encrypted or packed in another way."""
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class VerifiedBackup:
    """Result of a verification.

    Attributes:
        manifest: Manifest of the backup.
        problems: Differences to the manifest in sentences; none if valid.
        ids: IDs of all records by kind.
    """

    manifest: BackupManifest
    problems: tuple[str, ...]
    ids: dict[str, set[str]]


class BackupArchive:
    """An open backup.

    Attributes:
        path: Path of the file.
        manifest: Manifest of the backup.
        missing: Names of missing files, and of files with another size.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._archive = archive
        members = _members(path, archive)
        if MANIFEST not in members:
            raise build_foreign_error(path, "it has no manifest")
        if members[MANIFEST].file_size > MOST_BYTES_OF_MANIFEST:
            raise build_foreign_error(path, "its manifest is too long")
        self.manifest = BackupManifest.decode(b"".join(self._blocks(members[MANIFEST], MOST_BYTES_OF_MANIFEST)), path)
        held = {file.name: file for file in (*self.manifest.journals, *self.manifest.files)}
        if strange := sorted(members.keys() - held.keys() - {MANIFEST, README}):
            raise build_foreign_error(path, f"its manifest does not name {strange[0][:60]!r}, which is in it")
        self.missing = sorted(
            name for name, file in held.items() if name not in members or members[name].file_size != file.size
        )
        self._members = members

    def blocks(self, held: BackupFile) -> Iterator[bytes]:
        """Yield the content of a file.

        Raises:
            StorageError: It cannot be read, or is longer than it should be.
        """
        try:
            yield from self._blocks(self._members[held.name], held.size)
        except _BROKEN as error:
            raise build_damaged_error(self.path, [f"{held.name} cannot be read: {_words(error)}"]) from error

    def _blocks(self, member: zipfile.ZipInfo, size: int) -> Iterator[bytes]:
        remaining = min(size, member.file_size)
        with self._archive.open(member) as source:
            while block := source.read(min(_BLOCK, remaining + 1)):
                remaining -= len(block)
                if remaining < 0:
                    raise zipfile.BadZipFile("it is longer than it says")
                yield block


@contextlib.contextmanager
def opened_backup(path: Path) -> Iterator[BackupArchive]:
    """Yield an open backup with a read manifest.

    Raises:
        ValidationError: The file does not exist (`no_file`), or is not our backup (`not_a_backup`).
        StorageError: It cannot be read, or a newer version made it.
    """
    kind = get_path_type(path, follow=True)
    if kind in {"missing", "link"}:
        raise ValidationError(
            f"There is not a file {path}.", code="no_file", recovery="`agent-memory backup list` shows backups."
        )
    if kind not in {"file", "hidden"}:
        raise build_foreign_error(path, "it is not a file")
    with contextlib.ExitStack() as ending:
        with translated(path, "read"):
            file = ending.enter_context(path.open("rb"))
        try:
            opened = BackupArchive(path, ending.enter_context(zipfile.ZipFile(file)))
        except AgentMemoryError:
            raise
        except _BROKEN as error:
            if agent_in(path.name) is not None:
                raise build_damaged_error(path, [f"it cannot be opened: {_words(error)}"]) from error
            raise build_foreign_error(path, f"it is no zip file that can be read ({_words(error)})") from error
        yield opened


def verify_backup(path: Path) -> VerifiedBackup:
    """Read a whole backup and report differences to its manifest.

    Raises:
        ValidationError: It is not a backup.
        StorageError: It cannot be read, or a newer version made it.
    """
    with opened_backup(path) as archive:
        return verify_open(archive)


def verify_open(archive: BackupArchive, *, deep: bool = True) -> VerifiedBackup:
    """Verify an open backup; without `deep`, only the checksums."""
    problems = [f"{name} is missing, or of another size than the manifest says" for name in archive.missing]
    ids: dict[str, set[str]] = {}
    for held in (*archive.manifest.journals, *archive.manifest.files):
        if held.name in archive.missing:
            continue
        try:
            if deep and isinstance(held, BackupJournal):
                problems += _verify_journal(archive, held, ids)
            else:
                problems += _verify_file(archive, held)
        except StorageError as error:
            end = " to its end" if isinstance(held, BackupJournal) else ""
            problems.append(f"{held.name} cannot be read{end} ({_words(error.__cause__ or error)})")
    return VerifiedBackup(archive.manifest, tuple(problems), ids)


def check_written(path: Path, manifest: BackupManifest) -> None:
    """Read a backup again that was just written, by its checksums.

    Raises:
        StorageError: It is not what was written.
    """
    with opened_backup(path) as archive:
        verified = verify_open(archive, deep=False)
    if verified.problems or verified.manifest != manifest:
        raise build_damaged_error(path, verified.problems or ["its manifest is not what was written"])


def build_damaged_error(path: Path, problems: tuple[str, ...] | list[str]) -> StorageError:
    """Return the error for a backup that is not what it says."""
    more = f" And {len(problems) - _SHOWN} more." if len(problems) > _SHOWN else ""
    return StorageError(
        f"{path.name} is damaged: {'; '.join(problem.rstrip('.') for problem in problems[:_SHOWN])}.{more} "
        "Nothing was changed.",
        code="backup_damaged",
        recovery="Take another one; `agent-memory backup list --check` reads all there are.",
        path=path,
    )


def _verify_journal(archive: BackupArchive, held: BackupJournal, ids: dict[str, set[str]]) -> Iterator[str]:
    tally = LineTally()
    try:
        for line in iter_lines(archive.blocks(held)):
            tally.add(line)
    except (StorageError, MalformedLineError) as error:
        position = f"({_words(error.__cause__ or error)}), behind line {tally.lines:,} of {held.lines:,}"
        yield f"{held.name} cannot be read to its end {position}{_where(tally, held)}"
        return
    if tally.sha256 != held.sha256:
        yield f"{held.name} has another checksum than the manifest says{_where(tally, held)}"
    elif (tally.lines, tally.last_seq, tally.records) != (held.lines, held.last_seq, held.records):
        yield f"{held.name} has other counts than the manifest says"
    for kind, record_ids in tally.ids.items():
        ids.setdefault(kind, set()).update(record_ids)


def _where(tally: LineTally, held: BackupJournal) -> str:
    new = len(tally.damaged) - held.damaged
    if new <= 0:
        return ""
    numbers = ", ".join(map(str, tally.damaged[:_SHOWN]))
    return f": line {numbers} is damaged" if len(tally.damaged) == 1 else f": among others, lines {numbers} are damaged"


def _verify_file(archive: BackupArchive, held: BackupFile) -> Iterator[str]:
    summed, size = hashlib.sha256(), 0
    for block in archive.blocks(held):
        summed.update(block)
        size += len(block)
    if (summed.hexdigest(), size) != (held.sha256, held.size):
        yield f"{held.name} has another checksum than the manifest says"


def _members(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return members of an archive by name; refuse unexpected ones."""
    members: dict[str, zipfile.ZipInfo] = {}
    end = 0
    for member in sorted(archive.infolist(), key=lambda info: info.header_offset):
        mode = member.external_attr >> 16
        if member.filename in members:
            raise build_foreign_error(path, f"it has {member.filename[:60]!r} twice")
        if member.is_dir() or (mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode)):
            raise build_foreign_error(path, f"{member.filename[:60]!r} in it is not a file")
        if member.flag_bits & 0x1:
            raise build_foreign_error(path, "it is encrypted")
        if member.header_offset < end:
            raise build_foreign_error(path, "files in it overlap")
        end = member.header_offset + member.compress_size
        members[member.filename] = member
    return members


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:80].rstrip(".") or type(error).__name__


_PLAIN: Final = re.compile(
    rb'--- {"seq": ([1-9][0-9]{0,14}), "at": "[^"\\]*", "op": "(put|patch|delete|touch|mark)", "kind": "([a-z_]+)", '
    rb'"id": "([a-z]{3}-[0-9a-f]{12})"[,}]'
)
"""Beginning of nearly all lines that this package wrote. If their checksum matches they are unchanged, and are not
parsed, which takes ten times as long."""
_SEAL: Final = re.compile(rb', "crc": "([0-9a-f]{8})"}\n\Z')
_SEAL_BYTES: Final = 21
LONGEST: Final = 256 << 20
"""Most bytes of a line; our programs write at most a hundredth of that at once."""


class LineTally:
    """Counts the lines of a journal, one after the other.

    Attributes:
        size: Number of counted bytes.
        header: Header of the journal, or None.
        last_seq: Highest number in header and entries.
        lines: Number of lines, header and damaged ones included.
        damaged: Numbers of lines that are not entries.
        ids: IDs of present records by kind.
    """

    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self.size = self.last_seq = self.lines = 0
        self.header: Header | None = None
        self.damaged: list[int] = []
        self.ids: dict[str, set[str]] = {}

    @property
    def sha256(self) -> str:
        """Of all bytes so far."""
        return self._sum.hexdigest()

    @property
    def records(self) -> dict[str, int]:
        """Number of records by kind."""
        return {kind: len(ids) for kind, ids in sorted(self.ids.items()) if ids}

    def add(self, line: bytes) -> None:
        """Count the next line.

        Of a last line without an end, only the bytes count.
        """
        self._sum.update(line)
        self.size += len(line)
        if not line.endswith(b"\n"):
            return
        self.lines += 1
        if self.lines > 1 and (plain := _PLAIN.match(line)) is not None and _is_sealed(line):
            self.last_seq = max(self.last_seq, int(plain[1]))
            self._note(plain[2].decode(), plain[3].decode(), plain[4].decode())
            return
        try:
            if line.strip() and not (self.lines == 1 and self._is_header(line)):
                entry = decode_entry(line, self.header.format if self.header else 1)
                self.last_seq = max(self.last_seq, entry.seq)
                for change in entry.changes:
                    self._note(change.op, change.kind, change.id)
        except MalformedLineError:
            self.damaged.append(self.lines)

    def _is_header(self, line: bytes) -> bool:
        try:
            self.header = decode_header(line)
        except MalformedLineError:
            return False
        self.last_seq = self.header.last_seq
        return True

    def _note(self, op: str, kind: str, record_id: str) -> None:
        if op == "put":
            self.ids.setdefault(kind, set()).add(record_id)
        elif op == "delete":
            self.ids.get(kind, set()).discard(record_id)


def _is_sealed(line: bytes) -> bool:
    """Return True if a line ends with the checksum that it has."""
    seal = _SEAL.search(line, max(0, len(line) - _SEAL_BYTES - 1))
    return seal is not None and zlib.crc32(memoryview(line)[: seal.start()]) == int(seal[1], 16)


def iter_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of consecutive blocks; the last may lack its end.

    Raises:
        MalformedLineError: A line is longer than any of ours.
    """
    rest: list[bytes] = []
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            content = b"".join((*rest, block[: end - 1]))
            yield from (line + b"\n" for line in content.split(b"\n"))  # nothing but a newline ends a line
            rest = []
        rest.append(block[end:])
        if sum(map(len, rest)) > LONGEST:
            raise MalformedLineError("a line has no end")
    if last := b"".join(rest):
        yield last


def tally_journal(path: Path) -> LineTally:
    """Return the tally of a journal.

    Raises:
        OSError: It cannot be read.
    """
    tally = LineTally()
    with path.open("rb") as file:
        for line in file:
            tally.add(line)
    return tally


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """A backup in the folder of backups.

    Attributes:
        path: Path of the file.
        agent_id: Agent by the file name.
        made_at: Moment by the manifest, else by the file name.
        size: Size in bytes.
        manifest: Manifest, or None if unreadable.
        problem: Reason why it cannot be used, empty for none.
        is_checked: True if the whole file was verified.
    """

    path: Path
    agent_id: str
    made_at: datetime
    size: int
    manifest: BackupManifest | None
    problem: str = ""
    is_checked: bool = False


def list_backups(root: Path, agent: str | None = None, *, check: bool = False) -> list[BackupSummary]:
    """Return the backups of one agent, or of all, the newest first.

    Args:
        root: Folder of all agents.
        agent: Name of an agent, all by default.
        check: True to verify whole files, not only their manifests.

    Raises:
        StorageError: The folder cannot be listed.
    """
    backups = [_read_summary(path, check=check) for path in list_backup_files(root, agent)]
    return sorted(backups, key=lambda backup: (backup.made_at, backup.path.name), reverse=True)


def list_backup_files(root: Path, agent: str | None = None) -> list[Path]:
    """Return files with names of backups in their folder.

    Raises:
        StorageError: The folder cannot be listed.
    """
    folder = folder_of_backups(root)
    with translated(folder, "list"):
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        return [
            path
            for path in entries
            if (whose := agent_in(path.name)) is not None
            and moment_in(path.name) is not None
            and (agent is None or whose.lower() == agent.lower())
            and path.is_file()
            and not path.is_symlink()
        ]


def last_backup(root: Path, agent: str) -> tuple[datetime, int] | None:
    """Return moment of the last backup and number of backups, or None.

    Goes by the names alone.

    Raises:
        StorageError: The folder cannot be listed.
    """
    moments = [moment for path in list_backup_files(root, agent) if (moment := moment_in(path.name)) is not None]
    return (max(moments), len(moments)) if moments else None


def to_prune(
    listed: Sequence[BackupSummary], now: datetime, *, keep: int | None = None, older_than: timedelta | None = None
) -> list[BackupSummary]:
    """Return backups to delete; never the newest valid one of an agent.

    Args:
        listed: Backups of one or more agents, newest first.
        now: The present, UTC.
        keep: Number of backups that stay for each agent.
        older_than: Age from which backups are deleted.
    """
    chosen = []
    for agent in dict.fromkeys(backup.agent_id.lower() for backup in listed):
        of_agent = [backup for backup in listed if backup.agent_id.lower() == agent]
        newest = next((backup.path for backup in of_agent if not _read_summary(backup.path, check=True).problem), None)
        chosen += [
            backup
            for place, backup in enumerate(of_agent)
            if backup.path != newest
            and (keep is None or place >= keep)
            and (older_than is None or now - backup.made_at > older_than)
        ]
    return chosen


def prune_backups(root: Path, gone: Iterable[BackupSummary]) -> int:
    """Delete backups and leftovers of killed writers; return freed bytes.

    Raises:
        StorageError: One could not be removed.
    """
    folder, freed = folder_of_backups(root), 0
    for backup in gone:
        with translated(backup.path, "remove"):
            backup.path.unlink(missing_ok=True)
        freed += backup.size
    if folder.is_dir():
        remove_leftovers(folder)
        with translated(folder, "sync"):
            sync_folder(folder)
    return freed


def _read_summary(path: Path, *, check: bool) -> BackupSummary:
    agent, moment = agent_in(path.name) or "", moment_in(path.name) or datetime.fromtimestamp(0, UTC)
    size, manifest = 0, None
    try:
        with translated(path, "read"):
            size = path.stat().st_size
        with opened_backup(path) as archive:
            manifest = archive.manifest
            moment = manifest.made_at
            problems = verify_open(archive).problems if check else tuple(archive.missing)
    except AgentMemoryError as error:
        return BackupSummary(path, agent, moment, size, manifest, error.message, check)
    return BackupSummary(path, agent, moment, size, manifest, "; ".join(problems), check)
