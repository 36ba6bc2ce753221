"""A text in words and signs, each with its place. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 60
"""Characters of a word: longer ones are keys, paths or noise, and are cut for looking at."""
_TOKEN: Final = re.compile(
    r"https?://\S+|www\.\S+"
    r"|[@#]\w+(?:-\w+)*"
    r"|[^\W_](?:\.[^\W_]){1,6}\.(?!\w)"  # U.S., e.g.
    r"|['\u2019](?:s|S|m|re|ve|ll|d)\b|n['\u2019]t\b"
    r"|\w+?(?=n['\u2019]t\b)"
    r"|\w+(?:(?:[-&]|['\u2019](?!(?:s|S|m|re|ve|ll|d|t)\b)|\.(?=[a-z0-9])|(?<=[A-Z])\.(?=[A-Z]\b))\w+)*\+{0,2}"
    r"|\.{2,}|[^\w\s]"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word or sign: `text[start:end]`."""

    word: str
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    """Return the words and signs of a text in order; white space is none."""
    return [Token(match[0][:LONGEST], match.start(), match.end()) for match in _TOKEN.finditer(text)]
