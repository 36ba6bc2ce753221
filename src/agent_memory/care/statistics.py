"""Statistics of an agent as figures, SVG or text. Changes nothing."""

from __future__ import annotations

import asyncio
import heapq
import sqlite3
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, timedelta
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.agents import summary_of
from agent_memory.embeddings import text_hash
from agent_memory.embeddings.cache import HashSet, cache_files, inspect_cache
from agent_memory.files.entries import get_disk_size
from agent_memory.files.names import AUDIT, BLOBS, DERIVED, INDEX, OLDER_AUDIT, SCRATCHPAD, TOPICS, may_be_journal
from agent_memory.files.wording import counted
from agent_memory.language.text_forms import embedded_texts
from agent_memory.memory.events import get_moment, read_audit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory import MemoryService
    from agent_memory.models import Memory


MOST_USED: Final = 10
_PARTS: Final = {
    SCRATCHPAD: "scratchpad",
    BLOBS: "long texts",
    TOPICS: "pages of topics",
    DERIVED: "index",
    INDEX: "index",
    AUDIT: "log of changes",
    OLDER_AUDIT: "log of changes",
}
"""Content of files and folders by name; names of journals and vectors are checked as well."""


async def statistics_of(service: MemoryService, now: datetime, *, most_used: int = MOST_USED) -> MemoryStatistics:
    """Return statistics of an agent's memory.

    Args:
        service: Service of the agent's memory.
        now: The present, UTC.
        most_used: Number of listed memories.

    Raises:
        StorageError: The memories cannot be read.
    """
    tally, counts = await service.storage.tally(), _MemoryCounts(most_used, now)
    async for memory in service.storage.iter_all():
        counts.add(memory)
    folder, forgotten_at = service.folder, list[datetime]()
    fields: dict[str, Any] = {f"by_{name}": dict(numbers.most_common()) for name, numbers in counts.by.items()}
    if folder is not None:
        fields["captures"], forgotten_at = await asyncio.to_thread(_read_log, folder, counts.ids)
        fields["sizes"] = await asyncio.to_thread(_sizes, folder.path)
        fields["embedded"] = await asyncio.to_thread(_count_embedded, folder, counts.texts)
        summary = await asyncio.to_thread(summary_of, service.agent_id, service.settings.storage_root)
        fields["others"] = dict(summary.others)
    return MemoryStatistics(
        service.agent_id,
        tally.records,
        tally.items,
        tally.superseded,
        tally.expired,
        tally.pinned,
        accesses=counts.accesses,
        never_used=counts.never_used,
        most_used=tuple(used for *_, used in sorted(counts.most, key=lambda entry: entry[:2], reverse=True)),
        weeks=by_weeks(counts.stored, counts.used, forgotten_at, now),
        **fields,
    )


class _MemoryCounts:
    """Counts of memories; only hashes of their texts are kept.

    Args:
        most_used: Number of listed memories.
        now: The present; expired memories are not listed.
    """

    def __init__(self, most_used: int, now: datetime) -> None:
        self.by = {name: Counter[str]() for name in ("category", "trust", "source", "project", "group")}
        self.accesses = self.never_used = 0
        self.stored: list[datetime] = []
        self.used: list[datetime] = []
        self.ids: set[str] = set()
        self.texts: set[bytes] = set()
        self.most: list[tuple[int, int, UsedMemory]] = []
        self._limit, self._now = most_used, now

    def add(self, memory: Memory) -> None:
        """Count one."""
        labels = (memory.category, memory.trust, memory.source.kind, memory.project, memory.belongs_to)
        for counts, label in zip(self.by.values(), labels, strict=True):
            counts.update([label] if label else [])
        self.accesses += memory.access_count
        self.never_used += not memory.access_count
        self.stored.append(memory.timestamp)
        self.used += [memory.last_accessed] if memory.last_accessed is not None else []
        self.ids.add(memory.id)
        self.texts.update(map(text_hash, embedded_texts(memory.content)))
        if memory.access_count and not memory.is_expired(self._now):  # among equals the one stored last
            entry = (memory.access_count, len(self.stored), UsedMemory(memory.id, memory.access_count, memory.content))
            heapq.heappush(self.most, entry)
            if len(self.most) > self._limit:
                heapq.heappop(self.most)


