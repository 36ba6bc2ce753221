"""What is looked at, how bad it can be, and what a look says. Pure data; docs/lifecycle.md has the same table.

The numbers of the levels are those that monitors know as exit codes: the guidelines for plugins of Nagios, which others
follow, too (https://www.monitoring-plugins.org/doc/guidelines.html#AEN78).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Level(IntEnum):
    """How bad it is; `UNKNOWN` where a look was not possible."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


OK, WARNING, CRITICAL, UNKNOWN = Level.OK, Level.WARNING, Level.CRITICAL, Level.UNKNOWN
_GRAVITY: Final = (OK, UNKNOWN, WARNING, CRITICAL)
"""What is known to be bad comes before what is not known."""


class HealthRow(NamedTuple):
    """One check of the table.

    Attributes:
        about: What is looked at.
        warning, critical: When it is reported as that; empty for never.
        keys: The settings with its limits, below `health`.
    """

    about: str
    warning: str
    critical: str
    keys: tuple[str, ...] = ()


CHECKS: Final[dict[str, HealthRow]] = {
    "disk": HealthRow(
        "free room on the disk",
        "less than `disk_warning_mb`, or than twice the journal, which a compaction needs",
        "less than `disk_critical_mb`, or no file can be made any more",
        ("disk_warning_mb", "disk_critical_mb"),
    ),
    "files": HealthRow(
        "permissions, owners, the lock, the kind of file system",
        "others can read or change files; files of another user; a program that synchronises writes here, too",
        "nothing can be written; locks keep nobody out",
    ),
    "journal": HealthRow(
        "whether all that was stored can be read",
        "nothing can be set aside; `metadata.json` is damaged; a [purge](purging.md) is unfinished",
        "lines or memories that cannot be read; the journal cannot be opened",
    ),
    "search": HealthRow("whether searches go by meaning, too", "the embedder or the vector engine does not work", ""),
    "speed": HealthRow(
        "how long 19 of 20 searches and stores take",
        "longer than `slow_warning_ms`",
        "longer than `slow_critical_ms`",
        ("slow_warning_ms", "slow_critical_ms"),
    ),
    "backup": HealthRow(
        "the age of the newest backup, where backups are made",
        "older than `backup_warning_days`",
        "older than `backup_critical_days`",
        ("backup_warning_days", "backup_critical_days"),
    ),
    "backlog": HealthRow(
        "background work that waits or has failed",
        "the first has waited longer than `backlog_warning_hours`; records that are not tried again",
        "the first has waited longer than `backlog_critical_hours`",
        ("backlog_warning_hours", "backlog_critical_hours"),
    ),
    "activity": HealthRow(
        "how many memories were forgotten, changed and stored within an hour of the last day",
        "more than `activity_least`, ten times as many for new ones, and more than `activity_factor` usual days",
        "the same, and more than half of all memories were forgotten",
        ("activity_least", "activity_factor"),
    ),
    "suspects": HealthRow(
        "pairs of memories that conflict",
        "`suspects_warning` of them, or more, wait for a decision",
        "",
        ("suspects_warning",),
    ),
    "edits": HealthRow("edits of `scratchpad.yaml` that could not be taken over", "one is kept aside", ""),
    "doctor": HealthRow(
        "with `--deep`: what the doctor finds in every file", "findings that are warnings", "findings that are problems"
    ),
}
"""By code, in the order in which equally bad ones are shown."""


@dataclass(frozen=True, slots=True)
class Check:
    """What a look at one thing says.

    Attributes:
        code: One of `CHECKS`.
        level: How bad it is.
        sentence: What is seen, with the figure.
        advice: What to do; empty if nothing is to be done.
        value, unit: The figure for programs; None where there is none.
        warning, critical: From which figure on it is that; None where it does not depend on one.
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
        """The settings with its limits."""
        return [f"health.{key}" for key in CHECKS[self.code].keys]

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "code": self.code,
            "level": self.level.name.lower(),
            "sentence": self.sentence,
            "advice": self.advice,
            "value": self.value,
            "unit": self.unit,
            "warning": self.warning,
            "critical": self.critical,
            "settings": self.keys,
        }


@dataclass(frozen=True, slots=True)
class AgentHealth:
    """How one agent's memory is.

    Attributes:
        agent_id: Whose.
        folder: Where it lies; None where that is a server.
        checks: The worst first.
    """

    agent_id: str
    folder: Path | None
    checks: tuple[Check, ...] = field(default=())

    @property
    def level(self) -> Level:
        """The worst of its checks."""
        return worst(check.level for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "agent_id": self.agent_id,
            "folder": None if self.folder is None else str(self.folder),
            "level": self.level.name.lower(),
            "checks": [check.as_dict() for check in self.checks],
        }


def worst(levels: Iterable[Level]) -> Level:
    """Return the worst of some levels; `OK` where there is none."""
    return max(levels, key=_GRAVITY.index, default=OK)


def by_gravity(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return checks, the worst first, then in the order of the table."""
    codes = list(CHECKS)
    return tuple(sorted(checks, key=lambda check: (-_GRAVITY.index(check.level), codes.index(check.code))))


def graded(value: float, warning: float | None, critical: float | None) -> Level:
    """Return the level of a figure of which more is worse, by its limits; one that is None is never passed."""
    if critical is not None and value >= critical:
        return CRITICAL
    return WARNING if warning is not None and value >= warning else OK


def table() -> str:
    """Return the table of all checks for docs/lifecycle.md."""
    lines = ["| check | what is looked at | warning | critical |", "|---|---|---|---|"]
    lines += [f"| `{code}` | {row.about} | {row.warning} | {row.critical} |" for code, row in CHECKS.items()]
    return "\n".join(lines)
