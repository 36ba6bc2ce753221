"""Which word of a piece of a sentence is its verb: English, by common verbs, endings and what stands beside. Pure."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.forgetting.lexicon import (
    AUXILIARIES,
    DENIALS,
    DETERMINERS,
    PRONOUNS,
    is_base_verb,
    is_known_verb,
    looks_like_verb,
)

_EDGE: Final = "\"'()[]{},;:!?*\u201c\u201d\u2018"
CONTRACTED: Final = re.compile(r"(i|you|we|they|he|she|it|there)['\u2019](?:m|re|s|ve|d|ll)")
ADVERBS: Final = frozenset(
    ["also", "now", "still", "then", "currently", "always", "usually", "often", "sometimes", "never", "really", "just"]
)


def bare_of(word: str) -> str:
    """Return a word in lower case, without what stands around it."""
    return word.strip(_EDGE).lower()


def verb_at(text: str, *, is_first: bool = True) -> int | None:
    """Return which word of a piece is its verb; None where it has none."""
    words = text.split()
    bare = [bare_of(word) for word in words]
    if len(words) == 1 and not is_first:
        return None  # "fish" after "nuts and" is an item
    for at, word in enumerate(bare):
        before = bare[at - 1] if at else ""
        led = before in DETERMINERS and not (at > 1 and words[at - 1].isupper())
        if led or before.endswith(("'s", "\u2019s")):
            continue
        if word in AUXILIARIES or word.endswith(("n't", "n\u2019t")) or CONTRACTED.fullmatch(word):
            return at
        is_name = words[at][0].isupper() or (not at and is_first)
        if word not in DENIALS and not is_name and _is_verb(words, bare, at):
            return at
    return None


def _is_verb(words: list[str], bare: list[str], at: int) -> bool:
    """Tell whether a word that is no auxiliary is the verb of a piece, by its form and by what stands beside it."""
    word, before = bare[at], bare[at - 1] if at else ""
    after_subject = before in PRONOUNS or before in ADVERBS
    if is_known_verb(word) and (at == 0 or not is_base_verb(word) or after_subject):
        return True
    if not looks_like_verb(word):
        return False
    if not at:
        return len(words) > 1 and bare[1] in DETERMINERS
    named = words[at - 1][0].isupper() or (words[0][0].isupper() and at + 1 < len(words))
    return named or after_subject
