"""An hour of the last day is unusual by its count, measured by the usual day of this agent."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from agent_memory.care.checks.codes import Check, Level
from agent_memory.care.checks.health_checks import check_activity
from agent_memory.models import to_text
from agent_memory.settings import HealthSettings
from tests.rows import check_rows
from tests.support import NOON

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def _events(count: int, at: datetime, event: str = "forgotten", session: str = "s", apart: float = 1) -> list[Any]:
    return [
        {
            "at": to_text(at + timedelta(seconds=apart * place)),
            "event": f"memory:{event}",
            "session_id": session,
            "memory_id": f"mem-{place:012x}",
        }
        for place in range(count)
    ]


def _look(*events: list[Any], memories: int | None = 10_000, **limits: Any) -> Check:
    entries = [each for some in events for each in some]
    return check_activity(entries, memories, HealthSettings(**limits), NOON)


def test_a_quiet_agent_is_fine() -> None:
    assert _look().level is Level.OK
    assert _look(_events(50, NOON - HOUR)).level is Level.OK


def test_more_than_fifty_forgotten_within_an_hour_are_a_warning_where_no_day_is_usual() -> None:
    check = _look(_events(51, NOON - HOUR))
    assert (check.level, check.value, check.warning) == (Level.WARNING, 51, 50)
    assert "51 memories were forgotten within an hour, from 2026-03-01 11:00 UTC on" in check.sentence
    assert "agent-memory restore" in check.advice


def test_the_same_count_within_more_than_an_hour_is_fine() -> None:
    assert _look(_events(51, NOON - 6 * HOUR, apart=120)).level is Level.OK


def test_who_forgets_much_every_day_has_another_limit() -> None:
    usual = [_events(9, NOON - days * DAY) for days in (2, 3, 4)]
    assert _look(*usual, _events(90, NOON - HOUR)).level is Level.OK
    check = _look(*usual, _events(91, NOON - HOUR))
    assert (check.level, check.warning) == (Level.WARNING, 90)
    assert "on a usual day it is 9" in check.sentence


def test_what_is_older_than_a_day_or_lies_in_the_future_is_no_alarm() -> None:
    assert _look(_events(500, NOON - 2 * DAY), _events(500, NOON + HOUR)).level is Level.OK


def test_a_session_that_was_never_seen_is_named() -> None:
    before = _events(1, NOON - 2 * HOUR, "stored", "home")
    assert (
        "by session stranger, which was never seen before"
        in _look(before, _events(60, NOON - HOUR, session="stranger")).sentence
    )
    assert "never seen" not in _look(before, _events(60, NOON - HOUR, session="home")).sentence


@check_rows(("left", "level"), [(59, Level.CRITICAL), (60, Level.WARNING), (None, Level.WARNING)])
def test_more_than_half_of_all_memories_forgotten_is_critical(left: int | None, level: Level) -> None:
    assert _look(_events(60, NOON - HOUR), memories=left).level is level


def test_changes_count_by_the_same_rule_and_are_never_critical() -> None:
    check = _look(_events(60, NOON - HOUR, "updated"), memories=1)
    assert check.level is Level.WARNING
    assert "60 memories were changed" in check.sentence


def test_new_memories_count_ten_times_less_and_not_at_all_while_the_store_is_first_filled() -> None:
    assert _look(_events(2_000, NOON - HOUR, "stored")).level is Level.OK
    known = _events(1, NOON - 3 * DAY, "updated")
    assert _look(known, _events(500, NOON - HOUR, "stored")).level is Level.OK
    assert _look(known, _events(501, NOON - HOUR, "stored")).level is Level.WARNING


def test_limits_are_settings() -> None:
    assert _look(_events(6, NOON - HOUR), activity_least=5).level is Level.WARNING
    usual = _events(20, NOON - 2 * DAY)
    assert _look(usual, _events(60, NOON - HOUR), activity_factor=2).level is Level.WARNING


def test_lines_that_say_no_time_are_left_out() -> None:
    bad: list[Any] = [{"at": at, "event": "memory:forgotten"} for at in (None, 5, "soon", "2026-03-01T11:30:00")]
    assert _look(bad * 60).level is Level.OK
