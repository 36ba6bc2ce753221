"""The day of saying is shown next to words that depend on it."""

from datetime import UTC, datetime

import pytest

from agent_memory.times import describe_saying

SAID = datetime(2026, 11, 26, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["We meet next Friday.", "We met yesterday.", "It ends in March.", "Due 03/04/2026."])
def test_describe_saying_open_or_relative_words_show_day(text: str) -> None:
    assert describe_saying(text, SAID) == "2026-11-26 (Thu)"


@pytest.mark.parametrize("text", ["We met on 3 May 2026.", "Use version 2.10.", "Ann leads the team since 2024.", ""])
def test_describe_saying_absolute_dates_show_nothing(text: str) -> None:
    assert describe_saying(text, SAID) == ""
