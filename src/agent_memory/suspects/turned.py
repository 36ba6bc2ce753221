"""Two sentences of the same words that say the opposite: "on" for "off", "all" for "some", or turned round a word.

A small word alone tells "the lamp is on" from "the lamp is off", and the order alone "tabs over spaces" from "spaces
over tabs"; all other words are the same, so these two are what is left to look at.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from agent_memory.suspects.frames import telling_terms, words_of
from agent_memory.suspects.wording import FUNCTION_WORDS

_PAIRS: Final = (
    "on off, up down, in out, inside outside, before after, above below, over under, more less, more fewer, "
    "most least, all some, all no, every some, every no, all none, any no, with without, only all, both neither, "
    "once twice"
)
_OPPOSITES: Final = frozenset(frozenset(pair.split()) for pair in _PAIRS.split(", "))
_TURNING: Final = frozenset({"over", "than", "before", "after", "from", "to"})
"""What stands on one side of these is not what stands on the other."""


def are_turned(new: str, old: str) -> bool:
    """Tell whether two sentences have the same words but for opposite small ones, or in another order that matters."""
    one, two = words_of(new), words_of(old)
    if not one or not two or Counter(telling_terms(one)) != Counter(telling_terms(two)):
        return False
    small, others = _small(one), _small(two)
    has_opposites = any(frozenset((word, beside)) in _OPPOSITES for word in small - others for beside in others - small)
    return has_opposites != _are_swapped(one, two)


def _small(words: tuple[str, ...]) -> frozenset[str]:
    return FUNCTION_WORDS.intersection(words)


def _are_swapped(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether what stands before and after a turning word has changed places."""
    sides, others = _sides(one), _sides(two)
    return sides is not None and others is not None and sides != others and sides == others[::-1]


def _sides(words: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the telling words next to the only turning word, or None."""
    at = [place for place, word in enumerate(words) if word in _TURNING]
    if len(at) != 1:
        return None
    before, after = telling_terms(words[: at[0]]), telling_terms(words[at[0] + 1 :])
    return (before[-1], after[0]) if before and after else None
