"""A turn of a talk is a passage with its speaker and with what it answers."""

from __future__ import annotations

from agent_memory.knowledge.passages.items import SpokenTurn, cut_turn, split_turns
from agent_memory.knowledge.passages.sections import MOST_CHARS

MEETING = """Ben: The changelog needs writing. Can you?
Ada: Yes, I will do it by Friday.
Ben: Who owns the migration to Postgres 16?
Ada: I do. We postpone it to April because the vendor needs a new driver for the old cluster.
Cy: I suggest that the stand-up moves to 9:30 from Monday on, because of the school run.
Ben: Agreed, we do it that way.
Cy: The budget is 40k until the end of June, see https://example.org/?a=b for the sheet.
"""


def cut(text: str) -> list[str]:
    turns = split_turns(text)
    return [
        "\n".join(passage.text for passage in cut_turn(turn, turns[:place]).passages)
        for place, turn in enumerate(turns)
    ]


def test_answer_has_its_question() -> None:
    passages = cut(MEETING)
    assert passages[1] == "Ben: The changelog needs writing. Can you?\nAda: Yes, I will do it by Friday."
    assert passages[3].startswith("Ben: Who owns the migration to Postgres 16?\nAda: I do. We postpone it to April")


def test_decision_has_what_it_decides() -> None:
    assert cut(MEETING)[5].startswith("Cy: I suggest that the stand-up moves to 9:30")
    assert cut(MEETING)[5].endswith("\nBen: Agreed, we do it that way.")


def test_statement_of_its_own_has_its_speaker_alone() -> None:
    assert cut(MEETING)[4].startswith("Cy: I suggest")
    assert cut(MEETING)[6].startswith("Cy: The budget is 40k")


def test_place_is_that_of_the_words() -> None:
    for turn in split_turns(MEETING):
        [passage] = cut_turn(turn).passages
        assert MEETING[passage.start : passage.end] == turn.text


def test_own_question_is_not_answered_by_its_speaker() -> None:
    turns = split_turns("Ada: Where is the safe?\nAda: It is in the cellar of the old house, I remember.")
    assert cut_turn(turns[1], turns[:1]).answered is None


def test_long_turn_keeps_question_and_limit() -> None:
    asked = SpokenTurn("A remark. " * 300 + "Where is the safe?", "B" * 200, is_named=True)
    exchange = cut_turn(SpokenTurn("It is in the cellar. " * 300, "A" * 200, is_named=True), [asked])
    assert len(exchange.passages) > 3
    assert all("Where is the safe?" in passage.text for passage in exchange.passages)
    assert max(len(passage.text) for passage in exchange.passages) <= MOST_CHARS
    assert not exchange.is_whole


def test_reply_without_words_is_not_a_passage() -> None:
    assert cut_turn(SpokenTurn("ok", "Assistant"), [SpokenTurn("The boat is moored.", "User")]).passages == ()


def test_text_without_speakers_is_one_turn() -> None:
    [turn] = split_turns("The boat is moored.\nIt is old.")
    assert (turn.speaker, turn.text) == ("", "The boat is moored.\nIt is old.")
