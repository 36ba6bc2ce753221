"""From when to when a sentence holds is what its times tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agent_memory.times import valid_times

SAID = datetime(2024, 5, 15, 12, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("sentence", "first", "last"),
    [
        ("Bob has worked at Initech since March 2024.", "2024-03-01", None),
        ("Bob works at Initech until Friday.", None, "2024-05-18"),
        ("Bob worked at Initech from May to July 2023.", "2023-05-01", "2023-08-01"),
        ("Bob joined Initech in March 2022.", "2022-03-01", None),
        ("Bob left Initech in March 2022.", None, "2022-03-01"),
        ("Bob worked at Initech in 2019.", "2019-01-01", "2020-01-01"),
        ("From 3 June 2024 Bob works at Initech.", "2024-06-03", None),
        ("Bob worked at Initech before 2018.", None, "2018-01-01"),
        ("Yesterday Bob told me that he works at Initech.", None, None),
        ("Bob works at Initech.", None, None),
        ("The report of Bob is due by Friday.", None, None),
    ],
)
def test_a_sentence_tells_a_beginning_and_an_end(sentence: str, first: str | None, last: str | None) -> None:
    told = valid_times(sentence, SAID)
    days = [None if each is None else each.date().isoformat() for each in told]
    assert days == [first, last]


def test_a_day_begins_at_midnight_of_the_zone_of_the_speaker() -> None:
    zone = timezone(timedelta(hours=2))
    told = valid_times("since yesterday", datetime(2024, 5, 15, 1, tzinfo=zone))
    assert told.valid_from == datetime(2024, 5, 14, tzinfo=zone)
