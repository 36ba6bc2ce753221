"""Which language a text is likely in, as far as reading names depends on it. Pure, no model."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, Literal, TypeAlias

Language: TypeAlias = Literal["en", "de", "es", "fr", "it", "nl", "pt", "pl", "cs", "xx", ""]
"""`xx` is any other, as far as letters or everyday words tell that it is none of these; empty where nothing tells."""

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
    "pl": "na nie si\u0119 to \u017ce jest za od po jak ale dla czy przez tylko ju\u017c by\u0107 "
    "przy oraz lub co tak je\u015bli gdy aby \u017ceby s\u0105 ma mam mo\u017ce tym tego jako pod nad "
    "mnie moje ten ta te prosz\u0119 dodaj zr\u00f3b u\u017cyj",
    "cs": "na se je \u017ee pro ale jako jsem by kdy\u017e si tak co jen nebo ve po od jak "
    "m\u00e1 mi u\u017e b\u00fdt za p\u0159i jsou nen\u00ed tato tento aby pokud kde kter\u00e1 "
    "kter\u00fd podle bude pros\u00edm nic",
    "xx": "yang dan untuk tidak dengan ini itu dari bisa och att det \u00e4r som f\u00f6r inte jag p\u00e5 "
    "med ikke og til af ve bir bu i\u00e7in ile amb els aquest s\u00f3n kako nije sam och\u00e5 \u0219i "
    "este pentru hogy nem az egy",
}
_OWN_LETTERS: Final[dict[Language, re.Pattern[str]]] = {
    "pl": re.compile(r"\b[^\W\d_A-Z]*[\u0105\u0119\u0142\u0144\u015b\u017c\u017a\u0107][^\W\d_]*"),
    "cs": re.compile(r"\b[^\W\d_A-Z]*[\u011b\u0159\u016f\u0165\u010f\u0148][^\W\d_]*"),
    "xx": re.compile(
        r"\b[^\W\d_A-Z]*[\u011f\u0131\u015f\u0151\u0171\u021b\u0219\u0103\u00e5\u00f8\u00e6\u0111\u1ea0-\u1ef9][^\W\d_]*"
    ),
}
"""Words, not written large, with a letter that only these languages have."""
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_KNOWN: Final = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_LOOKED_AT: Final = 2000


def language_of(text: str) -> Language:
    """Return the language whose everyday words are most among those of a text; empty where none is there."""
    looked_at = text[:_LOOKED_AT]
    words = [word.lower() for word in _WORD.findall(looked_at)]
    letters = sum(map(len, words))
    if letters > 2 * len(_LATIN.findall(looked_at)):
        return "xx"
    seen = Counter[Language]()
    if _GERMAN_LETTER.search(text, 0, _LOOKED_AT):
        seen["de"] += 1
    if not looked_at.isascii():
        for language, letter in _OWN_LETTERS.items():
            if count := len(letter.findall(looked_at)):
                seen[language] += count
    for language, common in _KNOWN.items():
        if count := sum(word in common for word in words):
            seen[language] += count
    if not seen:
        return ""
    return max(seen, key=lambda each: (seen[each], each == "en"))


def is_common(word: str, language: Language) -> bool:
    """Whether a word, small, is an everyday word of a language."""
    return word in _KNOWN.get(language, ())
