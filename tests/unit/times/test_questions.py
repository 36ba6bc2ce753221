"""Stretches of time that a question names."""

from datetime import UTC, date, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.times import Period, named_periods, read_periods
from tests.rows import check_rows

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)  # a Friday

days = st.dates(date(2001, 1, 1), date(2098, 12, 31))


def of(question: str) -> list[tuple[str, str]]:
    """Return the first and the last day of each period, '' for none."""
    return [
        (
            "" if each.start is None else str(each.start.date()),
            "" if each.end is None else str((each.end - timedelta(days=1)).date()),
        )
        for each in named_periods(question, NOW)
    ]


@check_rows(
    ("question", "first", "last"),
    [
        ("what did we decide last week", "2026-11-09", "2026-11-15"),
        ("what changed this week?", "2026-11-16", "2026-11-22"),
        ("notes of this month", "2026-11-01", "2026-11-30"),
        ("notes of last month", "2026-10-01", "2026-10-31"),
        ("the previous year", "2025-01-01", "2025-12-31"),
        ("the last three days", "2026-11-18", "2026-11-20"),
        ("in the past 2 weeks", "2026-11-07", "2026-11-20"),
        ("four days ago", "2026-11-16", "2026-11-16"),
        ("two weeks ago", "2026-11-02", "2026-11-08"),
        ("a month ago", "2026-10-01", "2026-10-31"),
        ("yesterday", "2026-11-19", "2026-11-19"),
        ("what was noted the day before yesterday?", "2026-11-18", "2026-11-18"),
        ("this morning", "2026-11-20", "2026-11-20"),
        ("last Friday", "2026-11-13", "2026-11-13"),
        ("what did she say on Tuesday?", "2026-11-17", "2026-11-17"),
        ("last weekend", "2026-11-14", "2026-11-15"),
        ("what was fixed in June about ETAs?", "2026-06-01", "2026-06-30"),
        ("trips in May 2023", "2023-05-01", "2023-05-31"),
        ("the December freeze", "2025-12-01", "2025-12-31"),
        ("last November", "2025-11-01", "2025-11-30"),
        ("in 2024", "2024-01-01", "2024-12-31"),
        ("in summer", "2026-06-01", "2026-08-31"),
        ("last winter", "2025-12-01", "2026-02-28"),
        ("in the third quarter", "2026-07-01", "2026-09-30"),
        ("Q1 2025 goals", "2025-01-01", "2025-03-31"),
        ("what went wrong on 25 October?", "2026-10-25", "2026-10-25"),
        ("on October 25th, 2025", "2025-10-25", "2025-10-25"),
        ("on the 25th of October", "2026-10-25", "2026-10-25"),
        ("on 2026-07-24", "2026-07-24", "2026-07-24"),
        ("on 24.07.2026", "2026-07-24", "2026-07-24"),
        ("on 7/24/2026", "2026-07-24", "2026-07-24"),
        ("in 2026-07", "2026-07-01", "2026-07-31"),
        ("29 February", "2024-02-29", "2024-02-29"),
        ("which decisions were made before June?", "", "2026-05-31"),
        ("before 3 June 2026", "", "2026-06-02"),
        ("until the end of June", "", "2026-06-30"),
        ("since July", "2026-07-01", ""),
        ("since last week", "2026-11-09", ""),
        ("from July onwards", "2026-07-01", ""),
        ("after 3 July", "2026-07-04", ""),
        ("after July", "2026-08-01", ""),
        ("what happened between 20 and 31 July?", "2026-07-20", "2026-07-31"),
        ("20-31 July 2025", "2025-07-20", "2025-07-31"),
        ("between July 20 and 31", "2026-07-20", "2026-07-31"),
        ("from 30 June to 2 July", "2026-06-30", "2026-07-02"),
        ("between May and July", "2026-05-01", "2026-07-31"),
        ("between March and May", "2026-03-01", "2026-05-31"),
        ("from 3 April 2025 to May 2025", "2025-04-03", "2025-05-31"),
        ("from spring to fall", "2026-03-01", "2026-11-30"),
        ("between November and February", "2025-11-01", "2026-02-28"),
        ("between 2026-05-03 and 2026-05-09", "2026-05-03", "2026-05-09"),
        ("from Monday's note of 3.5.2026 to 9.5.2026", "2026-05-03", "2026-05-09"),
    ],
)
def test_a_period(question: str, first: str, last: str) -> None:
    assert of(question) == [(first, last)]


