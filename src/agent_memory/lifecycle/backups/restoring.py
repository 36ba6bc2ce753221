"""Put a backup in the place of what an agent remembers now, of which a backup is made first.

Everything is unpacked beside the journals before their lock is taken. Within the lock a backup of that moment is made,
and then all journals are replaced together (`files/changeover.py`): who dies before that has changed nothing, and what
one that dies later has begun, the next process to open the agent finishes.

The numbers of changes go on behind the last one that was given, as after a compaction, so that sessions under way read
everything anew, and take it for no damage.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.encryption import AgentBlobs, state_of
from agent_memory.encryption.plain import remove_views
from agent_memory.errors import StorageError
from agent_memory.files.atomic import (
    PRIVATE_FOLDER,
    make_private_folder,
    open_private,
    opened,
    sync_folder,
    sync_tree,
    translated,
    write_all,
)
from agent_memory.files.changeover import settle, staging
from agent_memory.files.filesystem import locks_keep_readers_out
from agent_memory.files.held import hold_folder, unlock_and_close
from agent_memory.files.layout import AgentFolder, folder_of
from agent_memory.files.lock import archive_lock, file_lock, folder_lock, make_lock
from agent_memory.files.names import DERIVED, ENCRYPTION, SHORTLIST, TOPICS
from agent_memory.journal import PurgeList
from agent_memory.journal.format import FORMAT, Header, MalformedLineError, decode_header, sealed
from agent_memory.lifecycle.backups.coding import Coding, coding_of
from agent_memory.lifecycle.backups.reading import Archive, damaged, opened_backup, verify_open
from agent_memory.lifecycle.backups.shape import BEFORE_RESTORE, is_long_text, is_page
from agent_memory.lifecycle.backups.taking import Backup, cut_of, take
from agent_memory.lifecycle.backups.tally import tally_of
from agent_memory.models import Clock, utc_now
from agent_memory.settings import PERSON_SECONDS
from agent_memory.storage import new_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime
    from pathlib import Path

    from agent_memory.lifecycle.backups.shape import Held, HeldJournal, Manifest

_LARGEST: Final = 2**53 - 1
_MARGIN: Final = 64 << 20
"""Bytes that stay free on the disk beside what is restored."""
_MOST_FOLDED: Final = 1 << 28
"""Bytes of a long text or a page, which is read in one go."""


class _Begun(NamedTuple):
    """How a journal begins that was unpacked, and which is its last number."""

    header: Header
    last_seq: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What restoring a backup would do.

    Attributes:
        agent_id: Whose memory would be replaced.
        manifest: Of the backup.
        back: Memories that would be there again: forgotten, or gone otherwise, since.
        gone: Memories that would not be there any more, since they were stored later.
        is_new: There is nothing yet that would be replaced.
    """

    agent_id: str
    manifest: Manifest
    back: int
    gone: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restoring did.

    Attributes:
        folder: The agent's.
        manifest: Of the backup.
        before: The backup of what was there; None where nothing was.
    """

    folder: AgentFolder
    manifest: Manifest
    before: Backup | None


def preview_restore(path: Path, root: Path, agent: str | None = None, new: str | None = None) -> Preview:
    """Read a backup whole, and return what restoring it would do now.

    Args:
        path: The backup.
        root: The folder of all agents.
        agent: Whose memory is replaced; that of the agent it was made of when omitted.
        new: Begin an agent of this name instead.

    Raises:
        ValidationError: It is no backup, or there is an agent of the new name.
        StorageError: It is damaged, cannot be read, or was made by a newer version.
    """
    with opened_backup(path) as archive:
        found = verify_open(archive)
        if found.problems:
            raise damaged(path, found.problems)
        then = found.ids.get("memory", set())
        if new is not None:
            new_folder(new, root)
            return Preview(new, found.manifest, 0, 0, is_new=True)
        folder = folder_of(agent or found.manifest.agent_id, root)
        now = _ids_now(folder)
        if now is None:
            return Preview(folder.agent_id, found.manifest, 0, 0, is_new=True)
        return Preview(folder.agent_id, found.manifest, len(then - now), len(now - then), is_new=False)


def restore_backup(
    path: Path,
    root: Path,
    *,
    agent: str | None = None,
    new: str | None = None,
    clock: Clock = utc_now,
    admit: Callable[[bytes], bytes] | None = None,
) -> Restored:
    """Put a backup in the place of what an agent remembers; see `preview_restore`.

    Args:
        path: The backup.
        root: The folder of all agents.
        agent: Whose memory is replaced.
        new: Begin an agent of this name instead.
        clock: Source of the present.
        admit: Judges each line that comes back: returns it, another line, or nothing. When omitted, what was purged
            from the agent of the backup, or from the one that is replaced, does not come back.

    Raises:
        ValidationError: As there.
        BusyError: A process has been writing for too long; nothing was changed.
        StorageError: As there; or it could not be written, and what was there still is.
    """
    with opened_backup(path) as archive:
        if admit is None:
            admit = _barring(root, {archive.manifest.agent_id, agent or archive.manifest.agent_id})
        found = verify_open(archive, deep=False)  # lines are looked at when they are unpacked
        if found.problems:
            raise damaged(path, found.problems)
        _check_room(archive, root)
        if new is not None:
            return Restored(_begin(archive, new, root, admit), archive.manifest, None)
        folder = folder_of(agent or archive.manifest.agent_id, root)
        make_private_folder(folder.path)
        return _replace(archive, folder, clock, admit)


def _barring(root: Path, agents: Collection[str]) -> Callable[[bytes], bytes]:
    """Return what leaves out of a line what was purged from one of these agents."""
    lists = [PurgeList(folder_of(name, root).path) for name in sorted(agents)]
    return lambda line: reduce(lambda left, each: each.admitted(left) if left else left, lists, line)


def _replace(archive: Archive, folder: AgentFolder, clock: Clock, admit: Callable[[bytes], bytes] | None) -> Restored:
    with contextlib.ExitStack() as ending:
        with translated(folder.path, "restore into"):
            staged = ending.enter_context(staging(folder.path))
        coding = coding_of(archive, folder)
        ending.enter_context(_texts_of(archive, folder, is_plain=coding.was is None))
        with translated(folder.path, "restore into"):
            headers = _unpack(archive, staged, admit, coding)
            if coding.key_file is not None and state_of(folder.path) is None:
                _write(staged / ENCRYPTION, coding.key_file)
        ending.enter_context(archive_lock(folder.path, PERSON_SECONDS))
        lock = ending.enter_context(folder_lock(folder.path, PERSON_SECONDS))
        present = folder.journals()
        for journal in present if not locks_keep_readers_out(folder.path) else ():
            ending.enter_context(_journal_lock(journal))
        if not lock.is_in_place():
            raise StorageError("The lock file was deleted meanwhile; nothing was changed. Try again.", code="busy")
        before = _backup_of_now(folder, clock()) if present else None
        with translated(folder.path, "restore into"):
            _number(staged, headers, before)
        settle(folder.path, staged)
        drop_derived(folder)
        if coding.now is not None:
            remove_views(folder)
        return Restored(folder, archive.manifest, before)


@contextlib.contextmanager
def _journal_lock(journal: Path) -> Iterator[None]:
    """Hold a journal itself: the lock of its folder may have been deleted under a process that writes."""
    with translated(journal, "lock"), file_lock(journal, lambda: open_private(journal, os.O_RDWR), PERSON_SECONDS):
        yield


def _backup_of_now(folder: AgentFolder, moment: datetime) -> Backup:
    with cut_of(folder) as cut:
        return take(folder, cut, BEFORE_RESTORE, moment)


@contextlib.contextmanager
def _texts_of(archive: Archive, folder: AgentFolder, *, is_plain: bool) -> Iterator[None]:
    """Write the long texts, which are in nobody's way, and let none be swept for the length of the block."""
    texts = [each for each in archive.manifest.files if is_long_text(each.name)]
    named = ((each.name.rpartition("/")[2], _content(archive, each)) for each in texts)
    blobs = AgentBlobs(folder)
    with (
        contextlib.nullcontext()
        if not texts
        else (blobs.bringing(content for _, content in named) if is_plain else blobs.bringing_files(named))
    ):
        yield


