"""Talks: which sessions are one, and who stands beside whom."""

from agent_memory.retrieval.turns.sessions import Conversations


def _talk(speakers: str = "abab", session: str = "s") -> Conversations:
    talks = Conversations()
    for number, speaker in enumerate(speakers):
        talks.add(str(number), session=session, speaker=speaker, moment=0.0, arrival=number)
    return talks


def _near(talks: Conversations, memory_id: str) -> tuple[str, ...]:
    turn = talks.turn(memory_id)
    assert turn is not None
    return turn.neighbours


def test_turns_have_their_neighbours() -> None:
    talks = _talk()
    assert [_near(talks, one) for one in "0123"] == [("1",), ("0", "2"), ("1", "3"), ("2",)]


def test_time_orders_before_arrival() -> None:
    talks = _talk()
    talks.add("late", session="s", speaker="a", moment=-1.0, arrival=9)
    assert _near(talks, "0") == ("late", "1")


def test_removing_a_turn_joins_its_neighbours() -> None:
    talks = _talk("ababab")
    talks.remove("2")
    assert _near(talks, "1") == ("0", "3")


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
    talks.add("x", session="other", speaker="z", moment=0.0, arrival=50)
    assert talks.speakers() == {"a", "b"}


def test_unknown_ids_are_no_turns_and_can_be_removed() -> None:
    talks = _talk()
    talks.remove("nobody")
    assert talks.turn("nobody") is None


def test_those_who_speak_within_one_memory_are_speakers_until_it_goes() -> None:
    talks = Conversations()
    talks.add_whole("m", frozenset({"ann", "ben"}))
    assert talks.speakers() == {"ann", "ben"}
    assert talks.turn("m") is None
    talks.remove("m")
    assert talks.speakers() == frozenset()
