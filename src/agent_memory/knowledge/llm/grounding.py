"""Whether what a model says stands in the text it was given: where its quote is, and if it says more. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.alike import exact_of, numbers_in
from agent_memory.retrieval import query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LEAST_SHARED: Final = 0.5
"""Share of a statement's terms that stand in its quote; the rest is what makes it stand by itself."""
_LEAST_KEPT: Final = 0.7
"""Share of a claim's terms besides names that what stands for it has."""
_CAPITAL: Final = re.compile(r"\b[^\W\d_a-z][^\W_]*")


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


def says_no_more(statement: str, quotes: Sequence[str], around: Iterable[str] = ()) -> bool:
    """Tell whether a statement says what quotes say: no other number, no name from nowhere, no denial more or less.

    Names and numbers come in the order of a quote: who owes whom is told by nothing else here.

    Args:
        statement: In a model's words.
        quotes: What it rests on.
        around: Texts in which whom and what a quote means may be named.
    """
    said = [exact_of(quote) for quote in quotes]
    numbers, denies = exact_of(statement)
    if not set(numbers) <= {number for found, _ in said for number in found} or denies not in {no for _, no in said}:
        return False
    if not any(keeps_order(statement, quote) for quote in quotes):
        return False
    terms, held = set(query_terms(statement)), {term for quote in quotes for term in query_terms(quote)}
    if not terms or len(terms & held) < _LEAST_SHARED * len(terms):
        return False
    return names_of(statement) <= held | {term for text in around for term in query_terms(text)}


def leaves_out_nothing(statement: str, claims: Sequence[str]) -> bool:
    """Tell whether a statement has the numbers, names and denials of all claims, and most of what each says."""
    numbers, denies = exact_of(statement)
    terms = set(query_terms(statement))
    for claim in claims:
        wanted, denied = exact_of(claim)
        names = names_of(claim)
        if not set(wanted) <= set(numbers) or denied != denies or not names <= terms:
            return False
        if not keeps_order(statement, claim):
            return False
        own = set(query_terms(claim)) - names
        if len(own & terms) < _LEAST_KEPT * len(own):
            return False
    return True


def keeps_order(statement: str, text: str) -> bool:
    """Tell whether the names and the numbers that two texts share come in the same order in both."""
    pairs = ((_named(statement), _named(text)), (numbers_in(statement), numbers_in(text)))
    return all(_shared(first, second) == _shared(second, first) for first, second in pairs)


def names_of(text: str) -> set[str]:
    """Return the terms of the words that are written with a capital."""
    return set(_named(text))


def _named(text: str) -> list[str]:
    return query_terms(" ".join(_CAPITAL.findall(text)))


def _shared(terms: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return those terms that are among others, each at its first place."""
    return [term for term in dict.fromkeys(terms) if term in others]
