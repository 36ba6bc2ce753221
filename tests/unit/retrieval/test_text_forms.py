"""Text forms of a memory."""

from datetime import UTC, datetime

import pytest

from agent_memory.models import Memory
from agent_memory.retrieval.text_forms import (
    embedded_texts,
    filed_terms,
    session_of,
    speaker_of,
    speakers_within,
    tells_time,
)
from agent_memory.retrieval.tokens import index_terms

DAY = datetime(2026, 1, 28, tzinfo=UTC)


def _memory(content: str, **fields: object) -> Memory:
    return Memory.model_validate({"agent_id": "bob", "content": content, "timestamp": DAY, **fields})


def test_content_category_tags_and_day_are_filed() -> None:
    terms = filed_terms(_memory("Use PostgreSQL", category="decision", tags=["ledger"]))
    assert {"postgresql", "decis", "ledger", "@2026-01", "@01-28"} <= set(terms)


def test_the_day_is_that_of_observation_when_there_is_one() -> None:
    terms = filed_terms(_memory("x", observed_at=datetime(2025, 5, 3, tzinfo=UTC)))
    assert "@05-03" in terms
    assert "@01-28" not in terms


def test_a_short_memory_is_embedded_as_it_is() -> None:
    assert embedded_texts(_memory("Use PostgreSQL")) == ["Use PostgreSQL"]


def test_a_long_memory_is_cut_at_sentence_ends_and_nothing_is_lost() -> None:
    sentences = [f"Sentence number {number} says something of its own." for number in range(100)]
    pieces = embedded_texts(_memory(" ".join(sentences)))
    assert len(pieces) > 1
    assert all(len(piece) <= 300 for piece in pieces)
    assert " ".join(pieces) == " ".join(sentences)


def test_a_run_without_any_break_is_cut_too() -> None:
    pieces = embedded_texts(_memory("x" * 10_000))
    assert all(len(piece) <= 300 for piece in pieces)
    assert "".join(pieces) == "x" * 10_000


def test_a_talk_in_one_memory_is_cut_between_its_lines() -> None:
    lines = [f"{name}: remark number {number} of this talk" for number in range(20) for name in ("Ann", "Ben")]
    pieces = embedded_texts(_memory("\n".join(lines)))
    assert [line for piece in pieces for line in piece.splitlines()] == lines


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


@pytest.mark.parametrize(("content", "tells"), [("I went yesterday", True), ("in 2022", True), ("I went", False)])
def test_words_of_time(content: str, tells: bool) -> None:
    assert tells_time(index_terms(content)) is tells


def test_without_a_session_a_turn_belongs_to_its_day() -> None:
    assert session_of(_memory("Ann: hi", created_by_session="s1")) == "s1"
    assert session_of(_memory("Ann: hi")) == "@2026-01-28"
