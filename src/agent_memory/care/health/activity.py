"""Whether far more was forgotten, changed or stored within an hour than is usual for this agent. By counts alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.health.table import CRITICAL, OK, WARNING, Check
from agent_memory.files.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.settings import HealthSettings

_HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
_NEW_PER_FORGOTTEN: Final = 10
"""An import stores hundreds at once and takes nothing away."""
_FORGOTTEN: Final = "forgotten"
_STORED: Final = "stored"
WHAT: Final[Mapping[str, str]] = {
    "memory:forgotten": _FORGOTTEN,
    "memory:item_deleted": _FORGOTTEN,
    "memory:resource_deleted": _FORGOTTEN,
    "memory:updated": "changed",
    "memory:stored": _STORED,
    "memory:captured": _STORED,
}
"""What each event of the audit log counts as."""
_ADVICE: Final[Mapping[str, str]] = {
    _FORGOTTEN: "If nobody meant it: `agent-memory restore` lists what was forgotten and brings it back, for 30 days.",
    "changed": "If nobody meant it: `agent-memory history ID` shows what a memory was, `undo ID` brings that back.",
    _STORED: "If nobody meant it: `agent-memory list --since` shows what came in, `forget` takes it away.",
}


@dataclass(frozen=True, slots=True)
class Burst:
    """The busiest hour of the last day.

    Attributes:
        what: What was done.
        count: How often within that hour.
        begin: Its first event.
        usual: How many a usual day has: the median of the days before that have any.
        limit: Above which it is unusual.
        by: The session that did most of it; empty where none is named.
        is_new: Whether no event before that hour names this session.
    """

    what: str
    count: int
    begin: datetime
    usual: float
    limit: float
    by: str
    is_new: bool


def look_at_activity(
    entries: Iterable[Mapping[str, Any]], memories: int | None, settings: HealthSettings, now: datetime
) -> Check:
    """Return whether an hour of the last day was unusual.

    Args:
        entries: The lines of the audit log.
        memories: How many there are now; None where that is not known.
        settings: The limits.
        now: The present, UTC.
    """
    done = sorted(_events(entries), key=lambda event: event[0])
    bursts = [_burst(what, done, settings, now) for what in dict.fromkeys(WHAT.values())]
    found = [burst for burst in bursts if burst is not None]
    unusual = [burst for burst in found if burst.count > burst.limit]
    if not unusual:
        told = ", ".join(f"{burst.count:,} {burst.what}" for burst in found)
        said = f"Nothing unusual: at most {told} within an hour." if told else "Nothing unusual within the last day."
        most = max(found, key=lambda burst: burst.count / burst.limit, default=None)
        value, limit = (most.count, most.limit) if most else (0, float(settings.activity_least))
        return Check("activity", OK, said, value=value, unit="events", warning=limit)
    worst = max(unusual, key=lambda burst: (burst.what == _FORGOTTEN, burst.count / burst.limit))
    is_most = worst.what == _FORGOTTEN and memories is not None and worst.count > memories
    level = CRITICAL if is_most else WARNING
    return Check("activity", level, _sentence(worst), _ADVICE[worst.what], worst.count, "events", warning=worst.limit)


def _sentence(burst: Burst) -> str:
    who = f" Most by session {burst.by}, which was never seen before." if burst.is_new else ""
    usual = f"on a usual day it is {burst.usual:,.0f}" if burst.usual else "there is no usual day to compare with"
    verb = "was" if burst.count == 1 else "were"
    return (
        f"{counted(burst.count, 'memory', 'memories')} {verb} {burst.what} within an hour, from "
        f"{burst.begin:%Y-%m-%d %H:%M} UTC on; {usual}.{who}"
    )


def _events(entries: Iterable[Mapping[str, Any]]) -> Iterable[tuple[datetime, str, str]]:
    """Yield when what was done, by which session; lines that say no time are left out."""
    for entry in entries:
        what, at = WHAT.get(str(entry.get("event")), ""), entry.get("at")
        try:
            moment = datetime.fromisoformat(str(at))
        except ValueError:
            continue
        if moment.tzinfo is not None:
            yield moment, what, str(entry.get("session_id") or "")


def _burst(
    what: str, done: Sequence[tuple[datetime, str, str]], settings: HealthSettings, now: datetime
) -> Burst | None:
    """Return the busiest hour of the last day for one thing; None where it was not done."""
    mine = [(at, by) for at, event, by in done if event == what]
    lately = [(at, by) for at, by in mine if now - DAY <= at <= now]
    if not lately or (what == _STORED and done[0][0] >= now - DAY):
        return None  # what is filled for the first time has no usual day
    first, count = _busiest([at for at, _ in lately])
    within = lately[first : first + count]
    begin = within[0][0]
    days = Counter(at.date() for at, _ in mine if at < now - DAY)
    usual = float(median(days.values())) if days else 0.0
    least = settings.activity_least * (_NEW_PER_FORGOTTEN if what == _STORED else 1)
    by = Counter(session for _, session in within).most_common(1)[0][0]
    is_new = bool(by) and all(session != by for at, _, session in done if at < begin)
    return Burst(what, count, begin, usual, max(least, settings.activity_factor * usual), by, is_new)


def _busiest(moments: Sequence[datetime]) -> tuple[int, int]:
    """Return where the busiest hour begins, and how many there are in it."""
    best, end = (0, 0), 0
    for first, at in enumerate(moments):
        while end < len(moments) and moments[end] - at < _HOUR:
            end += 1
        best = max(best, (first, end - first), key=lambda pair: pair[1])
    return best
