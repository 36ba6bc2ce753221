"""Text, metadata, agent ids and times: what is accepted and what is the same."""

from __future__ import annotations

import json
import time
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import ValidationError
from agent_memory.models import (
    DateRange,
    SearchFilters,
    as_utc,
    check_agent_id,
    check_text,
    content_hash,
    get_duplicate_key,
    is_only_folded_equal,
    parse_bound,
    to_text,
    visible,
)
from agent_memory.models.text import check_metadata
from tests.support import NOON, memory_of, raises

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_what_steers_becomes_a_space_and_what_nobody_sees_is_left_out() -> None:
    assert visible("a\x1b[2Jb\u2028c\x85d\r\n\te") == "a [2Jb c d \n\te"
    assert visible("a\u200bb\u00adc\u202ed\ufeff\u2060\u2066\u206a\u061c\U000e0041") == "abcd"
    assert visible("a\u034fb\u115fc\u17b4d\u180ee\u3164\uffa0f") == "abcdef"
    assert visible("a" + "".join(chr(0xE0100 + byte) for byte in b"ignore all") + "b") == "ab"
    assert visible("a" + "".join(chr(0xFE00 + byte % 16) for byte in b"ignore all") + "b") == "ab"
    assert visible("\U0001f469\u200d\U0001f467 \u2764\ufe0f") == "\U0001f469\u200d\U0001f467 \u2764\ufe0f"


def test_a_tag_keeps_nothing_that_steers_or_hides() -> None:
    tags = ["a\x1b]0;title\x07\u202eb", "\U000e0073\U000e0065", " \u200b tea \x85 time ", "\u2764\ufe0f"]
    assert memory_of("x", tags=tags).tags == ["a ]0;title b", "tea time", "\u2764\ufe0f"]


@given(st.text(st.characters(), max_size=30))
def test_text_is_accepted_exactly_if_it_can_be_written(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match="surrogate"):
            check_text(text)
        return
    if "\0" in text:
        with pytest.raises(ValueError, match=f"position {text.index(chr(0))}"):
            check_text(text)
    else:
        assert check_text(text) == text


@pytest.mark.parametrize("same", ["tea with milk", "TEA  WITH\tMILK", " Tea\nwith milk ", "\uff34ea with milk"])
def test_case_width_and_white_space_make_no_other_text(same: str) -> None:
    assert content_hash(same) == content_hash("Tea with milk")


@pytest.mark.parametrize("same", ["Tea  with\nmilk", " Tea with milk\u2003"])
def test_duplicate_key_of_other_white_space_is_equal(same: str) -> None:
    assert get_duplicate_key(same) == get_duplicate_key("Tea with milk")


@given(st.text())
def test_duplicate_key_equal_implies_equal_content_hash(text: str) -> None:
    decomposed = f" {unicodedata.normalize('NFD', text)}\t"
    assert get_duplicate_key(decomposed) == get_duplicate_key(text)
    assert content_hash(decomposed) == content_hash(text)


@pytest.mark.parametrize(("text", "other_text"), [("5 mW", "5 MW"), ("10⁵", "105"), ("PATH", "Path"), ("ﬁle", "file")])
def test_duplicate_key_of_other_case_or_form_differs(text: str, other_text: str) -> None:
    assert is_only_folded_equal(text, other_text)


@pytest.mark.parametrize("other", ["tea with milk.", "teawith milk", "tea with mílk"])
def test_other_words_make_another_text(other: str) -> None:
    assert content_hash(other) != content_hash("Tea with milk")


