"""Encryption and decryption of an agent's files, and change of the key.

Each step can be repeated, and the same command continues after a crash. Until then each file is plain or encrypted as a
whole, and a process with the key reads and writes both.

1. `encryption.json` is written with a new key, wrapped by the person's. From then on no plain text is written.
2. Journals and long texts are encrypted in place, one by one.
3. Files that cannot be used encrypted are packed into `kept.encrypted`: quarantined copies, pages of topics.
4. Derived files are deleted: segments, index, vectors, the scratchpad's file.
5. Our backups are rewritten with the same key.
6. The state is set to `encrypted`: from then on a plain journal is refused.
7. Every byte of every file is searched for the texts, names and labels of all records.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.care.agents import sweep_agents
from agent_memory.care.backups.backup_reader import list_backups
from agent_memory.care.backups.restoration import encrypt_backup
from agent_memory.care.encrypted_files import decrypt_aside, pack, recode, remove_pad, remove_views, unlike, unpack
from agent_memory.care.privacy.purge_survey import PurgeSurvey
from agent_memory.care.privacy.text_search import FileWithWords, find_matches, iter_contents, iter_word_spans
from agent_memory.encryption import DataKey, KeyFile, State, data_key, person_key
from agent_memory.encryption.keys import add_key, build_key_gone_error, get_key_file, get_key_source
from agent_memory.errors import ConfigurationError, StorageError, ValidationError
from agent_memory.files.atomic import make_private_folder, remove_leftovers
from agent_memory.files.layout import AgentFolder, remove_derived
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import ENCRYPTION, is_packed
from agent_memory.journal.codec import build_newer_error, check_known
from agent_memory.journal.purged_spans import is_distinctive, normalize_text
from agent_memory.journal.reader import JournalReader
from agent_memory.journal.salvage import decrypt_lost
from agent_memory.memory.events import read_audit
from agent_memory.memory.scratchpad_file import PadFile
from agent_memory.models import utc_now
from agent_memory.models.text import iter_strings
from agent_memory.settings import PERSON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from agent_memory.settings import EncryptionSettings


BEYOND_ENCRYPTION: Final = (
    "exports and copies in other places",
    "earlier states kept by the file system or the disk, and swap",
    "the transcripts of the host, and what a model was shown",
    "tables of workspaces, which are not encrypted",
)
"""What no encryption of files reaches."""
_AGAIN: Final = "Run the command again: it goes on."
_WRITTEN: Final[tuple[State, State]] = ("encrypting", "encrypted")


@dataclass(frozen=True, slots=True)
class EncryptionResult:
    """Result of an encryption.

    Attributes:
        key: Name of the files' key.
        packed: Names of newly packed files.
        backups: Names of the encrypted backups.
        found: Files with unencrypted text of a record, a name or a label.
        failed: Failures in sentences.
        searched: Number of texts, names and labels in the search.
    """

    key: str
    packed: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    searched: int = 0

    @property
    def is_clean(self) -> bool:
        """True if no plain text was found and nothing failed."""
        return not self.found and not self.failed


def encrypt(folder: AgentFolder, progress: Callable[[str], None] = lambda _: None) -> EncryptionResult:
    """Encrypt the files of an agent with the person's key. Blocking.

    What people changed in the scratchpad's file is to be taken over before.

    Args:
        folder: Folder of the agent.
        progress: Called with the name of the next step.

    Raises:
        ValidationError: The agent has stored nothing, or is being decrypted.
        ConfigurationError: The passphrase is too short (`weak_key`), or a package is missing.
        BusyError, StorageError: It could not be done, or not completely: a repetition continues.
    """
    _check_known(folder)
    key = _begin(folder)
    recode(folder, progress)
    progress("copies beside the journals")
    if not PadFile(folder.scratchpad, utc_now).look().saves:
        remove_pad(folder)
    packed = pack(folder.path, key, _to_pack(folder))
    remove_leftovers(folder.path)
    remove_derived(folder)
    remove_views(folder)
    backups, failed = _encrypt_backups(folder, progress)
    _set_state(folder, "encrypted")
    progress("search")
    survey = PurgeSurvey(folder)
    texts = {*survey.said_by(survey.ids), *collect_labels(folder)}
    files = find_plaintext(folder, texts)
    root = folder.path.parent
    where = [file.describe(root) for file in files]
    return EncryptionResult(key.key, tuple(packed), tuple(backups), tuple(where), tuple(failed), len(texts))


def decrypt(folder: AgentFolder, progress: Callable[[str], None] = lambda _: None) -> list[str]:
    """Decrypt the files of an agent; its backups stay encrypted. Blocking.

    Args:
        folder: Folder of the agent.
        progress: Called with the name of the next step.

    Returns:
        The names of what was unpacked.

    Raises:
        ValidationError: They are plain.
        BusyError, StorageError: It could not be done, or not completely: a repetition continues.
        ConfigurationError: A package is missing.
    """
    _check_encrypted(folder)
    _check_known(folder)
    key = data_key(folder.path)
    _set_state(folder, "decrypting")
    recode(folder, progress)
    progress("copies beside the journals")
    unpacked = unpack(folder.path, key)
    decrypt_aside(folder, key)
    decrypt_lost(folder.path)
    remove_views(folder)
    with folder_lock(folder.path, PERSON_SECONDS):
        if unlike(folder):
            raise StorageError("A journal was encrypted meanwhile.", code="busy", recovery=_AGAIN)
        KeyFile.remove(folder.path)
    return unpacked


def change_key(folder: AgentFolder, new: EncryptionSettings) -> None:
    """Wrap an agent's key with another key of the person. Blocking.

    Backups that were made before open with the key that was the person's then.

    Args:
        folder: Folder of the agent.
        new: Source of the new key.

    Raises:
        ValidationError: The files are plain.
        ConfigurationError: The new passphrase is too short.
        StorageError: The key is missing or wrong; nothing was changed.
    """
    _check_encrypted(folder)
    person = person_key(new)
    person.check_strength()
    with folder_lock(folder.path, PERSON_SECONDS):
        file = _read_key_file(folder)
        # Not a key that this process knows already: only who has the present key may change it.
        data = file.unwrap(person_key(get_key_source(folder.path)))
        file.wrapping(data, person).write(folder.path)


def _check_encrypted(folder: AgentFolder) -> None:
    if get_key_file(folder.path) is None:
        raise ValidationError(f"The memory of {folder.agent_id} is not encrypted.", code="not_encrypted")


def _check_known(folder: AgentFolder) -> None:
    """Check that all journals can be rewritten, before the first is.

    Raises:
        ReadOnlyError, UnsupportedError: A newer version wrote one.
    """
    for path in folder.journals() if folder.path.is_dir() else ():
        reader = JournalReader(path)
        entries = reader.poll().entries
        if reader.header is not None and reader.too_new:
            raise build_newer_error(path.name, reader.header)
        check_known(entries)


def _begin(folder: AgentFolder) -> DataKey:
    person = person_key(get_key_source(folder.path))
    person.check_strength()
    if not folder.path.is_dir() or not folder.journals():
        raise ValidationError(
            f"{folder.agent_id} has stored nothing yet; there is nothing to encrypt.",
            code="nothing_to_encrypt",
            recovery="Store something first.",
        )
    make_private_folder(folder.path)
    with folder_lock(folder.path, PERSON_SECONDS):
        file = KeyFile.read(folder.path)
        if file is None and unlike(folder):  # a new key would hide that the old one is to be brought back
            raise build_key_gone_error(folder.path)
        if file is None:
            file, data = KeyFile.fresh(folder.agent_id, person)
            file.write(folder.path)
            add_key(folder.path, data)
            return data
    if file.state == "decrypting":
        raise ValidationError(
            f"The memory of {folder.agent_id} is being decrypted; nothing was changed.",
            code="decrypting",
            recovery="Run `agent-memory encryption off` to its end first.",
        )
    return data_key(folder.path)


def _set_state(folder: AgentFolder, state: State) -> None:
    with folder_lock(folder.path, PERSON_SECONDS):
        file = _read_key_file(folder)
        if file.state == state:
            return
        if state == "encrypted" and unlike(folder):
            raise StorageError("A plain journal was put there meanwhile.", code="busy", recovery=_AGAIN)
        person = person_key(get_key_source(folder.path))
        file.wrapping(file.unwrap(person), person, state).write(folder.path)


def _read_key_file(folder: AgentFolder) -> KeyFile:
    """Return the key file, also next to a process that decrypts.

    Raises:
        StorageError: Another process deleted it.
    """
    if (file := KeyFile.read(folder.path)) is None:
        raise StorageError(f"{ENCRYPTION} is gone; nothing more was changed.", code="key_file")
    return file


def _to_pack(folder: AgentFolder) -> list[Path]:
    """Return files to pack: quarantined files, copies, scratchpad and pages."""
    packable = [path for path in sorted(folder.path.iterdir()) if is_packed(path.name)]
    pages = sorted(folder.topics.rglob("*")) if folder.topics.is_dir() and not folder.topics.is_symlink() else []
    return [path for path in (*packable, *pages) if path.is_file() and not path.is_symlink()]


def _encrypt_backups(folder: AgentFolder, progress: Callable[[str], None]) -> tuple[list[str], list[str]]:
    root, done, failed = folder.path.parent, list[str](), list[str]()
    file, person = _read_key_file(folder), person_key(get_key_source(folder.path))
    key = data_key(folder.path)
    begun, over = (file.wrapping(key, person, state).encode() for state in _WRITTEN)
    sweep_agents(root)  # a process that was killed here left one unpacked
    for backup in list_backups(root, folder.agent_id):
        progress(backup.path.name)
        try:
            if encrypt_backup(backup.path, root, key, begun, over):
                done.append(backup.path.name)
        except (StorageError, ValidationError, ConfigurationError) as error:
            failed.append(f"{backup.path.name}: {error.message}")
    return done, failed


_BEGIN: Final = 10
"""Characters that are looked up."""
_LABELS: Final = (
    *("title", "name", "description", "aliases", "attributes", "speaker", "event_type"),
    *("tags", "metadata", "project", "topic", "group", "source"),
)
"""Fields that describe a record, except its text."""
_READABLE: Final = re.compile(r"[a-z]{2,16}-[0-9a-f]{12,}|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)")
"""Ids and times, which stay readable."""


def collect_labels(folder: AgentFolder) -> set[str]:
    """Return distinctive names and labels of records: titles, tags, metadata and keys.

    Without what stays readable in files that are encrypted: ids, times, names of sessions and of the agent.

    Raises:
        StorageError: A journal cannot be read.
    """
    readable = {folder.agent_id, *(str(event.get("session_id")) for event in read_audit(folder.audit))}
    labels = {
        label
        for journal in folder.journals()
        for entry in JournalReader(journal).poll().entries
        for change in entry.changes
        if change.op != "delete"
        for name in _LABELS
        for label in iter_strings(change.data.get(name))
    }
    return {text for text in labels if is_distinctive(text) and text not in readable and not _READABLE.fullmatch(text)}


def find_plaintext(folder: AgentFolder, texts: Iterable[str]) -> list[FileWithWords]:
    """Return files of an agent with these texts unencrypted, backups included.

    Args:
        folder: Folder of the agent.
        texts: Texts to search for; short ones are skipped.

    Raises:
        OSError: A file cannot be read.
    """
    spans = _SpansByBeginning(texts)
    return find_matches(iter_contents(folder), [spans.count] if spans else [])


class _SpansByBeginning(defaultdict[str, set[str]]):
    """Spans of many texts by their first characters, faster than one pattern."""

    def __init__(self, texts: Iterable[str]) -> None:
        super().__init__(set)
        for span in (span for text in texts for span in iter_word_spans(text)):
            self[span[:_BEGIN]].add(span)

    def count(self, text: str) -> int:
        """Return the number of spans in a text."""
        folded = normalize_text(text)
        places = [place for place in range(len(folded) - _BEGIN + 1) if folded[place : place + _BEGIN] in self]
        return sum(
            any(folded.startswith(span, place) for span in self[folded[place : place + _BEGIN]]) for place in places
        )
