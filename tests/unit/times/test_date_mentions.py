"""Times are read from a text, seen from the moment it was said."""

from __future__ import annotations

from datetime import UTC, date, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.times import describe_saying, times_in
from tests.rows import check_rows
from tests.support import scale_examples

SAID = datetime(2024, 5, 15, 12, tzinfo=UTC)  # a Wednesday
NOVEMBER_DAY = datetime(2026, 11, 26, 12, tzinfo=UTC)


def read(text: str) -> list[tuple[str, str, str]]:
    return [(text[each.start : each.end], f"{each.first_day}", f"{each.end_day}") for each in times_in(text, SAID)]


@check_rows(
    ("text", "words", "first", "end_day"),
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
        ("since March 2024", "since March 2024", "2024-03-01", "None"),
        ("until Friday", "until Friday", "None", "2024-05-18"),
        ("before 2018", "before 2018", "None", "2018-01-01"),
        ("after 2018", "after 2018", "2019-01-01", "None"),
        ("from May to July 2023", "from May to July 2023", "2023-05-01", "2023-08-01"),
        ("from November to February 2023", "from November to February 2023", "2022-11-01", "2023-03-01"),
        ("3-5 June 2023", "3-5 June 2023", "2023-06-03", "2023-06-06"),
    ],
)
def test_a_time_is_read(text: str, words: str, first: str, end_day: str) -> None:
    assert read(text) == [(words, first, end_day)]


