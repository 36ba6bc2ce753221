"""Days: how they are filed, and how a question names them."""

from datetime import UTC, date, datetime

from agent_memory.index.terms import day_terms, named_days
from tests.rows import check_rows

NOW = datetime(2026, 1, 30, 12, tzinfo=UTC)  # a Friday


def test_a_day_is_filed_by_year_month_and_day() -> None:
    assert day_terms(date(2026, 1, 8)) == ("@2026", "@01", "@2026-01", "@01-08")


@check_rows(
    ("question", "expected"),
    [
        ("what happened on 28 January 2026?", {"@2026", "@01", "@2026-01", "@01-28"}),
        ("what happened on January 28th, 2026", {"@2026", "@01", "@2026-01", "@01-28"}),
        ("anything from 2026-01-28", {"@2026", "@01", "@2026-01", "@01-28"}),
        ("the 3rd of March", {"@03", "@03-03"}),
        ("plans for December", {"@12"}),
        ("trips in May 2023", {"@05", "@2023", "@2023-05"}),
        ("trips in May", {"@05"}),
        ("how much may we spend", set()),
        ("what did we decide yesterday", {"@2026", "@01", "@2026-01", "@01-29"}),
        ("what did we decide two weeks or 2 weeks ago", {"@2026", "@01", "@2026-01", "@01-16"}),
        ("notes from last month", {"@12", "@2025-12"}),
        ("notes from last year", {"@2025"}),
        ("notes from last Friday", {"@2026", "@01", "@2026-01", "@01-23"}),
        ("bugs of 2024", {"@2024"}),
        ("on 2026-13-45", {"@2026"}),
        ("which database", set()),
    ],
)
def test_days_named_in_a_question(question: str, expected: set[str]) -> None:
    assert named_days(question, NOW) == expected
