"""A summary by rules is made of quotes."""

from __future__ import annotations

from agent_memory.knowledge.summaries import SummaryTurn, as_lines, choose_lines, choose_quotes

TALK = [
    SummaryTurn("1", "Hi Ada! How was your weekend?", "Ben"),
    SummaryTurn("2", "Great, thanks! We drove to Lake Como on Saturday. The weather was nice.", "Ada"),
    SummaryTurn("3", "Wow, cool!", "Ben"),
    SummaryTurn(
        "4", "My brother Tom broke his arm there, so we came back on Sunday. I stayed with him in hospital.", "Ada"
    ),
    SummaryTurn("5", "Oh no. That sounds bad.", "Ben"),
]


def test_what_tells_the_most_is_quoted_word_for_word_in_its_order() -> None:
    quotes = choose_quotes(TALK, 130)
    assert all(words in turn.text for turn, words in quotes)
    assert as_lines(quotes).splitlines() == [
        "Ada: We drove to Lake Como on Saturday.",
        "Ada: My brother Tom broke his arm there, so we came back on Sunday.",
    ]


def test_no_question_and_no_greeting_is_quoted_however_much_room_there_is() -> None:
    said = as_lines(choose_quotes(TALK, 10_000))
    assert "weekend" not in said
    assert "thanks" not in said
    assert "Wow" not in said
    assert "I stayed with him in hospital." in said


def test_it_keeps_to_its_length_who_speaks_included() -> None:
    for most in (0, 5, 40, 80, 120):
        assert len(as_lines(choose_quotes(TALK, most))) <= most


def test_a_turn_that_is_quoted_already_waits_behind_others() -> None:
    talk = [
        SummaryTurn("1", "I bought a red Vespa in May. I bought a blue Vespa in June.", "Ada"),
        SummaryTurn("2", "I bought a canoe in July.", "Ben"),
    ]
    assert {turn.id for turn, _ in choose_quotes(talk, 80)} == {"1", "2"}


def test_quotes_same_matter_again_quotes_it_once() -> None:
    talk = [
        SummaryTurn("1", "The invoice export fails at midnight on the billing server.", "Ada"),
        SummaryTurn("2", "At midnight the invoice export fails, on the billing server.", "Ben"),
        SummaryTurn("3", "Carla moves the office plants to the third floor tomorrow.", "Carla"),
    ]
    assert [turn.id for turn, _ in choose_quotes(talk, 10_000)] == ["1", "3"]


def test_writing_without_spaces_is_quoted_too() -> None:
    talk = [SummaryTurn("1", "周末我们开车去了科莫湖。天气很好。", "Ada")]
    assert as_lines(choose_quotes(talk, 40)) == "Ada: 周末我们开车去了科莫湖。 天气很好。"


def test_of_summaries_a_line_of_each_stays() -> None:
    first = "Ada: We drove to Lake Como on Saturday.\nBen: It was fine."
    second = "Ben: It rained a lot.\nAda: My brother Tom broke his arm in Berlin last Sunday."
    assert choose_lines([first, second], 10).splitlines() == [
        "Ada: We drove to Lake Como on Saturday.",
        "Ada: My brother Tom broke his arm in Berlin last Sunday.",
    ]
    assert choose_lines([first, second], 1000) == f"{first}\n{second}"
    assert choose_lines([], 10) == ""
