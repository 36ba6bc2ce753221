"""Normal forms of names and values, and the words of `patterns/words.yaml`."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.languages import load_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WORDS: Final[dict[str, Any]] = load_patterns("agent_memory.knowledge.entities.matching", "words")
TITLES: Final = frozenset[str](_WORDS["titles"])
LEGAL_FORMS: Final[dict[str, str]] = {
    **dict.fromkeys(_WORDS["company_ends"], ""),
    **{word: line.split()[0] for line in _WORDS["legal_forms"] for word in line.split()},
}
"""What may end a company's name, and the form it stands for; empty where it tells none."""
EMPTY_WORDS: Final = frozenset[str](_WORDS["empty_words"])
GENERIC_WORDS: Final = frozenset[str](_WORDS["generic_words"])
NEGATIONS: Final = frozenset[str](_WORDS["negations"])
EDITION_WORDS: Final = frozenset[str](_WORDS["edition_words"])
GENERATIONS: Final = frozenset[str](_WORDS["generations"])
ROLES: Final = frozenset[str](_WORDS["roles"])
SPELLINGS: Final[dict[str, str]] = {
    word: group.split("/")[0] for line in _WORDS["opposites"] for group in line.split() for word in group.split("/")
}
KNOWN_NAMES: Final[tuple[tuple[str, ...], ...]] = tuple(
    tuple(name.strip() for name in line.split("|")) for line in _WORDS["known_names"]
)
_DIGRAPHS: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "\u0131": "i"}
)
_ACCENTS: Final = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
_APOSTROPHES: Final = re.compile(r"(?<=[^\W_])['\u2019\u02bc`](?=[^\W_])")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_WORD: Final = re.compile(r"(?:(?<!\S)\.(?=[^\W\d_]))?[^\W_]+(?:(?<=\d)\.(?=\d)[^\W_]+)*(?:[+#]++(?![^\W_]))?")
_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)*)")
_ROMAN: Final = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
"""Without i, v and x, which are letters as often."""
_EMAIL: Final = re.compile(r"[^\s@]+@(?=[^\s@]+\Z)[^\s@]+\.[^\s@]+")
_DIGIT: Final = re.compile(r"\d")
_DOTTED_FORMS: Final = re.compile(r"(?<!\w)(?:[a-z]\.\s?){2,4}(?!\w)")
_WITH_ARTICLE: Final = 2
_COMPANIES: Final = frozenset({"", "organisation", "other"})


def _number_lines(lines: Iterable[Iterable[str]]) -> dict[str, frozenset[int]]:
    numbers_by_word: dict[str, set[int]] = {}
    for number, line in enumerate(lines):
        for word in line:
            numbers_by_word.setdefault(word, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in numbers_by_word.items()}


OPPOSED: Final = _number_lines(line.replace("/", " ").split() for line in _WORDS["opposites"])
"""Numbers of the lines in which a word stands; others of such a line exclude it."""


GIVEN_NAMES: Final = _number_lines(line.split() for line in _WORDS["given_names"])
"""Numbers of the groups of given names, used for one another, that a word is in."""


def fold_name(text: str) -> str:
    """Return a text without case, width and Latin accents.

    Umlauts become two letters. Marks on letters of other scripts stay: without them they are other letters.
    """
    if "&" in text:
        text = html.unescape(text).replace("&", " and ")
    text = unicodedata.normalize("NFKC", text).casefold()
    if text.isascii():
        return _THOUSANDS.sub("", _APOSTROPHES.sub("", text))
    text = unicodedata.normalize("NFD", text.translate(_DIGRAPHS))
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", text))
    return _THOUSANDS.sub("", _APOSTROPHES.sub("", text))


def split_words(text: str) -> list[str]:
    """Return the folded words of a text.

    Versions lose `v` and final zeros, Roman numbers become Arabic ones.
    """
    return [_plain(word) for word in _WORD.findall(fold_name(text))]


def _plain(word: str) -> str:
    if word in _ROMAN:
        return _ROMAN[word]
    version = _VERSION.fullmatch(word)
    if version is None:
        return word
    number = version[1]
    while number.endswith(".0"):
        number = number[:-2]
    return number


def normal_form(name: str, kind: str = "") -> str:
    """Return the normal form of a name: its words with single spaces.

    Legal forms at the end (`GmbH`, `Inc.`) are left out where the kind allows a company, forms of address at the
    beginning where it is a person, the article `the` before two words or more. Something always
    stays, unless there is not one letter or digit in it: then it is the text as it was, folded.
    """
    return " ".join(name_words(name, kind)) or fold_name(name).strip()


def full_form(name: str) -> str:
    """Return the normal form of a name with its legal form."""
    return " ".join((normal_form(name), *sorted(legal_forms(name))))


def name_words(name: str, kind: str = "") -> list[str]:
    """Return the words of the normal form of a name.

    An address is one word. A name without letters and digits has none.
    """
    if is_email(name):
        return [fold_name(name).strip()]
    if kind in _COMPANIES:
        name = _DOTTED_FORMS.sub(lambda match: re.sub(r"[.\s]", "", match[0]) + " ", fold_name(name))
    words = split_words(name)
    surname, comma, given_name = name.partition(",")
    if kind == "person" and comma and not GENERATIONS.intersection(split_words(given_name)):
        words = [*split_words(given_name), *split_words(surname)]
    if kind in _COMPANIES:
        while len(words) > 1 and words[-1] in LEGAL_FORMS:
            words.pop()
    if kind == "person":
        while len(words) > 1 and words[0] in TITLES:
            words.pop(0)
    if len(words) > _WITH_ARTICLE and words[0] == "the":
        words.pop(0)
    return words


def is_email(text: str) -> bool:
    """Return True if a text has the form of an e-mail address."""
    return _EMAIL.fullmatch(text.strip()) is not None


def legal_forms(name: str, kind: str = "") -> frozenset[str]:
    """Return the legal forms at the end of a company name."""
    if kind not in _COMPANIES:
        return frozenset()
    text = _DOTTED_FORMS.sub(lambda forms: re.sub(r"[.\s]", "", forms[0]) + " ", fold_name(name))
    words, forms = split_words(text), set()
    while len(words) > 1 and words[-1] in LEGAL_FORMS:
        forms.add(LEGAL_FORMS[words.pop()])
    return frozenset(forms - {""})


def has_digit(word: str) -> bool:
    """Return True if a word has a digit."""
    return _DIGIT.search(word) is not None


_SHORT_FORMS: Final[dict[str, str]] = {normal_form(name): names[0] for names in KNOWN_NAMES for name in names}


_LONGEST: Final = max(len(form.split()) for form in _SHORT_FORMS)


@lru_cache(maxsize=16_384)
def known_form(form: str) -> str:
    """Return a normal form with each known name in one spelling."""
    return " ".join(_known_words(tuple(form.split())))


def _known_words(words: Sequence[str]) -> list[str]:
    result, place = [], 0
    while place < len(words):
        for length in range(min(_LONGEST, len(words) - place), 0, -1):
            short_form = _SHORT_FORMS.get(" ".join(words[place : place + length]))
            if short_form is not None:
                result.append(short_form)
                place += length
                break
        else:
            result.append(words[place])
            place += 1
    return result
