"""Places of the sentences of a text."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from agent_memory.language import sentences
from agent_memory.language.sentences import MAX_CHARS, find_breaks, find_sentences
from tests.rows import check_rows

if TYPE_CHECKING:
    from collections.abc import Iterator


def list_sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in find_sentences(text)]


def test_sentences_with_abbreviations_stay_whole() -> None:
    text = "Dr. Miller came, e.g. on Monday! Was it the 3. May?\nYes. 周末开车去了。天气很好。"
    assert list_sentences(text) == [
        "Dr. Miller came, e.g. on Monday!", "Was it the 3. May?", "Yes.", "周末开车去了。", "天气很好。",
    ]  # fmt: skip


@check_rows(
    ("text", "sentences"),
    [
        ("I met Dr. Smith at 5 p.m. in the office. She left early.", 2),
        ("Use tabs, spaces, etc. in Go. Done", 2),
        ("Use tabs, spaces, etc. Go needs tabs.", 2),
        ("I said no. Then yes.", 2),
        ("See no. 5 and fig. 3 below.", 1),
        ("So am I. Never mind.", 2),
        ("هل تعمل؟ نعم.", 2),
        ('"Why?" she asked. He left.', 2),
        ("It works (at last!) and runs. Good.", 2),
        ("It takes 240 ms. Nobody waits.", 2),
        ("**Ready?** go on.", 2),
        ("He said 「はい。」 now. そうです。", 2),
    ],
)
def test_sentences_with_full_stops_inside_are_counted(text: str, sentences: int) -> None:
    assert len(list_sentences(text)) == sentences


def test_breaks_of_wrapped_text_are_no_line_ends() -> None:
    text = "A line that is\nwrapped. Next\n\nparagraph"
    assert [text[cut:][:4] for cut in find_breaks(text, is_wrapped=True)] == ["Next", "para"]
    assert [text[cut:][:4] for cut in find_breaks(text)] == ["wrap", "Next", "para"]


def test_long_run_is_cut_at_spaces() -> None:
    parts = list_sentences("word " * MAX_CHARS)
    assert all(len(part) <= MAX_CHARS for part in parts)
    assert " ".join(parts) == ("word " * MAX_CHARS).strip()


def test_spans_hold_every_visible_character_in_order() -> None:
    for seed in range(200):
        pieces = [". ", "\n", "a", " ", "A sentence. ", "x" * 700, "。", "1. ", "!) ", "\t"]
        text = "".join(random.Random(seed).choices(pieces, k=30))
        spans = list(find_sentences(text))
        assert spans == sorted(spans)
        assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())


def test_first_sentence_is_read_without_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_one_break(text: str, *_: object) -> Iterator[int]:
        yield text.index("Two")
        pytest.fail("read on after the first sentence")

    monkeypatch.setattr(sentences, "find_breaks", find_one_break)
    assert next(find_sentences("One. Two. Three.")) == (0, 4)
