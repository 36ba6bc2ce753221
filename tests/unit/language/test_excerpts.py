"""Of a long text the sentences are shown that say most about a question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.index import GAP, excerpt
from agent_memory.language.text_forms import embedded_texts
from agent_memory.language.words import index_terms
from tests.rows import check_rows

LINES = [
    "The team eats together on Fridays.",
    "Releases go out on Tuesdays at ten.",
    "Priya looks after the billing service.",
    "The staging database is copied every night.",
    "Nobody merges without a second pair of eyes.",
]
NOTE = "\n".join(LINES)
PROSE = (
    "Retry budget of the ledger\n"
    "Chosen after the outage in March, when every client came back at once. The budget is five attempts in a minute. "
    "Two engineers looked at it and came to the same number. The dashboard shows how much of it each client uses. "
    "A ticket exists in the tracker, with less context than this."
)


def words(*terms: str) -> dict[str, float]:
    return dict.fromkeys(terms, 1.0)


def test_a_text_that_fits_is_whole() -> None:
    assert excerpt(NOTE, words("releas"), len(NOTE)) == NOTE


def test_the_line_that_holds_the_words_is_shown_and_gaps_are_marked() -> None:
    assert excerpt(NOTE * 3, words("releas", "tuesday"), 40).startswith(f"{GAP.strip()} {LINES[1]}")
    assert excerpt(f"{LINES[1]}\n{NOTE}", words("releas", "tuesday"), 40).endswith(f" {GAP.strip()}")


def test_what_is_shown_keeps_its_order() -> None:
    shown = excerpt("\n".join([*LINES, *["Filler that says nothing at all."] * 20]), words("night", "friday"), 90)
    assert shown == f"{LINES[0]}{GAP}{LINES[3]}{GAP}".strip()


def test_sentences_that_say_little_are_left_out_once_enough_is_shown() -> None:
    text = "\n".join([LINES[1], *[f"Filler number {number} says nothing at all." for number in range(30)]])
    shown = excerpt(text, words("releas", "tuesday"), len(text) - 1)
    assert LINES[1] in shown
    assert 240 <= len(shown) < 320


def test_rare_words_count_more() -> None:
    shown = excerpt(NOTE * 2, {"databas": 1.0, "bill": 5.0}, 45)
    assert LINES[2] in shown
    assert LINES[3] not in shown


def test_a_title_says_what_the_rest_is_about() -> None:
    shown = excerpt(PROSE, words("attempt", "minut"), 120)
    assert shown.startswith("Retry budget of the ledger")
    assert "The budget is five attempts in a minute." in shown


def test_the_nearest_piece_is_shown_where_no_word_is_shared() -> None:
    text = "\n".join(f"Sentence number {number} of this long note tells of matter {number}." for number in range(30))
    pieces = embedded_texts(text)
    assert len(pieces) > 3
    nearness = [0.1] * len(pieces)
    nearness[2] = 0.9
    shown = excerpt(text, {}, 80, nearness)
    assert shown.strip(f"{GAP} ").split("\n")[0] in pieces[2]


def test_the_cosine_of_a_title_is_none_of_a_sentence() -> None:
    text = PROSE + " Nobody has asked for more so far, and nobody is expected to do so before the next summer."
    pieces = embedded_texts(text)
    assert pieces[-1] == "Retry budget of the ledger"
    shown = excerpt(text, {}, 120, [*[0.0] * (len(pieces) - 2), 0.9, 0.1])
    assert "A ticket exists in the tracker" in shown  # of the last piece, as is the other one


def test_cosines_that_are_not_those_of_its_pieces_count_nothing() -> None:
    assert excerpt(NOTE * 3, words("bill"), 45, [0.1, 0.9]) == excerpt(NOTE * 3, words("bill"), 45)


def test_a_sentence_without_end_is_cut_around_its_words() -> None:
    text = " ".join(["filler"] * 200 + ["password", "policy"] + ["filler"] * 200)
    shown = excerpt(text, words("password", "polici"), 100)
    assert "password policy" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) < 200


@check_rows("text", ["あ" * 500, "x" * 2_000, "\n" * 300 + "a" * 300])
def test_a_text_without_spaces_is_cut_somewhere(text: str) -> None:
    assert 0 < len(excerpt(text, words("x"), 100)) <= 200


@given(st.text(max_size=600), st.integers(1, 200), st.sets(st.sampled_from(["tea", "ledger"])))
def test_an_excerpt_holds_nothing_that_the_text_does_not(text: str, room: int, terms: set[str]) -> None:
    shown = excerpt(text, words(*terms), room)
    rest = text
    for part in shown.replace("…", GAP).split(GAP):
        if part.strip():
            at = rest.find(part.strip())
            assert at >= 0 or "…" in text
            rest = rest[max(0, at) :]


def test_of_a_line_without_spaces_the_stretch_is_shown_that_holds_the_words() -> None:
    filling = "\u4f1a\u8b70\u306e\u8a18\u9332\u306f\u7d9a\u304d\u307e\u3059\u3001" * 300
    asked, told = "\u5009\u5eab\u306e\u9375\u756a\u53f7", "\u306f\u4e03\u56db\u4e8c\u3067\u3059\u3001"
    shown = excerpt(f"{filling}{asked}{told}{filling}", dict.fromkeys(index_terms(asked), 1.0), 300)
    assert f"{asked}{told}" in shown
    assert len(shown) <= 310
    pairs = ",".join(f"key{number}=v{number}" for number in range(1_500)).replace("key700=v700", "depot=north")
    assert "depot=north" in excerpt(pairs, words("depot"), 300)


@check_rows("sign", ["e\u0301", "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd"])
@check_rows("behind", range(7))
def test_a_cut_takes_no_sign_apart(sign: str, behind: int) -> None:
    shown = excerpt("x" * behind + sign * 600, words("family"), 160)
    assert shown.endswith(f"{sign}{GAP.rstrip()}")


def test_a_stretch_that_reaches_the_end_says_of_nothing_left_out_behind_it() -> None:
    text = "word " * 60 + "zebra " + "thing " * 10 + "lion"
    assert excerpt(text, words("zebra", "lion"), 100).endswith("thing lion")
