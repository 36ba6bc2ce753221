"""Health checks of milliseconds. They change nothing and use no network."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.checks.codes import CODES, Check, Level
from agent_memory.files.entries import get_disk_size
from agent_memory.files.wording import counted, format_size
from agent_memory.memory.events import get_moment, read_audit, read_latest_audit
from agent_memory.memory.status import ATTENTION, find_concerns
from agent_memory.models import to_text, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.files.concerns import Concern
    from agent_memory.files.layout import AgentFolder
    from agent_memory.knowledge.pipeline.stages import Backlog
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Clock
    from agent_memory.settings import HealthSettings
    from agent_memory.store.protocols import Trouble

OK, WARNING, CRITICAL, UNKNOWN = Level.OK, Level.WARNING, Level.CRITICAL, Level.UNKNOWN
_MEGABYTE: Final = 1_000_000
_WARNINGS: Final = frozenset({"rejected_unusable", "purges_unusable"})
"""Problems for the doctor; memories are still found and stored."""
_AS_INSTALLED: Final = frozenset({"no_embedder", "reports"})
"""Codes of troubles that belong to the installation, which cause no warning."""
_FINE: Final = {"files": "Private to this user, and writable.", "edits": "No edit of scratchpad.yaml was refused."}
_BACK_UP: Final = "`agent-memory backup create` makes one."
_QUANTILE: Final = 0.95
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_NEW_PER_FORGOTTEN: Final = 10
"""An import stores hundreds at once and deletes nothing."""
_FORGOTTEN: Final = "forgotten"
_STORED: Final = "stored"
ACTIVITIES: Final[Mapping[str, str]] = {
    "memory:forgotten": _FORGOTTEN,
    "memory:item_deleted": _FORGOTTEN,
    "memory:resource_deleted": _FORGOTTEN,
    "memory:updated": "changed",
    "memory:stored": _STORED,
    "memory:captured": _STORED,
}
"""Activity of each event in the audit log."""
_ADVICE: Final[Mapping[str, str]] = {
    _FORGOTTEN: "If nobody meant it: `agent-memory restore` lists what was forgotten and brings it back, for 30 days.",
    "changed": "If nobody meant it: `agent-memory show --history ID` shows what it was, `undo ID` brings that back.",
    _STORED: "If nobody meant it: `agent-memory list --since` shows what came in, `forget` takes it away.",
}


# -- sessions -------------------------------------------------------------------------------------------------------


def watch(service: MemoryService, clock: Clock) -> None:
    """Report new problems to sessions once (`memory:alert`)."""
    service.monitor.set_checks(partial(find_checks, service, clock))


async def find_checks(service: MemoryService, clock: Clock, caller: Caller) -> list[Check]:
    """Return the checks of a session.

    A session of a group gets no activity check: other people may have forgotten or changed memories.

    Args:
        service: Memory of the session; its settings have the limits.
        clock: Source of the present.
        caller: Session that gets the report.
    """
    folder, settings = service.folder, service.settings.health
    speed = check_speed(service.monitor.list_durations(), settings)
    if folder is None or not folder.path.is_dir():
        return [speed]

    def run_checks() -> list[Check]:
        checks = check_folder(folder, settings, clock())
        return checks if caller.group is not None else [*checks, check_audit(folder, None, settings, clock())]

    return [*await asyncio.to_thread(run_checks), speed]


# -- files ----------------------------------------------------------------------------------------------------------


def check_folder(folder: AgentFolder, settings: HealthSettings, now: datetime) -> list[Check]:
    """Return checks of disk and files; none for an empty agent."""
    if not folder.path.is_dir():
        return []
    concerns = find_concerns(folder, now)
    return [check_disk(folder, settings), *(_summarize_concerns(code, concerns) for code in ("files", "edits"))]


def check_disk(folder: AgentFolder, settings: HealthSettings) -> Check:
    """Check the free space on the disk."""
    try:
        system = os.statvfs(folder.path)
    except OSError as error:
        return Check("disk", UNKNOWN, f"The free room cannot be seen: {error.strerror}.", "Check the folder.")
    free = system.f_bavail * system.f_frsize
    if system.f_files and not system.f_favail:
        return Check("disk", CRITICAL, "No further file can be made on this disk.", "Remove files.", 0, "bytes")
    needed = 2 * get_disk_size(folder.journal)
    warning, critical = settings.disk_warning_mb * _MEGABYTE, settings.disk_critical_mb * _MEGABYTE
    level = CRITICAL if free < critical else WARNING if free < max(warning, needed) else OK
    if free >= warning:
        why = f", and a compaction may need {format_size(needed)}" if level else ""
    else:
        why = f", less than {format_size(round(critical if level is CRITICAL else warning))}"
    advice = "Make room before storing fails." if level else ""
    sentence = f"{format_size(free)} are free on this disk{why}."
    return Check("disk", level, sentence, advice, free, "bytes", max(warning, needed), critical)


def check_journal(folder: AgentFolder, report: Mapping[str, Any]) -> Check:
    """Check that all stored records can be read.

    Args:
        folder: Folder of the agent.
        report: Result of `RecordStorage.health`.
    """
    if problems := int(report.get("problems", 0)):
        sentence = f"{counted(problems, 'line or memory', 'lines or memories')} cannot be read; all others are used."
        advice = "`agent-memory doctor` explains them, `agent-memory doctor --repair` repairs what it can."
        return Check("journal", CRITICAL, sentence, advice, problems, "problems")
    check = _summarize_concerns("journal", find_concerns(folder, utc_now()))
    return check if check.level else Check("journal", OK, "All that was stored can be read.", value=0, unit="problems")


def report_unreadable(message: str, recovery: str) -> Check:
    """Return the check of memories that cannot be read at all."""
    return Check("journal", CRITICAL, message, recovery or "`agent-memory doctor` reports more.")


def check_backup(newest: datetime | None, settings: HealthSettings, now: datetime) -> Check:
    """Check the age of the newest backup.

    No backup is not a fault, as others may copy the folder.
    """
    limits = settings.backup_warning_days, settings.backup_critical_days
    if newest is None:
        sentence = "No backup was made here; whether another program copies the folder cannot be seen."
        return Check("backup", OK, sentence, _BACK_UP, unit="days", warning=limits[0], critical=limits[1])
    days = max(0.0, (now - newest) / _DAY)
    level = compare_limits(days, *limits)
    sentence = f"The newest backup is of {newest:%Y-%m-%d %H:%M} UTC, {days:,.1f} days ago."
    advice = f"{_BACK_UP} Where something was to do so by itself, look why it did not." if level else ""
    return Check("backup", level, sentence, advice, round(days, 3), "days", *limits)


def _summarize_concerns(code: str, concerns: Iterable[Concern]) -> Check:
    """Return the check of some concerns, with the worst one's sentence."""
    graded = [
        (WARNING if concern.code in _WARNINGS else CODES[concern.code].severity.level, concern)
        for concern in concerns
        if ATTENTION[concern.code] == code
    ]
    if not graded:
        return Check(code, OK, _FINE.get(code, ""))
    level, worst = max(graded, key=lambda pair: pair[0])
    more = f" And {len(graded) - 1} more: `agent-memory doctor` names all." if len(graded) > 1 else ""
    return Check(code, level, f"{worst.sentence}{more}", worst.advice)


