"""Texts in the one form in which they are compared, however a file writes them. Pure.

The same words are the same in capital and small letters, composed or decomposed, with ligatures and wide letters, with
or without accents, quotation marks and invisible characters, with other white space between them, and as JSON, YAML and
the Markdown of our pages escape them: Unicode's NFKD and case folding, without combining marks. The places of what is
found lead back to the very characters of the text.
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from itertools import groupby
from typing import Final

_LEAST: Final = 12
"""Columns of a text that is looked for; a wide letter, as of Chinese, takes two. A shorter one is found by chance."""
_LEFT_OUT: Final = frozenset("\\'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u2032\u2033")
"""What JSON, YAML and Markdown put before or double among the characters of a text, and their typographic kin."""
_ESCAPE: Final = re.compile(
    r"(?<!\\)\\++(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\+u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"  # JSON, two halves
    r"|u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})|U(?P<eight>[0-9a-fA-F]{8})"  # JSON, YAML
    r"|(?P<space>[nrtNLP_]))"  # white space in JSON and YAML
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


def can_be_told(text: str) -> bool:
    """Tell whether a text is long enough to be told from others, wherever it stands: as it is compared."""
    body = compared(text).strip()
    return len(body) + sum(unicodedata.east_asian_width(one) in {"W", "F"} for one in body) >= _LEAST


def is_most(part: str, whole: str) -> bool:
    """Tell whether a part is half of a text or more, so that it can stand for it alone: `7` cannot for `. . . . 7`."""
    return 2 * len(part) >= len(whole) > 0


def compared(text: str) -> str:
    """Return a text in the form in which texts are compared, with single spaces."""
    return _SPACES.sub(" ", _ESCAPE.sub(_meant, text).translate(_FOLDS))


def placed(text: str) -> tuple[str, list[tuple[int, int]]]:
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
