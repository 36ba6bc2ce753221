"""Distance of strings, and words that are short for others. Pure functions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.matching.normal import has_digit

if TYPE_CHECKING:
    from collections.abc import Sequence

_ONE_CHANGE_FROM, _TWO_CHANGES_FROM = 5, 9
_SHORTEST_START: Final = 3
_LEAST_SHARE: Final = 0.4
_NUMERONYM: Final = 3


def distance(one: str, other: str) -> int:
    """Return the Damerau-Levenshtein distance, each letter swapped at most once.

    Bit-parallel, one step a letter of `other`: H. Hyyrö, A bit-vector algorithm for computing Levenshtein and
    Damerau edit distances, Nordic Journal of Computing 10 (2003).
    """
    if one == other:
        return 0
    if not one:
        return len(other)
    places: dict[str, int] = {}
    for number, letter in enumerate(one):
        places[letter] = places.get(letter, 0) | 1 << number
    every, last = (1 << len(one)) - 1, 1 << len(one) - 1
    plus, minus, diagonal, before, changes = every, 0, 0, 0, len(one)
    for letter in other:
        here = places.get(letter, 0)
        swapped = ((~diagonal & here) << 1) & before
        diagonal = (((here & plus) + plus) ^ plus) | here | minus | swapped
        rise, fall = minus | ~(diagonal | plus), plus & diagonal
        changes += bool(rise & last) - bool(fall & last)
        rise, fall = rise << 1 | 1, fall << 1
        plus, minus, before = (fall | ~(diagonal | rise)) & every, rise & diagonal & every, here
    return changes


def likeness(one: str, other: str) -> float:
    """Return the similarity of two strings: 1 - distance / longer length."""
    longest = max(len(one), len(other))
    return 1 - distance(one, other) / longest if longest else 1.0


@lru_cache(maxsize=65_536)
def nearness(one: str, other: str) -> float:
    """Return the probability that two words are the same one, 0 to 1.

    A word may be shortened, misspelt or without some letters. Words with digits are near only to themselves.
    """
    if one == other:
        return 1.0
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if numeronym(short, long):
        return 0.9
    if len(short) < _SHORTEST_START or short[0] != long[0] or has_digit(short) or has_digit(long):
        return 0.0
    if long.startswith(short):
        return 0.9 if len(long) - len(short) <= 1 else 0.8
    if misspelt(short, long):
        return 0.8
    shortened = short[-1] == long[-1] and len(short) >= _LEAST_SHARE * len(long) and _within(short, long)
    return 0.7 if shortened else 0.0


def misspelt(one: str, other: str) -> bool:
    """Return True if two words differ by a typing error.

    It is one change from five letters on, two from nine on; never in the first letter.
    """
    shortest = min(len(one), len(other))
    most = 0 if shortest < _ONE_CHANGE_FROM else 1 if shortest < _TWO_CHANGES_FROM else 2
    if not most or abs(len(one) - len(other)) > most or one[0] != other[0] or has_digit(one + other):
        return False
    return distance(one, other) <= most


def numeronym(short: str, long: str) -> bool:
    """Return True for a word with its middle counted, as `k8s`."""
    if not (len(short) >= _NUMERONYM and short[1:-1].isdecimal() and short[1:-1].isascii() and short[0].isalpha()):
        return False
    return len(long) == int(short[1:-1]) + 2 and long[0] == short[0] and long[-1] == short[-1] and long.isalpha()


def _within(short: str, long: str) -> bool:
    rest = iter(long)
    return all(letter in rest for letter in short)


def initials(words: Sequence[str]) -> str:
    """Return the first letters of words, joined."""
    return "".join(word[0] for word in words)
