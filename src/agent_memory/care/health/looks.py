"""The looks at single things that take a few milliseconds each. They change nothing and use no network."""

from __future__ import annotations

import os
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.health.table import CRITICAL, OK, UNKNOWN, WARNING, Check, Level, graded
from agent_memory.encryption import of_encryption
from agent_memory.files.concerns import of_lock, of_place
from agent_memory.files.entries import size_of
from agent_memory.files.wording import counted, human
from agent_memory.journal import of_purges, of_rejected
from agent_memory.memory.scratchpad_file import of_kept
from agent_memory.store.shards import of_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.files.concerns import Concern
    from agent_memory.files.layout import AgentFolder
    from agent_memory.knowledge.pipeline.stages import Backlog
    from agent_memory.settings import HealthSettings
    from agent_memory.store.protocols import Trouble

_MEGABYTE: Final = 1_000_000
_LEVELS: Final[Mapping[str, Mapping[str, Level]]] = {
    "files": {
        "not_writable": CRITICAL,
        "locks_fail": CRITICAL,
        "lock_unusable": CRITICAL,
        "permissions_open": WARNING,
        "foreign_owner": WARNING,
        "synced_folder": WARNING,
    },
    "journal": {
        "rejected_unusable": WARNING,
        "metadata_broken": WARNING,
        "purge_unfinished": WARNING,
        "purges_unusable": WARNING,
        "encryption_unfinished": WARNING,
        "encryption_key": CRITICAL,
    },
    "edits": {"scratchpad_kept": WARNING},
}
"""By check, which concerns of those who own the files are how bad. Notes are left to the doctor."""
_AS_INSTALLED: Final = frozenset({"no_embedder", "reports"})
"""Codes of troubles with what is installed, which begin at no moment: told, and no warning."""
_FINE: Final = {"files": "Private to this user, and writable.", "edits": "No edit of a person is kept aside."}
_BACK_UP: Final = "`agent-memory backup create` makes one."
_QUANTILE: Final = 0.95
_HOUR: Final = 3600
_DAY: Final = 86_400


def look_at_disk(folder: AgentFolder, settings: HealthSettings) -> Check:
    """Return how much room is left for this agent."""
    try:
        system = os.statvfs(folder.path)
    except OSError as error:
        return Check("disk", UNKNOWN, f"The free room cannot be seen: {error.strerror}.", "Check the folder.")
    free = system.f_bavail * system.f_frsize
    if system.f_files and not system.f_favail:
        return Check("disk", CRITICAL, "No further file can be made on this disk.", "Remove files.", 0, "bytes")
    needed = 2 * size_of(folder.journal)
    warning, critical = settings.disk_warning_mb * _MEGABYTE, settings.disk_critical_mb * _MEGABYTE
    level = CRITICAL if free < critical else WARNING if free < max(warning, needed) else OK
    if free >= warning:
        why = f", and a compaction may need {human(needed)}" if level else ""
    else:
        why = f", less than {human(round(critical if level is CRITICAL else warning))}"
    advice = "Make room before storing fails." if level else ""
    said = f"{human(free)} are free on this disk{why}."
    return Check("disk", level, said, advice, free, "bytes", max(warning, needed), critical)


def look_at_files(folder: AgentFolder, now: datetime) -> list[Check]:
    """Return how the files stand, and whether edits of a person wait, as those who own the files see it."""
    found = [*of_place(folder), *of_lock(folder), *of_kept(folder.scratchpad, now)]
    return [_of_concerns(code, found) for code in ("files", "edits")]


def look_at_journal(folder: AgentFolder, report: Mapping[str, Any]) -> Check:
    """Return whether everything that was stored can be read.

    Args:
        folder: Of the agent.
        report: What the storage says of itself (`RecordStorage.health`).
    """
    if problems := int(report.get("problems", 0)):
        return Check(
            "journal",
            CRITICAL,
            f"{counted(problems, 'line or memory', 'lines or memories')} cannot be read; all others are used.",
            "`agent-memory doctor` explains them, `agent-memory doctor --repair` mends what can be mended.",
            problems,
            "problems",
        )
    found = _of_concerns(
        "journal",
        [*of_rejected(folder.journal), *of_purges(folder.path), *of_encryption(folder.path), *of_metadata(folder)],
    )
    return found if found.level else Check("journal", OK, "All that was stored can be read.", value=0, unit="problems")


def unreadable(message: str, recovery: str) -> Check:
    """Return what is said where the memories cannot be read at all."""
    return Check("journal", CRITICAL, message, recovery or "`agent-memory doctor` tells more.")


