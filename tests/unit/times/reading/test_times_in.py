"""Times are read from a text, seen from the moment it was said."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.times import times_in

SAID = datetime(2024, 5, 15, 12, tzinfo=UTC)  # a Wednesday


def read(text: str) -> list[tuple[str, str, str]]:
    return [(text[each.start : each.end], f"{each.first}", f"{each.behind}") for each in times_in(text, SAID)]


@pytest.mark.parametrize(
    ("text", "words", "first", "behind"),
    [
        ("We met on 3 May 2023.", "3 May 2023", "2023-05-03", "2023-05-04"),
        ("We met on May 3rd, 2023.", "May 3rd, 2023", "2023-05-03", "2023-05-04"),
        ("at 2023-05-03T10:00:00Z", "2023-05-03T10:00:00Z", "2023-05-03", "2023-05-04"),
        ("We met yesterday.", "yesterday", "2024-05-14", "2024-05-15"),
        ("She left three weeks ago.", "three weeks ago", "2024-04-24", "2024-04-25"),
        ("It was in March 2022.", "March 2022", "2022-03-01", "2022-04-01"),
        ("We met last week.", "last week", "2024-05-06", "2024-05-13"),
        ("We met on Monday.", "Monday", "2024-05-13", "2024-05-14"),
        ("We will meet on Monday.", "Monday", "2024-05-20", "2024-05-21"),
        ("in Q3 2023", "Q3 2023", "2023-07-01", "2023-10-01"),
        ("It was the last Friday of June 2023.", "the last Friday of June 2023", "2023-06-30", "2023-07-01"),
        ("on Thanksgiving 2023", "Thanksgiving 2023", "2023-11-23", "2023-11-24"),
        ("on Easter 2024", "Easter 2024", "2024-03-31", "2024-04-01"),
        ("since March 2024", "since March 2024", "2024-03-01", "None"),
        ("until Friday", "until Friday", "None", "2024-05-18"),
        ("before 2018", "before 2018", "None", "2018-01-01"),
        ("after 2018", "after 2018", "2019-01-01", "None"),
        ("from May to July 2023", "from May to July 2023", "2023-05-01", "2023-08-01"),
        ("from November to February 2023", "from November to February 2023", "2022-11-01", "2023-03-01"),
        ("3-5 June 2023", "3-5 June 2023", "2023-06-03", "2023-06-06"),
    ],
)
def test_a_time_is_read(text: str, words: str, first: str, behind: str) -> None:
    assert read(text) == [(words, first, behind)]


@pytest.mark.parametrize(
    ("text", "words", "first", "behind"),
    [
        ("Wir haben uns am 3. Mai 2023 getroffen.", "3. Mai 2023", "2023-05-03", "2023-05-04"),
        ("Ich war vor zwei Wochen in Bern.", "vor zwei Wochen", "2024-05-01", "2024-05-02"),
        ("Er arbeitet seit M\u00e4rz 2024 bei uns.", "seit M\u00e4rz 2024", "2024-03-01", "None"),
        ("Bis Freitag ist sie nicht im B\u00fcro.", "Bis Freitag", "None", "2024-05-18"),
        ("Nos vimos el 3 de mayo de 2023.", "el 3 de mayo de 2023", "2023-05-03", "2023-05-04"),
        ("Trabaja con nosotros desde marzo de 2024.", "desde marzo de 2024", "2024-03-01", "None"),
        ("La reuni\u00f3n fue la semana pasada.", "la semana pasada", "2024-05-06", "2024-05-13"),
        ("Nous nous sommes vus le 3 mai 2023.", "le 3 mai 2023", "2023-05-03", "2023-05-04"),
        ("Il est avec nous depuis mars 2024.", "depuis mars 2024", "2024-03-01", "None"),
        ("Elle est partie il y a deux semaines.", "il y a deux semaines", "2024-05-01", "2024-05-02"),
        ("\u4ed6\u4e94\u5929\u524d\u5c31\u56de\u6765\u4e86", "\u4e94\u5929\u524d", "2024-05-10", "2024-05-11"),
        (
            "2023\u5e745\u67083\u65e5\u306b\u623b\u308a\u307e\u3059",
            "2023\u5e745\u67083\u65e5",
            "2023-05-03",
            "2023-05-04",
        ),
        (
            "\u6765\u9031\u306e\u6708\u66dc\u65e5\u306b\u4f1a\u3046",
            "\u6765\u9031\u306e\u6708\u66dc\u65e5",
            "2024-05-20",
            "2024-05-21",
        ),
    ],
)
def test_a_time_is_read_in_the_language_of_its_text(text: str, words: str, first: str, behind: str) -> None:
    assert read(text) == [(words, first, behind)]


@pytest.mark.parametrize(
    "text",
    [
        "You may march on.",
        "This may or may not be so.",
        "next 0 weeks",
        "on to the second of them",
        "The second one is wrong.",
        "Version 1.2.3 of 3/4",
        "Ask June Carter.",
        "x.second = now.day",
        "feb 30 2019",
        "10.20.30.40:2021",
        "garden retries=9/28",
    ],
)
def test_no_time_is_read(text: str) -> None:
    assert read(text) == []


def test_a_time_of_day_is_told_with_its_day() -> None:
    (found,) = times_in("See you tomorrow at 9:30 pm.", SAID)
    assert (found.first, [f"{each:%H:%M}" for each in found.clock]) == (date(2024, 5, 16), ["21:30"])


_PIECES = (
    "may march 3 31 30 feb 2023 from to until since the of second last week ago in 1/2 - , 9999999999 years 10:30 q1"
    " two hundred next friday 2024-02-31 end day between and 1.2.3 \u00e9 . 0 th sun \n\n"
)
_WORDS = st.sampled_from([*_PIECES.split(" "), "\n\n"])


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(_WORDS, max_size=30).map(" ".join)), st.datetimes())
def test_no_text_raises_and_every_time_lies_in_it(text: str, said: datetime) -> None:
    behind = 0
    for each in times_in(text, said):
        assert behind <= each.start < each.end <= len(text)
        assert each.first is None or each.behind is None or each.first < each.behind
        behind = each.end
