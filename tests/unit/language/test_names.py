"""Names in a question."""

from agent_memory.language.questions import find_capitalised, find_named_speakers, remove_names


def test_a_first_name_names_its_only_bearer() -> None:
    assert find_named_speakers("What does Ann eat?", {"ann lee", "bob"}) == {"ann lee"}
    assert find_named_speakers("What does Ann eat?", {"ann lee", "ann kay"}) == frozenset()


def test_names_may_be_capitalised_words_but_not_the_first_nor_days_nor_abbreviations() -> None:
    assert find_capitalised("When did Kate fly to Rome in May with KLM on Monday?") == ["kate", "rome"]


def test_a_question_keeps_its_words_when_names_are_all_it_has() -> None:
    assert remove_names("What is Kate's job?", {"kate"}) == "What is job?"
    assert remove_names("Kate?", {"kate"}) == "Kate?"
