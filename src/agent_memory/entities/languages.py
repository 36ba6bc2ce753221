"""Which language a text is likely in, as far as reading names depends on it. Pure, no model."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, Literal, TypeAlias

Language: TypeAlias = Literal["en", "de", "es", "fr", "it", "nl", "pt", ""]

_GERMAN_LETTER: Final = re.compile("[\u00e4\u00f6\u00fc\u00df\u00c4\u00d6\u00dc]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_COMMON: Final[dict[Language, str]] = {
    "en": "the and of to is in it you that was for on are with as be at this have from by not but what all we "
    "when your can said there an which do how their if will my has our i me she he they his her him them "
    "who where does did its or no please use uses should would could been were just now",
    "de": "der die das und ist nicht ein eine einen einem einer eines ich du er sie es wir ihr mit auf f\u00fcr "
    "von zu den dem des im am sich auch als an nach wie bei aus oder aber wenn nur noch mehr schon hat "
    "haben sein wird werden war kann wurde zum zur \u00fcber unter beim vom mein meine unser unsere seit "
    "kein keine ab bis alle bitte morgen",
    "es": "el la los las de y en que es un una por con para no se su al lo como m\u00e1s pero sus le ya o este "
    "s\u00ed porque esta entre cuando muy sin sobre tambi\u00e9n me hasta hay donde desde nos mi del "
    "est\u00e1 tiene vive trabaja",
    "fr": "le la les de des et est en un une du que qui dans pour pas ne sur ce il elle nous vous je se au aux "
    "avec sont plus son sa ses par mais ou \u00e0 \u00eatre cette leur tout fait comme c d l j n qu chez "
    "notre depuis tr\u00e8s",
    "it": "il lo la gli le di che \u00e8 e un una in per non con si da sono del della al come ma pi\u00f9 dei "
    "nel alla anche questo ho ha mi ti suo sua molto lavora vive dal",
    "nl": "de het een en van is dat niet op te zijn met voor in er maar ook aan bij als ik je hij zij wij naar "
    "heeft wordt door uit over onze mijn werkt woont",
    "pt": "o a os as de e que \u00e9 um uma em para n\u00e3o com se por do da no na ao mais mas como foi ele "
    "ela seu sua s\u00e3o tem eu voc\u00ea tamb\u00e9m trabalha mora",
}
_KNOWN: Final = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_LOOKED_AT: Final = 2000


def language_of(text: str) -> Language:
    """Return the language whose everyday words are most among those of a text; empty where none is there."""
    words = [word.lower() for word in _WORD.findall(text[:_LOOKED_AT])]
    seen = Counter[Language]()
    if _GERMAN_LETTER.search(text, 0, _LOOKED_AT):
        seen["de"] += 1
    for language, common in _KNOWN.items():
        if count := sum(word in common for word in words):
            seen[language] += count
    if not seen:
        return ""
    return max(seen, key=lambda each: (seen[each], each == "en"))


def is_common(word: str, language: Language) -> bool:
    """Whether a word, small, is an everyday word of a language."""
    return word in _KNOWN.get(language, ())
