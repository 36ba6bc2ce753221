"""The languages whose words of time are known, and which of them a text is in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.times.reading.lexicon.chinese import CHINESE
from agent_memory.times.reading.lexicon.english import ENGLISH
from agent_memory.times.reading.lexicon.french import FRENCH
from agent_memory.times.reading.lexicon.german import GERMAN
from agent_memory.times.reading.lexicon.japanese import JAPANESE
from agent_memory.times.reading.lexicon.spanish import SPANISH

if TYPE_CHECKING:
    from agent_memory.times.reading.lexicon import Lexicon

_LEXICONS: Final = {"en": ENGLISH, "de": GERMAN, "es": SPANISH, "fr": FRENCH, "zh": CHINESE, "ja": JAPANESE}
_KANA: Final = re.compile("[\\u3041-\\u30fe]")
_HAN: Final = re.compile("[\\u4e00-\\u9fff]")
_FREQUENT_WORDS: Final = {
    "en": "the and of to is was in that for on with it at by not be are this have he she we they you",
    "de": "der die das und ist nicht ich ein eine zu mit auf den dem im am wir seit vor nach bei war hat er sie bis",
    "es": "el la los las y es que un una del por con para en se no al desde fue est\u00e1 hace nos su hasta",
    "fr": "le la les et est un une des que dans pour du je au ne pas avec depuis sur il elle nous vous a",
}
_FREQUENT: Final = {language: frozenset(words.split()) for language, words in _FREQUENT_WORDS.items()}
_WORD: Final = re.compile(r"[^\W\d_]+")
_LOOKED_AT: Final = 400
"""Characters of a text that tell its language."""


def lexicon_of(language: str) -> Lexicon:
    """Return the words of a language such as "de" or "de-AT"; those of English for one that is not known."""
    return _LEXICONS.get(language[:2].lower(), ENGLISH)


def language_of(text: str) -> str:
    """Return which of the languages a text is in, by its letters and most frequent words; English where none tells."""
    head = text[:_LOOKED_AT]
    if not head.isascii():
        if _KANA.search(head):
            return "ja"
        if _HAN.search(head):
            return "zh"
    words = [each.lower() for each in _WORD.findall(head)]
    return max(_FREQUENT, key=lambda language: sum(word in _FREQUENT[language] for word in words))
