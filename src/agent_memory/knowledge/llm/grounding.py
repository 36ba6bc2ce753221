"""Places of quotes in texts. Pure."""

from __future__ import annotations

import re


def place_of(quote: str, text: str, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
    """Return where words stand in a text, whatever white space is between them; None where they do not.

    Args:
        quote: The words.
        text: All of it.
        start: Where to begin to look.
        end: Behind the last character to look at; that of the text when omitted.
    """
    words = quote.split()
    if not words:
        return None
    wanted = r"\s+".join(map(re.escape, words))
    if quote.isascii():  # whole words: "oor" stands in no text that says "door"; not all scripts part words
        wanted = rf"(?<!\w){wanted}(?!\w)"
    found = re.compile(wanted).search(text, start, len(text) if end is None else end)
    return found.span() if found else None
