"""Texts as they are compared with what stands in files, however that is written. Pure.

The same words are the same in capital and small letters, composed or decomposed, with ligatures and wide letters, with
or without accents, quotation marks and invisible characters, with other white space between them, and as JSON, YAML and
the Markdown of our pages escape them. Both sides are brought into one form (Unicode's NFKD and case folding, without
combining marks) and compared there; the places of what is found lead back to the very characters of the file.
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from itertools import groupby
from typing import TYPE_CHECKING, Final

from agent_memory.journal.withholding import BAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_STRETCH: Final = 40
"""Words."""
_LEAST: Final = 12
"""Columns of a text that is looked for; a wide letter, as of Chinese, takes two. A shorter one is found by chance."""
_ENDS: Final = ".,;:!?\u2026\u3002"
"""What a sentence ends with: the same words go on otherwise elsewhere."""
_LEFT_OUT: Final = frozenset("\\'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u2032\u2033")
"""What JSON, YAML and Markdown put before or double among the characters of a text, and their typographic kin."""
_ESCAPE: Final = re.compile(
    r"\\+u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\+u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"  # JSON, two halves of one
    r"|\\+(?:u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})|U(?P<eight>[0-9a-fA-F]{8}))"  # JSON, YAML
    r"|\\+(?P<space>[nrtNLP_])"  # white space in JSON and YAML
    r"|(?P<reference>&(?:#[xX][0-9a-fA-F]{1,6}|#\d{1,7}|amp|lt|gt|quot|apos|nbsp);)"  # HTML, Markdown
    r"|(?P<line>\n[ \t]*(?:[>|][-+]?[ \t]*)+)"  # a quotation of Markdown, a block of YAML
)
_SPACES: Final = re.compile(" {2,}")
_UNSEEN: Final = frozenset({"Mn", "Me", "Cf", "Cc", "Cs"})
"""Categories of Unicode: combining marks, characters that steer or show nothing, halves of a pair."""


class _Folds(dict[int, str]):
    """What each character is compared as; made when it is first met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isspace():
            folded = " "
        else:
            parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
            folded = "".join(" " if one.isspace() else one for one in parts if not _is_left_out(one))
        self[code] = folded
        return folded


_FOLDS: Final = _Folds()


class Wording:
    """Some texts, to be found in others.

    Args:
        texts: What is looked for; a long one in stretches of 40 words, of which each counts by itself.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        wanted = {way for text in texts for way in stretches(text)}
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
        folded, places = _placed(text)
        parts, behind = list[str](), 0
        for match in self._pattern.finditer(folded):
            start, end = places[match.start()][0], places[match.end() - 1][1]
            parts += [text[behind:start], BAR * (end - start)]
            behind = end
        return "".join([*parts, text[behind:]])


def can_be_told(text: str) -> bool:
    """Tell whether a text is long enough to be told from others, wherever it stands."""
    wide = sum(unicodedata.east_asian_width(one) in {"W", "F"} for one in text.strip())
    return len(text.strip()) + wide >= _LEAST


def compared(text: str) -> str:
    """Return a text in the form in which texts are compared, with single spaces."""
    return _SPACES.sub(" ", _ESCAPE.sub(_meant, text).translate(_FOLDS))


def loosely(text: str) -> str:
    """Return a text in that form, without what a sentence ends with: equal for the same words."""
    return compared(text).strip(f" {_ENDS}")


def _placed(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return what `compared` does, with the place in `text` of each character."""
    signs: list[tuple[str, tuple[int, int]]] = []
    behind = 0
    for escape in [*_ESCAPE.finditer(text), None]:
        end = len(text) if escape is None else escape.start()
        signs += [(sign, (at, at + 1)) for at in range(behind, end) for sign in _FOLDS[ord(text[at])]]
        if escape is not None:
            signs += [(sign, escape.span()) for one in _meant(escape) for sign in _FOLDS[ord(one)]]
            behind = escape.end()
    kept: list[tuple[str, tuple[int, int]]] = []
    for sign, some in groupby(signs, key=lambda each: each[0]):
        run = list(some)
        kept += [(sign, (run[0][1][0], run[-1][1][1]))] if sign == " " else run
    return "".join(sign for sign, _ in kept), [place for _, place in kept]


def _meant(escape: re.Match[str]) -> str:
    """Return the character that an escape stands for."""
    if escape["space"] or escape["line"]:
        return " "
    if escape["reference"]:
        return html.unescape(escape["reference"])
    if escape["high"]:
        pair = int(escape["high"], 16) - 0xD800, int(escape["low"], 16) - 0xDC00
        return chr(0x10000 + (pair[0] << 10) + pair[1])
    code = int(escape["four"] or escape["two"] or escape["eight"], 16)
    return chr(code) if code <= sys.maxunicode else escape[0]


def _is_left_out(character: str) -> bool:
    return character in _LEFT_OUT or unicodedata.category(character) in _UNSEEN


def stretches(text: str) -> Iterator[str]:
    """Yield a text in the form in which it is compared, of a long one some words at a time; the last has the rest."""
    if not can_be_told(text):
        return
    words = compared(text).split()
    count = max(1, len(words) // _STRETCH)
    for at in range(count):
        yield " ".join(words[at * _STRETCH : None if at == count - 1 else (at + 1) * _STRETCH])


def _pattern_of(way: str) -> str:
    """Return what finds a stretch: its end may be another one, and a number at its edge is not a part of another."""
    body = way.strip(f" {_ENDS}") or way
    before, _, after = way.partition(body)
    edges = r"(?<!\d)" * body[:1].isdigit(), r"(?!\d)" * body[-1:].isdigit()
    lead, trail = (f"(?:{re.escape(each)})?" if each else "" for each in (before, after))
    return f"{lead}{edges[0]}{re.escape(body)}{edges[1]}{trail}"
