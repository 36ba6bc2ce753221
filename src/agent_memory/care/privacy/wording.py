"""Texts as they are compared with what stands in files, however that is written. Pure.

Both sides are brought into one form (`agent_memory.journal.comparing`) and compared there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.journal.comparing import can_be_told, compared, is_most, placed
from agent_memory.journal.withholding import BAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_STRETCH: Final = 40
"""Words."""
_ENDS: Final = ".,;:!?\u2026\u3002"
"""What a sentence ends with: the same words go on otherwise elsewhere."""


class Wording:
    """Some texts, to be found in others.

    Args:
        texts: What is looked for; a long one in stretches of 40 words, of which each counts by itself.
        short: Look also for those that may stand elsewhere by chance.
    """

    def __init__(self, texts: Iterable[str], *, short: bool = False) -> None:
        wanted = {way for text in texts for way in stretches(text, short=short)}
        ways = sorted(wanted, key=lambda way: (-len(way), way))
        self._pattern = re.compile("|".join(map(_pattern_of, ways))) if ways else None

    def __bool__(self) -> bool:
        """Tell whether anything can be looked for."""
        return self._pattern is not None

    def count(self, text: str) -> int:
        """Return how often one of the texts stands in another."""
        return 0 if self._pattern is None else len(self._pattern.findall(compared(text)))

    def hidden(self, text: str) -> str:
        """Return a text with `BAR` for each character of these texts in it."""
        if self._pattern is None or self._pattern.search(compared(text)) is None:
            return text
        folded, places = placed(text)
        parts, behind = list[str](), 0
        for match in self._pattern.finditer(folded):
            start, end = places[match.start()][0], places[match.end() - 1][1]
            parts += [text[behind:start], BAR * (end - start)]
            behind = end
        return "".join([*parts, text[behind:]])


def stretches(text: str, *, short: bool = False) -> Iterator[str]:
    """Yield a text in the form in which it is compared, of a long one some words at a time; the last has the rest.

    A short one, which may stand elsewhere by chance, only if `short` asks for it.
    """
    words = compared(text).split()
    if not words or not (short or can_be_told(text)):
        return
    count = max(1, len(words) // _STRETCH)
    for at in range(count):
        yield " ".join(words[at * _STRETCH : None if at == count - 1 else (at + 1) * _STRETCH])


def _pattern_of(way: str) -> str:
    """Return what finds a stretch: its end may be another one, and a number at its edge is not a part of another."""
    body = way.strip(f" {_ENDS}")
    body = body if is_most(body, way) else way
    before, _, after = way.partition(body)
    edges = r"(?<!\d)" * body[:1].isdigit(), r"(?!\d)" * body[-1:].isdigit()
    lead, trail = (f"(?:{re.escape(each)})?" if each else "" for each in (before, after))
    return f"{lead}{edges[0]}{re.escape(body)}{edges[1]}{trail}"
