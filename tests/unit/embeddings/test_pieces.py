"""Pieces of text: all of them, each once, and never much at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.embeddings.onnx_runtime import estimate_length, pieces


@given(st.lists(st.text(max_size=3000), max_size=40))
def test_every_text_is_in_one_piece_and_no_piece_is_long(texts: list[str]) -> None:
    found = list(pieces(texts))
    assert sorted(at for piece in found for at in piece) == list(range(len(texts)))
    for piece in found:
        assert 1 <= len(piece) <= 8
        assert sum(min(1000, len(texts[at].encode())) for at in piece) <= 1200


def test_texts_of_like_length_are_together() -> None:
    assert list(pieces(["long " * 300, "a", "longer " * 300, "b"])) == [[1, 3, 0], [2]]


def test_pieces_of_known_lengths_are_sorted_by_these() -> None:
    symbols = "\u2500" * 50  # many bytes, and one token
    assert list(pieces([symbols, "some words", symbols, "other words"], [3, 90, 3, 91])) == [[0, 2, 1, 3]]


def test_estimated_length_follows_the_script() -> None:
    assert estimate_length("the house") == 2
    assert estimate_length("дом") == 3
    assert estimate_length("Größe: 1234") == 4
