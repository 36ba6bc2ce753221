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

_TOKEN: Final = re.compile(r"[a-zA-ZÀ-ɏ]{1,7}|\d{1,3}|\S")
"""About what a model takes for one token: a short Latin word, a few digits, a letter of another script, a sign."""


def estimate_length(text: str) -> int:
    """Return about how many tokens a text has, without a tokenizer."""
    return len(_TOKEN.findall(text))


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
