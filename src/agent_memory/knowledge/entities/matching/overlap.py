"""Overlap of two names, by the weight of their words. Pure, except for a table."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.matching.letters import nearness
from agent_memory.knowledge.entities.matching.words import EMPTY_WORDS, GENERIC_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.knowledge.entities.matching.profiles import Profile

_EMPTY_WEIGHT: Final = 0.1
_UNSEEN, _GENERIC_SHARE = 1_000, 0.02
"""Words are weighed as if this many more names had been seen, in which every generic word stood in one of fifty."""


_MOST_COMPARED: Final = 20
"""Words of a name that are compared letter by letter; hardly a name has as many."""


class Weights:
    """Weights of words by rarity among known names and values.

    Args:
        known: All known descriptions.
    """

    def __init__(self, known: Iterable[Profile] = ()) -> None:
        self._seen: Counter[str] = Counter()
        self._forms: Counter[str] = Counter()
        self._texts = 0
        for profile in known:
            self.add(profile)

    def add(self, profile: Profile) -> None:
        """Count the words and the names of one more description."""
        self._texts += 1
        self._seen.update(profile.every_word)
        self._forms.update(profile.forms)

    def remove(self, profile: Profile) -> None:
        """Count no more what was added."""
        self._texts -= 1
        self._seen.subtract(profile.every_word)
        self._forms.subtract(profile.forms)

    def bearers(self, form: str) -> int:
        """Return how many descriptions have a name of this normal form."""
        return self._forms[form]

    def seen(self, word: str) -> int:
        """Return in how many descriptions a word is."""
        return self._seen[word]

    def of(self, word: str) -> float:
        """Return the weight of a word, about 0.1 to 10."""
        if word in EMPTY_WORDS:
            return _EMPTY_WEIGHT
        seen = self._seen.get(word, 0) + (_UNSEEN * _GENERIC_SHARE if word in GENERIC_WORDS else 0)
        return math.log(1 + (self._texts + _UNSEEN) / (seen + 0.5))


@dataclass(slots=True)
class Overlap:
    """What two lists of words share.

    Attributes:
        ours: Weight of all words of the first.
        theirs: Weight of all words of the second.
        ours_met: How much of `ours` is in the second, too.
        theirs_met: How much of `theirs` is in the first, too.
        ours_alone: Words of the first that are not.
        theirs_alone: Words of the second that are not.
        changed: Pairs that were taken for one word though they are not equal.
    """

    ours: float = 0.0
    theirs: float = 0.0
    ours_met: float = 0.0
    theirs_met: float = 0.0
    ours_alone: list[str] = field(default_factory=list)
    theirs_alone: list[str] = field(default_factory=list)
    changed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def shared(self) -> float:
        """Share of the weight that both have, 0 to 1."""
        whole = self.ours + self.theirs
        return (self.ours_met + self.theirs_met) / whole if whole else 0.0

    @property
    def covered(self) -> float:
        """Share of the better covered one in the other, 0 to 1."""
        return max(
            self.ours_met / self.ours if self.ours else 0.0, self.theirs_met / self.theirs if self.theirs else 0.0
        )


def overlap(ours: Sequence[str], theirs: Sequence[str], weights: Weights) -> Overlap:
    """Compare two lists of words: equal, written together, then near."""
    found = Overlap(sum(map(weights.of, ours)), sum(map(weights.of, theirs)))
    left = Counter(theirs)
    for word in ours:
        if left[word] > 0:
            left[word] -= 1
            found.ours_met += weights.of(word)
            found.theirs_met += weights.of(word)
        else:
            found.ours_alone.append(word)
    found.theirs_alone = list(left.elements())
    if found.ours_alone and found.theirs_alone:
        _joined(found, ours, weights, mirrored=False)
        _joined(found, theirs, weights, mirrored=True)
        _near(found, weights)
    elif found.ours_alone or found.theirs_alone:
        _joined(found, ours, weights, mirrored=False)
        _joined(found, theirs, weights, mirrored=True)
    return found


def _joined(found: Overlap, words: Sequence[str], weights: Weights, *, mirrored: bool) -> None:
    """Match two neighbours of one side with one word of the other."""
    parts, wholes = (found.theirs_alone, found.ours_alone) if mirrored else (found.ours_alone, found.theirs_alone)
    if not parts or not wholes:
        return
    for first, second in pairwise(words):
        whole = first + second
        if whole in wholes and first in parts and second in parts:
            wholes.remove(whole)
            parts.remove(first)
            parts.remove(second)
            of_parts, of_whole = weights.of(first) + weights.of(second), weights.of(whole)
            found.ours_met += of_whole if mirrored else of_parts
            found.theirs_met += of_parts if mirrored else of_whole


def _near(found: Overlap, weights: Weights) -> None:
    """Match the remaining words of both sides, the nearest first."""
    pairs: list[tuple[float, str, str, str, str]] = [
        (-near, min(one, other), max(one, other), one, other)
        for one in set(found.ours_alone[:_MOST_COMPARED])
        for other in set(found.theirs_alone[:_MOST_COMPARED])
        if one[0] == other[0] and (near := nearness(one, other))
    ]
    for less, _, _, one, other in sorted(pairs):
        while one in found.ours_alone and other in found.theirs_alone:
            found.ours_alone.remove(one)
            found.theirs_alone.remove(other)
            found.changed.append((one, other))
            found.ours_met -= less * weights.of(one)
            found.theirs_met -= less * weights.of(other)
