"""The picture says what the figures say, is whole XML, and fits where it is shown."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from xml.etree import ElementTree as ET

from agent_memory.care.statistics import MemoryStatistics, as_svg, as_text, by_weeks, round_step
from tests.rows import check_rows
from tests.support import NOON

SVG = "{http://www.w3.org/2000/svg}"


def _of(days: list[float], used: list[float], agent_id: str = "bob") -> MemoryStatistics:
    stored = [NOON - timedelta(days=each) for each in days]
    weeks = by_weeks(stored, [NOON - timedelta(days=each) for each in used], [], NOON)
    return MemoryStatistics(agent_id, memories=len(days), never_used=len(days) - len(used), weeks=weeks)


def _many(weeks: int) -> MemoryStatistics:
    numbers = random.Random(1)
    days = [7.0 * weeks * numbers.random() for _ in range(500)] + [7.0 * (weeks - 1)]
    return _of(days, days[:100])


@check_rows(
    "statistics", [MemoryStatistics("bob"), _of([0], []), _of([8, 8, 0], [0]), _many(30), _many(60), _many(300)]
)
def test_it_is_whole_and_lies_within_its_frame(statistics: MemoryStatistics) -> None:
    svg = ET.fromstring(as_svg(statistics))
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for each in svg.iter():
        for name, most in (("x", width), ("y", height)):
            assert 0 <= float(each.attrib.get(name, 0)) <= most
    for bar in svg.iter(f"{SVG}rect"):
        assert float(bar.attrib.get("y", 0)) + float(bar.attrib["height"]) <= height
    for path in svg.iter(f"{SVG}path"):
        assert all(float(number) <= width for number in re.findall(r"[\d.]+", path.attrib["d"]))


def test_it_says_whose_it_is_how_many_there_are_and_since_when() -> None:
    svg = as_svg(_of([8, 8, 0], [0]))
    assert "Memory of bob" in svg
    assert "3 memories since 2026-02-16, 66 % never used" in svg
    assert "Memories each week" in svg


def test_it_loads_nothing() -> None:
    svg = as_svg(_many(30))
    assert re.findall(r"https?://[^\s\"]+", svg) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<(?:script|image|use|style)|href|url\(", svg)


def test_a_bar_for_each_week_in_which_something_was_done() -> None:
    svg = as_svg(_of([15, 1, 1], [1]))
    bars = re.findall(r'<rect x="[\d.]+" y="[\d.]+" width="[\d.]+" height="(\d+\.\d)" fill="(#2468b4|#d9772b)"', svg)
    assert [colour for _, colour in bars] == ["#2468b4", "#2468b4", "#d9772b"]
    assert float(bars[1][0]) == 2 * float(bars[0][0])


def test_more_than_sixty_weeks_are_shown_as_months() -> None:
    assert "Memories each week" in as_svg(_many(60))
    svg = as_svg(_many(62))
    assert "Memories each month" in svg
    assert re.search(r">2025-\d\d</text>", svg)


@check_rows(
    ("highest", "step"),
    [(0, 1), (1, 1), (5, 1), (6, 2), (11, 5), (26, 10), (41, 10), (640, 200), (12_345, 5000)],
)
def test_lines_are_at_round_numbers(highest: int, step: int) -> None:
    assert round_step(highest) == step


def test_blocks_fit_and_show_the_highest_figure() -> None:
    for width in (40, 80):
        lines = as_text(_many(300), width)
        assert max(map(len, lines)) <= width
    assert as_text(_of([8, 8, 0], [0]), 40)[:7] == [
        "memories",
        "      3    ███",
        "           ███",
        "        ██████",
        "        ██████",
        "        ██████",
        "      0 ██████",
    ]


def test_what_is_little_is_not_nothing() -> None:
    lines = as_text(_of([8] + [0] * 1000, []), 40)
    assert lines[lines.index("stored each week") + 6] == "      0 ▁▁▁███"


def test_nothing_is_said_in_words() -> None:
    assert as_text(MemoryStatistics("bob"), 80) == ["Nothing was stored yet."]
