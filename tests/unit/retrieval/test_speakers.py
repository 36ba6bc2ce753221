"""Who speaks in a text."""

import pytest

from agent_memory.retrieval.turns import speaker_of, speakers_within


def test_who_speaks_within_one_memory() -> None:
    assert speakers_within("Ann: hi\nBen: hello\nAnn: so?\nBen: fine") == {"ann", "ben"}


@pytest.mark.parametrize(
    "content", ["Ann: hi\nBen: hello", "Note: a\nTodo: b\nTip: c\nHint: d", "one\ntwo\nthree\nfour", "Ann: " * 9]
)
def test_nobody_speaks_within_what_is_no_talk(content: str) -> None:
    assert speakers_within(content) == frozenset()


@pytest.mark.parametrize(("content", "speaker"), [("Caroline: hi", "caroline"), ("Speaker 2: hi", "speaker 2")])
def test_a_turn_names_its_speaker(content: str, speaker: str) -> None:
    assert speaker_of(content) == speaker


@pytest.mark.parametrize("content", ["Note: use uv", "Decision: no", "see https://x.org", "plain", "12: no", "a:b"])
def test_what_is_no_turn(content: str) -> None:
    assert speaker_of(content) is None
