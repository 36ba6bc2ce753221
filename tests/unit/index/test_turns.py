"""Sessions and talks: neighbours, who takes part, and which names say nothing."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_memory.index import SearchIndex, talks
from agent_memory.index.terms import read_turn, session_number
from agent_memory.models import Document
from tests.rows import check_rows

DAY = datetime(2026, 1, 28, tzinfo=UTC)


def _document(text: str, session: str = "s", moment: datetime = DAY, name: str = "mem") -> Document:
    return Document(name, text, (), DAY, moment, session)


def _add(index: SearchIndex, name: int, text: str, session: str = "s", moment: datetime = DAY) -> None:
    index.put(_document(text, session, moment, str(name)))
    index.warm()


def _session(*texts: str, session: str = "s") -> SearchIndex:
    index = SearchIndex()
    for name, text in enumerate(texts):
        _add(index, name, text, session)
    return index


def _talk(speakers: str = "abab", session: str = "s") -> SearchIndex:
    return _session(*(f"{speaker}: yes" for speaker in speakers), session=session)


def _neighbours(index: SearchIndex, *names: int) -> list[tuple[int, ...] | None]:
    numbers = [index.parts[str(name)].number for name in names]
    places = index.corpus.talks.places(numbers)
    neighbours = {
        number: tuple(map(int, map(index.parts.get_id, place.neighbours))) for number, place in places.items()
    }
    return [neighbours.get(number) for number in numbers]


@check_rows("form", ["{}: yes", "**{}:** yes", "[10:02] {} says: yes", "yes, said without {}"])
def test_places_session_in_any_form_has_neighbours(form: str) -> None:
    index = _session(*(form.format(who) for who in "abab"))
    assert _neighbours(index, 0, 1, 2, 3) == [(1,), (0, 2), (1, 3), (2,)]


def test_places_time_orders_before_arrival() -> None:
    index = _talk()
    _add(index, 9, "a: no", moment=DAY - timedelta(seconds=1))
    assert _neighbours(index, 0) == [(9, 1)]


def test_places_removed_turn_joins_its_neighbours() -> None:
    index = _talk("ababab")
    assert _neighbours(index, 1) == [(0, 2)]
    index.remove("2")
    assert _neighbours(index, 1) == [(0, 3)]


def test_places_few_documents_of_session_have_none() -> None:
    index = _talk()
    index.remove("3")
    assert _neighbours(index, 0) == [None]


def test_places_more_than_session_can_hold_have_none() -> None:
    index = SearchIndex()
    for name in range(5_001):
        index.put(_document("x", name=str(name)))
    index.warm()
    assert _neighbours(index, 7) == [None]
    index.remove("5000")
    assert _neighbours(index, 7) == [(6, 8)]


def test_places_of_known_session_survive_many_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talks, "_MOST_KEPT", 4)
    index = SearchIndex()
    for name in range(40):
        _add(index, name, f"{'ab'[name % 2]}: yes", f"s{name // 4}")
    assert _neighbours(index, 0, 4) == [(1,), (5,)]
    assert _neighbours(index, 8, 12, 0) == [(9,), (13,), (1,)]  # a known session together with too many new ones
    assert _neighbours(index, *range(0, 40, 4)) == [(name + 1,) for name in range(0, 40, 4)]


def test_places_documents_without_session_have_none() -> None:
    assert _neighbours(_session(*["a fact"] * 5, session=""), 1) == [None]


def test_places_turn_without_session_belongs_to_its_day() -> None:
    index = _talk(session="")
    _add(index, 9, "a: no", "", DAY + timedelta(days=1))
    assert _neighbours(index, 3, 9) == [(2,), None]


def test_speakers_one_speaker_makes_no_talk() -> None:
    assert _talk("aaaa").corpus.talks.speakers() == frozenset()


def test_speakers_labels_that_hardly_repeat_make_no_talk() -> None:
    assert _talk("abcd").corpus.talks.speakers() == frozenset()


def test_speakers_talk_that_shrinks_is_none_any_more() -> None:
    index = _talk()
    assert index.corpus.talks.speakers() == {"a", "b"}
    index.remove("3")
    assert index.corpus.talks.speakers() == frozenset()


def test_speakers_are_those_of_talks_only() -> None:
    index = _talk()
    _add(index, 50, "z: no", "other")
    talks = index.corpus.talks
    assert talks.speakers() == {"a", "b"}
    assert [talks.speaker(index.parts[name].number) for name in ("0", "1", "50")] == ["a", "b", "z"]


def test_speakers_within_one_memory_count_until_it_dies() -> None:
    index = _session("Ann: hi\nBen: hello\nAnn: so?\nBen: fine", "x", "y", "z", "u")
    assert index.corpus.talks.speakers() == {"ann", "ben"}
    assert _neighbours(index, 0) == [None]
    index.remove("0")
    assert index.corpus.talks.speakers() == frozenset()


def test_is_listener_who_is_often_called_and_hardly_mentioned() -> None:
    index = _session("Hi Kate!", "Thanks, Kate!", "Kate, did you see it?", "Kate was here")
    talks = index.corpus.talks
    assert talks.is_listener("kate", holding=4)
    assert not talks.is_listener("kate", holding=40)
    assert not talks.is_listener("rome", holding=3)
    index.remove("0")
    assert not talks.is_listener("kate", holding=3)


def test_are_asking_memory_of_talks_holds_questions() -> None:
    index = _session("How are you?", "Fine")
    talks = index.corpus.talks
    assert talks.are_asking(documents=20)
    assert not talks.are_asking(documents=21)
    index.remove("0")
    assert not talks.are_asking(documents=1)


def test_said_by_reads_session_speaker_and_called_names() -> None:
    said = read_turn(_document("**Ann:** Hey Ben! Did you go?"))
    assert said == (session_number("s"), "ann", frozenset(), {"ben"}, True)
    assert read_turn(_document("plain", "")) == (0, "", frozenset(), frozenset(), False)
