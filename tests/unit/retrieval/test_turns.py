"""Talks: which sessions are one, and who stands beside whom."""

from datetime import UTC, datetime, timedelta

from agent_memory.models import Document
from agent_memory.retrieval.turns import Talks

DAY = datetime(2026, 1, 28, tzinfo=UTC)


def _said(record_id: str, text: str, session: str = "s", moment: datetime = DAY) -> Document:
    return Document(record_id, text, (), DAY, moment, session)


def _talk(speakers: str = "abab", session: str = "s") -> Talks:
    talks = Talks()
    for number, speaker in enumerate(speakers):
        talks.add(_said(str(number), f"{speaker}: yes", session), number)
    return talks


def test_turns_have_their_neighbours() -> None:
    talks = _talk()
    assert [talks.neighbours(one) for one in "0123"] == [("1",), ("0", "2"), ("1", "3"), ("2",)]


def test_time_orders_before_arrival() -> None:
    talks = _talk()
    talks.add(_said("late", "a: no", moment=DAY - timedelta(seconds=1)), 9)
    assert talks.neighbours("0") == ("late", "1")


def test_removing_a_turn_joins_its_neighbours() -> None:
    talks = _talk("ababab")
    talks.remove("2")
    assert talks.neighbours("1") == ("0", "3")


def test_one_speaker_makes_no_talk() -> None:
    assert _talk("aaaa").turn("0") is None


def test_labels_that_hardly_repeat_make_no_talk() -> None:
    assert _talk("abcd").turn("0") is None


def test_a_talk_that_shrinks_is_none_any_more() -> None:
    talks = _talk()
    talks.remove("3")
    assert talks.turn("0") is None


def test_speakers_are_those_of_talks_only() -> None:
    talks = _talk()
    talks.add(_said("x", "z: no", "other"), 50)
    assert talks.speakers() == {"a", "b"}


def test_unknown_ids_are_no_turns_and_can_be_removed() -> None:
    talks = _talk()
    talks.remove("nobody")
    assert talks.turn("nobody") is None


def test_those_who_speak_within_one_memory_are_speakers_until_it_goes() -> None:
    talks = Talks()
    talks.add(_said("m", "Ann: hi\nBen: hello\nAnn: so?\nBen: fine"), 0)
    assert talks.speakers() == {"ann", "ben"}
    assert talks.turn("m") is None
    talks.remove("m")
    assert talks.speakers() == frozenset()


def test_without_a_session_a_turn_belongs_to_its_day() -> None:
    talks = _talk(session="")
    talks.add(_said("next", "a: no", "", DAY + timedelta(days=1)), 9)
    assert talks.neighbours("3") == ("2",)
    assert talks.turn("next") is None
