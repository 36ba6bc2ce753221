"""A text as one line of Markdown that shows the text and nothing else, and back to the very characters.

Nothing in it opens a fence, a heading, a footnote, a link, a table or HTML. What breaks a line or steers what shows it
is written as a numeric reference, which Markdown shows as that character. `unfold` writes the line breaks of claims as
hard breaks, so that a page has lists, tables and code line by line.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Final

from agent_memory.models import STEERING

_ALWAYS: Final = '\\\\`*\\[\\]<>~"|$'
_SPECIAL: Final = re.compile(
    rf"(?P<coded>[\t\n{STEERING}\u200c\u200d\ufe00-\ufe0f])"
    rf"|(?P<punctuation>[{_ALWAYS}])"
    r"|(?P<underscore>(?<![^\W_])_|_(?![^\W_]))"
    r"|(?P<reference>&(?=#?\w+;))"
)
_JOINED: Final = re.compile("[\u200c\u200d\ufe00-\ufe0f]")
"""Of emoji and many scripts: left as they are, where they do not stand in a row."""
_OPENS: Final = re.compile(r"^( *)(\d{1,9}(?=[.)])|(?=[-+#=:(]))")
"""What opens a block at the beginning of a line, or what a claim's date begins with."""
_BREAK: Final = "&#xA;"
_CLAIM: Final = re.compile(r"^- .*", re.MULTILINE)
_FOLDED: Final = re.compile(rf"(?<!\\){_BREAK}")
_BROKEN_CLAIM: Final = re.compile(r"^- .*(?:(?<=\\)\n  .*)+", re.MULTILINE)
_HARD_BREAK: Final = re.compile(r"(?<!\\)((?:\\\\)*+)\\\n  ")
_REMEMBERED: Final = 4_096
"""Texts of one long page, about 1 MB: a page is measured, split and written."""
_SURROGATES: Final = range(0xD800, 0xE000)
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])|&#x([0-9A-F]{1,6});")


@lru_cache(maxsize=_REMEMBERED)
def escaped(text: str) -> str:
    """Return `text` as one line of Markdown that `unescaped` turns into the same text."""
    line = _BREAK.join(map(_escape_line, text.split("\n")))
    if line[:1].isspace():
        line = f"&#x{ord(line[0]):X};{line[1:]}"
    if line[-1:].isspace():
        line = f"{line[:-1]}&#x{ord(line[-1]):X};"
    return line


def unfold(page: str) -> str:
    """Return a page with hard breaks in its claims."""
    return _CLAIM.sub(lambda claim: _FOLDED.sub("\\\\\n  ", claim[0]), page)


def fold(page: str) -> str:
    """Return a page with each claim in one line."""
    return _BROKEN_CLAIM.sub(lambda claim: _HARD_BREAK.sub(rf"\1{_BREAK}", claim[0]), page)


def unescaped(line: str) -> str:
    """Return the text that `line` shows."""
    return _ESCAPED.sub(lambda found: found[1] or _character(found[2]), line)


def _escape_line(text: str) -> str:
    return _OPENS.sub(r"\1\2\\", _SPECIAL.sub(_escape, text), count=1)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if found["coded"] is None:
        return f"\\{character}"
    return character if _JOINED.fullmatch(character) else f"&#x{ord(character):X};"


def _character(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if 0 < code <= sys.maxunicode and code not in _SURROGATES else f"&#x{digits};"
