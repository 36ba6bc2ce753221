"""`choose`: what is shown of what was found."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.memory.briefing_passages import RecordPassage, choose
from tests.support import NOON, memory_of


def passage(text: str, **fields: Any) -> RecordPassage:
    return RecordPassage(memory_of(text), text, NOON, **fields)


TALK = [
    passage("The client hammers the service. Can you look?", talk="t", by_person=True),
    passage("I'll cap it at 60 seconds. Let me run the tests.", talk="t"),
    passage("No, 30 seconds. The balancer kills idle connections at 32s.", talk="t", by_person=True),
    passage("Settled: the backoff is capped at 30 seconds.", talk="t"),
]


def texts(passages: list[RecordPassage], asked: str = "", room: int = 30) -> list[str]:
    return [each.text for each in choose(passages, asked, room)]


def test_the_decision_of_a_talk_is_chosen_and_told_in_its_order() -> None:
    shown = texts(TALK)
    assert shown == ["No, 30 seconds.", "Settled: the backoff is capped at 30 seconds."]
    assert texts(TALK, room=0) == []


def test_what_the_reader_knows_is_not_told_again() -> None:
    notes = [passage("Invoices are rounded down."), passage("Parcels leave at noon.")]
    assert texts(notes, "invoices are rounded down", room=16) == ["Parcels leave at noon."]
    assert texts([passage("Tea is green."), passage("Tea is green."), passage("Ink is blue.")], room=16) == [
        "Tea is green.",
        "Ink is blue.",
    ]


def test_what_is_nearer_to_the_question_goes_first() -> None:
    notes = [passage("Parcels leave at noon.", nearness=0.1), passage("Invoices are rounded down.", nearness=1.0)]
    assert texts(notes, room=15) == ["Invoices are rounded down."]


def test_a_short_note_is_whole_and_a_long_one_in_sentences() -> None:
    short = "Never on Friday. The team is away then."
    assert texts([passage(short)]) == [short]
    long = f"{'It was a day like any other in the office. ' * 10}Never deploy on a Friday."
    assert texts([passage(long)], room=16) == ["Never deploy on a Friday."]


def test_code_in_fences_is_left_out() -> None:
    (shown,) = texts([passage("Use `pct` for percent.\n```python\nMUST = 'never'\n", talk="t", by_person=True)])
    assert shown == "Use `pct` for percent."


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=80).filter(
            str.strip
        ),
        max_size=12,
    ),
    st.integers(0, 200),
    st.booleans(),
)
def test_the_room_is_kept_whatever_is_said(said: list[str], room: int, is_talk: bool) -> None:
    every = [passage(text, talk="t" if is_talk else "") for text in said]
    assert sum(estimate_tokens(text) + 2 for text in texts(every, "", room)) <= room
