"""Lines of a page that say the same thing in nearly the same words. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval.tokens import index_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NEARLY: Final = 0.8
"""Share of the terms of two lines that both have."""
_NEGATIONS: Final = frozenset(
    {"not", "no", "never", "none", "nobody", "noth", "without", "n't", "cannot", "neither", "nor"}
)
_REMEMBERED: Final = 4_096
"""Items that are on several pages of one run, about 4 MB."""
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_DENIAL: Final = re.compile(r"n['\u2019]t\b|\bcannot\b", re.IGNORECASE)


def alike(texts: Sequence[str]) -> list[int]:
    """Return for each text the position of the first one that says the same; its own, if none does.

    Lines that differ in a number or in a denial do not say the same.
    """
    firsts: list[int] = []
    seen: dict[str, list[int]] = {}
    read = [_read(text) for text in texts]
    common = Counter(term for terms, _ in read for term in terms)
    for at, (terms, exact) in enumerate(read):
        rare = _rarest(terms, common)
        near = sorted({other for term in rare for other in seen.get(term, ())})
        same = [other for other in near if read[other][1] == exact and _share(terms, read[other][0]) >= NEARLY]
        if not terms:
            same = [other for other in range(at) if firsts[other] == other and texts[other] == texts[at]]
        firsts.append(same[0] if same else at)
        if not same:
            for term in rare:
                seen.setdefault(term, []).append(at)
    return firsts


def adds_nothing(text: str, other: str) -> bool:
    """Tell whether all terms of a text stand in another one, in the same order."""
    terms = iter(index_terms(other))
    return all(term in terms for term in index_terms(text))


def _rarest(terms: frozenset[str], common: Mapping[str, int]) -> list[str]:
    """Return so many of the rarest terms that two lines which are alike have one of them in common."""
    return sorted(terms, key=lambda term: (common[term], term))[: len(terms) - math.ceil(NEARLY * len(terms)) + 1]


def exact_of(text: str) -> tuple[tuple[str, ...], bool]:
    """Return what must be the same where two texts say the same: the numbers, and whether it denies something."""
    return _exact(text, index_terms(text))


def _exact(text: str, terms: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    denies = not _NEGATIONS.isdisjoint(terms) or _DENIAL.search(text) is not None
    return tuple(sorted(numbers_in(text))), denies


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text in their order."""
    return _NUMBER.findall(text)


@lru_cache(maxsize=_REMEMBERED)
def _read(text: str) -> tuple[frozenset[str], tuple[tuple[str, ...], bool]]:
    terms = frozenset(index_terms(text))
    return terms, _exact(text, terms)


def _share(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second)