def _unpack(
    archive: Archive, staged: Path, admit: Callable[[bytes], bytes] | None, coding: Coding
) -> dict[str, _Begun]:
    """Write journals and pages to a folder; return how each journal begins, for whose header room was left."""
    headers = {}
    for journal in archive.manifest.journals:
        headers[journal.name] = _unpack_journal(archive, journal, staged / journal.name, admit, coding)
    if coding.now is not None:  # no page lies beside encrypted journals: they are made of these when asked for
        return headers
    pages = [each for each in archive.manifest.files if is_page(each.name)]
    if pages:
        (staged / TOPICS).mkdir(mode=PRIVATE_FOLDER)
    for page in pages:
        _write(staged / page.name, _content(archive, page))
    return headers


def _unpack_journal(
    archive: Archive, journal: HeldJournal, place: Path, admit: Callable[[bytes], bytes] | None, coding: Coding
) -> _Begun:
    header: Header | None = None
    begun, key = b"", None
    with _made(place) as descriptor:
        for block in archive.blocks(journal):
            if header is None:
                begun += block
                if b"\n" not in begun and len(begun) < journal.size:
                    continue
                header, rest = _header_of(begun)
                key, header = header.key, coding.header(header)
                write_all(descriptor, _line_of(header) + rest)
            else:
                write_all(descriptor, block)
        if header is None:
            header = coding.header(Header(format=FORMAT, min_reader=FORMAT, generation=""))
            write_all(descriptor, _line_of(header))
    if admit is not None or coding.now is not None:
        _rewrite(place, lambda line: coding.line(line, admit, is_encrypted=key is not None))
    tally = tally_of(place)
    if len(tally.damaged) > journal.damaged:
        raise damaged(archive.path, [f"lines of {journal.name} are damaged, such as line {tally.damaged[0]}"])
    return _Begun(header, tally.last_seq)


