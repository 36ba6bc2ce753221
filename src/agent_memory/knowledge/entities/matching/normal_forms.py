"""Normal forms and similarity of names, with the words of `patterns/words.yaml`. Pure."""

from __future__ import annotations

import html
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from agent_memory.language.languages import load_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WORDS: Final[dict[str, Any]] = load_patterns("agent_memory.knowledge.entities.matching", "words")
TITLES: Final = frozenset[str](WORDS["titles"])
LEGAL_FORMS: Final[dict[str, str]] = {
    **dict.fromkeys(WORDS["company_ends"], ""),
    **{word: line.split()[0] for line in WORDS["legal_forms"] for word in line.split()},
}
"""What may end a company's name, and the form it stands for; empty where it tells none."""
EMPTY_WORDS: Final = frozenset[str](WORDS["empty_words"])
GENERIC_WORDS: Final = frozenset[str](WORDS["generic_words"])
NEGATIONS: Final = frozenset[str](WORDS["negations"])
EDITION_WORDS: Final = frozenset[str](WORDS["edition_words"])
GENERATIONS: Final = frozenset[str](WORDS["generations"])
ROLES: Final = frozenset[str](WORDS["roles"])
SPELLINGS: Final[dict[str, str]] = {
    word: group.split("/")[0] for line in WORDS["opposites"] for group in line.split() for word in group.split("/")
}
KNOWN_NAMES: Final[tuple[tuple[str, ...], ...]] = tuple(
    tuple(name.strip() for name in line.split("|")) for line in WORDS["known_names"]
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


OPPOSED: Final = _number_lines(line.replace("/", " ").split() for line in WORDS["opposites"])
"""Numbers of the lines that have a word; other words of such a line exclude it."""


GIVEN_NAMES: Final = _number_lines(line.split() for line in WORDS["given_names"])
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


_ONE_CHANGE_FROM, _TWO_CHANGES_FROM = 5, 9
_SHORTEST_START: Final = 3
_LEAST_SHARE: Final = 0.4
_NUMERONYM: Final = 3
Kinship: TypeAlias = Literal[
    "same", "turned", "nickname", "initial", "given", "surname", "misspelt", "generation", "apart", ""
]  # fmt: skip
"""How two names of people compare: the same words; these in another order; a nickname; an initial for a given name; a
given name or a surname alone; a letter changed; `Jr.` or the like in one of them alone; different given names with one
surname; or nothing."""
_FULL, _LONG = 2, 7
_NEARNESS: Final[tuple[Kinship, ...]] = ("same", "nickname", "initial", "misspelt", "apart")
"""What given names may be to each other, the nearest first."""
_GENERATIONS_AND_NUMBERS: Final = GENERATIONS | {"2", "3", "4"}


def distance(first: str, second: str) -> int:
    """Return the Damerau-Levenshtein distance, each letter swapped at most once.

    Bit-parallel, one step a letter of `second`: H. Hyyrö, A bit-vector algorithm for computing Levenshtein and
    Damerau edit distances, Nordic Journal of Computing 10 (2003).
    """
    if first == second:
        return 0
    if not first:
        return len(second)
    places: dict[str, int] = {}
    for number, letter in enumerate(first):
        places[letter] = places.get(letter, 0) | 1 << number
    full, last = (1 << len(first)) - 1, 1 << len(first) - 1
    plus, minus, diagonal, before, changes = full, 0, 0, 0, len(first)
    for letter in second:
        here = places.get(letter, 0)
        swapped = ((~diagonal & here) << 1) & before
        diagonal = (((here & plus) + plus) ^ plus) | here | minus | swapped
        rise, fall = minus | ~(diagonal | plus), plus & diagonal
        changes += bool(rise & last) - bool(fall & last)
        rise, fall = rise << 1 | 1, fall << 1
        plus, minus, before = (fall | ~(diagonal | rise)) & full, rise & diagonal & full, here
    return changes


def likeness(first: str, second: str) -> float:
    """Return the similarity of two strings: 1 - distance / longer length."""
    longest = max(len(first), len(second))
    return 1 - distance(first, second) / longest if longest else 1.0


@lru_cache(maxsize=65_536)
def nearness(first: str, second: str) -> float:
    """Return the probability of two words being the same, 0 to 1.

    A word may be shortened, misspelt or without some letters. Words with digits are near only to themselves.
    """
    if first == second:
        return 1.0
    short, long = (first, second) if len(first) <= len(second) else (second, first)
    if numeronym(short, long):
        return 0.9
    if len(short) < _SHORTEST_START or short[0] != long[0] or has_digit(short) or has_digit(long):
        return 0.0
    if long.startswith(short):
        return 0.9 if len(long) - len(short) <= 1 else 0.8
    if misspelt(short, long):
        return 0.8
    shortened = short[-1] == long[-1] and len(short) >= _LEAST_SHARE * len(long) and _within(short, long)
    return 0.7 if shortened else 0.0


def misspelt(first: str, second: str) -> bool:
    """Return True if two words differ by a typing error.

    It is one change from five letters on, two from nine on; never in the first letter.
    """
    shortest = min(len(first), len(second))
    most = 0 if shortest < _ONE_CHANGE_FROM else 1 if shortest < _TWO_CHANGES_FROM else 2
    if not most or abs(len(first) - len(second)) > most or first[0] != second[0] or has_digit(first + second):
        return False
    return distance(first, second) <= most


def numeronym(short: str, long: str) -> bool:
    """Return True for a word with its middle counted, as `k8s`."""
    if not (len(short) >= _NUMERONYM and short[1:-1].isdecimal() and short[1:-1].isascii() and short[0].isalpha()):
        return False
    return len(long) == int(short[1:-1]) + 2 and long[0] == short[0] and long[-1] == short[-1] and long.isalpha()


def _within(short: str, long: str) -> bool:
    rest = iter(long)
    return all(letter in rest for letter in short)


def initials(words: Sequence[str]) -> str:
    """Return the first letters of words, joined."""
    return "".join(word[0] for word in words)


def nickname(first: str, second: str) -> bool:
    """Return True if two given names are variants of one."""
    return bool(GIVEN_NAMES.get(first, frozenset()) & GIVEN_NAMES.get(second, frozenset()))


def list_nickname_groups(word: str) -> frozenset[int]:
    """Return the numbers of the groups of given names with a word."""
    return GIVEN_NAMES.get(word, frozenset())


def known_given_name(word: str) -> bool:
    """Return True if a word is a known given name."""
    return word in GIVEN_NAMES


def compatible(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return True if two names may be of one person."""
    return kinship(ours, theirs) in {"same", "turned", "nickname", "initial", "misspelt", "generation"}


def kinship(ours: Sequence[str], theirs: Sequence[str]) -> Kinship:
    """Return the relation of two names of people."""
    if not ours or not theirs or [*ours] == [*theirs]:
        return "same" if ours and theirs else ""
    if sorted(ours) == sorted(theirs):
        return "turned"
    ours_last, theirs_last = (_generation(words) for words in (ours, theirs))
    if ours_last and theirs_last and ours_last != theirs_last:
        return "apart"
    stand = _parts([*ours][: -1 if ours_last else None], [*theirs][: -1 if theirs_last else None])
    return "generation" if stand == "same" and ours_last != theirs_last else stand


def _parts(ours: list[str], theirs: list[str]) -> Kinship:
    """Compare names without their generations."""
    if ours == theirs:
        return "same"
    if min(len(ours), len(theirs)) == 1:
        return _alone(*sorted((ours, theirs), key=len))
    # Whose surname is written first is not known: of both readings the nearer one, whichever name is asked about.
    for readings in ([(ours, theirs)], [(_turn_name(ours), theirs), (ours, _turn_name(theirs))]):
        relations = [
            _compare_given(first[:-1], second[:-1])
            for first, second in readings
            if first[-1] == second[-1] and len(first[-1]) > 1
        ]
        if relations:
            return min(relations, key=_NEARNESS.index)
    if misspelt(ours[-1], theirs[-1]) and _compare_given(ours[:-1], theirs[:-1]) == "same":
        return "misspelt"
    return ""


def _turn_name(words: Sequence[str]) -> list[str]:
    """Return a name whose surname was written first."""
    return [*words[1:], words[0]]


def _generation(words: Sequence[str]) -> str:
    last_word = words[-1] if len(words) > 1 and words[-1] in _GENERATIONS_AND_NUMBERS else ""
    return {"jr": "junior", "sr": "senior"}.get(last_word, last_word)


def _compare_given(ours: Sequence[str], theirs: Sequence[str]) -> Kinship:
    """Compare given names in order; one side may lack middle names."""
    worst: Kinship = "same"
    for first, second in zip(ours, theirs, strict=False):
        if first == second:
            continue
        if len(first) == 1 or len(second) == 1:
            if first[0] != second[0]:
                return "apart"
            worst = "initial"
        elif nickname(first, second):
            worst = worst if worst == "initial" else "nickname"
        elif misspelt(first, second):
            worst = worst if worst == "initial" else "misspelt"
        else:
            return "apart"
    return worst


def _alone(single: list[str], full: list[str]) -> Kinship:
    word = single[0]
    if len(full) == 1:
        if nickname(word, full[0]):
            return "given"
        return "misspelt" if min(len(word), len(full[0])) >= _LONG and misspelt(word, full[0]) else ""
    if word == full[0] or nickname(word, full[0]):
        return "given"
    return "surname" if word == full[-1] and len(word) > 1 else ""


def mailbox(address: str) -> list[str]:
    """Return the words of a name in an e-mail address.

    The address of a role, such as `info@`, has none.
    """
    local = address.partition("@")[0].partition("+")[0].casefold()
    for separator in "._-":
        local = local.replace(separator, " ")
    words = [word.rstrip("0123456789") for word in local.split()]
    words = [word for word in words if word]
    return [] if not words or any(word in ROLES for word in words) else words


def owns(mail: Sequence[str], name: Sequence[str]) -> Literal["full", "short", ""]:
    """Return "full" or "short" if an e-mail address has a name."""
    if len(name) < _FULL:
        return "short" if len(mail) == 1 and mail[0] == name[0] else ""
    if list(mail) == list(name) or list(mail) == [name[0], name[-1]] or list(mail) == [name[-1], name[0]]:
        return "full"
    if len(mail) == 1:
        first, last = name[0], name[-1]
        if mail[0] == first + last:
            return "full"
        return "short" if mail[0] in {first[0] + last, first + last[0], last + first[0], first, last} else ""
    return "short" if kinship(list(mail), list(name)) in {"turned", "initial", "nickname"} else ""
