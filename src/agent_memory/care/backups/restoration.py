"""Backups restored, copied to a new agent, or rewritten in place.

Everything is unpacked into a staging folder before the lock is taken. Within the lock the present state is backed up,
and then all journals are replaced together (`files/exchange.py`). A process that dies before that has changed nothing;
a later one leaves a replacement that the next process finishes.

Numbers of changes continue after the last one, as after a compaction, so running sessions read everything again and
report no damage.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from agent_memory.care.agents import build_agent, new_folder, open_hidden_folder
from agent_memory.care.backups.admission import EVERYTHING, AdmissionFilter, add_purges, barring, bring_purges
from agent_memory.care.backups.backup_reader import (
    BackupArchive,
    build_damaged_error,
    iter_lines,
    opened_backup,
    tally_journal,
    verify_open,
)
from agent_memory.care.backups.backup_writer import Backup, create_backup, open_cut, write_backup
from agent_memory.care.backups.manifest import BEFORE_RESTORE, LONG_TEXT, PAGE, PURGES
from agent_memory.care.encrypted_files import recode, remove_views
from agent_memory.encryption import AgentBlobs, DataKey, KeyFile, get_encryption_state, key_for
from agent_memory.encryption.blobs import find_names, get_name
from agent_memory.encryption.keys import add_key, unwrap_key_file
from agent_memory.errors import StorageError
from agent_memory.files import atomic
from agent_memory.files.entries import get_path_type, locks_keep_readers_out
from agent_memory.files.exchange import open_staging, settle_files
from agent_memory.files.layout import AgentFolder, folder_of
from agent_memory.files.lock import archive_lock, file_lock, folder_lock
from agent_memory.files.names import AGENT, DERIVED, ENCRYPTION, PAGE_INDEX, SHORTLIST, TOPICS
from agent_memory.journal import IDENTITY, rewrite_returned
from agent_memory.journal.agent_file import build_states, encode_states
from agent_memory.journal.codec import decode_changes, encode_changes
from agent_memory.journal.format import (
    ENCRYPTED_FORMAT,
    FORMAT,
    Header,
    MalformedLineError,
    add_checksum,
    decode_entry,
    decode_header,
    encode_entry,
)
from agent_memory.models import Clock, utc_now
from agent_memory.settings import PERSON_SECONDS
from agent_memory.store.change_log import sweep_blobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_memory.care.backups.manifest import BackupFile, BackupJournal, BackupManifest
    from agent_memory.encryption import DataKey


_LARGEST: Final = 2**53 - 1
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL


@dataclass(frozen=True, slots=True)
class RestorePreview:
    """Effect of restoring a backup.

    Attributes:
        agent_id: Agent whose memory would be replaced.
        manifest: Manifest of the backup.
        back: Number of memories that would reappear.
        gone: Number of memories that would disappear, as they are newer.
        is_new: True if nothing would be replaced.
    """

    agent_id: str
    manifest: BackupManifest
    back: int
    gone: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class RestoredBackup:
    """Result of a restore.

    Attributes:
        folder: Folder of the agent.
        manifest: Manifest of the backup.
        before: Backup of the replaced state, or None.
    """

    folder: AgentFolder
    manifest: BackupManifest
    before: Backup | None


def preview_restore(path: Path, root: Path, agent: str | None = None, new: str | None = None) -> RestorePreview:
    """Read a whole backup and return the effect of restoring it.

    Args:
        path: Path of the backup.
        root: Folder of all agents.
        agent: Agent to replace, by default the backup's own.
        new: Name of a new agent to create instead.

    Raises:
        ValidationError: It is not a backup, or the new name is taken.
        StorageError: It is damaged, cannot be read, or was made by a newer version.
    """
    with opened_backup(path) as archive:
        verified = verify_open(archive)
        if verified.problems:
            raise build_damaged_error(path, verified.problems)
        then = verified.ids.get("memory", set())
        folder = folder_of(agent or verified.manifest.agent_id, root) if new is None else new_folder(new, root)
        now = _find_present_ids(folder)
        if now is None:
            return RestorePreview(folder.agent_id, verified.manifest, 0, 0, is_new=True)
        return RestorePreview(folder.agent_id, verified.manifest, len(then - now), len(now - then), is_new=False)


def restore_backup(
    path: Path,
    root: Path,
    *,
    agent: str | None = None,
    new: str | None = None,
    clock: Clock = utc_now,
    admission: AdmissionFilter | None = None,
) -> RestoredBackup:
    """Replace an agent's memory with a backup; see `preview_restore`.

    Args:
        path: Path of the backup.
        root: Folder of all agents.
        agent: Agent to replace, by default the backup's own.
        new: Name of a new agent to create instead.
        clock: Source of the present.
        admission: Filter of restored content; by default without purged records of both agents.

    Raises:
        ValidationError: As for `preview_restore`.
        BusyError: A process has been writing for too long; nothing was changed.
        StorageError: As for `preview_restore`; or writing failed, and the earlier state remains.
    """
    with opened_backup(path) as archive:
        verified = verify_open(archive, deep=False)  # lines are checked when they are unpacked
        if verified.problems:
            raise build_damaged_error(path, verified.problems)
        check_room(archive, root)
        folder = folder_of(agent or archive.manifest.agent_id, root)
        if new is None:
            add_purges(archive, folder)
        admission = admission or barring(root, {archive.manifest.agent_id, folder.agent_id})
        if new is not None:
            created = new_folder(new, root)
            atomic.make_private_folder(created.path.parent)
            return RestoredBackup(_create_agent(archive, created, admission), archive.manifest, None)
        rewrite_returned(folder.journals())
        return _replace(archive, folder, clock, admission)


def _replace(archive: BackupArchive, folder: AgentFolder, clock: Clock, admission: AdmissionFilter) -> RestoredBackup:
    with contextlib.ExitStack() as ending:
        with atomic.translated(folder.path, "restore into"):
            staged = ending.enter_context(open_staging(folder.path))
        coding = find_coding(archive, folder)
        with atomic.translated(folder.path, "restore into"):
            headers = _unpack(archive, staged, admission, coding)
            if coding.key_file is not None and get_encryption_state(folder.path) is None:
                _write(staged / ENCRYPTION, coding.key_file)
        ending.enter_context(_bring_texts(archive, folder, staged, admission, coding))
        ending.enter_context(archive_lock(folder.path, PERSON_SECONDS))
        lock = ending.enter_context(folder_lock(folder.path, PERSON_SECONDS))
        present = folder.journals()
        for journal in present if not locks_keep_readers_out(folder.path) else ():
            ending.enter_context(_journal_lock(journal))
        if not lock.is_in_place():
            raise StorageError("The lock file was deleted meanwhile; nothing was changed. Try again.", code="busy")
        before = None
        if present:
            before = write_backup(folder, ending.enter_context(open_cut(folder)), BEFORE_RESTORE, clock())
        with atomic.translated(folder.path, "restore into"):
            _number(staged, headers, before)
            _write(staged / AGENT, encode_states(folder.path, build_states(staged, _count_records(archive))))
        settle_files(folder.path, staged)
        delete_derived(folder)
        if coding.now is not None:
            remove_views(folder)
        return RestoredBackup(folder, archive.manifest, before)


@contextlib.contextmanager
def _journal_lock(journal: Path) -> Iterator[None]:
    """Lock the journal itself; the lock of its folder may be deleted."""
    with (
        atomic.translated(journal, "lock"),
        file_lock(journal, lambda: atomic.open_private(journal, os.O_RDWR), PERSON_SECONDS),
    ):
        yield


def _bring_texts(
    archive: BackupArchive, folder: AgentFolder, journals: Path, admission: AdmissionFilter, coding: BackupCoding
) -> contextlib.AbstractContextManager[None]:
    """Return a context that writes the long texts and prevents their sweeping.

    Only those that journals still name, where that can be read.
    """
    held = [file for file in archive.manifest.files if LONG_TEXT.fullmatch(file.name)]
    texts = ((file.name.rpartition("/")[2], _read_content(archive, file)) for file in held)
    if not held:
        return contextlib.nullcontext()
    if coding.was is not None or (coding.now is None and admission is EVERYTHING):
        return AgentBlobs(folder).bringing((), texts)
    readable = (admission.text(content) for _, content in texts)
    if coding.now is None and not admission.is_all:
        named = {name for journal in journals.glob("*.yaml") for name in find_names(journal)}
        readable = (text for text in readable if get_name(text) in named)
    return AgentBlobs(folder).bringing(readable)


def _unpack(
    archive: BackupArchive, staged: Path, admission: AdmissionFilter, coding: BackupCoding
) -> dict[str, tuple[Header, int]]:
    """Write journals and pages to a folder; return headers and last numbers."""
    headers, renamed = {}, dict[str, str]()
    for file in archive.manifest.files if admission.hide is not None and coding.was is None else ():
        if LONG_TEXT.fullmatch(file.name) and (new := admission.text(old := _read_content(archive, file))) != old:
            renamed[get_name(old)] = get_name(new)
    for journal in archive.manifest.journals:
        judge = partial(admission.line, renamed=renamed)
        headers[journal.name] = _unpack_journal(archive, journal, staged / journal.name, judge, coding)
    if coding.now is not None:  # encrypted agents have no page files: pages are rendered on request
        return headers
    pages = [file for file in archive.manifest.files if PAGE.fullmatch(file.name)]
    contents = {page.name: admission.page(_read_content(archive, page)) for page in pages}
    if contents:
        (staged / TOPICS).mkdir(mode=atomic.PRIVATE_FOLDER)
    for name, content in contents.items():
        if content is not None and (name != f"{TOPICS}/{PAGE_INDEX}" or None not in contents.values()):
            _write(staged / name, content)
    return headers


def _unpack_journal(
    archive: BackupArchive, journal: BackupJournal, place: Path, judge: Callable[[bytes], bytes], coding: BackupCoding
) -> tuple[Header, int]:
    lines = iter_lines(archive.blocks(journal))
    begun, rest = _parse_header(next(lines, b""))
    header = coding.header(begun)
    with atomic.opened(place, _NEW) as descriptor:
        atomic.write_all(descriptor, _pad_header(header))
        for line in chain([rest] if rest else [], lines):
            atomic.write_all(descriptor, coding.line(line, judge, is_encrypted=begun.key is not None))
    tally = tally_journal(place)
    if len(tally.damaged) > journal.damaged:
        raise build_damaged_error(
            archive.path, [f"lines of {journal.name} are damaged, such as line {tally.damaged[0]}"]
        )
    return header, tally.last_seq


def _write(place: Path, content: bytes) -> None:
    with atomic.opened(place, _NEW) as descriptor:
        atomic.write_all(descriptor, content)


def _parse_header(begun: bytes) -> tuple[Header, bytes]:
    """Return the header of a journal, or a new one, and rest.

    Args:
        begun: First line of the journal, empty if it has none.
    """
    if not begun:
        return Header(format=FORMAT, min_reader=FORMAT, generation=""), begun
    line, _, rest = begun.partition(b"\n")
    try:
        return decode_header(line), rest
    except MalformedLineError:
        return Header(format=1, min_reader=1, generation=""), begun  # its lines may have checksums or not


def _pad_header(header: Header) -> bytes:
    """Return the line of a header, padded for the greatest numbers."""
    most = replace(header, generation="0" * 36, parent="0" * 36, last_seq=_LARGEST, purged_seq=_LARGEST)
    line = header.encode()
    room = b" " * max(0, len(most.encode()) - len(line))
    body = line[: line.rindex(b', "crc"')].replace(b", ", b", " + room, 1)
    return add_checksum(body + b"}\n")


def _number(staged: Path, begun: dict[str, tuple[Header, int]], before: Backup | None) -> None:
    """Give each journal a generation; continue the numbers of the replaced one.

    A journal that the backup has none of is replaced by an empty one. `purged_seq` is the last number: no reader takes
    it for a compaction behind which it may read on.
    """
    present = {journal.name: journal for journal in (before.manifest.journals if before else ())}
    for name in present.keys() - begun.keys():
        _write(staged / name, b"")
    for name in begun.keys() | present.keys():
        header, last = begun.get(name) or (Header(generation=""), 0)
        purged, parent = header.purged_seq, None
        if (old := present.get(name)) is not None:
            purged = last = max(last, old.last_seq) + 1
            parent = old.generation or None
        fresh = Header.fresh(last, parent, purged, key=header.key)
        header = replace(fresh, format=header.format, min_reader=header.min_reader)
        with atomic.opened(staged / name, os.O_WRONLY) as descriptor:
            os.pwrite(descriptor, _pad_header(header), 0)


def _create_agent(
    archive: BackupArchive, created: AgentFolder, admission: AdmissionFilter, copied: AgentFolder | None = None
) -> AgentFolder:
    """Create an agent from a backup, whole or not at all.

    Args:
        archive: Backup with its records.
        created: Folder of the new agent.
        admission: Filter of restored content.
        copied: Agent whose vectors it gets as well; None for a restore.
    """
    with build_agent(created, "restore as" if copied is None else "copy an agent to") as folder:
        hidden = folder.path
        # A copy stays encrypted line by line, so it needs no key.
        coding = find_coding(archive, folder) if copied is None else BackupCoding(_read_key_file(archive))
        headers = _unpack(archive, hidden, admission, coding)
        with _bring_texts(archive, folder, hidden, admission, coding):
            _number(hidden, headers, None)
            _write(hidden / AGENT, encode_states(hidden, build_states(hidden, _count_records(archive))))
            bring_purges(archive, hidden)
        if coding.key_file is not None:
            _write(hidden / ENCRYPTION, coding.key_file)
        if copied is not None:
            _copy_vectors(copied.vectors, folder.vectors)
    return created


def copy_agent(folder: AgentFolder, name: str, storage_root: str | Path) -> AgentFolder:
    """Make an agent with the records of another, and return its folder.

    It is restored from a backup that is not kept, and gets the vectors of the same texts.

    Raises:
        ValidationError: The name cannot name an agent, one has it, or there is nothing to copy.
        BusyError: A process has been writing to it for too long.
        StorageError: The new agent was not created.
    """
    created = new_folder(name, storage_root)
    with atomic.translated(created.path, "copy an agent to"), open_hidden_folder(created.path.parent) as hidden:
        made = create_backup(folder, place=hidden)
        with opened_backup(made.path) as archive:
            return _create_agent(archive, created, EVERYTHING, folder)


def _copy_vectors(source: Path, target: Path) -> None:
    """Copy readable vectors; missing ones are computed again."""
    if get_path_type(source) != "file":  # SQLite waits for a writer of a FIFO
        return
    import sqlite3  # rarely needed

    try:
        with (
            contextlib.closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as old,
            contextlib.closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
        target.chmod(atomic.PRIVATE_FILE)
    except sqlite3.Error:
        target.unlink(missing_ok=True)


def delete_derived(folder: AgentFolder) -> None:
    """Remove files derived from replaced journals."""
    with contextlib.suppress(OSError):
        for path in folder.path.glob(f"*{SHORTLIST}"):
            path.unlink()
    shutil.rmtree(folder.path / DERIVED, ignore_errors=True)


def _find_present_ids(folder: AgentFolder) -> set[str] | None:
    """Return the IDs of all memories, or None without a journal."""
    with atomic.translated(folder.path, "read"):
        journals = folder.journals() if folder.path.is_dir() else []
        if not journals:
            return None
        tallies = [tally_journal(journal) for journal in journals]
    return set().union(*(tally.ids.get("memory", set()) for tally in tallies))


def _count_records(archive: BackupArchive) -> dict[str, int]:
    return {journal.name: sum(journal.records.values()) for journal in archive.manifest.journals}


def _read_key_file(archive: BackupArchive) -> bytes | None:
    held = next((member for member in archive.manifest.files if member.name == ENCRYPTION), None)
    return None if held is None else _read_content(archive, held)


def _read_content(archive: BackupArchive, held: BackupFile) -> bytes:
    return b"".join(archive.blocks(held))


@dataclass(frozen=True, slots=True)
class BackupCoding:
    """Encryption of a backup and of the agent's files.

    Attributes:
        key_file: Content of the backup's key file; None if it is plain.
        was: Key of the backup; None if it is plain.
        now: Key of the agent's files, else of the backup.
    """

    key_file: bytes | None = None
    was: DataKey | None = None
    now: DataKey | None = None

    def header(self, header: Header) -> Header:
        """Return the header of a restored journal."""
        if self.now is None:
            return header
        return replace(header, key=self.now.key, format=ENCRYPTED_FORMAT, min_reader=ENCRYPTED_FORMAT)

    def line(self, line: bytes, judge: Callable[[bytes], bytes], *, is_encrypted: bool) -> bytes:
        """Return a recoded line, or nothing if it cannot be decrypted.

        Args:
            line: Line of a backup's journal.
            judge: Returns a plain line as restored, empty for none.
            is_encrypted: True if the header of its journal has a key.
        """
        if self.now is None:
            return judge(line)
        was = self.was if is_encrypted else None
        try:
            entry = decode_changes(was or IDENTITY, decode_entry(line))
        except MalformedLineError:
            return line if was is not None else b""  # a damaged line: plain, it must not come among encrypted ones
        plain = line if was is None else encode_entry(entry.seq, entry.at, entry.changes)
        judged = judge(plain)
        if judged == plain and was is not None:
            return line
        entries = map(decode_entry, judged.splitlines(keepends=True))
        return b"".join(encode_changes(self.now, entry.seq, entry.at, entry.changes) for entry in entries)


def find_coding(archive: BackupArchive, folder: AgentFolder) -> BackupCoding:
    """Return the encryption of a backup and of an agent's files.

    Raises:
        StorageError: The key of one is missing (`encrypted`, `wrong_key`); or they are encrypted with two
            (`other_key`).
        ConfigurationError: A package is missing.
    """
    content = _read_key_file(archive)
    if content is None:
        return BackupCoding(None, None, key_for(folder.path))
    # A new agent takes the key of the backup.
    now = key_for(folder.path) if get_encryption_state(folder.path) is not None else None
    file = KeyFile.of(content, archive.path)
    if now is not None and file.key != now.key:
        raise StorageError(
            f"{archive.path.name} is encrypted with another key than the memory of {folder.agent_id}. "
            "Nothing was changed.",
            code="other_key",
            recovery="Bring it back as a new agent: `agent-memory backup restore FILE --as NAME`.",
        )
    was = now or unwrap_key_file(file, folder.path)
    return BackupCoding(content, was, was)


_MARGIN: Final = 64 << 20
"""Bytes of the disk that must stay free."""
_MOST_FOLDED: Final = 1 << 28
"""Bytes of a long text or a page, which is read in one go."""


def check_room(archive: BackupArchive, root: Path) -> None:
    """Refuse a backup that would fill the disk.

    Raises:
        StorageError: It has a file that is longer than any of ours, or takes more room than is free (`disk_full`).
    """
    large = [file.name for file in archive.manifest.files if file.size > _MOST_FOLDED]
    if large:
        raise build_damaged_error(archive.path, [f"{large[0]} is longer than any text of ours"])
    with atomic.translated(root, "look at"):
        atomic.make_private_folder(root)
        free = shutil.disk_usage(root).free
    if archive.manifest.size + _MARGIN > free:
        message = (
            f"{archive.path.name} takes {archive.manifest.size:,} bytes unpacked, and {free:,} are free. "
            "Nothing was changed."
        )
        raise StorageError(message, code="disk_full", recovery="Free some disk space and try again.", path=archive.path)


def withdraw(path: Path, root: Path, admission: AdmissionFilter) -> None:
    """Rewrite a backup in place with only admitted content.

    Moment and name stay the same. The scratchpad is left out, as a restore renders it again.

    Args:
        path: Path of the backup.
        root: Folder of all agents, used for unpacking.
        admission: Filter of the content.

    Raises:
        ValidationError: It is not a backup.
        StorageError: It is damaged, or could not be written; it stays as it was.
    """
    _rewrite_backup(path, root, admission, lambda folder: sweep_blobs(folder, timedelta(0)))


def encrypt_backup(path: Path, root: Path, key: DataKey, begun: bytes, done: bytes) -> bool:
    """Rewrite a backup in place, encrypted with the key of its agent.

    Moment and name stay the same. Scratchpad and pages are left out, as a restore renders them again.

    Args:
        path: Path of the backup.
        root: Folder of all agents, used for unpacking.
        key: Key of the agent's files.
        begun: Content of `encryption.json` while files are encrypted.
        done: Content of `encryption.json` afterwards.

    Returns:
        Whether it was plain.

    Raises:
        ValidationError: It is not a backup.
        StorageError: It is damaged, or could not be written; it stays as it was.
    """
    with opened_backup(path) as archive:
        if any(file.name == ENCRYPTION for file in archive.manifest.files):
            return False

    def encrypt_files(unpacked: AgentFolder) -> None:
        atomic.replace_file(unpacked.path / ENCRYPTION, begun, durable=True)
        add_key(unpacked.path, key)
        recode(unpacked)
        atomic.replace_file(unpacked.path / ENCRYPTION, done, durable=True)
        unpacked.scratchpad.unlink(missing_ok=True)
        shutil.rmtree(unpacked.topics, ignore_errors=True)

    _rewrite_backup(path, root, EVERYTHING, encrypt_files)
    return True


def _rewrite_backup(
    path: Path, root: Path, admission: AdmissionFilter, change: Callable[[AgentFolder], object]
) -> None:
    with opened_backup(path) as archive:
        manifest = archive.manifest
    with atomic.translated(path, "write"), open_hidden_folder(root) as hidden:
        folder = restore_backup(path, hidden, admission=admission).folder
        change(folder)
        _copy_purges(folder_of(manifest.agent_id, root).path, folder.path)
        with open_cut(folder) as cut:
            made = write_backup(folder, cut, manifest.reason, manifest.made_at)
        made.path.replace(path)
        atomic.sync_folder(path.parent)


def _copy_purges(source: Path, target: Path) -> None:
    """Copy the complete purge list of an agent with its key."""
    for name in sorted(PURGES):
        if (source / name).is_file():
            atomic.replace_file(target / name, atomic.read_file(source / name), durable=False)