# -- use ------------------------------------------------------------------------------------------------------------


def check_search(troubles: Iterable[Trouble]) -> Check:
    """Check that searches use meaning if an embedder is set."""
    relevant = [trouble for trouble in troubles if trouble.component in {"embedder", "engine"}]
    if not relevant:
        return Check("search", OK, "Searches use words, and meaning if an embedder is set.")
    relevant.sort(key=lambda trouble: trouble.code in _AS_INSTALLED)
    level = OK if relevant[0].code in _AS_INSTALLED else WARNING
    return Check("search", level, relevant[0].message, relevant[0].recovery)


def check_speed(times: Mapping[str, Sequence[float]], settings: HealthSettings) -> Check:
    """Check the 95th percentile of the slowest operation.

    Args:
        times: Milliseconds by name of the operation.
        settings: Limits of the levels.
    """
    slowest = {name: get_quantile(durations) for name, durations in times.items() if durations}
    if not slowest:
        return Check("speed", OK, "Nothing was timed yet.", unit="ms")
    name = max(slowest, key=lambda name: slowest[name])
    limits = settings.slow_warning_ms, settings.slow_critical_ms
    level = compare_limits(slowest[name], *limits)
    sentence = f"19 of 20 {name} take {slowest[name]:,.0f} ms or less, by {len(times[name])}."
    advice = (
        "Look whether the disk or the machine is busy; `agent-memory archive compact` makes the journal short, and "
        "docs/how-to/search.md says what helps with very many memories."
    )
    return Check("speed", level, sentence, advice if level else "", round(slowest[name], 3), "ms", *limits)


