"""Erasure of words from all files. Each step can be repeated.

Journals are rewritten last, and there the records themselves last: until then they tell a process that continues after
a crash which words to erase.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from agent_memory.care.agents import sweep_agents
from agent_memory.care.backups.admission import AdmissionFilter, without_records
from agent_memory.care.backups.backup_reader import list_backups
from agent_memory.care.backups.restoration import delete_derived, withdraw
from agent_memory.care.encrypted_files import PAUSE, TRIES, kept_in, put_in_place, write_kept
from agent_memory.care.privacy.text_search import TextMatcher, among_backups, files_in, packed_in, search_backup
from agent_memory.encryption import AgentBlobs, data_key
from agent_memory.encryption.blobs import replace_names
from agent_memory.encryption.cipher import MAGIC
from agent_memory.errors import AgentMemoryError, BusyError
from agent_memory.files import names
from agent_memory.files.atomic import read_file, replace_file, translated
from agent_memory.files.entries import names_in
from agent_memory.journal import Journal
from agent_memory.journal.compaction import remove_records
from agent_memory.journal.format import add_checksum
from agent_memory.journal.purged_spans import PurgedSpans
from agent_memory.journal.reader import JournalReader
from agent_memory.journal.salvage import count_lines_about, remove_lines
from agent_memory.store.change_log import sweep_blobs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

_LEFT: Final = frozenset({names.BLOBS, names.DERIVED, names.INDEX})
"""Folders whose files are deleted, rebuilt or reported instead of changed."""


@dataclass(slots=True)
class ErasureResult:
    """Results of an erasure so far.

    Attributes:
        files: Names of rewritten and deleted files.
        failed: Failures in sentences.
    """

    files: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def record_failure(self, path: Path) -> Iterator[None]:
        """Record the failure of the block."""
        try:
            with translated(path, "purge"):
                yield
        except AgentMemoryError as error:
            self.failed.append(f"{path.name}: {error.message}")


def erase_backups(
    folder: AgentFolder, texts: Collection[str], spans: PurgedSpans, admission: AdmissionFilter, done: ErasureResult
) -> None:
    """Rewrite the agent's backups that have these texts or records."""
    root = folder.path.parent
    sweep_agents(root)  # a process that was killed here left a backup unpacked
    for backup in list_backups(root, folder.agent_id):
        with done.record_failure(backup.path):
            if search_backup(backup.path, texts, admission.gone, spans):
                withdraw(backup.path, root, admission)
                done.files.append(f"{backup.path.parent.name}/{backup.path.name}")


def erase_texts(folder: AgentFolder, blob_names: Collection[str], hiding: TextHider, done: ErasureResult) -> None:
    """Rewrite long texts with some of the words under new names.

    The old one goes when nothing names it any more, and so does the new one of a process that was killed before that.

    Args:
        folder: Folder of the agent.
        blob_names: Names of the texts in journals.
        hiding: Hides the words and gets the new names.
        done: Results so far.
    """
    blobs = AgentBlobs(folder)
    for name in sorted(blob_names):
        with done.record_failure(folder.blobs / name):
            text = blobs.read(name)
            if (hidden := hiding.hide(text)) != text:
                with blobs.keeping([hidden]) as (new,):
                    hiding.renamed[name] = new


def erase_other_files(
    folder: AgentFolder, hiding: TextHider, done: ErasureResult, spared: Collection[str] = ()
) -> None:
    """Hide words in all files next to the journals.

    Packed files of a person stay as they are; the search reports them.

    Args:
        folder: Folder of the agent.
        hiding: Hides the words and the records.
        done: Results so far, extended here.
        spared: Names of files to leave unchanged.
    """
    spared_names = {path.name for path in folder.journals()} | {
        names.AGENT,
        names.PURGED,
        names.PURGE_KEY,
        names.ENCRYPTION,
        names.KEPT,
        *spared,
    }
    for path in files_in(folder):
        inside = path.relative_to(folder.path)
        if inside.parts[0] in _LEFT or inside.name in spared_names or inside.name.startswith(names.VECTORS):
            continue
        with done.record_failure(path):
            content = read_file(path)
            if (hidden := _hide_file(path, content, hiding)) != content:
                replace_file(path, hidden, durable=True)
                done.files.append(inside.parts[0])  # a page is called after what it is about
    with done.record_failure(folder.path / names.KEPT):
        _erase_pack(folder, hiding, done)


def _hide_file(path: Path, content: bytes, hiding: TextHider) -> bytes:
    """Return the new content of a file, encrypted as before."""
    if not content.startswith(MAGIC):
        return _hide_content(path.name, content, hiding)
    key = data_key(path.parent)
    try:
        plain = key.decrypt_file(path.name, content)
    except ValueError:
        return content  # of another memory, or damaged: unreadable
    hidden = _hide_content(path.name, plain, hiding)
    return content if hidden == plain else key.encrypt_file(path.name, hidden)


def _hide_content(name: str, content: bytes, hiding: TextHider) -> bytes:
    lines = [b"" if packed_in(line, hiding.wording) else line for line in content.splitlines(keepends=True)]
    text = b"".join(lines).decode("utf-8", "surrogateescape")
    text = hiding.without_entries(text) if names.SCRATCHPAD.partition(".")[0] in name else text
    return hiding.hide(text).encode("utf-8", "surrogateescape")


