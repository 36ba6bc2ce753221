"""Names and manifest of a backup, checked as untrusted input."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import StorageError, ValidationError
from agent_memory.files.names import BACKUP, BACKUPS, ENCRYPTION, PURGE_KEY, PURGED, SCRATCHPAD, STAMP, may_be_journal
from agent_memory.journal.codec import advise_upgrade
from agent_memory.models import check_agent_id
from agent_memory.settings.installation import installed_version

if TYPE_CHECKING:
    from pathlib import Path

FORM: Final = 2
"""Format of archive and manifest. A greater number is that of a newer version, which this one leaves unread."""
_FORM_WITHOUT_PURGES: Final = 1
"""Format of a backup without a purge list, which earlier versions can restore."""
MANIFEST: Final = "manifest.json"
README: Final = "README.txt"
MOST_BYTES_OF_MANIFEST: Final = 64 << 20
"""A manifest takes some 150 bytes for each long text."""
ASKED: Final = "asked"
BEFORE_RESTORE: Final = "before_restore"
ON_FILE: Final = (
    "A backup of what an agent remembers, made by agent-memory.\n\n"
    "Bring it back:        agent-memory backup restore FILE\n"
    "Look whether it is whole: agent-memory backup verify FILE\n\n"
    "Without that program: *.yaml are streams of YAML documents, one change a line, the oldest first. blobs/ has\n"
    "texts that are too long for a line, by their sha256; topics/ has pages of topics. manifest.json says of each\n"
    "file how long it is and which sha256 it has. Unpacked into a folder of its own below ~/.amplifier/memory, these\n"
    "are an agent of that folder's name. Indexes and vectors are not here: they are rebuilt from the journals.\n"
)
PAGE: Final = re.compile(r"topics/\.?[a-z0-9_-]{1,200}(?:\.[a-z]+(?:-[0-9a-f]+)?)?\.md")
LONG_TEXT: Final = re.compile(r"blobs/[0-9a-f]{64}")
_SUM: Final = re.compile(r"[0-9a-f]{64}")
PURGES: Final = frozenset({PURGED, PURGE_KEY})
_OTHER_FILES: Final = frozenset({SCRATCHPAD, ENCRYPTION}) | PURGES
"""The scratchpad is kept for people, and a restore renders it again; `encryption.json` has the key of encrypted
journals. The purge list and its key are used by a restore where the agent has none that can be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupFile:
    """One file of a backup.

    Attributes:
        name: Name in the archive and below the agent's folder.
        size: Size in bytes.
        sha256: Checksum as 64 hexadecimal digits.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupJournal(BackupFile):
    """A journal of a backup.

    Attributes:
        generation: Generation in its header, or empty.
        last_seq: Number of its last change.
        lines: Number of lines, header and damaged ones included.
        records: Number of records by kind, replaced and expired ones included.
        damaged: Number of damaged lines when the backup was made.
    """

    generation: str
    last_seq: int
    lines: int
    records: dict[str, int] = field(default_factory=dict)
    damaged: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupManifest:
    """Manifest of a backup.

    Attributes:
        agent_id: Name of the agent.
        made_at: Moment of the state, UTC.
        made_by: Version of the writer.
        reason: `asked` or `before_restore`.
        journals: All journals of the agent at one moment.
        files: Long texts, pages, the scratchpad, and the purge list with its key.
    """

    agent_id: str
    made_at: datetime
    made_by: str
    reason: str = ASKED
    journals: tuple[BackupJournal, ...] = ()
    files: tuple[BackupFile, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files, unpacked."""
        return sum(file.size for file in (*self.journals, *self.files))

    @property
    def memories(self) -> int:
        """Number of memories."""
        return sum(journal.records.get("memory", 0) for journal in self.journals)

    def encode(self) -> bytes:
        """Return it as JSON."""
        has_purges = any(held.name in PURGES for held in self.files)
        value = {
            "agent_memory_backup": FORM if has_purges else _FORM_WITHOUT_PURGES,
            **asdict(self),
            "made_at": self.made_at.isoformat().replace("+00:00", "Z"),
        }
        return json.dumps(value, indent=1).encode() + b"\n"

    @classmethod
    def decode(cls, content: bytes, file: Path) -> BackupManifest:
        """Return the manifest of its JSON.

        Raises:
            ValidationError: It is not ours, or names unexpected files.
            StorageError: A newer version wrote it.
        """
        try:
            value = json.loads(content)
            form = value["agent_memory_backup"]
        except (ValueError, RecursionError, TypeError, KeyError):
            raise build_foreign_error(file, "its manifest cannot be read") from None
        if isinstance(form, int) and form > FORM:
            raise StorageError(
                f"{file.name} was made by a newer version of agent-memory ({str(value.get('made_by'))[:40]!r}) than "
                f"{installed_version()}; nothing of it was used.",
                code="backup_newer",
                recovery=f"{advise_upgrade()}. Any program that opens a zip file can read it, too.",
                path=file,
            )
        try:
            return cls._parse(value)
        except (ValueError, TypeError, KeyError, ValidationError) as error:
            raise build_foreign_error(file, f"its manifest is not one: {str(error)[:80].rstrip('.')}") from None

    @classmethod
    def _parse(cls, value: dict[str, Any]) -> BackupManifest:
        moment = datetime.fromisoformat(value["made_at"])
        manifest = cls(
            agent_id=check_agent_id(value["agent_id"]),
            made_at=moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC),
            made_by=str(value["made_by"])[:40],
            reason=BEFORE_RESTORE if value["reason"] == BEFORE_RESTORE else ASKED,
            journals=tuple(BackupJournal(**fields) for fields in value["journals"]),
            files=tuple(BackupFile(**fields) for fields in value["files"]),
        )
        names = [fields.name for fields in (*manifest.journals, *manifest.files)]
        if len(set(names)) != len(names):
            raise ValueError("it names a file twice")
        for fields in (*manifest.journals, *manifest.files):
            _check(fields)
        return manifest


