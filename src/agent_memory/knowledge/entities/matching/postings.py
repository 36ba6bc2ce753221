"""Inverted index of descriptions by key, to find those worth comparing."""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.matching.letters import initials
from agent_memory.knowledge.entities.matching.people import nicknames_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_memory.knowledge.entities.matching.profiles import Name, Profile

EXACT: Final = "="
"""First character of keys that two names share when one of them can be taken for the other as it is written."""
_SHARES: Final = {EXACT: 3.0, "@": 3.0, "w": 1.0, "c": 1.0, "i": 0.7, "n": 0.7, "g": 0.5, "m": 0.7, "p": 0.4, "t": 0.2}
"""How much a key of each kind counts, by its first character."""
_PREFIX, _LONG_WORD, _TRIGRAM, _LONGEST_ACRONYM = 4, 5, 3, 6
_PHONE_END: Final = 7
_NOT_A_DIGIT: Final = re.compile(r"\D")
_OFTEN, _MOST_OFTEN = 0.05, 200
"""Keys that more than one of twenty known ones have, and more than 200, find nobody."""
_VISITS: Final = 6_000


def keys_of(profile: Profile) -> frozenset[str]:
    """Return the keys of a description."""
    return frozenset((*_value_keys(profile), *(key for name in profile.names for key in _name_keys(name))))


def _name_keys(name: Name) -> Iterator[str]:
    yield from (EXACT + name.form, EXACT + name.joined, EXACT + name.known)
    yield from (f"c{code}" for code in name.codes)
    words = (*name.words, *name.mailbox)
    for word in words:
        yield f"w{word}"
        if len(word) >= _LONG_WORD:
            yield f"p{word[:_PREFIX]}"
            yield f"n{word[0]}{len(word) - 2}{word[-1]}"
        elif len(word) >= _TRIGRAM and word[1:-1].isdecimal():
            yield f"n{word}"
    joined = f" {name.joined} "
    yield from (f"t{joined[at : at + _TRIGRAM]}" for at in range(len(joined) - _TRIGRAM + 1))
    if 1 < len(name.words) <= _LONGEST_ACRONYM:
        yield f"i{initials(name.words)}"
        yield f"m{name.words[0][0]}{name.words[-1]}"
        yield f"m{name.words[0]}{name.words[-1][0]}"
    elif name.words and len(name.words[0]) <= _LONGEST_ACRONYM:
        yield f"i{name.words[0]}"
    if len(name.mailbox) == 1:
        yield f"m{name.mailbox[0]}"
    if words:
        yield from (f"g{number}" for number in nicknames_of((name.mailbox or words)[0]))


def _value_keys(profile: Profile) -> Iterator[str]:
    for value in profile.values.values():
        if value.kind == "phone":
            yield f"@{_NOT_A_DIGIT.sub('', value.text)[-_PHONE_END:]}"
        elif value.kind in {"email", "url", "id"}:
            yield f"@{value.text}"


class NamePostings:
    """Inverted index: numbers of descriptions by key."""

    def __init__(self) -> None:
        self._having: defaultdict[str, set[int]] = defaultdict(set)
        self._size = 0

    def add(self, number: int, keys: Iterable[str]) -> None:
        """Add a description under its keys."""
        self._size += 1
        for key in keys:
            self._having[key].add(number)

    def remove(self, number: int, keys: Iterable[str]) -> None:
        """Remove a description; its keys are those of `add`."""
        self._size -= 1
        for key in keys:
            having = self._having[key]
            having.discard(number)
            if not having:
                del self._having[key]

    def best(self, keys: Iterable[str], limit: int) -> list[int]:
        """Return the numbers that share the rarest keys, best first.

        Equal ones are in the order of numbers.

        Keys of the kind `EXACT` count whatever there are of them.
        """
        most = max(_MOST_OFTEN, _OFTEN * self._size)
        lists = [(len(having), key) for key in keys if (having := self._having.get(key))]
        shared: defaultdict[int, float] = defaultdict(float)
        visits = 0
        for length, key in sorted(lists, key=lambda each: (each[1][0] != EXACT, each)):
            if key[0] != EXACT and (length > most or visits > _VISITS):
                continue
            visits += length
            weight = _SHARES[key[0]] * math.log(1 + self._size / length)
            for number in self._having[key]:
                shared[number] += weight
        return heapq.nsmallest(limit, shared, key=lambda number: (-shared[number], number))
