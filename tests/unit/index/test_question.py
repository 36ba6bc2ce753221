"""Reading a question: whom it names, whether it asks for a time, what is embedded."""

from datetime import UTC, datetime

from agent_memory.index.terms import read_question
from tests.rows import check_rows

NOW = datetime(2026, 1, 30, tzinfo=UTC)


def test_a_speaker_is_recognised_by_full_or_first_name() -> None:
    question = read_question("What did Caroline tell mel?", NOW, {"caroline", "mel gibbons"})
    assert question.speakers == {"caroline", "mel gibbons"}


def test_a_first_name_two_people_share_names_neither() -> None:
    assert read_question("What did Mel say?", NOW, {"mel smith", "mel jones"}).speakers == frozenset()


def test_a_name_inside_another_word_is_no_name() -> None:
    assert read_question("the caramel recipe", NOW, {"mel"}).speakers == frozenset()


def test_names_are_left_out_of_what_is_embedded() -> None:
    assert read_question("When is Caroline's party?", NOW, {"caroline"}).embedded_text == "When is party?"


def test_names_that_are_only_called_are_left_out_of_what_is_embedded() -> None:
    text = read_question("Wann war Kate in Rom?", NOW, is_listener={"kate"}.__contains__).embedded_text
    assert text == "Wann war in Rom?"


def test_names_that_no_talk_holds_are_left_out_of_an_english_question_alone() -> None:
    questions = ["When was Kate in Rome?", "Wann war Kate in Rome?"]
    embedded = [read_question(each, NOW, is_stranger={"kate", "war"}.__contains__).embedded_text for each in questions]
    assert embedded == ["When was in Rome?", "Wann war Kate in Rome?"]


def test_a_question_that_is_only_a_name_is_embedded_whole() -> None:
    assert read_question("Caroline?", NOW, {"caroline"}).embedded_text == "Caroline?"


@check_rows("text", ["When did we ship?", "What year was it", "in which month", "How long did it take"])
def test_questions_for_a_time(text: str) -> None:
    assert read_question(text, NOW).asks_time


@check_rows("text", ["What ships when it rains?", "Who did it", "whenever"])
def test_other_questions(text: str) -> None:
    assert not read_question(text, NOW).asks_time


def test_named_days_join_the_terms() -> None:
    weights = read_question("deploys yesterday", NOW).weights
    assert {"deploy", "@01-29"} <= weights.keys()


def test_half_a_surrogate_pair_is_no_part_of_what_is_embedded() -> None:
    read_question("ledger \ud800", NOW).embedded_text.encode()


def test_an_endless_query_is_cut() -> None:
    question = read_question(" ".join(f"word{number}" for number in range(200_000)), NOW)
    assert len(question.weights) < 2_000
    assert len(question.embedded_text) <= 2_000