def check_backlog(waiting: Sequence[Backlog], settings: HealthSettings, now: datetime) -> Check:
    """Check for background work that waits too long or was given up."""
    limits = settings.backlog_warning_hours, settings.backlog_critical_hours
    due, given_up = sum(backlog.due for backlog in waiting), sum(backlog.given_up for backlog in waiting)
    oldest = min((backlog.oldest for backlog in waiting if backlog.oldest is not None and backlog.due), default=None)
    hours = 0.0 if oldest is None else max(0.0, (now - oldest) / _HOUR)
    level = compare_limits(hours, *limits)
    if given_up and not level:
        codes = ", ".join(sorted({code for backlog in waiting for code in backlog.codes}))
        are = "is" if given_up == 1 else "are"
        sentence = f"{counted(given_up, 'record')} failed in background work and {are} not tried again ({codes})."
        advice = "`agent-memory doctor` names them; they are kept as they came in."
        return Check("backlog", WARNING, sentence, advice, round(hours, 3), "hours", *limits)
    since = f", the first since {oldest:%Y-%m-%d %H:%M} UTC" if oldest is not None else ""
    waits = f"{counted(due, 'record waits', 'records wait')} for background work{since}."
    advice = "A session, or `agent-memory ingest`, does what waits; `agent-memory status` says which step."
    sentence = waits if due else "No background work waits."
    return Check("backlog", level, sentence, advice if level else "", round(hours, 3), "hours", *limits)


def check_suspects(waiting: int, settings: HealthSettings) -> Check:
    """Check the number of conflicts that wait for a decision."""
    limit = settings.suspects_warning
    sentence, advice = "No pair of memories waits for a decision.", ""
    if waiting:
        sentence = f"{counted(waiting, 'pair')} of memories {'conflicts' if waiting == 1 else 'conflict'}."
        advice = "`agent-memory conflicts` shows them and settles each."
    return Check("suspects", compare_limits(waiting, limit, None), sentence, advice, waiting, "pairs", limit)


def get_quantile(times: Sequence[float]) -> float:
    """Return the 95th percentile by nearest rank."""
    return sorted(times)[max(0, ceil(_QUANTILE * len(times)) - 1)]


def compare_limits(value: float, warning: float | None, critical: float | None) -> Level:
    """Return the level of a figure by its upper limits."""
    if critical is not None and value >= critical:
        return CRITICAL
    return WARNING if warning is not None and value >= warning else OK


# -- activity -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ActivityBurst:
    """The busiest hour of the last day.

    Attributes:
        what: Activity that was counted.
        count: Number of events within that hour.
        begin: Moment of its first event.
        usual: Median of the days before that have any.
        limit: Number from which it is unusual.
        session: Session with most of the events; empty if none is named.
        is_new: True if no event before that hour names this session.
    """

    what: str
    count: int
    begin: datetime
    usual: float
    limit: float
    session: str
    is_new: bool


def check_audit(folder: AgentFolder, memories: int | None, settings: HealthSettings, now: datetime) -> Check:
    """Check the audit log for an unusual hour; see `check_activity`."""
    try:
        entries = list(read_latest_audit(folder.audit, to_text(now - _DAY)))
        if len(entries) > settings.activity_least:  # fewer entries cannot be a burst, and a full log takes .26 s
            entries = list(read_audit(folder.audit))
        return check_activity(entries, memories, settings, now)
    except OSError as error:
        sentence = f"The log of changes cannot be read: {error.strerror or error}."
        return Check("activity", UNKNOWN, sentence, "`agent-memory doctor` reports more.")


