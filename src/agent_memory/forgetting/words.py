"""Words of a request and of memories, in forms that can be compared whole. Pure.

A word is compared by its folded form (case, width, accents), a name in another script by how it sounds in Latin
letters, and an identifier (`K-12`, a card's number, an address) by its letters and digits alone, from its first to its
last: `K12` is `K-12`, and neither is `K-120`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from agent_memory.retrieval import query_terms

_WORD: Final = re.compile(r"[^\W_]+(?:[-\u2010\u2011'\u2019\u02bc][^\W_]+)*")
_CHUNK: Final = re.compile(r"[^\W_]+")
_JOINT: Final = re.compile(
    r"[\s,'\u2019|~*\-\u2010-\u2015\u2212_./\\:+#@()\xb7\xad\u200b-\u200d\u2060\ufeff\uff0d\uff0f\uff0e\uff3f]{1,3}"
)
"""What may stand between the pieces of one identifier."""
_BOUND: Final = re.compile(r"(?<![^\W_])[^\W_]*[\-\u2010-\u2015\u2212_/\\:+#@.\uff0d\uff0f\uff0e\uff3f]+")
_SPOKEN: Final = frozenset({"dash", "hyphen", "dot", "slash", "underscore"})
"""Separators that are spelt out."""
_POSSESSIVE: Final = re.compile(r"['\u2019\u02bc]s?\Z", re.IGNORECASE)
_MOST_CHUNKS: Final = 24
_NUMBERS: Final = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
} | {"oh": "0"}
"""Digits that are spelt out."""
_LOOSE: Final = str.maketrans("oliz", "0112")
"""Letters that are taken for digits."""
_LEAST_PHONE: Final = 9
_LEAST_CODE: Final = 6
_MOST_PIECES: Final = 24  # of an identifier: time grows by the cube of them
_DIGRAPHS: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae"})
_LETTERS: Final = str.maketrans({"ß": "ss", "ø": "o", "æ": "ae", "ł": "l", "đ": "d", "\u0131": "i", "œ": "oe"})
_LATIN_END: Final = "\u0250"

_CYRILLIC: Final = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґў",
        [
            "a",
            "b",
            "v",
            "g",
            "d",
            "e",
            "e",
            "zh",
            "z",
            "i",
            "i",
            "k",
            "l",
            "m",
            "n",
            "o",
            "p",
            "r",
            "s",
            "t",
            "u",
            "f",
            "h",
            "ts",
            "ch",
            "sh",
            "shch",
            "",
            "y",
            "",
            "e",
            "yu",
            "ya",
            "i",
            "i",
            "e",
            "g",
            "u",
        ],
        strict=True,
    )
)
_GREEK: Final = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        [
            "a",
            "v",
            "g",
            "d",
            "e",
            "z",
            "i",
            "th",
            "i",
            "k",
            "l",
            "m",
            "n",
            "x",
            "o",
            "p",
            "r",
            "s",
            "s",
            "t",
            "y",
            "f",
            "h",
            "ps",
            "o",
        ],
        strict=True,
    )
)
_ALIKE: Final = str.maketrans("авекмнорстухіѕјαβεκμνορτυχι", "abekmhopctyxisjabekmvoptyxi")
"""Letters of other scripts that look like Latin ones."""
_SOUNDS: Final = (
    ("sch", "sh"), ("tch", "ch"), ("kh", "h"), ("ck", "k"), ("ph", "f"), ("x", "ks"), ("q", "k"), ("w", "v"),
    ("j", "i"), ("y", "i"), ("ou", "u"), ("tz", "ts"), ("cz", "ch"), ("c", "k"), ("kh", "ch"),
)  # fmt: skip
_HANGUL: Final = str.maketrans("gdbrj", "ktplc")
_VOWELS: Final = str.maketrans("", "", "aeiou")
_LEAST_CONSONANTS: Final = 5


class Word(NamedTuple):
    """One word of a text.

    Attributes:
        text: As it stands there, without a possessive ending.
        start, end: Where, the ending included.
        owns: Whether it has a possessive ending.
    """

    text: str
    start: int
    end: int
    owns: bool

    @property
    def is_capitalised(self) -> bool:
        """Whether it begins with a capital, or is of a script that has none."""
        first = self.text[0]
        return first.isupper() or (first.isalpha() and not first.islower())


def words_of(text: str) -> list[Word]:
    """Return the words of a text, in order."""
    found = []
    for match in _WORD.finditer(text):
        bare = _POSSESSIVE.sub("", match[0])
        owns = bare != match[0]
        behind = text[match.end() : match.end() + 2]
        if not owns and bare[-1:] in {"s", "S"} and behind[:1] in {"'", "\u2019"}:
            owns = True
        found.append(Word(bare or match[0], match.start(), match.end(), owns))
    return found


@lru_cache(maxsize=4096)
def folded(word: str) -> str:
    """Return a word without case, width and accents."""
    plain = unicodedata.normalize("NFKC", word).casefold().translate(_LETTERS)
    bare = "".join(each for each in unicodedata.normalize("NFD", plain) if not unicodedata.combining(each))
    return bare if all(each < _LATIN_END for each in bare) else plain


@lru_cache(maxsize=4096)
def stems(word: str) -> frozenset[str]:
    """Return the stems of a word and, where it is a compound, of its parts; never empty."""
    return frozenset(query_terms(folded(word))) or frozenset([folded(word)])


@lru_cache(maxsize=4096)
def _spellings(word: str) -> frozenset[str]:
    plain = unicodedata.normalize("NFKC", word).casefold()
    return frozenset({folded(word), folded(plain.translate(_DIGRAPHS))})


def same_name(one: str, other: str) -> bool:
    """Tell whether two words are the same name, whole: in any case, with or without accents, in another script."""
    if _spellings(one) & _spellings(other):
        return True
    if is_unspaced(one) and is_unspaced(other):
        return one in other
    if one.isascii() == other.isascii() and (_is_latin(one) == _is_latin(other)):
        return False
    return _sounds_like(one, other)


def _is_latin(word: str) -> bool:
    return all(each < _LATIN_END for each in folded(word))


def is_unspaced(word: str) -> bool:
    """Tell whether a word is of a script that has no spaces, so that it may be several."""
    return any("\u2e80" <= each <= "\u9fff" or "\uf900" <= each <= "\ufaff" for each in word)


def _sounds_like(one: str, other: str) -> bool:
    first, second = _sound(one), _sound(other)
    if not (first and second):
        return False
    if any("\uac00" <= each <= "\ud7af" for each in one + other):
        first, second = first.translate(_HANGUL), second.translate(_HANGUL)
    hard = first.translate(_VOWELS)
    return first == second or (len(hard) >= _LEAST_CONSONANTS and hard == second.translate(_VOWELS))


def sounds_alike(one: str, other: str) -> bool:
    """Tell whether a name in another script sounds like one in Latin letters."""
    return _is_latin(one) != _is_latin(other) and _sounds_like(one, other)


@lru_cache(maxsize=4096)
def _sound(word: str) -> str:
    """Return about how a name sounds, in Latin letters; empty where its script is not known here."""
    text = "".join(map(_romanised, folded(word)))
    if not text.isascii():
        return ""
    for written, spoken in _SOUNDS:
        text = text.replace(written, spoken)
    return "".join(each for before, each in pairwise(f" {text}") if each != before)


@lru_cache(maxsize=1024)
def _romanised(letter: str) -> str:
    if letter in _CYRILLIC or letter in _GREEK:
        return _CYRILLIC.get(letter) or _GREEK.get(letter, "")
    kind, _, name = unicodedata.name(letter, "").partition(" ")
    if kind in {"HIRAGANA", "KATAKANA", "HANGUL"}:
        return name.rpartition(" ")[2].lower()
    if letter == "\u30fc":
        return ""
    bare = unicodedata.normalize("NFD", letter)[0]
    return _CYRILLIC.get(bare) or _GREEK.get(bare) or bare


@lru_cache(maxsize=4096)
def canonical(text: str) -> str:
    """Return the letters and digits of an identifier, in one form."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(each for each in plain.translate(_ALIKE) if each.isalnum())


