"""Guessed secrets that a person exempted; known forms are never exempt."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_exempt_hashes: set[str] = set()


def exempt(hashes: Iterable[str]) -> None:
    """Leave texts with these hashes as they are, in this process."""
    _exempt_hashes.update(hashes)


def is_exempt(text: str) -> bool:
    """Return True if a person exempted a text."""
    return bool(_exempt_hashes) and hash_guess(text) in _exempt_hashes


def hash_guess(text: str) -> str:
    """Return the hexadecimal SHA-256 of a text.

    Not keyed: each reader of the hash can read the text, which was stored as no secret.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
