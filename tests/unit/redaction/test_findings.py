"""Groups of lines are the whole text, and a search around literals finds what a search of the whole text finds."""

from __future__ import annotations

import itertools
import re
import re._constants as tokens  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.redaction import SecretRedactor, contexts, keywords, providers
from agent_memory.redaction.findings import (
    iter_digit_matches,
    iter_line_groups,
    iter_matches,
    lower_letters,
    merge_spans,
)
from tests.rows import check_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LINES = "\n".join(f"Line {number} of a long text about nothing at all." for number in range(400))
UNKNOWN = "\0"
MOST_FORMS = 200_000


def test_line_groups_of_a_long_text_are_the_text() -> None:
    groups = list(iter_line_groups(LINES))
    assert len(groups) > 1
    assert "".join(LINES[start:stop] for start, stop in groups) == LINES
    assert all(LINES[stop : stop + 1] in {"", "\n"} for _, stop in groups)


def test_line_groups_of_one_long_line_are_one() -> None:
    assert list(iter_line_groups("x" * 9_000)) == [(0, 9_000)]
    assert list(iter_line_groups("")) == []


def test_redactor_long_text_finds_codes_in_each_group() -> None:
    codes = ("gate code: 4711", "unlock it with 915377", "recovery codes: a1b2-c3d4")
    text = "\n".join(f"{LINES}\n{code}" for code in codes)
    cleaned = SecretRedactor().redact(text).text
    assert [secret for secret in ("4711", "915377", "a1b2-c3d4") if secret in cleaned] == []


@given(st.text(alphabet="kK=x \n", max_size=60))
def test_matches_around_literals_equal_all_matches(text: str) -> None:
    pattern = re.compile(r"(?i)(?<!x)\bk\s{0,2}=\n?x(?!x)")
    around = [match.span() for match in iter_matches(pattern, ("k",), text, lower_letters(text), 3)]
    assert around == [match.span() for match in pattern.finditer(text)]


@given(st.text(alphabet="a1\u0663 \n", max_size=60), st.integers(0, 900))
def test_matches_with_digits_equal_all_matches(text: str, length: int) -> None:
    long = f"{text}\n{'a' * length}\n{text}"
    pattern = re.compile(r"(?<!a)\d[a ]{0,3}(?!\d)")
    matches = [match.span() for match in iter_digit_matches(pattern, long)]
    assert matches == [match.span() for match in pattern.finditer(long)]


def test_matches_of_many_literals_come_once() -> None:
    text = "a1 b2\n\nb1\nc"
    pattern = re.compile(r"[ab]\d")
    assert [match[0] for match in iter_matches(pattern, "ab12", text, line_breaks=1)] == ["a1", "b2", "b1"]


@given(st.text())
def test_lower_letters_keep_their_places(text: str) -> None:
    assert len(lower_letters(text + "\u0130 K")) == len(text) + 3
    assert lower_letters(f"{text}\u0130 K").endswith("\u0130 k")


def test_spans_that_overlap_are_merged() -> None:
    assert list(merge_spans([(5, 9), (-3, 2), (1, 4), (7, 12)])) == [(0, 4), (5, 12)]


def list_searches() -> Iterator[tuple[re.Pattern[str], Iterable[str], int, bool]]:
    """Yield each pattern that is searched around literals, and whether they are sought in lower case."""
    for form in (*providers.FORMS, *contexts.FIRST_FORMS, *contexts.LAST_FORMS):
        if form.line_breaks is not None:
            yield form.pattern, form.starts, form.line_breaks, form.ignores_case
    for _, stem, pattern in keywords.WORDS:
        yield pattern, (stem,), keywords.LINE_BREAKS, True
    yield contexts.CODES, contexts.STEMS, 0, True


SEARCHES = list(list_searches())


@check_rows(("pattern", "literals", "line_breaks", "is_lowered"), SEARCHES)
def test_search_each_match_holds_a_literal(
    pattern: re.Pattern[str], literals: Iterable[str], line_breaks: int, is_lowered: bool
) -> None:
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    assert count_line_breaks(tree) <= line_breaks
    forms = expand(tree, literals)
    forms = [form.lower() for form in forms] if is_lowered else forms
    assert [form for form in forms if not any(literal in form for literal in literals)] == []


