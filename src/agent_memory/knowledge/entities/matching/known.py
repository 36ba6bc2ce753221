"""Known names of one thing in other letters. Pure functions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.matching.normal import normal_form
from agent_memory.knowledge.entities.matching.words import KNOWN_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHORT_FORMS: Final[dict[str, str]] = {normal_form(name): names[0] for names in KNOWN_NAMES for name in names}
_LONGEST: Final = max(len(form.split()) for form in _SHORT_FORMS)


@lru_cache(maxsize=16_384)
def known_form(form: str) -> str:
    """Return a normal form with each known name in one spelling."""
    return " ".join(_known_words(tuple(form.split())))


def _known_words(words: Sequence[str]) -> list[str]:
    found, at = [], 0
    while at < len(words):
        for length in range(min(_LONGEST, len(words) - at), 0, -1):
            known = _SHORT_FORMS.get(" ".join(words[at : at + length]))
            if known is not None:
                found.append(known)
                at += length
                break
        else:
            found.append(words[at])
            at += 1
    return found