def look_at_search(troubles: Iterable[Trouble]) -> Check:
    """Return whether searches are as good as they can be."""
    found = [trouble for trouble in troubles if trouble.component in {"embedder", "engine"}]
    if not found:
        return Check("search", OK, "Searches go by words, and by meaning where an embedder is set.")
    found.sort(key=lambda trouble: trouble.code in _AS_INSTALLED)
    level = OK if found[0].code in _AS_INSTALLED else WARNING
    return Check("search", level, found[0].message, found[0].recovery)


def look_at_speed(times: Mapping[str, Sequence[float]], settings: HealthSettings) -> Check:
    """Return how long the slowest of what was timed takes, 19 of 20 times; milliseconds by what was done."""
    slowest = {what: quantile(each) for what, each in times.items() if each}
    if not slowest:
        return Check("speed", OK, "Nothing was timed yet.", unit="ms")
    what = max(slowest, key=lambda name: slowest[name])
    value = slowest[what]
    level = graded(value, settings.slow_warning_ms, settings.slow_critical_ms)
    said = f"19 of 20 {what} take {value:,.0f} ms or less, by {len(times[what])}."
    advice = (
        "Look whether the disk or the machine is busy; `agent-memory compact` makes the journal short, and "
        "docs/vector.md says what helps with very many memories."
    )
    limits = settings.slow_warning_ms, settings.slow_critical_ms
    return Check("speed", level, said, advice if level else "", round(value, 3), "ms", *limits)


def look_at_backup(newest: datetime | None, settings: HealthSettings, now: datetime) -> Check:
    """Return how old the newest backup is; that none was made is said, and no fault: others may copy the folder."""
    limits = settings.backup_warning_days, settings.backup_critical_days
    if newest is None:
        said = "No backup was made here; whether another program copies the folder cannot be seen."
        return Check("backup", OK, said, _BACK_UP, unit="days", warning=limits[0], critical=limits[1])
    days = max(0.0, (now - newest).total_seconds() / _DAY)
    level = graded(days, *limits)
    said = f"The newest backup is of {newest:%Y-%m-%d %H:%M} UTC, {days:,.1f} days ago."
    advice = f"{_BACK_UP} Where something was to do so by itself, look why it did not." if level else ""
    return Check("backup", level, said, advice, round(days, 3), "days", *limits)


def look_at_backlog(waiting: Sequence[Backlog], settings: HealthSettings, now: datetime) -> Check:
    """Return how long background work has waited, and whether some of it is not tried again."""
    limits = settings.backlog_warning_hours, settings.backlog_critical_hours
    due, ended = sum(each.due for each in waiting), sum(each.given_up for each in waiting)
    oldest = min((each.oldest for each in waiting if each.oldest is not None and each.due), default=None)
    hours = 0.0 if oldest is None else max(0.0, (now - oldest).total_seconds() / _HOUR)
    level = graded(hours, *limits)
    if ended and not level:
        codes = ", ".join(sorted({code for each in waiting for code in each.codes}))
        failed = "failed in background work and"
        records = counted(ended, f"record {failed} is", f"records {failed} are")
        said = f"{records} not tried again ({codes})."
        advice = "`agent-memory doctor` names them; they are kept as they came in."
        return Check("backlog", WARNING, said, advice, round(hours, 3), "hours", *limits)
    since = f", the first since {oldest:%Y-%m-%d %H:%M} UTC" if oldest is not None else ""
    waits = f"{counted(due, 'record waits', 'records wait')} for background work{since}."
    said = waits if due else "No background work waits."
    advice = (
        "A session, or `agent-memory ingest`, does what waits; `agent-memory status` says which step." if level else ""
    )
    return Check("backlog", level, said, advice, round(hours, 3), "hours", *limits)


def look_at_suspects(waiting: int, settings: HealthSettings) -> Check:
    """Return how many conflicts of memories wait for a decision."""
    limit = settings.suspects_warning
    level = graded(waiting, limit, None)
    said = f"{counted(waiting, 'pair')} of memories {'conflicts' if waiting == 1 else 'conflict'}."
    advice = "`agent-memory conflicts` shows them and settles each." if waiting else ""
    shown = said if waiting else "No pair of memories waits for a decision."
    return Check("suspects", level, shown, advice, waiting, "pairs", limit)


def quantile(times: Sequence[float]) -> float:
    """Return what 19 of 20 are at most: the nearest rank."""
    return sorted(times)[max(0, ceil(_QUANTILE * len(times)) - 1)]


def _of_concerns(code: str, found: Iterable[Concern]) -> Check:
    levels = _LEVELS[code]
    bad = sorted((each for each in found if each.code in levels), key=lambda each: -levels[each.code])
    if not bad:
        return Check(code, OK, _FINE.get(code, ""))
    more = f" And {len(bad) - 1} more: `agent-memory doctor` names all." if len(bad) > 1 else ""
    return Check(code, levels[bad[0].code], f"{bad[0].sentence}{more}", bad[0].advice)
