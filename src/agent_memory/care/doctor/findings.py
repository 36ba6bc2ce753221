"""What an examination says: findings, how grave each is, and the table of every code there is. Pure data.

docs/doctor.md has the same table; a test keeps it true. Codes are stable words for programs, sentences are for people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.files.concerns import Concern

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Severity(IntEnum):
    """How grave a finding is. From `WARNING` on it wants a person's attention."""

    OK = 0
    NOTE = 1
    WARNING = 2
    PROBLEM = 3


OK, NOTE, WARNING, PROBLEM = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.PROBLEM


class Code(NamedTuple):
    """One kind of finding.

    Attributes:
        area: What it is about; findings are shown in this order.
        severity: How grave it is.
        meaning: When it is reported.
        repair: What `--repair` does about it; empty if that is a person's decision, or needs none.
        mends: Whether it is gone after that.
    """

    area: str
    severity: Severity
    meaning: str
    repair: str = ""
    mends: bool = True


_MOVED: Final = "moves it aside, so that a new one can be made"
_MENDED: Final = "copies the journal aside, moves what is no entry to `memories.rejected.yaml`, writes a sound journal"
_WRITTEN: Final = "copies the journal aside and writes the memory as it is used"
_DROPPED: Final = "drops it; the next session builds it"
_AREAS: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "home": {
        "home": (OK, "the folder of all agents can be used"),
        "home_missing": (NOTE, "there is no such folder yet"),
        "home_unusable": (PROBLEM, "it is no folder, or cannot be listed"),
        "settings_without_effect": (
            WARNING,
            "the host's settings have a `session:` block, which it reads from bundles only",
        ),
        "consent_unreadable": (WARNING, "a file that limits memory has an error; memory is off, or stores nothing"),
        "name_unusable": (NOTE, "a folder with memories has a name that no agent can have"),
        "home_open": (WARNING, "others on this machine can put, rename or replace folders of agents"),
        "agents_unfinished": (WARNING, "a deletion or a copying of an agent was interrupted"),
        "names_clash": (WARNING, "two agents' names differ in case alone"),
    },
    "folder": {
        "folder": (OK, "the folder can be used, and by nobody else"),
        "folder_unusable": (PROBLEM, "an agent's folder is a link out of the home, a file, or cannot be read"),
        "permissions_open": (WARNING, "others on this machine can read or change files", "chmod 0700 and 0600"),
        "foreign_owner": (WARNING, "files belong to another user"),
        "not_writable": (PROBLEM, "the folder or its file system forbids writing"),
        "disk_full": (PROBLEM, "less than 1 MB is free"),
        "disk_low": (WARNING, "little is free: less than 100 MB, or than a compaction needs"),
        "locks_fail": (PROBLEM, "locks keep nobody out on this file system"),
        "network_folder": (NOTE, "the files lie on a network or shared file system"),
        "synced_folder": (WARNING, "a program that synchronises folders writes here, too"),
        "leftovers": (NOTE, "temporary files of processes that were killed", "removes them"),
        "restore_unfinished": (WARNING, "restoring a backup was interrupted when it was settled", "finishes it"),
        "encryption": (OK, "the files are encrypted, and the key is here"),
        "encryption_unfinished": (WARNING, "encrypting or decrypting was interrupted: the same command goes on"),
        "encryption_key": (PROBLEM, "the files are encrypted, and there is no key here, or it cannot be used"),
        "not_examined": (PROBLEM, "an examination failed half-way; what it is about is in the sentence"),
    },
    "journal": {
        "journal": (OK, "the journal is sound"),
        "journal_new": (NOTE, "nothing was stored yet"),
        "journal_missing": (
            PROBLEM,
            "a journal is missing, or empty, though it had records",
            "keeps a copy of the scratchpad",
            False,
        ),
        "journal_returned": (
            WARNING,
            "it is not the file that was last in use: put back, copied, or another version's",
        ),
        "journal_unreadable": (PROBLEM, "it is a link or a folder, or reading it fails"),
        "journal_newer": (WARNING, "a newer version wrote it: it is read, not written, nor repaired"),
        "journal_header": (WARNING, "its first line is no header", _MENDED),
        "journal_lines": (PROBLEM, "lines that are no entries", _MENDED),
        "journal_tail": (WARNING, "its last line was cut off, by a crash", _MENDED),
        "purge_unfinished": (WARNING, "a purge was interrupted; the next session goes on with it"),
        "purges_unusable": (
            PROBLEM,
            "`purged.yaml` or its key is missing, shorter than noted, or damaged: what was purged might come back",
            "takes both from the newest backup that has all of it",
        ),
        "journal_unfinished": (NOTE, "its last line is whole but for its end, which comes with the next write"),
        "journal_records": (WARNING, "entries that break the rules of a memory", _MENDED),
        "journal_changes": (WARNING, "changes that break the rules of a memory; the version before is used", _WRITTEN),
        "journal_circle": (WARNING, "memories that replace one another in a circle", _WRITTEN),
        "journal_rules": (WARNING, "memories that can be read and break a rule of their kind"),
        "journal_references": (NOTE, "records that point to one that is not there, as after forgetting it"),
        "conflicts_hidden": (NOTE, "undecided pairs, mostly of an earlier version, that are not conflicts by this one"),
        "journal_backwards": (WARNING, "lines in another order than they were written in", _MENDED),
        "journal_order": (NOTE, "numbers of entries occur twice, as after merging files"),
        "journal_rewritten": (NOTE, "another program rewrote it once; a copy was kept"),
        "journal_copies": (NOTE, "copies that a repair made, or somebody's backups"),
        "rejected": (NOTE, "what was set aside from the journal"),
        "rejected_unusable": (PROBLEM, "nothing can be set aside: it is no file", _MOVED),
    },
    "copies": {
        "conflict_copies": (WARNING, "conflict copies hold memories that the journal has not"),
        "conflict_copies_known": (NOTE, "conflict copies hold nothing that the journal has not"),
        "aside": (NOTE, "what repairs moved aside"),
        "lost": (WARNING, "what another program removed from the journal while a session knew it"),
        "lost_known": (NOTE, "the same, but all of it is in the journal"),
        "strangers": (NOTE, "other files named like ours that are not ours"),
    },
    "lock": {
        "lock": (OK, "the lock is free, or comes with the first write"),
        "lock_held": (NOTE, "a process is writing now"),
        "lock_missing": (NOTE, "somebody deleted it; the next write makes it again"),
        "lock_unusable": (PROBLEM, "it is no file, so nothing can be written", "moves a folder of that name aside"),
    },
    "scratchpad": {
        "scratchpad": (OK, "it shows what the journal says"),
        "scratchpad_none": (NOTE, "there is none yet; a session renders it", "renders it"),
        "scratchpad_stale": (NOTE, "it shows less, or older, than the journal", "renders it anew"),
        "scratchpad_edited": (NOTE, "a person's edits wait for the next session"),
        "scratchpad_broken": (WARNING, "it cannot be read", "moves it aside and renders it anew"),
        "scratchpad_kept": (WARNING, "an edit that was refused lately, kept in a file of its own"),
        "scratchpad_aside": (NOTE, "the same, more than 30 days ago"),
    },
    "backend": {
        "metadata": (OK, "which backend is used"),
        "metadata_none": (NOTE, "`metadata.json` is missing", "writes it"),
        "metadata_broken": (WARNING, "`metadata.json` cannot be read", "writes it from what lies there"),
    },
    "index": {
        "index": (OK, "the index is whole"),
        "index_none": (NOTE, "migrated, but no index is built yet; sessions build it"),
        "index_broken": (WARNING, "the index in use is missing or damaged", _DROPPED),
        "index_foreign": (NOTE, "the index is of another embedder than the default one"),
        "index_behind": (NOTE, "changes that the index has not seen; sessions catch up"),
        "index_ahead": (WARNING, "the index has seen changes that the journal does not have", _DROPPED),
        "index_unused": (NOTE, "indexes that are not in use", "removes them unless somebody holds them"),
        "index_half_built": (NOTE, "a build was killed", "removes what it left"),
        "index_in_use": (NOTE, "a process builds or holds an index now"),
        "index_unusable": (WARNING, "`memories.db` is no folder", _MOVED),
        "engine_missing": (WARNING, "there is an index, but no engine is installed; files answer"),
    },
    "segments": {
        "segments": (OK, "what is sealed can be used, and says what the journal says"),
        "segments_stale": (NOTE, "the journal does not go on from where the segments end; they are made anew"),
        "segments_broken": (WARNING, "a segment is damaged, or of another version", "makes them anew"),
        "segments_untrue": (WARNING, "segments say otherwise than the journal", "makes them anew"),
    },
    "blobs": {
        "blobs": (OK, "every long text that a record names is there, and is what was stored"),
        "blobs_missing": (PROBLEM, "long texts that records name are gone; their beginnings are in the journal"),
        "blobs_damaged": (PROBLEM, "long texts are not what was stored"),
        "blobs_unused": (NOTE, "long texts that no record names; they go by themselves when they are old"),
    },
    "tasks": {
        "tasks_waiting": (NOTE, "records failed in background work and are tried again"),
        "tasks_quarantined": (
            WARNING,
            "reading a record ended the process, and one of its own; nothing is derived from it",
        ),
        "tasks_failed": (WARNING, "records failed so often in background work that only a newer version tries again"),
    },
    "speakers": {
        "speakers_guessed": (
            WARNING,
            "imported logs in which an earlier version called every turn the user's",
        ),
        "speakers_unchecked": (NOTE, "imported logs in which an earlier version did not check who said a part"),
    },
    "entities": {
        "entities_guessed": (NOTE, "entities and relations that rules of an earlier version guessed, which are hidden"),
    },
    "vectors": {
        "vectors": (OK, "vectors are kept"),
        "vectors_none": (OK, "no vectors are kept yet"),
        "vectors_broken": (WARNING, "the vector cache is damaged", _MOVED),
        "vectors_unread": (NOTE, "the vector cache may not be read here, or is of a newer version"),
        "vectors_orphaned": (NOTE, "vectors of texts that no record has", "removes them"),
        "vectors_spoilt": (WARNING, "vectors of a wrong length, or all zeros", "removes them"),
        "vectors_wanting": (NOTE, "memories that have no vector yet"),
        "vectors_aside": (NOTE, "a damaged vector cache that was moved aside"),
    },
    "topics": {
        "topics": (OK, "pages of topics"),
        "topics_odd": (NOTE, "what lies among the pages and can be none"),
        "topics_hidden": (NOTE, "topics that an earlier version made of words in items, and that are hidden"),
        "topics_aside": (NOTE, "what was no page and was moved out of the place of one"),
        "topics_unusable": (WARNING, "`topics` is no folder: no page is written"),
    },
    "audit": {
        "audit": (OK, "the log of changes"),
        "audit_lines": (NOTE, "lines of the log that cannot be read; nothing depends on them"),
        "audit_unusable": (WARNING, "the log cannot be written: it is no file", _MOVED),
    },
    "backups": {
        "backups": (OK, "how many backups there are, and how old the newest is; they are not read"),
        "backups_none": (NOTE, "there is none of an agent with 1,000 memories or more"),
        "backups_damaged": (WARNING, "backups that do not open, or lack something"),
    },
    "sessions": {
        "sessions": (OK, "which session used which agent"),
        "session_dangling": (NOTE, "sessions whose agent is gone"),
        "session_broken": (NOTE, "session notes that cannot be read", "moves them aside"),
    },
    "parts": {
        "parts": (OK, "what is installed"),
        "parts_missing": (
            NOTE,
            "`local` is missing, or `vector` from half of `migration_threshold` memories on",
        ),
        "model_broken": (WARNING, "the local model is not the expected one, or cannot be read"),
    },
}
CODES: Final[dict[str, Code]] = {code: Code(area, *row) for area, rows in _AREAS.items() for code, row in rows.items()}