@check_rows(
    ("question", "first", "last"),
    [
        ("since year 2000", "2000-01-01", ""),
        ("in the year 2024", "2024-01-01", "2024-12-31"),
        ("from 2023 to 2025", "2023-01-01", "2025-12-31"),
        ("between 2023 and 2025", "2023-01-01", "2025-12-31"),
        ("since Monday", "2026-11-16", ""),
        ("from Monday to Wednesday", "2026-11-16", "2026-11-18"),
        ("from Friday to Monday", "2026-11-13", "2026-11-16"),
        ("what was decided before Friday", "", "2026-11-12"),
        ("over the weekend", "2026-11-14", "2026-11-15"),
        ("on Friday last week", "2026-11-13", "2026-11-13"),
        ("on Monday, May 4", "2026-05-04", "2026-05-04"),
        ("2026-05-04T10:00Z", "2026-05-04", "2026-05-04"),
        ("on 2026-05-04 10:00", "2026-05-04", "2026-05-04"),
        ("since 2026-05-04T10:00:00.123Z", "2026-05-04", ""),
        ("at 2026-05-04T23:30-05:00", "2026-05-05", "2026-05-05"),
        ("between 2026-05-04T10:00Z and 2026-05-05T10:00Z", "2026-05-04", "2026-05-05"),
        ("in 2026-W32", "2026-08-03", "2026-08-09"),
        ("in 2026-W32-2", "2026-08-04", "2026-08-04"),
        ("in calendar week 30", "2026-07-20", "2026-07-26"),
        ("week 18 of 2025", "2025-04-28", "2025-05-04"),
        ("the week of May 4", "2026-05-04", "2026-05-10"),
        ("what happened this May?", "2026-05-01", "2026-05-31"),
        ("mid-May", "2026-05-11", "2026-05-21"),
        ("the last week of May", "2026-05-25", "2026-05-31"),
        ("2025 Q3", "2025-07-01", "2025-09-30"),
        ("Q3/2025", "2025-07-01", "2025-09-30"),
        ("Q4 of last year", "2025-10-01", "2025-12-31"),
        ("June of last year", "2025-06-01", "2025-06-30"),
        ("in the first half of 2025", "2025-01-01", "2025-06-30"),
        ("in H2 2025", "2025-07-01", "2025-12-31"),
        ("in the last year", "2025-11-21", "2026-11-20"),
        ("in the past week", "2026-11-14", "2026-11-20"),
        ("in the last 24 hours", "2026-11-19", "2026-11-20"),
        ("12 hours ago", "2026-11-19", "2026-11-19"),
        ("the last few days", "2026-11-14", "2026-11-20"),
        ("a few days ago", "2026-11-14", "2026-11-19"),
        ("two quarters ago", "2026-04-01", "2026-06-30"),
        ("more than two weeks ago", "", "2026-11-08"),
        ("less than a month ago", "2026-10-01", ""),
        ("from March 2025 to May", "2025-03-01", "2025-05-31"),
        ("between March and May 2023", "2023-03-01", "2023-05-31"),
        ("from 20 December to 5 January", "2025-12-20", "2026-01-05"),
        ("from June to now", "2026-06-01", "2026-11-20"),
        ("3 May and later", "2026-05-03", ""),
        ("June or earlier", "", "2026-06-30"),
        ("on or before 3 May", "", "2026-05-03"),
        ("no later than June", "", "2026-06-30"),
        ("not before 2025", "2025-01-01", ""),
        ("older than June", "", "2026-05-31"),
        ("before the end of June", "", "2026-06-30"),
        ("since the end of 2024", "2024-07-01", ""),
        ("the week before last", "2026-11-02", "2026-11-08"),
        ("by the end of 2025", "", "2025-12-31"),
    ],
)
def test_a_period_in_other_words(question: str, first: str, last: str) -> None:
    assert of(question) == [(first, last)]


@check_rows(
    "question",
    [
        "release 1.2.20",
        "broken since 1.2.20",
        "upgrade from 18.2.20 to 20.1.10",
        "we are on 18.2.20",
        "v1.1.2026 or 10.12.2024.1 or 10.0.0.1:2024",
        "in 2024.1 or since 2024.05",
        "ticket 2024-05",
        "chapter 4 May",
        "docs/2025-05-04/notes.md, june.txt, src/june/x.py, 2026-05-04.log",
        "port 2024, issue 2024, #2024, RFC 2026, $2000",
        "May 5 users",
        "march 3 containers",
        "the 5 may users",
        "3 may fail",
        "of which 2 may fail",
        "Jan 5 tickets",
        "versions 2 and 3 may fail",
        "chmod oct 755",
        "hex 10 dec 16",
        "in 2000 characters",
        "a limit of 2000",
        "from 1995 to 2000 ms",
        "from 2000 to 4000",
        "between 1000 and 2000",
        "in the fiscal year 2025",
        "this may be wrong",
        "this may have failed",
        "in Spring Security",
        "April's phone number",
        "ask June about the key",
        "the sun, on sat",
        "Q2: what is it",
        "question Q1",
        "half a year ago",
        "one or two weeks ago",
        "the last week of the trip",
        "the day after 3 May",
        "the week before last Friday",
        "next June, next week, tomorrow, every May, each Tuesday and Friday",
        "not in June",
        "everything except June",
        "not until June",
        "by Friday",
        "what is due in June",
        "what will we release on Friday",
        "can I deploy on Friday",
        "Monday's standup",
        "week 3 of the course",
        "for three days, within 3 days, in two weeks",
    ],
)
def test_what_only_looks_like_a_period(question: str) -> None:
    read = read_periods(question, NOW)
    assert (read.periods, read.topic, read.without_relative, read.date_words) == ((), question, question, "")


