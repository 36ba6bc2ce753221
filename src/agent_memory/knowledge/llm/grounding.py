"""Places of quotes in texts, and the order of names and numbers. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval import query_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

_CAPITAL: Final = re.compile(r"\b[^\W\d_a-z][^\W_]*")
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")


def place_of(quote: str, text: str, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
    """Return where words stand in a text, whatever white space is between them; None where they do not.

    Args:
        quote: The words.
        text: All of it.
        start: Where to begin to look.
        end: Behind the last character to look at; that of the text when omitted.
    """
    words = quote.split()
    if not words:
        return None
    wanted = r"\s+".join(map(re.escape, words))
    if quote.isascii():  # whole words: "oor" stands in no text that says "door"; not all scripts part words
        wanted = rf"(?<!\w){wanted}(?!\w)"
    found = re.compile(wanted).search(text, start, len(text) if end is None else end)
    return found.span() if found else None


def keeps_order(statement: str, text: str) -> bool:
    """Return True if shared names and numbers have the same order."""
    pairs = ((_named(statement), _named(text)), (find_numbers(statement), find_numbers(text)))
    return all(_shared(first, second) == _shared(second, first) for first, second in pairs)


def find_numbers(text: str) -> list[str]:
    """Return the numbers of a text in their order."""
    return _NUMBER.findall(text)


def names_of(text: str) -> set[str]:
    """Return the terms of the words that are written with a capital."""
    return set(_named(text))


def _named(text: str) -> list[str]:
    return query_terms(" ".join(_CAPITAL.findall(text)))


def _shared(terms: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return those terms that are among others, each at its first place."""
    return [term for term in dict.fromkeys(terms) if term in others]