@check_rows(
    ("text", "words", "first", "end_day"),
    [
        ("Wir haben uns am 3. Mai 2023 getroffen.", "3. Mai 2023", "2023-05-03", "2023-05-04"),
        ("Ich war vor zwei Wochen in Bern.", "vor zwei Wochen", "2024-05-01", "2024-05-02"),
        ("Er arbeitet seit M\u00e4rz 2024 bei uns.", "seit M\u00e4rz 2024", "2024-03-01", "None"),
        ("Bis Freitag ist sie nicht im B\u00fcro.", "Bis Freitag", "None", "2024-05-18"),
        ("Nos vimos el 3 de mayo de 2023.", "3 de mayo de 2023", "2023-05-03", "2023-05-04"),
        ("Trabaja con nosotros desde marzo de 2024.", "desde marzo de 2024", "2024-03-01", "None"),
        ("La reuni\u00f3n fue la semana pasada.", "la semana pasada", "2024-05-06", "2024-05-13"),
        ("Nous nous sommes vus le 3 mai 2023.", "3 mai 2023", "2023-05-03", "2023-05-04"),
        ("Il est avec nous depuis mars 2024.", "depuis mars 2024", "2024-03-01", "None"),
        ("Elle est partie il y a deux semaines.", "il y a deux semaines", "2024-05-01", "2024-05-02"),
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
def test_a_time_is_read_in_the_language_of_its_text(text: str, words: str, first: str, end_day: str) -> None:
    assert read(text) == [(words, first, end_day)]


@check_rows(
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


def test_mention_has_days_under_earlier_names() -> None:
    (mention,) = times_in("It was done on 2024-03-02.", SAID)
    assert (
        (mention.first, mention.behind) == (mention.first_day, mention.end_day) == (date(2024, 3, 2), date(2024, 3, 3))
    )


def test_times_in_time_of_day_belongs_to_its_day() -> None:
    assert read("See you tomorrow at 9:30 pm.") == [("tomorrow at 9:30 pm", "2024-05-16", "2024-05-17")]


_PIECES = (
    "may march 3 31 30 feb 2023 from to until since the of second last week ago in 1/2 - , 9999999999 years 10:30 q1"
    " two hundred next friday 2024-02-31 end day between and 1.2.3 \u00e9 . 0 th sun \n\n"
)
_WORDS = st.sampled_from([*_PIECES.split(" "), "\n\n"])


@settings(max_examples=scale_examples(300), deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(_WORDS, max_size=30).map(" ".join)), st.datetimes())
def test_no_text_raises_and_every_time_lies_in_it(text: str, said: datetime) -> None:
    end = 0
    for each in times_in(text, said):
        assert end <= each.start < each.end <= len(text)
        assert each.first_day is None or each.end_day is None or each.first_day < each.end_day
        end = each.end


@check_rows(
    ("text", "first", "end_day"),
    [
        ("On Tuesday we will leave.", "2024-05-21", "2024-05-22"),
        ("Friday will be the launch.", "2024-05-17", "2024-05-18"),
        ("In June we will move.", "2024-06-01", "2024-07-01"),
        ("On 3 March we will move.", "2025-03-03", "2025-03-04"),
        ("Am Montag werden wir starten.", "2024-05-20", "2024-05-21"),
        ("On Tuesday we left.", "2024-05-14", "2024-05-15"),
        ("We moved in March.", "2024-03-01", "2024-04-01"),
        ("The report was due by Friday.", "None", "2024-05-18"),
        ("Send it by the end of June.", "None", "2024-07-01"),
        ("On Monday it broke, so we will meet.", "2024-05-13", "2024-05-14"),
        ("The deadline is EOD Friday.", "2024-05-17", "2024-05-18"),
        ("It is due on Monday of the next month.", "2024-06-03", "2024-06-04"),
        ("It begins in KW 21.", "2024-05-20", "2024-05-27"),
        ("It was on Tuesday, 7 May.", "2024-05-07", "2024-05-08"),
        ("Last year in March we moved.", "2023-03-01", "2023-04-01"),
        ("The launch is scheduled for Friday.", "2024-05-17", "2024-05-18"),
        ("I told her that we will meet on Friday.", "2024-05-17", "2024-05-18"),
    ],
)
def test_times_in_verb_of_clause_decides_tense(text: str, first: str, end_day: str) -> None:
    assert [(f"{mention.first_day}", f"{mention.end_day}") for mention in times_in(text, SAID)] == [(first, end_day)]


@check_rows(
    "text",
    [
        "Friday is fine.",
        "In March the office is closed.",
        "On 03/04/2026 the lease ends.",
        "The Tuesday before last it broke.",
        "We met last Monday.",
        "He called a few days ago.",
        "On Monday it broke or will break.",
        "We went there the first Sunday.",
        "The review is on the 5th.",
        "He wanted to leave on Friday.",
        "They planned to meet on Tuesday.",
        "She asked Bob to come on Friday.",
        "I thought we would meet on Friday.",
        "The meeting scheduled for Monday was cancelled.",
    ],
)
def test_times_in_open_day_stays_unresolved(text: str) -> None:
    (mention,) = times_in(text, SAID)
    assert (mention.is_resolved, mention.first_day, mention.end_day) == (False, None, None)


def test_times_in_next_friday_on_thursday_stays_unresolved() -> None:
    (mention,) = times_in("We will ship next Friday.", datetime(2024, 5, 16, 12, tzinfo=UTC))
    assert not mention.is_resolved


def test_times_in_number_above_twelve_tells_order() -> None:
    first, last = times_in("It ran on 03/04/2026 and on 03/25/2026.", SAID)
    assert (first.first_day, last.first_day) == (date(2026, 3, 4), date(2026, 3, 25))


@check_rows(
    ("text", "day"),
    [
        ("commit on Wed Oct 26 15:50:06 2016 +0200 by Ann", "2016-10-26"),
        ("Thu Oct 26 11:00:09 EDT 2019 was logged.", "2019-10-26"),
        ("Tue Jan  5 03:04:05 UTC 2021", "2021-01-05"),
        ("[13/Mar/2010:11:29:05 +0000] GET /x", "2010-03-13"),
        ("Date: Wed, 26 Oct 2016 15:50:06 +0200", "2016-10-26"),
        ("At 20100313T112905Z it broke.", "2010-03-13"),
    ],
)
def test_times_in_stamp_has_its_own_year(text: str, day: str) -> None:
    assert [f"{mention.first_day}" for mention in times_in(text, SAID)] == [day]


@check_rows(
    "text",
    [
        "April manages the Paris office.",
        "June and August are my nieces.",
        "I'd second that motion in a second.",
        "The party was on 30 February.",
        "We had 2024 users online.",
        "Use Python 3.12 and Node 20.10.",
        "Upgrade to version 2.10 now.",
        "A limit of 2000 is set.",
        "In 2000 ms it stops.",
        "We may go on Fridays.",
        "Por la ma\u00f1ana trabajo.",
        "Half of 2026 is over.",
        "The Sunday Times reported it.",
    ],
)
def test_times_in_names_and_counts_are_no_times(text: str) -> None:
    assert times_in(text, SAID) == []


@check_rows("text", ["We meet next Friday.", "We met yesterday.", "It ends in March.", "Due 03/04/2026."])
def test_describe_saying_open_or_relative_words_show_day(text: str) -> None:
    assert describe_saying(text, NOVEMBER_DAY) == "2026-11-26 (Thu)"


@check_rows("text", ["We met on 3 May 2026.", "Use version 2.10.", "Ann leads the team since 2024.", ""])
def test_describe_saying_absolute_dates_show_nothing(text: str) -> None:
    assert describe_saying(text, NOVEMBER_DAY) == ""
