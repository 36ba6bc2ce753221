"""Sessions and talks: who stands beside whom, who takes part, and which names tell nothing."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.index.talks import Talks, said_by, session_number
from agent_memory.models import Document

DAY = datetime(2026, 1, 28, tzinfo=UTC)


def _document(text: str, session: str = "s", moment: datetime = DAY) -> Document:
    return Document("mem", text, (), DAY, moment, session)


def _talk(speakers: str = "abab", session: str = "s") -> Talks:
    talks = Talks()
    for number, speaker in enumerate(speakers):
        talks.add(_document(f"{speaker}: yes", session), number, number)
    return talks


def _session(*texts: str) -> Talks:
    talks = Talks()
    for number, text in enumerate(texts):
        talks.add(_document(text), number, number)
    return talks


def _neighbours(talks: Talks, *numbers: int) -> list[tuple[int, ...] | None]:
    places = talks.places(numbers)
    return [places[number].neighbours if number in places else None for number in numbers]


@pytest.mark.parametrize("form", ["{}: yes", "**{}:** yes", "[10:02] {} says: yes", "yes, said without {}"])
def test_documents_of_a_session_have_their_neighbours_in_any_form(form: str) -> None:
    talks = _session(*(form.format(who) for who in "abab"))
    assert _neighbours(talks, 0, 1, 2, 3) == [(1,), (0, 2), (1, 3), (2,)]


def test_time_orders_before_arrival() -> None:
    talks = _talk()
    talks.add(_document("a: no", moment=DAY - timedelta(seconds=1)), 9, 9)
    assert _neighbours(talks, 0) == [(9, 1)]


def test_removing_a_turn_joins_its_neighbours() -> None:
    talks = _talk("ababab")
    assert _neighbours(talks, 1) == [(0, 2)]
    talks.remove(2)
    assert _neighbours(talks, 1) == [(0, 3)]


def test_a_few_documents_of_a_session_tell_nothing_about_each_other() -> None:
    talks = _talk()
    talks.remove(3)
    assert _neighbours(talks, 0) == [None]


def test_more_than_a_session_can_hold_are_an_import() -> None:
    talks = Talks()
    for number in range(5_001):
        talks.add(_document("x"), number, number)
    assert _neighbours(talks, 7) == [None]
    talks.remove(5_000)
    assert _neighbours(talks, 7) == [(6, 8)]


def test_documents_without_a_session_stand_alone() -> None:
    talks = Talks()
    for number in range(5):
        talks.add(_document("a fact", ""), number, number)
    assert _neighbours(talks, 1) == [None]


def test_without_a_session_a_turn_belongs_to_its_day() -> None:
    talks = _talk(session="")
    talks.add(_document("a: no", "", DAY + timedelta(days=1)), 9, 9)
    assert _neighbours(talks, 3, 9) == [(2,), None]


def test_one_speaker_makes_no_talk() -> None:
    assert _talk("aaaa").speakers() == frozenset()


def test_labels_that_hardly_repeat_make_no_talk() -> None:
    assert _talk("abcd").speakers() == frozenset()


def test_a_talk_that_shrinks_is_none_any_more() -> None:
    talks = _talk()
    assert talks.speakers() == {"a", "b"}
    talks.remove(3)
    assert talks.speakers() == frozenset()


def test_speakers_are_those_of_talks_only() -> None:
    talks = _talk()
    talks.add(_document("z: no", "other"), 50, 50)
    assert talks.speakers() == {"a", "b"}
    assert [talks.speaker(number) for number in (0, 1, 50, 77)] == ["a", "b", "z", ""]


def test_unknown_numbers_stand_nowhere_and_can_be_removed() -> None:
    talks = _talk()
    talks.remove(99)
    assert _neighbours(talks, 99) == [None]


def test_those_who_speak_within_one_memory_are_speakers_until_it_goes() -> None:
    talks = _session("Ann: hi\nBen: hello\nAnn: so?\nBen: fine", "x", "y", "z", "u")
    assert talks.speakers() == {"ann", "ben"}
    assert _neighbours(talks, 0) == [None]
    talks.remove(0)
    assert talks.speakers() == frozenset()


def test_who_is_often_called_and_hardly_spoken_of_is_a_listener() -> None:
    talks = _session("Hi Kate!", "Thanks, Kate!", "Kate, did you see it?", "Kate was here")
    assert talks.is_listener("kate", holding=4)
    assert not talks.is_listener("kate", holding=40)
    assert not talks.is_listener("rome", holding=3)
    talks.remove(0)
    assert not talks.is_listener("kate", holding=3)


def test_a_memory_of_talks_holds_questions() -> None:
    talks = _session("How are you?", "Fine")
    assert talks.are_asking(documents=20)
    assert not talks.are_asking(documents=21)
    talks.remove(0)
    assert not talks.are_asking(documents=1)


def test_what_a_document_says_of_talks() -> None:
    said = said_by(_document("**Ann:** Hey Ben! Did you go?"))
    assert said == (session_number("s"), "ann", frozenset(), {"ben"}, True)
    assert said_by(_document("plain", "")) == (0, "", frozenset(), frozenset(), False)