def _read_log(folder: AgentFolder, memory_ids: Collection[str]) -> tuple[CaptureCounts, list[datetime]]:
    """Return counts of captures and moments of forgetting; none if unreadable.

    Args:
        folder: Folder of the agent.
        memory_ids: IDs of existing memories.
    """
    ids, moments = {"memory:captured": set[str](), "memory:forgotten": set[str]()}, list[datetime]()
    try:
        for entry in read_audit(folder.audit):
            if (event := str(entry.get("event"))) in ids:
                ids[event].add(str(entry.get("memory_id")))
            if event == "memory:forgotten" and (moment := get_moment(entry)) is not None:
                moments.append(moment)
    except OSError:
        return CaptureCounts(), []
    captured, forgotten = ids.values()
    missing = captured.difference(memory_ids)
    return CaptureCounts(len(captured), len(captured) - len(missing), len(missing & forgotten)), moments


def _sizes(folder: Path) -> dict[str, int]:
    sizes = Counter[str]()
    if not folder.is_dir():
        return {}
    vectors = {path.name for path in cache_files(folder / "embeddings.sqlite3")}
    for path in folder.iterdir():
        name = path.name
        part = "journals" if may_be_journal(name) else "vectors" if name in vectors else _PARTS.get(name, "others")
        sizes[part] += get_disk_size(path)
    return {part: size for part, size in sizes.most_common() if size}


def _count_embedded(folder: AgentFolder, texts: set[bytes]) -> EmbeddedTexts:
    """Return counts of texts with a vector of the most used embedder."""
    try:
        facts = inspect_cache(folder.vectors)
    except (OSError, sqlite3.DatabaseError, UnicodeDecodeError):
        return EmbeddedTexts(len(texts))
    damaged = HashSet.of(facts.damaged)
    counts = [sum(key in hashes and key not in damaged for key in texts) for hashes in facts.hashes.values()]
    return EmbeddedTexts(len(texts), max(counts, default=0))


_WEEK: Final = timedelta(days=7)
MOST_WEEKS: Final = 520
"""Ten years: one memory with a wrong date must not make thousands of empty weeks."""


@dataclass(frozen=True, slots=True)
class Week:
    """A week.

    Attributes:
        begin: Monday of the week, UTC.
        stored: Number of memories that were stored in it.
        total: Number of memories that were stored by its end.
        used: Number of memories that were last used in it.
        forgotten: Number of memories that were forgotten in it, by the audit log.
    """

    begin: date
    stored: int
    total: int
    used: int
    forgotten: int


@dataclass(frozen=True, slots=True)
class UsedMemory:
    """Frequently used memory: ID, number of accesses and text."""

    id: str
    accesses: int
    content: str


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """Number of embedded texts, and of those with a stored vector."""

    texts: int = 0
    found: int = 0

    @property
    def share(self) -> float | None:
        """Share of all texts, 0..1, or None."""
        return self.found / self.texts if self.texts else None


@dataclass(frozen=True, slots=True)
class CaptureCounts:
    """Numbers of captured, kept and forgotten memories in the audit log."""

    captured: int = 0
    kept: int = 0
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """Statistics of one agent's memory.

    Attributes:
        agent_id: Name of the agent.
        memories, items: Number of memories, and of items from documents and talks.
        superseded, expired, pinned: Number of such memories.
        by_category, by_trust, by_source, by_project, by_group: Memories and items by each; those of no
            project, or of no group, are in none.
        others: Number of other records by name of their journal.
        accesses: Number of accesses of all memories.
        never_used: Number of memories without an access.
        most_used: Most used memories in order.
        weeks: One after the other, from the first memory to now.
        embedded: Texts with a vector.
        captures: Numbers of captured memories.
        sizes: Bytes on the disk, by what they hold.
    """

    agent_id: str
    memories: int = 0
    items: int = 0
    superseded: int = 0
    expired: int = 0
    pinned: int = 0
    by_category: dict[str, int] = field(default_factory=dict)
    by_trust: dict[str, int] = field(default_factory=dict)
    by_source: dict[str, int] = field(default_factory=dict)
    by_project: dict[str, int] = field(default_factory=dict)
    by_group: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    accesses: int = 0
    never_used: int = 0
    most_used: tuple[UsedMemory, ...] = ()
    weeks: tuple[Week, ...] = ()
    embedded: EmbeddedTexts = EmbeddedTexts()
    captures: CaptureCounts = CaptureCounts()
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def never_used_share(self) -> float | None:
        """Share of all memories and items, 0..1, or None."""
        total = self.memories + self.items
        return self.never_used / total if total else None

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            **asdict(self),
            "never_used_share": self.never_used_share,
            "embedded": {**asdict(self.embedded), "share": self.embedded.share},
            "weeks": [{**asdict(week), "begin": week.begin.isoformat()} for week in self.weeks],
        }


def get_monday(moment: datetime) -> date:
    """Return the Monday of the week of a moment in UTC."""
    return moment.date() - timedelta(days=moment.weekday())