class Identifier(NamedTuple):
    """An identifier in a text: where, and its forms, the longest reading first."""

    start: int
    end: int
    forms: tuple[str, ...]


def identifiers_in(text: str, is_small: frozenset[str]) -> list[Identifier]:
    """Return what in a request is an identifier: what has digits, with the pieces that belong to them, or a path.

    Args:
        text: The request.
        is_small: Words that belong to no identifier.
    """
    found: list[Identifier] = []
    chunks = list(_CHUNK.finditer(text))
    behind = 0
    for at, chunk in enumerate(chunks):
        if at < behind or not (_has_digit(chunk[0]) or _is_address(text, chunks, at)):
            continue
        first = last = at
        while first > max(behind, at - _MOST_PIECES) and _belongs(text, chunks, first - 1, first, is_small):
            first -= 1
        most = min(len(chunks), first + _MOST_PIECES)
        while last + 1 < most and _belongs(text, chunks, last, last + 1, is_small, forward=True):
            last += 1
        found.append(_identifier(text, chunks, first, last))
        behind = last + 1
    return found


def _identifier(text: str, chunks: list[re.Match[str]], first: int, last: int) -> Identifier:
    """Return an identifier with its readings: with and without the short words at its ends."""
    readings = []
    for begin in range(first, last + 1):
        for end in range(last, begin - 1, -1):
            said = text[chunks[begin].start() : chunks[end].end()]
            # What is left out at an end must be a word of its own.
            apart = (begin == first or text[chunks[begin].start() - 1].isspace()) and (
                end == last or text[chunks[end].end()].isspace()
            )
            left = text[chunks[first].start() : chunks[begin].start()] + text[chunks[end].end() : chunks[last].end()]
            if apart and not _has_digit(left) and (_has_digit(said) or begin == end == first == last or not left):
                readings.append(canonical(said))
    forms = [form for each in readings for form in (each, each.removeprefix("00")) if form]
    whole = forms[0] if forms else ""
    before = text[: chunks[first].start()][-1:]
    if whole.isdigit() and (before in {"+", "\uff0b"} or readings[0].startswith("00")):  # with or without a country
        forms += [lead + whole[at:] for at in (1, 2, 3) for lead in ("", "0") if len(whole) - at >= _LEAST_PHONE - 1]
    ordered = sorted(dict.fromkeys(forms), key=len, reverse=True)
    return Identifier(chunks[first].start(), chunks[last].end(), tuple(ordered))