def _erase_pack(folder: AgentFolder, hiding: TextHider, done: ErasureResult) -> None:
    """Hide words in the packed files of an encrypted agent."""
    if not (folder.path / names.KEPT).exists():
        return
    key = data_key(folder.path)
    packed = kept_in(folder.path, key)
    hidden = dict(packed)
    for name, content in packed.items():
        is_journal_copy = "/" not in name  # a page has no lines of a journal
        shorter = remove_lines(content, hiding.ids) if is_journal_copy else content
        hidden[name] = _hide_content(name.rpartition("/")[2], shorter, hiding)
    if hidden != packed:
        write_kept(folder.path, key, hidden)
        done.files.append(names.KEPT)


def note_links(folder: AgentFolder, done: ErasureResult) -> None:
    """Report links in an agent's folder as failures.

    Their targets are not searched.

    Also one among the backups, unless it is called like a backup of another agent.
    """
    paths = [(path, path.relative_to(folder.path).as_posix()) for path in sorted(folder.path.rglob("*"))]
    paths += [(path, f"{path.parent.name}/{path.name}") for path in among_backups(folder)]
    for path, name in paths:
        if path.is_symlink():
            done.failed.append(f"{name} is a link; what lies behind it was neither searched nor changed.")


def erase_journals(
    folder: AgentFolder, record_ids: Collection[str], hide: Callable[[str], str], done: ErasureResult
) -> None:
    """Rewrite journals and their quarantined lines without some records.

    First all others lose the words: who is killed between two journals still finds them where they were said.

    Raises:
        UnsupportedError: A newer version wrote something about one of them.
        StorageError: One could not be written; what it said is there still.
    """
    for words_alone in (True, False):
        for path in folder.journals():
            if _rewrite(Journal(path, ()), record_ids, hide, words_alone=words_alone):
                done.files.append(path.name)


def erase_derived(folder: AgentFolder, done: ErasureResult, *, vectors: bool) -> None:
    """Delete derived files and unused long texts.

    Args:
        folder: Folder of the agent.
        done: Results so far, extended here.
        vectors: True to delete cached vectors too, which cost most to rebuild.
    """
    if (folder.path / names.DERIVED).is_dir():
        done.files.append(names.DERIVED)
    delete_derived(folder)
    swept = sweep_blobs(folder, timedelta(0))
    done.files += [names.BLOBS] if swept.count else []
    if not folder.vectors.exists():
        return
    with done.record_failure(folder.vectors):
        if vectors:
            for path in folder.path.glob(f"{names.VECTORS}*"):
                path.unlink()
        else:
            _vacuum(folder.vectors)
        done.files.append(names.VECTORS)


def _rewrite(journal: Journal, record_ids: Collection[str], hide: Callable[[str], str], *, words_alone: bool) -> bool:
    """Rewrite a journal until nothing is left; True if needed.

    A process may write about a record at the same time.
    """
    open_new = partial(journal.prepare_purge, record_ids, hide, words_alone=words_alone)
    for rewritten in range(TRIES):
        if not _is_concerned(journal.path, record_ids, hide, words_alone=words_alone):
            return rewritten > 0
        put_in_place(journal, open_new)
    raise BusyError(f"{journal.path.name} is being written all the time; it was not purged. Try again.")


def _is_concerned(path: Path, record_ids: Collection[str], hide: Callable[[str], str], *, words_alone: bool) -> bool:
    """Return True if a journal or its quarantined lines must be rewritten."""
    entries = JournalReader(path, with_purged=True).poll().entries
    new = remove_records(entries, record_ids, hide, words_alone=words_alone)
    if new.lines != [add_checksum(entry.raw) for entry in entries]:
        return True
    ids = {record_id.encode("utf-8", "surrogatepass") for record_id in record_ids}
    aside = (path.parent / name for name in names_in(path.parent) if names.has_journal_lines(path.name, name))
    return any(count_lines_about(file, ids) for file in aside if not file.is_symlink())


def _vacuum(path: Path) -> None:
    """Leave no deleted row in free pages or in the log."""
    with contextlib.closing(sqlite3.connect(path, timeout=TRIES * PAUSE)) as database:
        database.execute("PRAGMA secure_delete = ON")
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


_ENTRY: Final = re.compile(r"^- .*\n?(?:(?![-#]).*\n?)*?(?=^[-#]|\Z)", re.MULTILINE)
"""An entry of a scratchpad, with all of its lines."""
_ID: Final = re.compile(r"^(?:- |  )id: *['\"]?([\w-]+)", re.MULTILINE)


class TextHider:
    """Takes out of texts what was purged.

    Args:
        texts: Texts to hide wherever they occur.
        record_ids: IDs of records whose footnotes and claims pages lose.
        spans: Signatures of the same words, for unknown texts.

    Attributes:
        wording: Finds the texts.
        ids: IDs of the records.
        renamed: New names of changed long texts by old name.
    """

    def __init__(self, texts: Iterable[str], record_ids: Collection[str], spans: PurgedSpans | None = None) -> None:
        self.wording, self.ids = TextMatcher(texts), frozenset(record_ids)
        self._spans = spans or PurgedSpans()
        self.renamed: dict[str, str] = {}

    def hide(self, text: str) -> str:
        """Return a text without it."""
        text = replace_names(without_records(text, self.ids), self.renamed)
        return self._spans.hide(self.wording.hide(text))

    def without_entries(self, pad: str) -> str:
        """Return a scratchpad without the entries of these records."""
        return _ENTRY.sub(lambda match: "" if self.ids.intersection(_ID.findall(match[0])) else match[0], pad)