def test_search_without_literals_is_seen() -> None:
    tree = parser.parse(r"(?:key|to[kg]en)\s{0,3}=\w")
    assert count_line_breaks(tree) == 3
    assert set(expand(tree, ())) >= {
        f"key{UNKNOWN}={UNKNOWN}",
        f"token{UNKNOWN}={UNKNOWN}",
        f"togen{UNKNOWN}={UNKNOWN}",
    }


def count_line_breaks(tree: Any) -> int:
    """Return how many line breaks a match may hold or look at; very many for an anchor at an end of the text."""
    count = 0
    for token, value in tree:
        if token is tokens.LITERAL:
            count += value == ord("\n")
        elif token is tokens.NOT_LITERAL:
            count += value != ord("\n")
        elif token is tokens.IN:
            count += re.compile(_spell_class(value)).match("\n") is not None
        elif token is tokens.AT:
            ends = {tokens.AT_END, tokens.AT_END_STRING, tokens.AT_BEGINNING_STRING}
            count += 10**6 if value in ends else 0
        elif token in {tokens.MAX_REPEAT, tokens.MIN_REPEAT, tokens.POSSESSIVE_REPEAT}:
            count += int(value[1]) * count_line_breaks(value[2])
        elif token is tokens.BRANCH:
            count += max(map(count_line_breaks, value[1]))
        elif token in {tokens.SUBPATTERN, tokens.ASSERT, tokens.ASSERT_NOT}:
            count += count_line_breaks(value[-1])
    return count


def _spell_class(members: Any) -> str:
    """Return a class of letters as a pattern."""
    categories = {
        tokens.CATEGORY_SPACE: r"\s",
        tokens.CATEGORY_NOT_SPACE: r"\S",
        tokens.CATEGORY_DIGIT: r"\d",
        tokens.CATEGORY_NOT_DIGIT: r"\D",
        tokens.CATEGORY_WORD: r"\w",
        tokens.CATEGORY_NOT_WORD: r"\W",
    }
    parts: list[str] = []
    for token, value in members:
        if token is tokens.NEGATE:
            parts.append("^")
        elif token is tokens.LITERAL:
            parts.append(f"\\U{value:08x}")
        elif token is tokens.RANGE:
            parts.append(f"\\U{value[0]:08x}-\\U{value[1]:08x}")
        else:
            parts.append(categories[value])
    return f"[{''.join(parts)}]"


def expand(tree: Any, literals: Iterable[str]) -> list[str]:
    """Return the forms of what a pattern matches, with `UNKNOWN` for what is not one of few letters.

    A form that holds a literal already is not expanded further.
    """
    forms = [""]
    for token, value in tree:
        parts = _expand_token(token, value, literals)
        done = [form for form in forms if any(literal in form.lower() for literal in literals)]
        forms = [*done, *(a + b for a, b in itertools.product([form for form in forms if form not in done], parts))]
        assert len(forms) <= MOST_FORMS
    return list(dict.fromkeys(forms))


def _expand_token(token: Any, value: Any, literals: Iterable[str]) -> list[str]:
    forms = [UNKNOWN]
    if token is tokens.LITERAL:
        forms = [chr(value)]
    elif token in {tokens.AT, tokens.ASSERT, tokens.ASSERT_NOT}:
        forms = [""]
    elif token is tokens.IN and all(member[0] is tokens.LITERAL for member in value):
        forms = [chr(member[1]) for member in value]
    elif token is tokens.BRANCH:
        forms = [form for branch in value[1] for form in expand(branch, literals)]
    elif token is tokens.SUBPATTERN:
        forms = expand(value[-1], literals)
    elif token in {tokens.MAX_REPEAT, tokens.MIN_REPEAT, tokens.POSSESSIVE_REPEAT}:
        least, most, repeated = value
        more = "" if most == 1 else UNKNOWN
        forms = [*([] if least else [more]), *(form + more for form in expand(repeated, literals))]
    return forms
