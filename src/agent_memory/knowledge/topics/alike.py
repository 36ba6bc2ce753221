"""Numbers and denials, which two texts share that say the same. Pure."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.retrieval.tokens import index_terms

_NEGATIONS: Final = frozenset(
    {"not", "no", "never", "none", "nobody", "noth", "without", "n't", "cannot", "neither", "nor"}
)
_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")
_DENIAL: Final = re.compile(r"n['\u2019]t\b|\bcannot\b", re.IGNORECASE)


def exact_of(text: str) -> tuple[tuple[str, ...], bool]:
    """Return the numbers of a text, and whether it denies something."""
    denies = not _NEGATIONS.isdisjoint(index_terms(text)) or _DENIAL.search(text) is not None
    return tuple(sorted(numbers_in(text))), denies


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text in their order."""
    return _NUMBER.findall(text)