def test_a_moment_is_a_day_in_the_zone_of_who_asks() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=5)))
    (period,) = named_periods("2026-05-04T20:00Z", east)
    assert period.start == datetime(2026, 5, 5, tzinfo=east.tzinfo)


def test_two_days_of_the_week_are_two_periods() -> None:
    assert of("on Monday or Tuesday") == [("2026-11-16", "2026-11-16"), ("2026-11-17", "2026-11-17")]


@check_rows(
    "question",
    [
        "how much may we spend",
        "may I march on",
        "what may we do and may we retry",
        "who tends to fall behind",
        "how to march on",
        "what did we say to Jan",
        "what did April say?",
        "what does June do",
        "can I release on a Friday",
        "why does the build fall over",
        "before the release",
        "after lunch",
        "version 3.11.2 or 10.0.0.1",
        "error 2024",
        "ticket tw-2026-07",
        "since when",
        "31 February",
        "in a year of 0 days",
        "the next week",
        "a day in the life",
        "",
    ],
)
def test_what_is_no_period(question: str) -> None:
    assert of(question) == []


@check_rows(
    ("question", "rest", "kept", "dates"),
    [
        ("What did we decide last week?", "What did we decide ?", "What did we decide ?", ""),
        ("Which were made before June?", "Which were made ?", "Which were made before June?", ""),
        ("What broke between 20 and 31 July?", "What broke ?", None, "20 and 31 July"),
        ("What was fixed in June about ETAs?", "What was fixed about ETAs?", None, ""),
        ("Who owns the ledger?", None, None, ""),
        ("on 2026-13-45 or 31 February", None, None, ""),
    ],
)
def test_a_question_without_its_periods(question: str, rest: str | None, kept: str | None, dates: str) -> None:
    read = read_periods(question, NOW)
    assert read.topic == (question if rest is None else rest)
    assert read.date_words == dates
    if kept is not None:
        assert read.without_relative == kept


def test_a_date_that_can_be_read_in_two_ways_is_both() -> None:
    assert of("on 3/4/2026") == [("2026-03-04", "2026-03-04"), ("2026-04-03", "2026-04-03")]


def test_two_dates_that_are_not_joined_are_two_periods() -> None:
    assert of("compare what was in June with 3 July") == [("2026-06-01", "2026-06-30"), ("2026-07-03", "2026-07-03")]


def test_what_is_over() -> None:
    assert [each.is_over(NOW) for each in named_periods("yesterday, today, since May, before May", NOW)] == [
        True,
        False,
        False,
        True,
    ]


@given(days)
def test_every_form_of_a_date_is_that_day(day: date) -> None:
    forms = ["{:%Y-%m-%d}", "{:%d.%m.%Y}", "{:%d %B %Y}", "{:%B %d, %Y}", "{:%d %b %Y}", "{:%Y/%m/%d}"]
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    for form in forms:
        assert named_periods(f"what happened on {form.format(day)}?", NOW) == (Period(start, start + timedelta(1)),)


@given(days)
def test_named_periods_before_on_after_divide_all_time(day: date) -> None:
    words = ("before", "on", "after", "since", "until")
    (before,), (on,), (after,), (since,), (until,) = (named_periods(f"{word} {day}", NOW) for word in words)
    assert (before, after) == (Period(None, on.start), Period(on.end, None))
    assert (since, until) == (Period(on.start, None), Period(None, on.end))


@given(days, days)
def test_between_two_days_lies_each_from_the_first_to_the_second(one: date, other: date) -> None:
    first, last = sorted((one, other))
    (period,) = named_periods(f"between {first} and {last}", NOW)
    assert period == (*named_periods(f"since {first}", NOW), *named_periods(f"until {last}", NOW))[0]._replace(
        end=named_periods(f"until {last}", NOW)[0].end
    )


@given(st.text(max_size=300), st.dates(date(1, 1, 1), date(9998, 1, 1)))
def test_any_text_at_any_time_names_periods_that_begin_before_they_end(text: str, today: date) -> None:
    now = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    for period in named_periods(text, now):
        assert period.start is None or period.end is None or period.start < period.end


WORDS = (
    "before after since between and to last this week 3 31 july may 2026 on from days ago . - / q1 summer the of "
    "monday friday few half h2 year by not until 2026-05-04T10:00Z 2025-W32 weekend hours 1.2.20 users"
)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=12), st.dates(date(2, 1, 1)))
def test_any_words_of_time_name_periods_that_begin_before_they_end(words: list[str], today: date) -> None:
    now = datetime(today.year, today.month, today.day, 12, tzinfo=UTC)
    for period in named_periods(" ".join(words), now):
        assert period.start is None or period.end is None or period.start < period.end


def test_a_long_text_is_no_question() -> None:
    assert named_periods("on 2026-07-24 " * 1_000, NOW) == ()
