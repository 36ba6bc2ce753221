"""Names on disk, and their meaning in an agent's folder.

Names alone decide. Files of other programs are reported and never read as the journal.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pathlib import Path

JOURNAL: Final = "memories.yaml"
SCRATCHPAD: Final = "scratchpad.yaml"
CONSENT: Final = "consent.yaml"
"""User's consent to storing, for one agent in its folder, or for all in their parent folder."""
USED_AGENT: Final = "_used_agent"
"""Name of the agent that `agent-memory agents use` chose."""
NOT_SECRETS: Final = "not_secrets.txt"
"""Hashes of texts that a person said are no secrets, below the folder of all agents."""
TRUSTED_TOOLS: Final = "trusted_tools.json"
"""Tools that a person trusts, below the folder of all agents."""
METADATA: Final = "metadata.json"
SHORTLIST: Final = "shortlist.json"
VECTORS: Final = "embeddings.sqlite3"
INDEX: Final = "memories.db"
DERIVED: Final = "derived"
BLOBS: Final = "blobs"
"""Folder of texts that are too long for a journal line, each under its SHA-256."""
TOPICS: Final = "topics"
"""Folder of the pages of topics."""
PAGE_INDEX: Final = "index.md"
"""List of the pages in that folder."""
SEGMENTS: Final = "segments.json"
"""List of the segments of one kind of record, below `DERIVED`."""
AUDIT: Final = "events.jsonl"
OLDER_AUDIT: Final = "events.1.jsonl"
LOCK: Final = ".lock"
PURGED: Final = "purged.yaml"
"""Purge list: IDs and keyed fingerprints, no text."""
PURGE_KEY: Final = "purge.key"
"""Key of the fingerprints."""
AGENT: Final = "agent.yaml"
"""Journals of the agent, with their current generations."""
ENCRYPTION: Final = "encryption.json"
"""Key of the agent's files, wrapped by the person's key; only if they are encrypted."""
KEPT: Final = "kept.encrypted"
"""Packed files that cannot be used while encrypted."""
TASKS: Final = "tasks.yaml"
"""Journal of the progress of background work."""
TASKS_LOCK: Final = "tasks.lock"
TASKS_CURRENT: Final = "tasks.current.json"
"""Records that background work is on, with the number of process deaths."""
MODEL_USE: Final = "model.json"
"""Tokens that a background model used today, counts, and the user's yes; no text."""
ARCHIVE_LOCK: Final = "archive.lock"
BUILD_LOCK: Final = "build.lock"
HOLDER_LOCK: Final = "holder.lock"
UNFINISHED: Final = ".new-"
"""Prefix of an index that is being built."""
SESSIONS: Final = "_sessions"
"""Folder below that of all agents."""
BACKUPS: Final = "_backups"
"""Folder below that of all agents."""
RESTORING: Final = ".restoring"
"""Folder of settled files that replace an agent's files."""

BACKUP: Final = re.compile(r"(?P<agent>.+)-(?P<at>\d{8}T\d{6})Z(?P<before>-before-restore)?(?:-\d+)?\.zip")
"""Name of a backup: `bob-20260301T120000Z.zip`."""

Sort = Literal[
    "ours", "rejected", "temporary", "taken_out", "lost", "rewritten", "before_repair", "broken_pad", "broken_vectors",
    "broken", "conflict", "copy", "stray", "other",
]  # fmt: skip
"""What a name in an agent's folder means.

`taken_out`: what a rendering of the scratchpad renamed for a moment. `lost`: records that another program removed.
`rewritten`: a journal that another program wrote. `before_repair`: a copy that the doctor made. `broken…`: what could
not be used. `conflict`: a journal's copy as synchronising programs name it. `copy`: any other version of the journal.
`stray`: another name like one of ours.
"""
COPIES: Final[tuple[Sort, ...]] = ("conflict", "copy", "stray")
"""Meanings of names like ours of other programs' files."""
STAMP: Final = "%Y%m%dT%H%M%S"