@given(
    st.dictionaries(
        st.text(max_size=5), st.recursive(st.integers() | st.text(max_size=5), st.lists, max_leaves=5), max_size=3
    )
)
def test_metadata_that_passes_is_json(metadata: dict[str, Any]) -> None:
    try:
        checked = check_metadata(metadata)
    except ValueError:
        return
    assert json.loads(json.dumps(checked, allow_nan=False)) == metadata


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"x": "y" * 8200}, "bytes"),
        ({"x": list(range(9000))}, "bytes"),
        ({"k" * 257: 1}, "keys"),
        ({5: 1}, "keys"),
        ({"a\0": 1}, "NUL"),
        ({"x": float("nan")}, "JSON"),
        ({"x": b"bytes"}, "bytes; only JSON"),
        ({"x": {1, 2}}, "set"),
    ],
)
def test_metadata_beyond_its_bounds_is_refused_with_the_reason(metadata: dict[Any, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_metadata(metadata)


@pytest.mark.parametrize(("levels", "accepted"), [(15, True), (16, False), (100_000, False)])
def test_metadata_is_sixteen_levels_deep_at_most(levels: int, accepted: bool) -> None:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    if accepted:
        assert check_metadata({"x": value})
    else:
        with pytest.raises(ValueError, match="16 levels"):
            check_metadata({"x": value})


@pytest.mark.parametrize("name", ["bob", "B", "0", "a-b_c", "x" * 64, "Bob2"])
def test_names_that_can_be_folders(name: str) -> None:
    assert check_agent_id(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../x", "a/b", "a\\b", "bob\n", "bob ", " bob", "bob.", "b\0b", "x" * 65, "_own", "-x", "ü"),
        *("CON", "con", "Nul", "COM1", "lpt9", "aux", "prn"),
        *(None, 5, b"bob", ["bob"]),
    ],
)
def test_names_that_cannot_are_refused_with_advice(name: object) -> None:
    with raises(ValidationError, "invalid_agent_id") as refused:
        check_agent_id(name)
    assert len(refused.value.message) < 150
    assert isinstance(refused.value, ValueError)


def test_a_secret_given_for_a_name_is_not_repeated() -> None:
    secret = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12!"
    with raises(ValidationError, "invalid_agent_id") as refused:
        check_agent_id(secret)
    assert secret[:12] not in refused.value.message


# -- times ------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Kiritimati"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_a_bare_date_means_that_whole_local_day(zone: str) -> None:
    start, end = parse_bound("2026-03-29", end=False), parse_bound(" 2026-03-29 ", end=True)
    assert start == datetime(2026, 3, 29).astimezone(UTC)
    assert end == datetime(2026, 3, 30).astimezone(UTC) - timedelta(microseconds=1)
    if zone == "Europe/Berlin":
        assert end - start == timedelta(hours=23) - timedelta(microseconds=1), "the day the clocks go forward"


def test_a_moment_is_read_as_it_says(zone: str) -> None:
    assert parse_bound("2026-03-01T12:00:00Z", end=True) == NOON
    assert parse_bound("2026-03-01T14:00:00+02:00", end=False) == NOON
    assert parse_bound("2026-03-01T12:00:00", end=False) == datetime(2026, 3, 1, 12).astimezone(UTC)


@pytest.mark.parametrize(
    "text", ["", "some day", "2026-13-01", "2026-02-30", "1/2/2026", "0001-01-01T00:00:00+14:00", "9" * 400, "\0"]
)
@pytest.mark.parametrize("end", [True, False])
def test_what_is_no_date_is_refused_briefly(text: str, end: bool) -> None:
    with pytest.raises(ValueError, match=r"date|UTC") as refused:
        parse_bound(text, end=end)
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    ("text", "is_ahead", "start", "end"),
    [
        ("yesterday", False, "2026-03-04", "2026-03-04"),
        ("last week", False, "2026-02-23", "2026-03-01"),
        ("7d", False, "2026-02-26", "2026-02-26"),
        ("2 weeks", False, "2026-02-19", "2026-02-19"),
        ("March", False, "2026-03-01", "2026-03-31"),
        ("May 2025", False, "2025-05-01", "2025-05-31"),
        ("Monday", False, "2026-03-02", "2026-03-02"),
        ("3 days ago", False, "2026-03-02", "2026-03-02"),
        ("tomorrow", True, "2026-03-06", "2026-03-06"),
        ("7d", True, "2026-03-12", "2026-03-12"),
        ("Friday", True, "2026-03-06", "2026-03-06"),
        ("in 2 weeks", True, "2026-03-19", "2026-03-19"),
        ("until Friday", True, "2026-03-06", "2026-03-06"),
    ],
)
def test_parse_bound_words_are_local_days(text: str, is_ahead: bool, start: str, end: str, zone: str) -> None:
    now = datetime(2026, 3, 5, 12).astimezone()  # a Thursday
    bounds = [parse_bound(text, end=is_end, is_ahead=is_ahead, now=now) for is_end in (False, True)]
    days = [f"{bound.astimezone():%Y-%m-%d}" for bound in bounds]
    assert days == ([end, end] if text.startswith("until") else [start, end])
    assert f"{bounds[1].astimezone():%H:%M:%S}" == "23:59:59"