def _write(place: Path, content: bytes) -> None:
    with _made(place) as descriptor:
        write_all(descriptor, content)


def _rewrite(place: Path, admit: Callable[[bytes], bytes]) -> None:
    """Judge each line behind the header."""
    judged = place.with_name(f".{place.name}")
    with place.open("rb") as source, _made(judged) as descriptor:
        write_all(descriptor, source.readline())
        for line in source:
            write_all(descriptor, admit(line))
    judged.replace(place)


def _header_of(begun: bytes) -> tuple[Header, bytes]:
    """Return the header that a journal begins with, and what is behind it; one is made where it has none."""
    line, _, rest = begun.partition(b"\n")
    try:
        return decode_header(line), rest
    except MalformedLineError:
        return Header(format=1, min_reader=1, generation=""), begun  # its lines may have checksums or not


def _line_of(header: Header) -> bytes:
    """Return the line of a header, with spaces in it, so that it is as long as one with the greatest numbers."""
    most = replace(header, generation="0" * 36, parent="0" * 36, last_seq=_LARGEST, purged_seq=_LARGEST)
    line = header.encode()
    room = b" " * max(0, len(most.encode()) - len(line))
    body = line[: line.rindex(b', "crc"')].replace(b", ", b", " + room, 1)
    return sealed(body + b"}\n")


def _number(staged: Path, begun: dict[str, _Begun], before: Backup | None) -> None:
    """Give each journal a generation, and let its numbers go on behind those of the one that it replaces.

    A journal that the backup has none of is replaced by an empty one. `purged_seq` is the last number: no reader takes
    it for a compaction behind which it may read on.
    """
    present = {each.name: each for each in (before.manifest.journals if before else ())}
    for name in present.keys() - begun.keys():
        os.close(open_private(staged / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    for name in begun.keys() | present.keys():
        header, last = begun.get(name) or _Begun(Header(generation=""), 0)
        purged, parent = header.purged_seq, None
        if (old := present.get(name)) is not None:
            purged = last = max(last, old.last_seq) + 1
            parent = old.generation or None
        fresh = Header.fresh(last, parent, purged, key=header.key)
        header = replace(fresh, format=header.format, min_reader=header.min_reader)
        with opened(staged / name, os.O_WRONLY) as descriptor:
            os.pwrite(descriptor, _line_of(header), 0)


def _begin(archive: Archive, name: str, root: Path, admit: Callable[[bytes], bytes] | None) -> AgentFolder:
    """Make an agent of a backup, which is there as a whole or not at all."""
    made = new_folder(name, root)
    make_private_folder(made.path.parent)
    hidden = made.path.with_name(f"_copy-{secrets.token_hex(6)}")
    with translated(made.path, "restore as"), contextlib.ExitStack() as ending:
        hidden.mkdir(mode=PRIVATE_FOLDER)
        if (held := hold_folder(hidden)) is not None:
            ending.callback(unlock_and_close, held)
        ending.callback(shutil.rmtree, hidden, ignore_errors=True)  # gone by then, unless something failed
        make_lock(hidden)
        coding = coding_of(archive, AgentFolder(hidden))
        with _texts_of(archive, AgentFolder(hidden), is_plain=coding.was is None):
            _number(hidden, _unpack(archive, hidden, admit, coding), None)
        if coding.key_file is not None:
            _write(hidden / ENCRYPTION, coding.key_file)
        sync_tree(hidden)
        hidden.rename(made.path)
        sync_folder(made.path.parent)
    return made


def drop_derived(folder: AgentFolder) -> None:
    """Remove what was made of journals that were replaced; whoever reads it would see that it is of others."""
    with contextlib.suppress(OSError):
        for path in folder.path.glob(f"*{SHORTLIST}"):
            path.unlink()
    shutil.rmtree(folder.path / DERIVED, ignore_errors=True)


def _check_room(archive: Archive, root: Path) -> None:
    """Refuse what would fill the disk, as an archive that was made to do so."""
    large = [each.name for each in archive.manifest.files if each.size > _MOST_FOLDED]
    if large:
        raise damaged(archive.path, [f"{large[0]} is longer than any text of ours"])
    with translated(root, "look at"):
        make_private_folder(root)
        free = shutil.disk_usage(root).free
    if archive.manifest.size + _MARGIN > free:
        raise StorageError(
            f"{archive.path.name} takes {archive.manifest.size:,} bytes unpacked, and {free:,} are free. "
            "Nothing was changed.",
            code="disk_full",
            recovery="Free some disk space and try again.",
            path=archive.path,
        )


def _ids_now(folder: AgentFolder) -> set[str] | None:
    """Return the ids of all memories that an agent has; None where it has no journal at all."""
    with translated(folder.path, "read"):
        journals = folder.journals() if folder.path.is_dir() else []
        if not journals:
            return None
        tallies = [tally_of(journal) for journal in journals]
    return set().union(*(tally.ids.get("memory", set()) for tally in tallies))


def _content(archive: Archive, held: Held) -> bytes:
    return b"".join(archive.blocks(held))


@contextlib.contextmanager
def _made(path: Path) -> Iterator[int]:
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
