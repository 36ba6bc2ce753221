"""Places of the sentences of a text."""

from __future__ import annotations

import random

from agent_memory.language.sentences import MAX_CHARS, spans_of


def list_sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in spans_of(text)]


def test_sentences_with_abbreviations_stay_whole() -> None:
    text = "Dr. Miller came, e.g. on Monday! Was it the 3. May?\nYes. 周末开车去了。天气很好。"
    assert list_sentences(text) == [
        "Dr. Miller came, e.g. on Monday!", "Was it the 3. May?", "Yes.", "周末开车去了。", "天气很好。",
    ]  # fmt: skip


def test_long_run_is_cut_at_spaces() -> None:
    parts = list_sentences("word " * MAX_CHARS)
    assert all(len(part) <= MAX_CHARS for part in parts)
    assert " ".join(parts) == ("word " * MAX_CHARS).strip()


def test_spans_hold_every_visible_character_in_order() -> None:
    for seed in range(200):
        pieces = [". ", "\n", "a", " ", "A sentence. ", "x" * 700, "。", "1. ", "!) ", "\t"]
        text = "".join(random.Random(seed).choices(pieces, k=30))
        spans = list(spans_of(text))
        assert spans == sorted(spans)
        assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