def by_weeks(
    stored: Iterable[datetime], used: Iterable[datetime], forgotten: Iterable[datetime], now: datetime
) -> tuple[Week, ...]:
    """Return weeks from the first memory to now, ten years at most.

    Args:
        stored: Moments of storing; future ones count as now.
        used: Moments of the last use.
        forgotten: Moments of forgetting.
        now: The present, UTC.
    """
    last = get_monday(now)
    new, seen, gone = (
        Counter(min(get_monday(moment), last) for moment in moments) for moments in (stored, used, forgotten)
    )
    if not new:
        return ()
    first = max(min(new), last - (MOST_WEEKS - 1) * _WEEK)
    total = sum(count for week, count in new.items() if week < first)
    weeks = []
    while first <= last:
        total += new[first]
        weeks.append(Week(first, new[first], total, seen[first], gone[first]))
        first += _WEEK
    return tuple(weeks)


_MOST_BARS: Final = 60
_WIDTH, _LEFT, _RIGHT = 720, 64, 24
_TOP, _HEIGHT, _GAP, _FOOT = 92, 150, 64, 40
"""Pixels: of the picture, of its margins, and of each chart."""
_INK, _PALE, _GRID = "#1f2933", "#616e7c", "#e4e7eb"
_BLUE, _ORANGE = "#2468b4", "#d9772b"
"""Distinct for all kinds of colour vision, and in grey."""
_FONT: Final = "system-ui, -apple-system, Helvetica, Arial, 'DejaVu Sans', sans-serif"
_TICKS: Final = 5
_LABEL_ROOM: Final = 76
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_ROWS: Final = 6
_AXIS: Final = 8


