"""The pieces of a sentence, between what joins its clauses and the items of its lists. Pure."""

from __future__ import annotations

import re
from typing import Final

# Only from the first of several spaces on: from each of them it would look to the end of all.
_JOIN: Final = re.compile(
    r"(?:,|(?<!\s)(?=\s))\s+(?:and also|as well as|and|but also|but|while|whereas|because|although|though|plus|or"
    r"|und|aber|et|mais|y|pero)\s+|,\s+(?!so\b)",  # what follows from a clause says nothing without it
    re.IGNORECASE,
)


def pieces_of(text: str) -> tuple[list[str], list[str]]:
    """Split a sentence at what joins its clauses and items; numbers with commas and quotes stay whole."""
    pieces, joins, behind = [], list[str](), 0
    for match in _JOIN.finditer(text):
        piece = text[behind : match.start()]
        if not piece.strip() or not text[match.end() :].strip() or _is_inside(text, match.start()):
            continue
        pieces.append(piece)
        joins.append(match[0])
        behind = match.end()
    pieces.append(text[behind:])
    return pieces, joins


def _is_inside(text: str, at: int) -> bool:
    """Tell whether a place is within quotes or brackets."""
    before = text[:at]
    return (
        before.count("(") > before.count(")")
        or before.count('"') % 2 == 1
        or before.count("\u201c") > before.count("\u201d")
    )
