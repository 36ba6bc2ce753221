"""The table of checks: finding codes with repairs, health checks with limits.

docs/reference/errors.md is generated from these tables (`make docs`). Codes are stable
words for programs, sentences are for people.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.files.concerns import Concern
from agent_memory.models.record import view_fields

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Level(IntEnum):
    """Level of a health check, numbered as exit codes of monitors.

    See the guidelines for plugins of Nagios (https://www.monitoring-plugins.org/doc/guidelines.html#AEN78).
    """

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


class Severity(IntEnum):
    """Severity of a finding; a person should see findings from `WARNING` on."""

    OK = 0
    NOTE = 1
    WARNING = 2
    PROBLEM = 3

    @property
    def level(self) -> Level:
        """The level of a health check with this finding."""
        return (Level.OK, Level.OK, Level.WARNING, Level.CRITICAL)[self]


OK, NOTE, WARNING, PROBLEM = Severity.OK, Severity.NOTE, Severity.WARNING, Severity.PROBLEM
_GRAVITY: Final = (Level.OK, Level.UNKNOWN, Level.WARNING, Level.CRITICAL)
"""A known problem comes before an unknown state."""


class FindingCode(NamedTuple):
    """Row of the table for one kind of finding.

    Attributes:
        area: Subject of the finding; findings are shown in this order.
        severity: Severity of the finding.
        meaning: Condition under which it is reported.
        repair: Action of `--repair`; empty if a person decides or none is needed.
        is_fixed: True if the finding disappears after that.
    """

    area: str
    severity: Severity
    meaning: str
    repair: str = ""
    is_fixed: bool = True


_MOVED: Final = "moves it aside, so that a new one can be made"
_SOUND: Final = "copies the journal aside, moves other lines to `memories.rejected.yaml`, writes a sound journal"
_WRITTEN: Final = "copies the journal aside and writes the memory as it is used"
_COPIED: Final = "keeps a copy of the scratchpad"
_TAKEN: Final = "takes both from the newest backup that has all of it"
_DROPPED: Final = "drops it; the next session builds it"
_TABLE: Final[dict[str, tuple[Any, ...]]] = {
    "home": ("home", OK, "the folder of all agents can be used"),
    "home_missing": ("home", NOTE, "the folder does not exist yet"),
    "home_unusable": ("home", PROBLEM, "it is not a folder, or cannot be listed"),
    "settings_without_effect": ("home", WARNING, "the host's settings have a `session:` block, read from bundles only"),
    "settings_earlier": ("home", NOTE, "the host's settings have an earlier name of a setting"),
    "consent_unreadable": ("home", WARNING, "a file that limits memory has an error; memory is off, or stores nothing"),
    "name_unusable": ("home", NOTE, "a folder with memories has a name that no agent can have"),
    "home_open": ("home", WARNING, "others on this machine can put, rename or replace folders of agents"),
    "agents_unfinished": ("home", WARNING, "a deletion or a copying of an agent was interrupted"),
    "names_clash": ("home", WARNING, "two agents' names differ in case alone"),
    "folder": ("folder", OK, "the folder can be used, by its owner alone"),
    "folder_unusable": ("folder", PROBLEM, "an agent's folder is a link out of the home, a file, or cannot be read"),
    "permissions_open": ("folder", WARNING, "others on this machine can read or change files", "chmod 0700 and 0600"),
    "foreign_owner": ("folder", WARNING, "files belong to another user"),
    "not_writable": ("folder", PROBLEM, "the folder or its file system forbids writing"),
    "disk_full": ("folder", PROBLEM, "less than 1 MB is free"),
    "disk_low": ("folder", WARNING, "little is free: less than 100 MB, or than a compaction needs"),
    "locks_fail": ("folder", PROBLEM, "locks do not work on this file system"),
    "network_folder": ("folder", NOTE, "the files lie on a network or shared file system"),
    "synced_folder": ("folder", WARNING, "a program that synchronises folders writes here, too"),
    "leftovers": ("folder", NOTE, "temporary files of processes that were killed", "removes them"),
    "restore_unfinished": ("folder", WARNING, "restoring a backup was interrupted when it was settled", "finishes it"),
    "encryption": ("folder", OK, "the files are encrypted, and the key is here"),
    "encryption_unfinished": ("folder", WARNING, "encrypting or decrypting was interrupted; the same command ends it"),
    "encryption_key": ("folder", PROBLEM, "the files are encrypted, and the key is missing or cannot be used"),
    "not_examined": ("folder", PROBLEM, "an examination failed half-way; what it is about is in the sentence"),
    "journal": ("journal", OK, "the journal is sound"),
    "journal_new": ("journal", NOTE, "nothing was stored yet"),
    "journal_missing": ("journal", PROBLEM, "a journal that had records is missing or empty", _COPIED, False),
    "journal_returned": ("journal", WARNING, "it is not the file last in use: put back, copied, or of another version"),
    "journal_unreadable": ("journal", PROBLEM, "it is a link or a folder, or reading it fails"),
    "journal_newer": ("journal", WARNING, "a newer version wrote it: it is read, not written, nor repaired"),
    "journal_header": ("journal", WARNING, "its first line is not a header", _SOUND),
    "journal_lines": ("journal", PROBLEM, "lines that are not entries", _SOUND),
    "journal_tail": ("journal", WARNING, "its last line was cut off, by a crash", _SOUND),
    "purge_unfinished": ("journal", WARNING, "a purge was interrupted; the next session continues it"),
    "purges_unusable": ("journal", PROBLEM, "`purged.yaml` or its key is missing, short or damaged", _TAKEN),
    "journal_unfinished": ("journal", NOTE, "its last line lacks its end, which comes with the next write"),
    "journal_records": ("journal", WARNING, "entries that break the rules of a memory", _SOUND),
    "journal_changes": ("journal", WARNING, "changes that break a rule of a memory; an older version counts", _WRITTEN),
    "journal_circle": ("journal", WARNING, "memories that replace one another in a circle", _WRITTEN),
    "journal_rules": ("journal", WARNING, "memories that can be read and break a rule of their kind"),
    "journal_references": ("journal", NOTE, "records that point to one that is not there, as after forgetting it"),
    "conflicts_hidden": ("journal", NOTE, "undecided pairs, mostly of an earlier version, that do not conflict"),
    "journal_backwards": ("journal", WARNING, "lines in another order than they were written in", _SOUND),
    "journal_order": ("journal", NOTE, "numbers of entries occur twice, as after merging files"),
    "journal_rewritten": ("journal", NOTE, "another program rewrote it once; a copy was kept"),
    "journal_copies": ("journal", NOTE, "copies that a repair or a user made"),
    "rejected": ("journal", NOTE, "lines that were moved out of the journal"),
    "rejected_unusable": ("journal", PROBLEM, "no line can be moved there: it is not a file", _MOVED),
    "conflict_copies": ("copies", WARNING, "conflict copies hold memories that the journal has not"),
    "conflict_copies_known": ("copies", NOTE, "conflict copies hold nothing that the journal has not"),
    "aside": ("copies", NOTE, "what repairs moved aside"),
    "lost": ("copies", WARNING, "what another program removed from the journal while a session knew it"),
    "lost_known": ("copies", NOTE, "the same, but all of it is in the journal"),
    "strangers": ("copies", NOTE, "other files named like ours that are not ours"),
    "lock": ("lock", OK, "the lock is free, or comes with the first write"),
    "lock_held": ("lock", NOTE, "a process is writing now"),
    "lock_missing": ("lock", NOTE, "it was deleted; the next write makes it again"),
    "lock_unusable": ("lock", PROBLEM, "it is not a file; nothing can be written", "moves a folder of that name aside"),
    "scratchpad": ("scratchpad", OK, "it shows what the journal says"),
    "scratchpad_none": ("scratchpad", NOTE, "it does not exist yet; a session renders it", "renders it"),
    "scratchpad_stale": ("scratchpad", NOTE, "it shows less, or older, than the journal", "renders it again"),
    "scratchpad_edited": ("scratchpad", NOTE, "a person's edits wait for the next session"),
    "scratchpad_broken": ("scratchpad", WARNING, "it cannot be read", "moves it aside and renders it again"),
    "scratchpad_kept": ("scratchpad", WARNING, "an edit that was refused lately, kept in a file of its own"),
    "scratchpad_aside": ("scratchpad", NOTE, "the same, more than 30 days ago"),
    "metadata": ("backend", OK, "which backend is used"),
    "metadata_none": ("backend", NOTE, "`metadata.json` is missing", "writes it"),
    "metadata_broken": ("backend", WARNING, "`metadata.json` cannot be read", "writes it from the files of the folder"),
    "index": ("index", OK, "the index is whole"),
    "index_none": ("index", NOTE, "migrated, but no index is built yet; sessions build it"),
    "index_broken": ("index", WARNING, "the index in use is missing or damaged", _DROPPED),
    "index_behind": ("index", NOTE, "changes that the index has not seen; sessions catch up"),
    "index_ahead": ("index", WARNING, "the index has seen changes that the journal does not have", _DROPPED),
    "index_unused": ("index", NOTE, "indexes that are not in use", "removes them unless a process holds them"),
    "index_half_built": ("index", NOTE, "a build was killed", "removes what it left"),
    "index_in_use": ("index", NOTE, "a process builds or holds an index now"),
    "index_unusable": ("index", WARNING, "`memories.db` is not a folder", _MOVED),
    "engine_missing": ("index", WARNING, "there is an index, but no engine is installed; files answer"),
    "segments": ("segments", OK, "what is sealed can be used, and says what the journal says"),
    "segments_stale": ("segments", NOTE, "the journal does not continue at the end of the segments; they are rebuilt"),
    "segments_broken": ("segments", WARNING, "a segment is damaged, or of another version", "rebuilds them"),
    "segments_untrue": ("segments", WARNING, "segments say otherwise than the journal", "rebuilds them"),
    "blobs": ("blobs", OK, "every long text that a record names is there, and is what was stored"),
    "blobs_missing": ("blobs", PROBLEM, "long texts that records name are missing; the journal has their beginnings"),
    "blobs_damaged": ("blobs", PROBLEM, "long texts are not what was stored"),
    "tasks_waiting": ("tasks", NOTE, "records failed in background work and are tried again"),
    "tasks_quarantined": ("tasks", WARNING, "reading a record ended the process twice; nothing is derived from it"),
    "tasks_failed": ("tasks", WARNING, "records that failed in background work until a newer version tries again"),
    "speakers_guessed": ("speakers", WARNING, "imported logs in which an earlier version called every turn the user's"),
    "speakers_unchecked": ("speakers", NOTE, "imported logs in which an earlier version did not check who said a part"),
    "entities_guessed": ("entities", NOTE, "entities and relations guessed by an earlier version, which are hidden"),
    "vectors": ("vectors", OK, "vectors are kept"),
    "vectors_none": ("vectors", OK, "no vectors are kept yet"),
    "vectors_broken": ("vectors", WARNING, "the vector cache is damaged", _MOVED),
    "vectors_unread": ("vectors", NOTE, "the vector cache may not be read here, or is of a newer version"),
    "vectors_orphaned": ("vectors", NOTE, "vectors of texts that no record has", "removes them"),
    "vectors_spoilt": ("vectors", WARNING, "vectors of a wrong length, or all zeros", "removes them"),
    "vectors_aside": ("vectors", NOTE, "a damaged vector cache that was moved aside"),
    "topics": ("topics", OK, "pages of topics"),
    "topics_odd": ("topics", NOTE, "files among the pages that are not pages"),
    "topics_hidden": ("topics", NOTE, "topics that an earlier version made of words in items, and that are hidden"),
    "topics_aside": ("topics", NOTE, "what was no page and was moved out of the place of one"),
    "topics_unusable": ("topics", WARNING, "`topics` is not a folder: pages are not written"),
    "audit": ("audit", OK, "the log of changes"),
    "audit_unusable": ("audit", WARNING, "the log cannot be written: it is not a file", _MOVED),
    "backups": ("backups", OK, "how many backups there are, and how old the newest is; they are not read"),
    "backups_none": ("backups", NOTE, "an agent with 1,000 memories or more has none"),
    "backups_damaged": ("backups", WARNING, "backups that do not open, or lack something"),
    "sessions": ("sessions", OK, "which session used which agent"),
    "session_dangling": ("sessions", NOTE, "sessions whose agent was deleted"),
    "session_broken": ("sessions", NOTE, "session notes that cannot be read", "moves them aside"),
    "parts": ("parts", OK, "what is installed"),
    "parts_missing": ("parts", NOTE, "`local` is missing, or `vector` from half of `migration_threshold` memories on"),
    "model_broken": ("parts", WARNING, "the local model is not the expected one, or cannot be read"),
}
CODES: Final = {code: FindingCode(*row) for code, row in _TABLE.items()}
"""Rows by code, in the order in which areas are shown."""


class HealthRow(NamedTuple):
    """Row of the table for one health check.

    Attributes:
        about: Subject of the check.
        warning, critical: Condition of each level with the settings of its limits; empty for never.
    """

    about: str
    warning: str
    critical: str = ""

    @property
    def keys(self) -> list[str]:
        """Settings below `health` that the conditions name."""
        return re.findall(r"`(\w+)`", self.warning + self.critical)


CHECKS: Final[dict[str, HealthRow]] = {
    "disk": HealthRow(
        "free room on the disk",
        "less than `disk_warning_mb`, or than twice the journal, which a compaction needs",
        "less than `disk_critical_mb`, or no file can be made any more",
    ),
    "files": HealthRow(
        "permissions, owners, the lock, the kind of file system",
        "others can read or change files; files of another user; a program that synchronises writes here, too",
        "nothing can be written; locks do not work",
    ),
    "journal": HealthRow(
        "whether all that was stored can be read",
        "lines cannot be moved out of it; `metadata.json` is damaged; a [purge](../how-to/forget.md) is unfinished",
        "lines or memories that cannot be read; the journal cannot be opened",
    ),
    "search": HealthRow("whether searches go by meaning, too", "the embedder or the vector engine does not work"),
    "speed": HealthRow(
        "how long 19 of 20 searches and stores take", "longer than `slow_warning_ms`", "longer than `slow_critical_ms`"
    ),
    "backup": HealthRow(
        "the age of the newest backup, if any", "older than `backup_warning_days`", "older than `backup_critical_days`"
    ),
    "backlog": HealthRow(
        "background work that waits or has failed",
        "the first has waited longer than `backlog_warning_hours`; records that are not tried again",
        "the first has waited longer than `backlog_critical_hours`",
    ),
    "activity": HealthRow(
        "how many memories were forgotten, changed and stored within an hour of the last day",
        "more than `activity_least`, ten times as many for new ones, and more than `activity_factor` usual days",
        "the same, and more than half of all memories were forgotten",
    ),
    "suspects": HealthRow(
        "pairs of memories that conflict", "`suspects_warning` of them, or more, wait for a decision"
    ),
    "edits": HealthRow("edits of `scratchpad.yaml` that could not be applied", "one is quarantined"),
    "doctor": HealthRow(
        "with `--deep`: what the doctor finds in every file", "findings that are warnings", "findings that are problems"
    ),
}
"""Health checks by code, in the order in which equal levels are shown."""


class Finding(Concern):
    """Concern with its row of the table."""

    __slots__ = ()

    @property
    def severity(self) -> Severity:
        """Severity of its code."""
        return CODES[self.code].severity

    @property
    def area(self) -> str:
        """Subject of its code."""
        return CODES[self.code].area

    @property
    def repair(self) -> str:
        """Action of `--repair`; empty for none."""
        return CODES[self.code].repair

    @property
    def is_repairable(self) -> bool:
        """True if it disappears after `--repair`."""
        return bool(self.repair) and CODES[self.code].is_fixed

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON for programs."""
        row = {"code": self.code, "severity": self.severity.name.lower(), "area": self.area}
        texts = {"sentence": self.sentence, "advice": self.advice, "bytes": self.size, "repair": self.repair}
        return {**row, **texts, "details": list(self.details)}


@dataclass(frozen=True, slots=True)
class AgentReport:
    """Findings about one agent.

    `memories`: None if the journal cannot be read.
    """

    agent_id: str
    path: Path
    size: int
    memories: int | None
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """Worst severity of its findings."""
        return max((finding.severity for finding in self.findings), default=OK)


@dataclass(frozen=True, slots=True)
class HomeReport:
    """Findings under one storage root."""

    root: Path
    findings: tuple[Finding, ...]
    agents: tuple[AgentReport, ...] = ()

    @property
    def every(self) -> list[tuple[str | None, Finding]]:
        """All findings, each with its agent; None for the home."""
        of_agents = [(agent.agent_id, finding) for agent in self.agents for finding in agent.findings]
        return [*((None, finding) for finding in self.findings), *of_agents]

    @property
    def severity(self) -> Severity:
        """Worst severity of all findings."""
        return max((finding.severity for _, finding in self.every), default=OK)

    @property
    def healthy(self) -> bool:
        """True if no finding is a warning or a problem."""
        return self.severity < WARNING


@dataclass(frozen=True, slots=True)
class RepairAction:
    """Result of a repair; `agent`: None for the home."""

    agent_id: str | None
    code: str
    sentence: str
    done: bool = True

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON for programs."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a health check.

    Attributes:
        code: Key of `CHECKS`.
        level: Level of the result.
        sentence: State in words, with the figure.
        advice: Action for a person; empty for none.
        value, unit: Figure for programs, or None.
        warning, critical: Limits of the figure; None if the level has none.
    """

    code: str
    level: Level
    sentence: str
    advice: str = ""
    value: float | None = None
    unit: str = ""
    warning: float | None = None
    critical: float | None = None

    @property
    def keys(self) -> list[str]:
        """Settings with its limits."""
        return [f"health.{key}" for key in CHECKS[self.code].keys]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON for programs."""
        return {**asdict(self), "level": self.level.name.lower(), "settings": self.keys}


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """Health of one agent's memory.

    Attributes:
        agent_id: Name of the agent.
        folder: Folder of the agent; None on a server.
        checks: Results, the worst first.
    """

    agent_id: str
    folder: Path | None
    checks: tuple[Check, ...] = field(default=())

    @property
    def level(self) -> Level:
        """Worst level of its checks."""
        return worst(check.level for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON for programs."""
        checks = [check.as_dict() for check in self.checks]
        return {**view_fields(self, "agent_id", "folder"), "level": self.level.name.lower(), "checks": checks}


def worst(levels: Iterable[Level]) -> Level:
    """Return the worst level, `OK` by default."""
    return max(levels, key=_GRAVITY.index, default=Level.OK)


def by_gravity(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return checks, the worst first, then in the order of the table."""
    codes = list(CHECKS)
    return tuple(sorted(checks, key=lambda check: (-_GRAVITY.index(check.level), codes.index(check.code))))


def by_area(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by area, the worst of an area first."""
    areas = list(dict.fromkeys(row.area for row in CODES.values()))
    return tuple(sorted(findings, key=lambda finding: (areas.index(finding.area), -finding.severity)))