_STAMPED = r"(\d{8}T\d{6})(?:-\d+)?"
_CRC = "[0-9a-f]{8}"
_STEM = re.escape(JOURNAL.removesuffix(".yaml"))
_CONFLICT = (
    # Dropbox and its translations, Syncthing, OneDrive (memories-DESKTOP-4711), iCloud and Finder (memories 2),
    # Google Drive (memories (1)), Nextcloud, Resilio.
    rf"(?=.*(?:conflict|konflikt|conflit|conflito|kopie|copie|copia|sync-|\(\d+\))|{_STEM}(?: |-)\d+\."
    rf"|{_STEM}-[^.]+\.ya?ml$)"
)
_PATTERNS: Final[tuple[tuple[Sort, str], ...]] = (
    ("temporary", rf"\..*\.{_CRC}\.tmp"),
    ("taken_out", rf"\.{re.escape(SCRATCHPAD)}\.{_CRC}\.old"),
    ("rejected", r"[a-z]+\.rejected\.yaml"),
    ("lost", rf"[a-z]+\.lost-{_CRC}\.yaml"),
    ("rewritten", rf"[a-z]+\.rewritten-{_CRC}\.yaml"),
    ("before_repair", rf".*\.before-repair-{_STAMPED}(?:\.yaml)?"),
    ("broken_pad", rf"scratchpad\.broken-{_STAMPED}\.yaml"),
    ("broken_vectors", rf"{re.escape(VECTORS)}\.broken.*"),
    ("broken", rf".*\.broken-{_STAMPED}"),
    (
        "ours",
        "|".join(
            map(
                re.escape,
                (
                    JOURNAL,
                    SCRATCHPAD,
                    METADATA,
                    SHORTLIST,
                    INDEX,
                    AUDIT,
                    OLDER_AUDIT,
                    LOCK,
                    TASKS_LOCK,
                    TASKS_CURRENT,
                    MODEL_USE,
                    ARCHIVE_LOCK,
                    RESTORING,
                    PURGE_KEY,
                    ENCRYPTION,
                    KEPT,
                ),
            )
        ),
    ),
    ("ours", rf"{DERIVED}|{BLOBS}|{TOPICS}"),
    ("ours", rf"{re.escape(VECTORS)}(?:-wal|-shm|-journal)?"),
    ("ours", rf"[a-z]+\.(?:yaml|{re.escape(SHORTLIST)})"),  # of each kind of record
    ("conflict", rf"(?i:{_CONFLICT}{_STEM}\b.*\.ya?ml.*)"),
    ("copy", rf"(?i:{_STEM}\b.*\.ya?ml.*)"),
    ("stray", r"(?i:\.?(?:memories|scratchpad|metadata|embeddings|events|lock)\b.*)"),
)
_SORTS: Final = tuple((sort, re.compile(pattern, re.DOTALL)) for sort, pattern in _PATTERNS)


def classify_name(name: str) -> Sort:
    """Return the meaning of a name in an agent's folder."""
    return next((sort for sort, pattern in _SORTS if pattern.fullmatch(name)), "other")


def may_be_journal(name: str) -> bool:
    """Return True if a name may be a journal's."""
    return name not in {SCRATCHPAD, CONSENT} and re.fullmatch(r"[a-z]+\.yaml", name) is not None


def get_shortlist_name(journal: str, kind: str = "") -> str:
    """Return the name of a journal's shortlist, such as `episodes.shortlist.json`.

    Args:
        journal: Name of the journal.
        kind: Kind of the records, if the journal has several.
    """
    return SHORTLIST if journal == JOURNAL else f"{kind or journal.removesuffix('.yaml')}.{SHORTLIST}"


def has_journal_lines(journal: str, name: str) -> bool:
    """Return True if a quarantined file may have lines of a journal."""
    stem, sort = journal.removesuffix(".yaml"), classify_name(name)
    if sort in {"rejected", "lost", "rewritten"}:
        return name.startswith(f"{stem}.")
    return sort in {"before_repair", "broken"} and name.startswith((f"{journal}.", f"{stem}.rejected."))


def is_aside(path: Path) -> bool:
    """Return True if a file is quarantined or a copy."""
    return classify_name(path.name) in {"rejected", "lost", "rewritten", "before_repair", "broken", *COPIES}


def is_packed(name: str) -> bool:
    """Return True if encryption packs files of this name."""
    return classify_name(name) in {
        "rejected", "lost", "rewritten", "before_repair", "broken_pad", "broken", "taken_out", *COPIES,
    } or name == SCRATCHPAD  # fmt: skip


def parse_moment(name: str) -> datetime | None:
    """Return the time in a quarantined file's name, or None."""
    match = re.search(rf"-{_STAMPED}(?:\.yaml)?$", name)
    try:
        return datetime.strptime(match[1], STAMP).replace(tzinfo=UTC) if match else None
    except ValueError:
        return None  # digits that are not a date


def get_aside_path(path: Path, why: str, mark: str = "", *, whole: bool = False) -> Path:
    """Return the quarantine path for a path, such as `memories.rewritten-0123abcd.yaml`.

    Args:
        path: Path to quarantine.
        why: Reason in one word.
        mark: Checksum or time that makes the name unique.
        whole: Append to the whole name: `memories.yaml.before-repair-20260301T120000`.
    """
    word = f".{why}-{mark}" if mark else f".{why}"
    return path.with_name(path.name + word if whole else f"{path.stem}{word}{path.suffix}")