def _check(held: BackupFile) -> None:
    """Raise a ValueError or TypeError for an invalid file entry."""
    fits = may_be_journal(held.name) if isinstance(held, BackupJournal) else is_beside(held.name)
    if not fits:
        raise ValueError(f"it names {held.name[:60]!r}")
    numbers = [held.size]
    if isinstance(held, BackupJournal):
        if not isinstance(held.generation, str) or not isinstance(held.records, dict):
            raise TypeError("what it says of a journal has another form")
        numbers += [held.last_seq, held.lines, held.damaged, *held.records.values()]
    if not all(isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**53 for number in numbers):
        raise ValueError("its numbers are no numbers")
    if not _SUM.fullmatch(held.sha256):
        raise ValueError("its checksums are none")


def is_beside(name: str) -> bool:
    """Return True if backups contain a file of this name, except journals."""
    return name in _OTHER_FILES or LONG_TEXT.fullmatch(name) is not None or PAGE.fullmatch(name) is not None


def build_foreign_error(file: Path, why: str) -> ValidationError:
    """Return the error for a file that is not our backup."""
    message = f"{file.name} is no backup of agent-memory: {why}. Nothing of it was used."
    recovery = "`agent-memory backup list` shows backups; other files are taken in by `agent-memory import`."
    return ValidationError(message, code="not_a_backup", recovery=recovery)


def build_name(agent_id: str, moment: datetime, reason: str) -> str:
    """Return the name of a backup: `bob-20260301T120000Z.zip`."""
    return f"{agent_id}-{moment:{STAMP}}Z{'-before-restore' if reason == BEFORE_RESTORE else ''}.zip"


def agent_in(name: str) -> str | None:
    """Return the agent in a backup's file name, or None."""
    match = BACKUP.fullmatch(name)
    return match["agent"] if match else None


def moment_in(name: str) -> datetime | None:
    """Return the moment in a backup's file name, or None."""
    match = BACKUP.fullmatch(name)
    try:
        return datetime.strptime(match["at"], STAMP).replace(tzinfo=UTC) if match else None
    except ValueError:
        return None


def folder_of_backups(root: Path) -> Path:
    """Return the folder of all backups below `root`."""
    return root / BACKUPS
