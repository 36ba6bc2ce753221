"""`Admission`: what of a backup comes back when it is restored: lines of journals, long texts, pages of topics."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.archive_reader import opened_backup
from agent_memory.care.backups.backup_list import list_backups
from agent_memory.care.backups.manifest import PURGES
from agent_memory.encryption.blobs import replace_names
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.atomic import make_private_folder, read_file, replace_file, translated
from agent_memory.files.layout import build_command, folder_of
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import BACKUPS, PURGE_KEY, PURGED
from agent_memory.journal import PurgeList
from agent_memory.journal.agent_file import checksum_key, read_purge_state
from agent_memory.journal.format import MalformedLineError, add_checksum, decode_line, encode_line
from agent_memory.journal.purge_list import PurgeIndex, decode_key, parse_purges
from agent_memory.registry import KNOWLEDGE
from agent_memory.settings import PERSON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from agent_memory.care.backups.archive_reader import BackupArchive
    from agent_memory.files.layout import AgentFolder


_FOOTNOTE: Final = "[^"


class _Everything(frozenset[str]):
    """Claims of a page, whoever worded them."""

    def __contains__(self, _: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Admission:
    """Judges what comes back.

    Attributes:
        admit: Returns a line of a journal, another one, or nothing.
        hide: Returns a text without the words that must not be read any more; None where there are none.
        gone: Ids of the records that do not come back.
    """

    admit: Callable[[bytes], bytes]
    hide: Callable[[str], str] | None
    gone: Collection[str]

    @property
    def is_all(self) -> bool:
        """True if all comes back as it was: nothing was purged."""
        return self.hide is None and not self.gone

    def line(self, line: bytes, renamed: Mapping[str, str]) -> bytes:
        """Return a line of a journal as it comes back; empty where nothing of it does.

        Args:
            line: As it was.
            renamed: By their names, the names of the long texts that lost words.
        """
        line = self.admit(line)
        if not renamed or not any(name.encode() in line for name in renamed):
            return line
        try:
            text = json.dumps(decode_line(line))
        except MalformedLineError:
            return line
        return add_checksum(encode_line(json.loads(replace_names(text, renamed))))

    def text(self, content: bytes) -> bytes:
        """Return a long text as it may be read."""
        said = content.decode("utf-8", "surrogateescape")
        hidden = said if self.hide is None else self.hide(said)
        return content if hidden == said else hidden.encode("utf-8", "surrogateescape")

    def page(self, content: bytes) -> bytes | None:
        """Return a page as it may be read; None where nothing stands on it any more."""
        text = content.decode("utf-8", "surrogateescape")
        kept = without_records(text, self.gone)
        kept = kept if self.hide is None else self.hide(kept)
        if _FOOTNOTE in text and _FOOTNOTE not in kept:
            return None
        return content if kept == text else kept.encode("utf-8", "surrogateescape")


EVERYTHING: Final = Admission(lambda line: line, None, ())


def barring(root: Path, agents: Collection[str]) -> Admission:
    """Return what leaves out what was purged from one of these agents.

    Raises:
        StorageError: A list of what was purged, or its key, cannot be read.
    """
    lists = [PurgeList(folder_of(name, root).path) for name in sorted(agents)]
    for purges in lists:
        purges.check_key()

    def admit(line: bytes) -> bytes:
        return reduce(lambda left, each: each.admitted(left) if left else left, lists, line)

    def hide(text: str) -> str:
        return reduce(lambda left, each: each.stretches().hidden(left), lists, text)

    gone = {one for each in lists for purge in each.purges() for one in purge.ids}
    return Admission(admit, hide if any(each.stretches() for each in lists) else None, gone)


def without_records(page: str, gone: Collection[str]) -> str:
    """Return a page without footnotes of deleted items, and without claims that had no others."""
    if _FOOTNOTE not in page or not KNOWLEDGE.is_installed:
        return page
    cut_edited: Callable[[str, Collection[str], Collection[str]], str] = KNOWLEDGE.load("footnotes")
    return cut_edited(page, gone, _Everything())


_NEWLINE: Final = b"\n"


def restore_purges(folder: AgentFolder) -> str:
    """Restore the purge list of an agent from its newest backup that has all of it; return the name of that.

    Raises:
        BusyError: A process writes to the agent.
        StorageError: No backup has all of it.
    """
    for listed in list_backups(folder.path.parent, folder.agent_id):
        if not listed.problem:
            with opened_backup(listed.path) as archive, folder_lock(folder.path, PERSON_SECONDS):
                if bring_purges(archive, folder.path):
                    return listed.path.name
    root, agent = folder.path.parent, shlex.quote(folder.agent_id)
    reset, restore = build_command(root, "agents reset", agent), build_command(root, "restore", agent)
    raise StorageError(
        f'No backup of "{folder.agent_id}" has all of its {PURGED}.',
        code="purge_list",
        recovery=f"Put {PURGED} and {PURGE_KEY} back from a copy of the folder; or run {reset} (keeps what is left in "
        f"{BACKUPS}), then {restore}.",
    )


def add_purges(archive: BackupArchive, folder: AgentFolder) -> None:
    """Do as `bring_purges` with the lock held, for an agent that may have no folder yet.

    Raises:
        BusyError: A process writes to the agent.
        StorageError: Nothing could be written.
    """
    make_private_folder(folder.path)
    with folder_lock(folder.path, PERSON_SECONDS):
        bring_purges(archive, folder.path)


def bring_purges(archive: BackupArchive, folder: Path) -> bool:
    """Add the purge list of a backup to that of an agent; return True if that changed it.

    Nothing changes if the agent has purges under another key, or if its list would not be the whole one even then. To
    be called with the lock of the folder held.

    Raises:
        StorageError: The list of the backup cannot be read, or nothing could be written.
    """
    held = {file.name: b"".join(archive.blocks(file)) for file in archive.manifest.files if file.name in PURGES}
    key, own = decode_key(held.get(PURGE_KEY, b"")), _read_own(folder)
    try:
        brought = parse_purges(held.get(PURGED, b""), key, folder / PURGED)
        if not key or not brought.purges or (own is not None and _keeps(own, brought)):
            return False
        lines = _merge(held[PURGED], key, folder)
        merged = parse_purges(lines, key, folder / PURGED)
    except StorageError:
        return False  # it is damaged as well
    noted = read_purge_state(folder)
    if noted is not None and not (merged.holds(noted) and checksum_key(key) == noted.key):
        return False
    with translated(folder / PURGED, "write"):
        replace_file(folder / PURGE_KEY, held[PURGE_KEY], durable=True)
        replace_file(folder / PURGED, lines, durable=True)
    PurgeList(folder).note()
    return True


def _read_own(folder: Path) -> PurgeIndex | None:
    """Return the purge list of an agent; None if it, or its key, cannot be used."""
    purges = PurgeList(folder)
    try:
        purges.check_key()
        return purges.read()
    except AgentMemoryError:
        return None


def _keeps(own: PurgeIndex, brought: PurgeIndex) -> bool:
    """Return True if a list that can be used stays: it has other purges, or all those of the backup."""
    return bool(own.purges) and (own.key != brought.key or brought.purges.keys() <= own.purges.keys())


def _merge(brought: bytes, key: bytes, folder: Path) -> bytes:
    """Return the lines of a backup's list, and after them those that only the agent has and that are sound."""
    try:
        own_key = decode_key(read_file(folder / PURGE_KEY))
    except OSError:
        own_key = b""
    try:
        own = read_file(folder / PURGED).split(_NEWLINE) if own_key in {b"", key} else []
    except OSError:
        own = []
    lines = dict.fromkeys(brought.split(_NEWLINE))
    lines |= dict.fromkeys(line for line in own if _is_sound(line, folder))
    return _NEWLINE.join(line for line in lines if line.strip()) + _NEWLINE


def _is_sound(line: bytes, folder: Path) -> bool:
    try:
        parse_purges(line, b"", folder / PURGED)
    except StorageError:
        return False
    return True