def as_svg(statistics: MemoryStatistics) -> str:
    """Return the chart as a self-contained SVG document."""
    spans, unit, names = _list_spans(statistics.weeks)
    height, lower = _TOP + 2 * _HEIGHT + _GAP + _FOOT, _TOP + _HEIGHT + _GAP
    bars = [("stored", [span.stored for span in spans], _BLUE), ("last used", [span.used for span in spans], _ORANGE)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">',
        f'<g font-family="{_FONT}">',
        f"<title>Memory of {escape(statistics.agent_id)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(_LEFT, 32, f"Memory of {statistics.agent_id}", size=18, weight=600),
        _text(_LEFT, 52, _summarize(statistics), colour=_PALE),
        _text(_LEFT, _TOP - 12, "Memories", weight=600),
        *_draw_area([span.total for span in spans]),
        _text(_LEFT, lower - 12, f"Memories each {unit}", weight=600),
        *_draw_legend(lower - 12, [(name, colour) for name, _, colour in bars]),
        *_draw_bars([(numbers, colour) for _, numbers, colour in bars], lower),
        *_draw_dates(names, lower + _HEIGHT),
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


def as_text(statistics: MemoryStatistics, width: int) -> list[str]:
    """Return the picture as lines of blocks, at most `width` columns wide."""
    spans, unit, names = _list_spans(statistics.weeks)
    if not spans:
        return ["Nothing was stored yet."]
    room = max(1, width - _AXIS)
    shown, names = spans[-room:], names[-room:]
    wide = max(1, min(3, room // len(shown)))
    lines = []
    for title, values in (
        ("memories", [span.total for span in shown]),
        (f"stored each {unit}", [span.stored for span in shown]),
        (f"last used each {unit}", [span.used for span in shown]),
    ):
        lines += [title, *_columns(values, wide), ""]
    space = wide * len(shown) - len(names[0]) - len(names[-1])
    dates = f"{names[0]}{' ' * space}{names[-1]}" if space > 0 else names[0]
    return [*lines[:-1], f"{' ' * _AXIS}{dates}"]


# -- SVG ------------------------------------------------------------------------------------------------------------


def _list_spans(weeks: Sequence[Week]) -> tuple[list[Week], str, list[str]]:
    """Return weeks, or months for many weeks, the unit, and their names."""
    if len(weeks) <= _MOST_BARS:
        return [*weeks], "week", [f"{week.begin:%Y-%m-%d}" for week in weeks]
    months = [list(of_month) for _, of_month in groupby(weeks, key=lambda week: (week.begin.year, week.begin.month))]
    spans = [
        replace(month[-1], stored=sum(week.stored for week in month), used=sum(week.used for week in month))
        for month in months
    ]
    return spans, "month", [f"{span.begin:%Y-%m}" for span in spans]


def _summarize(statistics: MemoryStatistics) -> str:
    share = statistics.never_used_share
    never = "" if share is None else f", {int(100 * share)} % never used"
    since = f" since {statistics.weeks[0].begin:%Y-%m-%d}" if statistics.weeks else ""
    return f"{counted(statistics.memories + statistics.items, 'memory', 'memories')}{since}{never}"


def _draw_axis(highest: int, bottom: float, *, is_empty: bool) -> tuple[list[str], float]:
    """Return labelled lines, and pixels for each memory."""
    step = round_step(highest)
    scale = _HEIGHT / max(step, -(-highest // step) * step)
    parts = []
    for value in range(0, round(_HEIGHT / scale) + 1, step):
        y = bottom - scale * value
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_GRID if value else _PALE}"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{value:,}", colour=_PALE, anchor="end"))
    if is_empty:
        parts.append(_text(_WIDTH / 2, bottom - _HEIGHT / 2, "nothing yet", colour=_PALE, anchor="middle"))
    return parts, scale


def _draw_area(values: Sequence[int]) -> list[str]:
    """Return a line with a tinted area.

    A value is at the end of its span.
    """
    bottom = _TOP + _HEIGHT
    parts, scale = _draw_axis(max(values, default=0), bottom, is_empty=not values)
    if not values:
        return parts
    width = (_WIDTH - _LEFT - _RIGHT) / len(values)
    points = [f"{_LEFT + width * number:.1f} {bottom - scale * value:.1f}" for number, value in enumerate(values, 1)]
    line = "L".join([f"{_LEFT} {bottom}", *points])
    return [
        *parts,
        f'<path d="M{line}V{bottom}H{_LEFT}Z" fill="{_BLUE}" fill-opacity="0.12"/>',
        f'<path d="M{line}" fill="none" stroke="{_BLUE}" stroke-width="2" stroke-linejoin="round"/>',
    ]


def _draw_bars(series: Sequence[tuple[Sequence[int], str]], top: float) -> list[str]:
    """Return bars of several series; a small value shows a line."""
    bottom, spans = top + _HEIGHT, len(series[0][0])
    highest = max((value for values, _ in series for value in values), default=0)
    parts, scale = _draw_axis(highest, bottom, is_empty=not spans)
    for place, (values, colour) in enumerate(series):
        width = (_WIDTH - _LEFT - _RIGHT) / max(1, spans)
        bar = min(20.0, 0.8 * width / len(series))
        for number, value in enumerate(values):
            x, height = _LEFT + width * number + (width - len(series) * bar) / 2 + place * bar, max(scale * value, 1)
            size = f'width="{bar:.1f}" height="{height:.1f}"'
            parts += [f'<rect x="{x:.1f}" y="{bottom - height:.1f}" {size} fill="{colour}"/>'] if value else []
    return parts


def _draw_legend(y: float, entries: Sequence[tuple[str, str]]) -> list[str]:
    """Return the legend, aligned right."""
    parts, x = [], float(_WIDTH - _RIGHT)
    for name, colour in reversed(entries):
        parts.append(_text(x, y, name, colour=_PALE, anchor="end"))
        x -= 6.5 * len(name) + 16
        parts.append(f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{colour}"/>')
        x -= 14
    return parts


def _draw_dates(names: Sequence[str], y: float) -> list[str]:
    """Return dates below the charts, as many as have room."""
    width = (_WIDTH - _LEFT - _RIGHT) / max(1, len(names))
    interval = max(1, -int(-_LABEL_ROOM // width))
    return [
        _text(_LEFT + width * (place + 0.5), y + 18, names[place], colour=_PALE, anchor="middle")
        for place in range(0, len(names), interval)
    ]


def round_step(highest: int) -> int:
    """Return the axis step: 1, 2 or 5 times 10ⁿ."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if highest <= _TICKS * digit * power:
                return digit * power
        power *= 10


def _text(
    x: float, y: float, text: str, *, size: int = 12, weight: int = 400, colour: str = _INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


# -- blocks ---------------------------------------------------------------------------------------------------------


def _columns(values: Sequence[int], wide: int) -> list[str]:
    """Return a column chart with its maximum and 0 at the left."""
    highest = max(values, default=0)
    lines = []
    for row in range(_ROWS - 1, -1, -1):
        eighths = [max(1, round(8 * _ROWS * value / highest)) - 8 * row if value else 0 for value in values]
        cells = "".join(_BLOCKS[min(8, max(0, eighth))] * wide for eighth in eighths)
        label = f"{highest:,}" if row == _ROWS - 1 else "0" if not row else ""
        lines.append(f"{label:>{_AXIS - 1}} {cells}".rstrip())
    return lines
