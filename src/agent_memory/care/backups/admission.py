"""Admission of restored content: lines, long texts and pages without purged records."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.backup_reader import BackupArchive, list_backups, opened_backup
from agent_memory.care.backups.manifest import PURGES
from agent_memory.encryption.blobs import replace_names
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.atomic import make_private_folder, read_file, replace_file, translated
from agent_memory.files.layout import AgentFolder, build_command, folder_of
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


_FOOTNOTE: Final = "[^"


class _AllClaims(frozenset[str]):
    """All claims of a page, by any author."""

    def __contains__(self, _: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class AdmissionFilter:
    """Judges what comes back.

    Attributes:
        admit: Returns a line of a journal as restored, empty for none.
        hide: Hides words in a text; None if there are none.
        gone: IDs of the records that are not restored.
    """

    admit: Callable[[bytes], bytes]
    hide: Callable[[str], str] | None
    gone: Collection[str]

    @property
    def is_all(self) -> bool:
        """True if all comes back as it was: nothing was purged."""
        return self.hide is None and not self.gone

    def line(self, line: bytes, renamed: Mapping[str, str]) -> bytes:
        """Return a line of a journal as restored; empty for none.

        Args:
            line: Line of a backup's journal.
            renamed: New names of changed long texts by old name.
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
        text = content.decode("utf-8", "surrogateescape")
        hidden = text if self.hide is None else self.hide(text)
        return content if hidden == text else hidden.encode("utf-8", "surrogateescape")

    def page(self, content: bytes) -> bytes | None:
        """Return a page as restored; None if nothing is left."""
        text = content.decode("utf-8", "surrogateescape")
        page = without_records(text, self.gone)
        page = page if self.hide is None else self.hide(page)
        if _FOOTNOTE in text and _FOOTNOTE not in page:
            return None
        return content if page == text else page.encode("utf-8", "surrogateescape")


EVERYTHING: Final = AdmissionFilter(lambda line: line, None, ())


def barring(root: Path, agents: Collection[str]) -> AdmissionFilter:
    """Return an admission without records that these agents purged.

    Raises:
        StorageError: A list of what was purged, or its key, cannot be read.
    """
    lists = [PurgeList(folder_of(name, root).path) for name in sorted(agents)]
    for purges in lists:
        purges.check_key()

    def admit(line: bytes) -> bytes:
        return reduce(lambda text, purge_list: purge_list.filter_line(text) if text else text, lists, line)

    def hide(text: str) -> str:
        return reduce(lambda shown, purge_list: purge_list.get_spans().hide(shown), lists, text)

    gone = {record_id for purge_list in lists for purge in purge_list.purges() for record_id in purge.ids}
    return AdmissionFilter(admit, hide if any(purge_list.get_spans() for purge_list in lists) else None, gone)


def without_records(page: str, gone: Collection[str]) -> str:
    """Return a page without footnotes of deleted items and their claims."""
    if _FOOTNOTE not in page or not KNOWLEDGE.is_installed:
        return page
    cut_edited: Callable[[str, Collection[str], Collection[str]], str] = KNOWLEDGE.load("footnotes")
    return cut_edited(page, gone, _AllClaims())


_NEWLINE: Final = b"\n"


def restore_purges(folder: AgentFolder) -> str:
    """Restore the purge list from the newest complete backup; return its name.

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
    """Run `bring_purges` with the lock, also for a new agent.

    Raises:
        BusyError: A process writes to the agent.
        StorageError: Nothing could be written.
    """
    make_private_folder(folder.path)
    with folder_lock(folder.path, PERSON_SECONDS):
        bring_purges(archive, folder.path)


def bring_purges(archive: BackupArchive, folder: Path) -> bool:
    """Add the purge list of a backup; return True if it changed.

    Nothing changes if the agent has purges under another key, or if its list would not be the whole one even then. To
    be called with the lock of the folder held.

    Raises:
        StorageError: The list of the backup cannot be read, or nothing could be written.
    """
    held = {file.name: b"".join(archive.blocks(file)) for file in archive.manifest.files if file.name in PURGES}
    key, present = decode_key(held.get(PURGE_KEY, b"")), _read_own(folder)
    try:
        brought = parse_purges(held.get(PURGED, b""), key, folder / PURGED)
        if not key or not brought.purges or (present is not None and _keeps(present, brought)):
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
    """Return the purge list of an agent; None if unusable."""
    purges = PurgeList(folder)
    try:
        purges.check_key()
        return purges.read()
    except AgentMemoryError:
        return None


def _keeps(present: PurgeIndex, brought: PurgeIndex) -> bool:
    """Return True if the present list is complete or has another key."""
    return bool(present.purges) and (present.key != brought.key or brought.purges.keys() <= present.purges.keys())


def _merge(brought: bytes, key: bytes, folder: Path) -> bytes:
    """Return a backup's lines, then additional sound lines of the agent."""
    try:
        own_key = decode_key(read_file(folder / PURGE_KEY))
    except OSError:
        own_key = b""
    try:
        present = read_file(folder / PURGED).split(_NEWLINE) if own_key in {b"", key} else []
    except OSError:
        present = []
    lines = dict.fromkeys(brought.split(_NEWLINE))
    lines |= dict.fromkeys(line for line in present if _is_sound(line, folder))
    return _NEWLINE.join(line for line in lines if line.strip()) + _NEWLINE


def _is_sound(line: bytes, folder: Path) -> bool:
    try:
        parse_purges(line, b"", folder / PURGED)
    except StorageError:
        return False
    return True
