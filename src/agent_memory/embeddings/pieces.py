"""How much text a model is given at once: so little that whoever wants to stop soon can."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TEXTS: Final = 8
"""Peak memory grows with the batch; larger batches are no faster."""

_BYTES: Final = 1200
_OF_ONE_TEXT: Final = 1000
"""Bytes of a piece, and what of a text a local model reads at most, about: .15 s of a processor."""

_WORD: Final = re.compile(r"\w+|[^\w\s]")
_WORD_BYTES: Final = 8


def estimate_length(text: str) -> int:
    """Return a measure that orders texts by their tokens, without a tokenizer."""
    return len(text.encode("utf-8", "replace")) + _WORD_BYTES * len(_WORD.findall(text))


def pieces(texts: Sequence[str], lengths: Sequence[int] = ()) -> Iterator[list[int]]:
    """Yield the positions of texts that are embedded together, shortest first.

    Args:
        texts: Texts to embed.
        lengths: Numbers of their tokens, which make padding nearly free; estimated if omitted.
    """
    lengths = lengths or list(map(estimate_length, texts))
    sizes = [min(_OF_ONE_TEXT, len(text.encode("utf-8", "replace"))) for text in texts]
    piece: list[int] = []
    size = 0
    for at in sorted(range(len(texts)), key=lengths.__getitem__):
        if piece and (len(piece) == _TEXTS or size + sizes[at] > _BYTES):
            yield piece
            piece, size = [], 0
        piece.append(at)
        size += sizes[at]
    if piece:
        yield piece