class Finding(Concern):
    """One thing that was found, with what the table says of it."""

    __slots__ = ()

    @property
    def severity(self) -> Severity:
        """How grave it is."""
        return CODES[self.code].severity

    @property
    def area(self) -> str:
        """What it is about."""
        return CODES[self.code].area

    @property
    def repair(self) -> str:
        """What `--repair` would do; empty for nothing."""
        return CODES[self.code].repair

    @property
    def mendable(self) -> bool:
        """True if `--repair` makes it go away."""
        return bool(self.repair) and CODES[self.code].mends

    def as_dict(self) -> dict[str, object]:
        """Return it for programs."""
        return {
            "code": self.code,
            "severity": self.severity.name.lower(),
            "area": self.area,
            "sentence": self.sentence,
            "advice": self.advice,
            "bytes": self.size,
            "repair": self.repair,
            "details": list(self.details),
        }


@dataclass(frozen=True, slots=True)
class AgentReport:
    """What was found about one agent; `memories` is None when the journal cannot be read."""

    agent_id: str
    path: Path
    size: int
    memories: int | None
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """The gravest of its findings."""
        return max((finding.severity for finding in self.findings), default=OK)


@dataclass(frozen=True, slots=True)
class HomeReport:
    """What was found under one storage root."""

    root: Path
    findings: tuple[Finding, ...]
    agents: tuple[AgentReport, ...] = field(default=())

    @property
    def every(self) -> list[tuple[str | None, Finding]]:
        """All findings, each with the agent it is about; None for the home."""
        found = [(agent.agent_id, finding) for agent in self.agents for finding in agent.findings]
        return [*((None, finding) for finding in self.findings), *found]

    @property
    def severity(self) -> Severity:
        """The gravest of all findings."""
        return max((finding.severity for _, finding in self.every), default=OK)

    @property
    def healthy(self) -> bool:
        """True if nothing wants attention."""
        return self.severity < WARNING


@dataclass(frozen=True, slots=True)
class Action:
    """What a repair did, or why it could not: the agent (None for the home), the finding's code, a sentence."""

    agent_id: str | None
    code: str
    sentence: str
    done: bool = True

    def as_dict(self) -> dict[str, object]:
        """Return it for programs."""
        return {"agent_id": self.agent_id, "code": self.code, "sentence": self.sentence, "done": self.done}


def table() -> str:
    """Return the table of all codes for docs/doctor.md."""
    lines = ["| code | severity | reported when | `--repair` |", "|---|---|---|---|"]
    for name, code in CODES.items():
        lines.append(f"| `{name}` | {code.severity.name.lower()} | {code.meaning} | {code.repair} |")
    return "\n".join(lines)


def by_area(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order of the table's areas, the gravest of an area first."""
    areas = list(dict.fromkeys(code.area for code in CODES.values()))
    return tuple(sorted(findings, key=lambda finding: (areas.index(finding.area), -finding.severity)))
