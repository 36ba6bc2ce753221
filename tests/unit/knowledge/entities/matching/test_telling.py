"""What tells one thing from another of nearly the same name."""

from __future__ import annotations

from agent_memory.knowledge.entities.matching.profiles import (
    find_codes,
    find_marks,
    find_models,
    find_opposed,
    is_measure,
    is_rich,
    opposite,
    variant,
)
from tests.rows import check_rows


@check_rows(
    ("text", "codes"),
    [
        ("panasonic th-42px80u 42' plasma", {"th42px80u", "42px80u"}),
        ("Garmin case 010-10704-00", {"0101070400", "10704"}),
        ("battery 260236 mb745ll/a", {"260236", "mb745lla", "mb745ll"}),
        ("16gb card 1080p 5.1 channel 2007 7th", set()),
        ("auth-service-1234", set()),
        ("release 2024-05, minutes 12/05/2024 and 2024-05-12, macOS 10.15.7", set()),
        ("no digits at all", set()),
    ],
)
def test_codes_are_written_without_hyphens_and_measures_are_none(text: str, codes: set[str]) -> None:
    assert find_codes(text) >= codes
    assert bool(find_codes(text)) == bool(codes)


@check_rows(
    ("text", "models"),
    [
        ("panasonic th-42px80u 42' plasma", {"th42px80u", "42px80u"}),
        ("battery mb745ll/a 260236", {"mb745lla", "mb745ll"}),
        ("training kit exams 70-292 and 29180248", set()),
        ("vault360 combo, ws_ftp wd-1000-0900", set()),
        ("distiller v6-cd for 500u", set()),
    ],
)
def test_numbers_of_makers_mix_letters_and_digits(text: str, models: set[str]) -> None:
    assert find_models(text) == models


def test_a_code_with_one_digit_names_what_many_belong_to() -> None:
    assert is_rich("th42px80u")
    assert not is_rich("log4j")


def test_a_variant_goes_on_where_the_other_ends() -> None:
    assert variant("ystfsw100", "ystfsw100bk")
    assert variant("liionpsbls1", "psbls1")
    assert not variant("ts16gjfv10", "ts8gjfv10")
    assert not variant("abc1", "abc1")
    assert not variant("a1b", "a1bc")


def test_measures_are_numbers_with_units() -> None:
    assert all(map(is_measure, ["16gb", "7th", "1080p", "13.5mm"]))
    assert not any(map(is_measure, ["th42", "gb", "16", "16gbx"]))


def test_opposites_are_of_one_line_and_not_spellings_of_one() -> None:
    assert opposite("staging", "production")
    assert opposite("prod", "staging")
    assert not opposite("prod", "production")
    assert not opposite("staging", "left")
    assert not opposite("lamp", "chair")
    assert find_opposed(["db", "left"], ["right", "db"]) == {"left"}


def test_marks_are_digits_single_letters_and_negations() -> None:
    assert find_marks(["team", "a", "v2", "not", "ガ"]) == {"a", "v2", "not", "ガ"}
