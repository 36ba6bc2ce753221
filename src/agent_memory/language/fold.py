"""Fold of a text, equal for texts that differ in case, width or white space alone. Pure.

Index terms, names of entities and the words of purge lists have folds of their own, which also drop accents or quotes:
each is on disk or gives the ranks, and this one would change them.
"""

from __future__ import annotations

import unicodedata


def fold(text: str) -> str:
    """Return a text without case, compatibility forms and extra spaces.

    The content hashes of journals are made of it, so it has to stay the same.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
