"""A text in tokens: what the table of pieces tells is what reading each token tells."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from agent_memory.times.reading.languages import lexicon_of
from agent_memory.times.reading.pieces import CAREFULLY, Pieces
from agent_memory.times.reading.tokens import each_token, tokens

WORDS = """
    3 12 6323 1999 2024-05-03 5/3 3.5.2023 10:30 7pm 3rd 1990s Q3 2016H2 W05 v3.1 20161016 $5 1,000 2024-05-03T10:00Zoe
    may May march June second twenty one hundred the on in of since last Friday week weeks ago April Jones don't
    today's o'clock mother's s pm a p q h Q _x x_ foo.day day(1)
    A\u00f1o ma\u00f1ana vor Woche \u00e9t\u00e9 \u00b2 \u0663 , . - / ( ) ' \u2019 _ " ~ @
"""
PIECES = st.sampled_from(WORDS.split())
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from(["", " ", " ", " ", "  ", "\n", "\n\n", "\n \n", ", "]))).map(
    lambda some: "".join(word + gap for word, gap in some)
)


@given(TEXTS, st.sampled_from(["en", "de", "es", "fr"]))
@example("See you at 5 pm's, in May  ", "en")
@example("in August\n\nWe left", "en")
@example("a" * 39 + "may 2020 models", "en")
def test_pieces_tell_what_each_token_tells(text: str, language: str) -> None:
    lexicon = lexicon_of(language)
    told, read = (
        [(each.start, each.end, dict(each.tags)) if each.tags else None for each in way(text, lexicon)]
        for way in (tokens, each_token)
    )
    assert told == read


def test_of_words_and_marks_that_name_no_time_nothing_is_made() -> None:
    lexicon = lexicon_of("en")
    assert [(each.start, dict(each.tags)) for each in tokens('Nobody "knows" Bob; really', lexicon)] == [(0, {})]


def test_the_table_keeps_no_more_than_it_may() -> None:
    asked = []

    def tags(word: str) -> dict[str, int]:
        asked.append(word)
        return {}

    pieces = Pieces(tags)
    assert pieces["word"] == pieces["word"] == {}
    assert asked == ["word"]  # the second time it was known
    for at in range(9_000):
        assert pieces["".join(chr(ord("a") + int(digit)) for digit in f"{at:06}")] == {}
    assert len(pieces) <= 8_192
    assert pieces["x" * 50] is CAREFULLY  # more than one token
    assert "x" * 50 not in pieces
