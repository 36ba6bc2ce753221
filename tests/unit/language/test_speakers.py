"""Who says what in a text, in whatever form it is written."""

from agent_memory.language.speakers import (
    SpeakerTurn,
    find_addressed,
    find_speakers,
    get_speaker,
    has_question,
    normalize_turn,
    parse_turn,
)
from tests.rows import check_rows


def test_who_speaks_within_one_memory() -> None:
    assert find_speakers("Ann: hi\nBen: hello\nAnn: so?\nBen: fine") == {"ann", "ben"}


@check_rows(
    "content", ["Ann: hi\nBen: hello", "Note: a\nTodo: b\nTip: c\nHint: d", "one\ntwo\nthree\nfour", "Ann: " * 9]
)
def test_nobody_speaks_within_what_is_no_talk(content: str) -> None:
    assert find_speakers(content) == frozenset()


@check_rows(("content", "speaker"), [("Caroline: hi", "caroline"), ("Speaker 2: hi", "speaker 2")])
def test_a_turn_names_its_speaker(content: str, speaker: str) -> None:
    assert get_speaker(content) == speaker


@check_rows("content", ["Note: use uv", "Decision: no", "see https://x.org", "plain", "12: no", "a:b"])
def test_what_is_no_turn(content: str) -> None:
    assert get_speaker(content) is None


@check_rows(
    "text",
    [
        "Jon: hi there",
        "**Jon:** hi there",
        "**Jon**: hi there",
        "_Jon:_ hi there",
        "- Jon: hi there",
        "> *Jon:* hi there",
        "[10:02] Jon says: hi there",
        "10:02 Jon: hi there",
        "[2023-05-08 10:02] Jon: hi there",
        "8.5.2023, 10:02 - Jon: hi there",
        "Jon (10:02 am): hi there",
        "Jon asked: hi there",
        "<Jon> hi there",
        "@Jon: hi there",
        '{"speaker": "Jon", "text": "hi there"}',
        '{"role": "Jon", "content": "hi there", "n": 1}',
    ],
)
def test_a_turn_is_one_in_whatever_form_it_is_written(text: str) -> None:
    assert parse_turn(text) == ("Jon", "hi there")
    assert normalize_turn(text) == "Jon: hi there"


@check_rows(
    "text",
    [
        "**bold** text: x",
        "10:30 standup moved",
        "Jon says he likes tea",
        '{"speaker": "Jon"}',
        '{"text": "x"}',
        "{bad",
        '{"speaker": 3, "text": "x"}',
        "**Note:** use uv",
        "",
    ],
)
def test_what_is_no_turn_stays_as_it_is(text: str) -> None:
    assert parse_turn(text) is None
    assert normalize_turn(text) == text


def test_an_object_that_nests_too_deep_is_no_turn() -> None:
    assert parse_turn('{"a":' * 100_000) is None


def test_what_an_object_names_is_text_even_where_it_escapes_half_a_surrogate_pair() -> None:
    turn = parse_turn(r'{"speaker": "K\ud800", "text": "the kiln \udfff is \ud83d\ude00 hot"}')
    assert turn == SpeakerTurn("K?", "the kiln ? is \N{GRINNING FACE} hot")


def test_a_text_calls_those_whose_names_stand_alone() -> None:
    assert find_addressed("Hey Caroline! So good. Kate, did you? It is late, Mel!") == {"caroline", "kate", "mel"}
    assert find_addressed("Good evening Kate how are you? And thanks, Mel, bye") == {"kate", "mel"}
    assert find_addressed("Good evening Kate") == frozenset()
    assert find_addressed("Mel: That is great, Gin\u00e9!") == {"gin\u00e9"}


@check_rows("text", ["We use Flask, Django, Redis and Go!", "Was Kate in Rome?", "thanks, all", ""])
def test_a_text_that_speaks_of_somebody_calls_nobody(text: str) -> None:
    assert find_addressed(text) == frozenset()


def test_questions_hold_a_mark_of_one() -> None:
    assert [has_question(text) for text in ("who?", "\u8c01\uff1f", "nobody")] == [True, True, False]