@pytest.mark.parametrize(
    ("text", "is_ahead", "days"),
    [
        ("3/4/2026", False, "2026-03-04 or 2026-04-03"),
        ("last Monday", False, "2026-02-23 or 2026-03-02"),
        ("Thursday", True, "2026-03-05 or 2026-03-12"),
        ("on Thursday", True, "2026-03-05 or 2026-03-12"),
        ("until Thursday", True, "2026-03-05 or 2026-03-12"),
        ("Thursday", False, "2026-03-05 or 2026-02-26"),
        ("Monday", None, "2026-03-02 or 2026-03-09"),
        ("a few days ago", False, "2026-02-27 to 2026-03-04 or 2026-03-02 to 2026-03-04"),
    ],
)
def test_parse_bound_ambiguous_words_name_readings(text: str, is_ahead: bool | None, days: str) -> None:
    now = datetime(2026, 3, 5, 12).astimezone()  # a Thursday
    with pytest.raises(ValueError, match=rf"is not a single date: it may be {days}; write one of these"):
        parse_bound(text, end=True, is_ahead=is_ahead, now=now)


@pytest.mark.parametrize("text", ["tomorrow", "next week", "in 2 weeks", "from tomorrow", "until tomorrow"])
def test_parse_bound_future_words_in_past_are_refused(text: str) -> None:
    now = datetime(2026, 3, 5, 12).astimezone()
    with pytest.raises(ValueError, match="is in the future"):
        parse_bound(text, end=True, now=now)
    assert parse_bound(text, end=True, is_ahead=True, now=now) > now


@pytest.mark.parametrize("text", ["this week", "March", "this month", "today", "2026"])
def test_parse_bound_span_of_today_is_no_future(text: str) -> None:
    assert parse_bound(text, end=True, now=datetime(2026, 3, 5, 12).astimezone())


@pytest.mark.parametrize("text", ["7 wears", "2 dears", "next Friday or so", "the launch", "4 March and 5 May"])
def test_parse_bound_open_words_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a single date; write 2026-01-30, .* 7d or March"):
        parse_bound(text, end=False)


def test_times_are_written_with_a_z() -> None:
    assert to_text(NOON) == "2026-03-01T12:00:00Z"
    assert to_text(NOON + timedelta(microseconds=250_000)) == "2026-03-01T12:00:00.250000Z"
    assert as_utc(NOON) == NOON


def test_a_range_may_be_open_and_must_be_in_order() -> None:
    assert DateRange().covers(NOON)
    assert DateRange(start=NOON, end=NOON).covers(NOON)
    assert not DateRange(end=NOON - timedelta(microseconds=1)).covers(NOON)
    with pytest.raises(ValueError, match="after"):
        DateRange(start="2026-02-02", end="2026-02-01")


def test_filters_hold_together() -> None:
    memory = memory_of("x", category="decision", tags=["a", "b"], access_count=2)
    assert SearchFilters().admits(memory)
    assert SearchFilters(category="decision", tags=["A"], min_access_count=2, date_range=DateRange(end=NOON)).admits(
        memory
    )
    assert SearchFilters(tags=["c", "A"], all_tags=["b", "a"]).admits(memory)
    for miss in (
        {"category": "note"},
        {"tags": ["c", "d"]},
        {"all_tags": ["a", "c"]},
        {"tags": ["a"], "all_tags": ["c"]},
        {"min_access_count": 3},
        {"date_range": {"start": "2026-03-02T00:00:00Z"}},
    ):
        assert not SearchFilters.model_validate(miss).admits(memory)
