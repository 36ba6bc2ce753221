"""Two ways of finding names that need no data: every capitalised word, and capitalised runs within sentences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.language.words import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

_WORD: Final = re.compile(r"(?<![\w@#])[A-Z][\w-]*(?: [A-Z][\w-]*)*")
_RUN: Final = re.compile(
    r"(?<![\w@/.-])([A-Z\u00c0-\u00de][\w\u00c0-\u024f]*(?:[ \t]+[A-Z\u00c0-\u00de][\w\u00c0-\u024f]*)*)"
)
_BEGINS: Final = re.compile(r"(?:^|[.!?:;\u2026\"\u201c(\[\n*-])\s*$")
_LOOK_BACK: Final = 8


def capitalised(text: str) -> list[tuple[int, int, str]]:
    """Return every run of capitalised words."""
    return [(match.start(), match.end(), "other") for match in _WORD.finditer(text)]


def within_sentences(text: str) -> list[tuple[int, int, str]]:
    """Return the runs that do not begin a sentence and are no function word: how topics were named before."""
    found = []
    for match in _RUN.finditer(text):
        begins = _BEGINS.search(text, max(0, match.start() - _LOOK_BACK), match.start()) is not None
        if not begins and match[0].casefold() not in STOP_WORDS and len(match[0]) > 1:
            found.append((match.start(), match.end(), "other"))
    return found


BASELINES: Final[dict[str, Callable[[str], list[tuple[int, int, str]]]]] = {
    "capitalised words": capitalised,
    "capitals within a sentence": within_sentences,
}
