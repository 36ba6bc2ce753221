"""Signed spans of words: found in whatever form, by nobody without the key."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.journal.purged_spans import BAR, PurgedSpans, sign_spans, sum_spans
from tests.rows import check_rows

KEY = bytes(range(32))
SAID = "Ann's salary is seventy-two thousand a year."
LONG = " ".join(f"word{number}" for number in range(137))


WORDS = ["ann", "Ann's", "salary", "été", "42", "a\nb", "x_y", "&amp;", '"quoted"', "back\\slash", "東京", "end."]


@settings(deadline=None)
@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join), max_size=20),
    purged=st.lists(st.lists(st.sampled_from(WORDS), min_size=3, max_size=6).map(" ".join), max_size=4),
)
def test_find_returns_all_texts_with_stretches(texts: list[str], purged: list[str]) -> None:
    signed, sums = sign_spans(KEY, purged), sum_spans(KEY, purged)
    spans = PurgedSpans(KEY, signed, sums=sums)
    lines = [json.dumps({"content": text}, ensure_ascii=False).encode() for text in texts]
    expected = {place for place, text in enumerate(texts) if PurgedSpans(KEY, signed).count(text)}
    assert expected <= set(spans.find(lines))
    assert [spans.hide(text) for text in texts] == [PurgedSpans(KEY, signed).hide(text) for text in texts]


def finder(*texts: str, key: bytes = KEY, **options: object) -> PurgedSpans:
    return PurgedSpans(key, sign_spans(KEY, texts), **options)  # type: ignore[arg-type]


@check_rows("known", [False, True])
@check_rows(
    "text",
    [
        "ANN\u2019S SALARY  is seventy-two\nthousand a year",
        "Ann's salary: is seventy - two, thousand a year!",
        "\uff21nn's s\u00e1lary is \u200bseventy-two thousand a year",
        "Ann\\u0027s salary is seventy-two thousand a year",
    ],
)
def test_the_words_are_found_however_they_are_written(text: str, known: bool) -> None:
    found = finder(SAID, texts=[SAID] if known else ())
    assert found.count(f"Minutes. {text} The crane.") == 1
    hidden = found.hide(f"Minutes. {text} The crane.")
    assert hidden.startswith(f"Minutes. {BAR}")
    assert "The crane." in hidden
    assert "thousand" not in hidden


@check_rows("text", ["", "Ann's salary is seventy-two thousand a day.", "anns salary", "\ud83d\ude00"])
def test_other_words_stay(text: str) -> None:
    assert finder(SAID).hide(text) == text


def test_without_the_key_or_with_another_nothing_is_found() -> None:
    assert not finder(SAID, key=b"")
    assert finder(SAID, key=bytes(32)).count(SAID) == 0
    assert not PurgedSpans()


def test_of_a_long_text_each_stretch_is_found_by_itself() -> None:
    found = finder(LONG)
    assert found.count(LONG) == 3
    assert found.hide(LONG).replace(BAR, "").strip() == ""
    middle = " ".join(LONG.split()[40:80])
    assert found.hide(f"So: {middle} end") == f"So: {BAR * len(middle)} end"


def test_scripts_without_spaces_are_found_within_a_line() -> None:
    said = "\u6211\u4eec\u51b3\u5b9a\u4f7f\u7528\u6570\u636e\u5e93"
    assert finder(said).hide(f"\u6628\u5929{said}\u4e86") == f"\u6628\u5929{BAR * len(said)}\u4e86"


def test_what_is_too_short_is_not_signed_and_signatures_say_nothing() -> None:
    assert sign_spans(KEY, ["Zed owes 5", ""]) == {}
    (count,) = sign_spans(KEY, [SAID])
    assert count == 8
    assert "salary" not in str(sign_spans(KEY, [SAID]))
    assert sign_spans(KEY, [SAID]) != sign_spans(bytes(32), [SAID])


@check_rows("text", ["'" * 20, "\\" * 15 + "7", "- " * 20 + "7", "x9$%^&*()!@#=+7"])
def test_what_signs_alone_make_long_is_not_signed(text: str) -> None:
    assert sign_spans(KEY, [text]) == {}
