"""Growth and use as a picture: SVG written by hand, for browsers and documents, or blocks for a terminal. Pure.

Two charts over the same time: how many memories there are, and how many were stored and last used in each span. Weeks,
or months where there are more than a year of weeks: narrower bars cannot be told apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final

from agent_memory.files.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.care.statistics.figures import Statistics, Week

_MOST_BARS: Final = 60
_WIDTH, _LEFT, _RIGHT = 720, 64, 24
_TOP, _HEIGHT, _GAP, _FOOT = 92, 150, 64, 40
"""Pixels: of the picture, beside the charts, and of each of the two."""
_INK, _PALE, _GRID = "#1f2933", "#616e7c", "#e4e7eb"
_BLUE, _ORANGE = "#2468b4", "#d9772b"
"""Told apart by all kinds of colour vision, and by their lightness in grey."""
_FONT: Final = "system-ui, -apple-system, Helvetica, Arial, 'DejaVu Sans', sans-serif"
_TICKS: Final = 5
_LABEL_ROOM: Final = 76
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_ROWS: Final = 6
_AXIS: Final = 8


@dataclass(frozen=True, slots=True)
class _Span:
    """A week or a month: its name, and what `Week` says of it."""

    name: str
    stored: int
    total: int
    used: int


def as_svg(statistics: Statistics) -> str:
    """Return the picture as an SVG document of its own, which loads nothing."""
    spans, unit = _spans(statistics.weeks)
    height = _TOP + 2 * _HEIGHT + _GAP + _FOOT
    lower = _TOP + _HEIGHT + _GAP
    every = statistics.memories + statistics.items
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">',
        f'<g font-family="{_FONT}">',
        f"<title>Memory of {escape(statistics.agent_id)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(_LEFT, 32, f"Memory of {statistics.agent_id}", size=18, weight=600),
        _text(_LEFT, 52, _summary(statistics, every), colour=_PALE),
        _text(_LEFT, _TOP - 12, "Memories", weight=600),
        *_chart(spans, _TOP, [([span.total for span in spans], _BLUE, "line")]),
        _text(_LEFT, lower - 12, f"Memories each {unit}", weight=600),
        *_legend(lower - 12, (("stored", _BLUE), ("last used", _ORANGE))),
        *_chart(
            spans,
            lower,
            [([span.stored for span in spans], _BLUE, "bars"), ([span.used for span in spans], _ORANGE, "bars")],
        ),
        *_dates(spans, lower + _HEIGHT),
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


def as_text(statistics: Statistics, width: int) -> list[str]:
    """Return the picture as lines of blocks, at most `width` columns wide."""
    spans, unit = _spans(statistics.weeks)
    if not spans:
        return ["Nothing was stored yet."]
    room = max(1, width - _AXIS)
    shown = spans[-room:]
    wide = max(1, min(3, room // len(shown)))
    lines = []
    for title, values in (
        ("memories", [span.total for span in shown]),
        (f"stored each {unit}", [span.stored for span in shown]),
        (f"last used each {unit}", [span.used for span in shown]),
    ):
        lines += [title, *_columns(values, wide), ""]
    first, last = shown[0].name, shown[-1].name
    space = wide * len(shown) - len(first) - len(last)
    dates = f"{first}{' ' * space}{last}" if space > 0 else first
    return [*lines[:-1], f"{' ' * _AXIS}{dates}"]


# -- SVG ------------------------------------------------------------------------------------------------------------


def _spans(weeks: Sequence[Week]) -> tuple[list[_Span], str]:
    """Return weeks, or months where there are many, and what they are called."""
    if len(weeks) <= _MOST_BARS:
        return [_Span(f"{week.begin:%Y-%m-%d}", week.stored, week.total, week.used) for week in weeks], "week"
    spans = []
    for _, of_month in groupby(weeks, key=lambda week: (week.begin.year, week.begin.month)):
        month = list(of_month)
        stored, used = sum(week.stored for week in month), sum(week.used for week in month)
        spans.append(_Span(f"{month[0].begin:%Y-%m}", stored, month[-1].total, used))
    return spans, "month"


def _summary(statistics: Statistics, every: int) -> str:
    share = statistics.never_used_share
    never = "" if share is None else f", {int(100 * share)} % never used"
    since = f" since {statistics.weeks[0].begin:%Y-%m-%d}" if statistics.weeks else ""
    return f"{counted(every, 'memory', 'memories')}{since}{never}"


def _chart(spans: Sequence[_Span], top: float, series: Sequence[tuple[Sequence[int], str, str]]) -> list[str]:
    """Return one chart: its lines with figures, and each series as an area or as bars."""
    highest = max((value for values, *_ in series for value in values), default=0)
    step = round_step(highest)
    full = max(step, -(-highest // step) * step)
    bottom = top + _HEIGHT
    parts = []
    for value in range(0, full + 1, step):
        y = bottom - _HEIGHT * value / full
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_GRID if value else _PALE}"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{value:,}", colour=_PALE, anchor="end"))
    if not spans:
        return [*parts, _text(_WIDTH / 2, top + _HEIGHT / 2, "nothing yet", colour=_PALE, anchor="middle")]
    bars = sum(form == "bars" for *_, form in series)
    place = 0
    for values, colour, form in series:
        heights = [_HEIGHT * value / full for value in values]
        if form == "line":
            parts += _area(heights, bottom, colour)
        else:
            parts += _bars(heights, bottom, colour, place, bars)
            place += 1
    return parts


def _area(heights: Sequence[float], bottom: float, colour: str) -> list[str]:
    """Return a line, with the room below it tinted. Each value stands at the end of its span."""
    width = (_WIDTH - _LEFT - _RIGHT) / len(heights)
    points = [f"{_LEFT + width * (place + 1):.1f} {bottom - height:.1f}" for place, height in enumerate(heights)]
    line = "L".join([f"{_LEFT} {bottom}", *points])
    return [
        f'<path d="M{line}V{bottom}H{_LEFT}Z" fill="{colour}" fill-opacity="0.12"/>',
        f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>',
    ]


def _bars(heights: Sequence[float], bottom: float, colour: str, place: int, of: int) -> list[str]:
    """Return bars, of several series side by side; what is not nothing is at least a line."""
    width = (_WIDTH - _LEFT - _RIGHT) / len(heights)
    bar = min(20.0, 0.8 * width / of)
    first = (width - of * bar) / 2 + place * bar
    return [
        f'<rect x="{_LEFT + width * number + first:.1f}" y="{bottom - max(height, 1):.1f}" '
        f'width="{bar:.1f}" height="{max(height, 1):.1f}" fill="{colour}"/>'
        for number, height in enumerate(heights)
        if height
    ]


def _legend(y: float, entries: Sequence[tuple[str, str]]) -> list[str]:
    """Return what the colours mean, at the right end."""
    parts, x = [], float(_WIDTH - _RIGHT)
    for name, colour in reversed(entries):
        parts.append(_text(x, y, name, colour=_PALE, anchor="end"))
        x -= 6.5 * len(name) + 16
        parts.append(f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{colour}"/>')
        x -= 14
    return parts


def _dates(spans: Sequence[_Span], y: float) -> list[str]:
    """Return dates below the charts, as many as have room."""
    if not spans:
        return []
    width = (_WIDTH - _LEFT - _RIGHT) / len(spans)
    every = max(1, -int(-_LABEL_ROOM // width))
    return [
        _text(_LEFT + width * (place + 0.5), y + 18, spans[place].name, colour=_PALE, anchor="middle")
        for place in range(0, len(spans), every)
    ]


def round_step(highest: int) -> int:
    """Return the distance of the lines: 1, 2 or 5 times a power of ten, so that there are five at most."""
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
    """Return a chart of columns, `wide` characters each, with its highest figure and 0 at the left."""
    highest = max(values, default=0)
    lines = []
    for row in range(_ROWS - 1, -1, -1):
        eighths = [max(1, round(8 * _ROWS * value / highest)) - 8 * row if value else 0 for value in values]
        cells = "".join(_BLOCKS[min(8, max(0, each))] * wide for each in eighths)
        label = f"{highest:,}" if row == _ROWS - 1 else "0" if not row else ""
        lines.append(f"{label:>{_AXIS - 1}} {cells}".rstrip())
    return lines
