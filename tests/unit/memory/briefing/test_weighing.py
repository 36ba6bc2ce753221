"""`get_worth`: which sentences say what was decided."""

from __future__ import annotations

from agent_memory.memory.briefing_passages import SentencePlace, get_worth
from tests.rows import check_rows

MIDDLE = SentencePlace(turn=2, turns=10, by_person=True)
MODEL = SentencePlace(turn=2, turns=10)


@check_rows(
    ("more", "less"),
    [
        ("Retry exactly 429 and 408, never any other code.", "The logs of last night are in the channel."),
        ("Immer genau zwei Werte weglassen, nie mehr.", "Die Protokolle von gestern liegen im Kanal."),
        ("Keep the casing of the first source.", "Unrelated heads-up: keep an eye on the flaky test."),
        ("The cap is 30 seconds.", "The wind was rather strong."),
    ],
)
def test_what_settles_something_says_more(more: str, less: str) -> None:
    assert get_worth(more, MIDDLE) > get_worth(less, MIDDLE)


@check_rows("question", ["Should we cap it at 30?", "\u4e0a\u9650\u306f30\u3067\u3059\u304b\uff1f"])
def test_a_question_says_nothing(question: str) -> None:
    assert get_worth(question, MIDDLE) == 0


def test_what_a_person_says_weighs_more_than_what_a_model_proposes() -> None:
    said = "The cap is 30 seconds, always."
    assert get_worth(said, MIDDLE) > get_worth(said, MODEL) > get_worth(f"I'll say that {said}", MODEL)
    turned_down = SentencePlace(turn=2, turns=10, answered="No - the other way round.")
    assert get_worth(said, turned_down) < get_worth(said, MODEL)


def test_what_a_model_sums_up_is_no_proposal() -> None:
    assert get_worth("The rule: the cap is 30 seconds.", MODEL) > 2 * get_worth("So: the cap is 30 seconds.", MODEL)


def test_the_first_turn_asks_and_a_note_of_its_own_does_not() -> None:
    said = "Never retry a 401."
    assert get_worth(said, SentencePlace(turn=0, turns=10, by_person=True)) < get_worth(said, MIDDLE)
    assert get_worth(said, SentencePlace()) > get_worth(said, SentencePlace(turn=0, turns=10))


def test_an_empty_word_of_a_model_weighs_little() -> None:
    assert get_worth("Understood.", MODEL) < get_worth("Seven.", MIDDLE)