def _has_digit(text: str) -> bool:
    return any(each.isdigit() for each in text)


def _is_address(text: str, chunks: list[re.Match[str]], at: int) -> bool:
    """Tell whether a chunk without digits begins an e-mail address, a path or a name with underscores."""
    gap = text[chunks[at].end() : chunks[at].end() + 1]
    follows = at + 1 < len(chunks) and chunks[at + 1].start() == chunks[at].end() + 1
    return follows and gap in {"@", "_", "/", "\\", "."}


def _belongs(
    text: str, chunks: list[re.Match[str]], one: int, other: int, is_small: frozenset[str], *, forward: bool = False
) -> bool:
    """Tell whether two chunks that stand side by side are pieces of one identifier."""
    gap = text[chunks[one].end() : chunks[other].start()]
    if not _JOINT.fullmatch(gap):
        return False
    new = chunks[other if forward else one][0]
    if not any(each.isspace() for each in gap):
        return True
    if new.casefold() in is_small:
        return False
    return _has_digit(new) or len(new) <= (2 if forward else 3)


def holds_identifier(text: str, form: str) -> bool:
    """Tell whether a text has this identifier, whole: no piece of a longer one."""
    return bool(places_of(text, form))


def codes_in(text: str, *, numbers: bool = False) -> list[str]:
    """Return the forms of what in a memory is written as one identifier: joined pieces, or letters with digits.

    Args:
        text: The memory's.
        numbers: Also short numbers, which may be years.
    """
    found = []
    for run in (run.strip(".,;:!?()[]'\"") for run in text.split()):
        form = canonical(run)
        is_number = run.isdigit() and len(run) < _LEAST_CODE and not numbers
        if (_has_digit(run) and len(form) > 2 and not is_number) or (len(form) >= _LEAST_CODE and _JOINED.search(run)):  # noqa: PLR2004
            found.append(form)
    return found


_JOINED: Final = re.compile(r"\w[-_./\\@]\w|[a-z][A-Z]")


def loosely(form: str) -> str:
    """Return an identifier with letters that are taken for digits as these; itself where it has no digit."""
    return form.translate(_LOOSE) if _has_digit(form) else form


def places_of(text: str, form: str, *, loose: bool = False) -> list[tuple[int, int]]:
    """Return where a text has an identifier, whole; `loose` takes spelt out digits, and letters that look like some."""
    chunks = list(_CHUNK.finditer(text))
    forms = [canonical(chunk[0]) for chunk in chunks]
    if loose:
        forms = [loosely_read(each) for each in forms]
        form = form.translate(_LOOSE)
    found = []
    for first, begin in enumerate(forms):
        if not begin or not form.startswith(begin):
            continue
        joined = ""
        for last in range(first, min(first + _MOST_CHUNKS, len(chunks))):
            if last > first and not _JOINT.fullmatch(text[chunks[last - 1].end() : chunks[last].start()]):
                break
            joined += "" if forms[last] in _SPOKEN and last > first else forms[last]
            if joined == form and (loose or _stands_alone(text, chunks[first].start(), chunks[last].end(), form)):
                found.append((chunks[first].start(), chunks[last].end()))
            if len(joined) >= len(form):
                break
    return found


def loosely_read(form: str) -> str:
    """Return a piece of an identifier with what may be digits as digits."""
    return _NUMBERS.get(form, form if form in _SPOKEN else form.translate(_LOOSE))


def _stands_alone(text: str, start: int, end: int, form: str) -> bool:
    before, behind = text[:start][-2:], text[end : end + 2]
    glued = re.compile(r"[-\u2010\u2011_/\\+@.\uff0d]")
    joined_before = len(before) == 2 and glued.match(before[1]) and before[0].isalnum()  # noqa: PLR2004
    joined_behind = len(behind) == 2 and glued.match(behind[0]) and behind[1].isalnum()  # noqa: PLR2004
    if form.isdigit() and len(form) >= _LEAST_PHONE and re.search(r"\+\d{1,3}[^\w]{1,2}\Z", text[:start]):
        joined_before = None  # what stands before it is a country's code
    return not (joined_before or joined_behind)