def check_activity(
    entries: Iterable[Mapping[str, Any]], memories: int | None, settings: HealthSettings, now: datetime
) -> Check:
    """Check for an unusual hour within the last day, by counts alone.

    Args:
        entries: Lines of the audit log.
        memories: Number of memories now, or None if unknown.
        settings: Limits of the levels.
        now: The present, UTC.
    """
    dated = ((moment, entry) for entry in entries if (moment := get_moment(entry)) is not None)
    events = [
        (moment, ACTIVITIES.get(str(entry.get("event")), ""), str(entry.get("session_id") or ""))
        for moment, entry in sorted(dated, key=lambda event: event[0])
    ]
    by_activity = [_find_burst(what, events, settings, now) for what in dict.fromkeys(ACTIVITIES.values())]
    bursts = [burst for burst in by_activity if burst is not None]
    unusual = [burst for burst in bursts if burst.count > burst.limit]
    if not unusual:
        counts = ", ".join(f"{burst.count:,} {burst.what}" for burst in bursts)
        usual = f"Nothing unusual: at most {counts} within an hour." if counts else ""
        most = max(bursts, key=lambda burst: burst.count / burst.limit, default=None)
        value, limit = (most.count, most.limit) if most else (0, float(settings.activity_least))
        sentence = usual or "Nothing unusual within the last day."
        return Check("activity", OK, sentence, value=value, unit="events", warning=limit)
    worst = max(unusual, key=lambda burst: (burst.what == _FORGOTTEN, burst.count / burst.limit))
    is_most = worst.what == _FORGOTTEN and memories is not None and worst.count > memories
    sentence, level = _describe_burst(worst), CRITICAL if is_most else WARNING
    return Check("activity", level, sentence, _ADVICE[worst.what], worst.count, "events", warning=worst.limit)


def _describe_burst(burst: ActivityBurst) -> str:
    who = f" Most by session {burst.session}, which was never seen before." if burst.is_new else ""
    usual = f"on a usual day it is {burst.usual:,.0f}" if burst.usual else "there is no usual day to compare with"
    events = f"{counted(burst.count, 'memory was', 'memories were')} {burst.what} within an hour"
    return f"{events}, from {burst.begin:%Y-%m-%d %H:%M} UTC on; {usual}.{who}"


def _find_burst(
    what: str, events: Sequence[tuple[datetime, str, str]], settings: HealthSettings, now: datetime
) -> ActivityBurst | None:
    """Return the busiest hour of the last day, or None."""
    matching = [(moment, session) for moment, activity, session in events if activity == what]
    recent = [(moment, session) for moment, session in matching if now - _DAY <= moment <= now]
    if not recent or (what == _STORED and events[0][0] >= now - _DAY):
        return None  # a memory that is filled for the first time has no usual day
    first, count = _find_busiest_hour([moment for moment, _ in recent])
    hour = recent[first : first + count]
    begin = hour[0][0]
    days = Counter(moment.date() for moment, _ in matching if moment < now - _DAY)
    usual = float(median(days.values())) if days else 0.0
    least = settings.activity_least * (_NEW_PER_FORGOTTEN if what == _STORED else 1)
    session = Counter(session for _, session in hour).most_common(1)[0][0]
    is_new = bool(session) and all(earlier != session for moment, _, earlier in events if moment < begin)
    return ActivityBurst(what, count, begin, usual, max(least, settings.activity_factor * usual), session, is_new)


def _find_busiest_hour(moments: Sequence[datetime]) -> tuple[int, int]:
    """Return first index and number of moments of the busiest hour."""
    best, end = (0, 0), 0
    for first, begin in enumerate(moments):
        while end < len(moments) and moments[end] - begin < _HOUR:
            end += 1
        best = max(best, (first, end - first), key=lambda pair: pair[1])
    return best
