"""Secrets known by their look, and a word in the same line.

A token that no name, version, path, reference or identifier looks like is taken at once; one that could be something
else needs such a word in its line; bare hex and UUIDs need a word such as key before them. No provider formats here.
"""

from __future__ import annotations

import bisect
import enum
import itertools
import re
from typing import TYPE_CHECKING, Final

from agent_memory.language.languages import load_patterns
from agent_memory.redaction.findings import SecretFinding
from agent_memory.redaction.shapes import (
    HALF_WORDS,
    UUID,
    entropy,
    is_jumbled,
    is_known_harmless,
    is_placeholder,
    is_ssh_public_key,
    looks_like_password,
    worded_share,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATA: Final = load_patterns("agent_memory.redaction", "nearby")


class SecretLevel(enum.IntEnum):
    """Degree to which a token looks like a secret."""

    HARMLESS = 0
    NAMED = 1
    """Hex or a UUID: a secret after a word such as key."""
    PERHAPS = 2
    """A word with a number: a secret when its line speaks of a password."""
    LIKELY = 3
    """A secret when its line speaks of access."""
    SURE = 4


_LETTER: Final = r"\-A-Za-z0-9\u00c0-\u024f!#$%&*@^~?+§€£._"
_TOKEN: Final = re.compile(
    rf"(?<![{_LETTER}/\\])(?=[{_LETTER}]{{0,80}}?(?:[0-9]|[a-z][A-Z][a-z]*[A-Z]))[{_LETTER}]{{6,512}}+(?!/|\\(?![nrt0\"']))"
)
"""Not a part of a path."""
_MARKS: Final = frozenset("!#$%&*@^~?+§€£")
_LETTERS: Final = re.compile(r"[^\W\d_]")
_CALLED: Final = re.compile(r"[(\[]|=(?![\s=]|\Z)")
"""After a name of code; the padding of base64 ends there."""
_ALNUMS: Final = re.compile(r"[A-Za-z0-9]{16,}")
_JOINTS: Final = re.compile(r"[-._]+")
_HEX: Final = re.compile(r"(?i)[0-9a-f]{24,128}")
_ULID: Final = re.compile(r"01[0-9A-HJKMNP-TV-Z]{24}")
"""Of the years 2004 to 2039."""
_BASE32: Final = re.compile(r"[A-Z2-7]{16,64}")
_HEX_DIGITS: Final = re.compile(r"(?i)(?:0x)?[0-9a-f]+")
_CASED_RUNS: Final = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}(?![a-z])")
_RUNS: Final = re.compile(r"[a-z]{3,}")
_SPOKEN: Final = re.compile(r"(?=[a-z]*[aeiouy])[^aeiouy]{0,3}(?:[aeiouy]{1,3}[^aeiouy]{1,3}){0,8}[aeiouy]{0,3}")
_TWO_WORDS: Final = re.compile(r"[A-Z][a-z]{2,12}[A-Z][a-z]{2,12}\d{4}")
_PORTS: Final = frozenset(
    ("8080", "8443", "3000", "5000", "5432", "3306", "6379", "8000", "8888", "9000", "9090", "9200", "9092")
)
_YEAR: Final = re.compile(r"(?:19[5-9]|20[0-4])\d")
_HOST: Final = re.compile(r"@[\w-]{1,64}(?:\.[\w-]{1,64})+\.?$")
"""After a password in an address."""
_REFERENCE: Final = re.compile(
    r"""(?xi) [\w.+-]{1,64}@(?:[\w-]{1,64}\.)+[a-z]{2,24} | [\w.-]{1,64}@v?\d+(?:\.[\w.-]*)
    | [#@$%&*~^]{1,3}[\w.-]{1,64} | [A-Z]{1,8}(?:[+](?:[A-Z]{1,8}|F?\d{1,2})){1,4}
    | v?\d+(?:[.:~+-]\w+){1,9}
    | [a-z]{2,6}[-_][0-9a-f]{6,16} | .*\d{8}T\d{4,6}.* | \w{1,16}[+]0x[0-9a-f]{1,16}
    | [\w.-]*(?:%(?:2[0-9A-F]|3[A-F]|40|5[B-F]|7[B-E]|[89A-F][0-9A-F])(?![0-9])[\w.-]*)+
    | [a-z][a-z0-9-]{0,40}-[a-z0-9]{8,10}-[a-z0-9]{5} | \d+[*%+~^&]\w+"""
)
"""Addresses, packages, tags, variables, keys of a keyboard, versions, escapes, sums."""
_SUM: Final = re.compile(r"[\w.-]{1,64}(?:[#@*%+~^&]{1,2}\d{1,7}|[@&*+][a-z]\w{0,24})")
"""An issue, a package, a host, a sum: or a password with one sign in it."""
_KEY_PREFIX: Final = re.compile(
    r"(?i)(?:live|test|prod|sandbox|[a-z]{0,8}(?:key|secret|token|pat)|[a-z]{0,8}(?:sec|prv|priv)|[spar]k|api|auth)"
    r"(?:[_-][a-z]{1,8})?[_-](?:[0-9a-f]{24,}|[a-z0-9]{28,})(?:-\w)?"
)
_PREFIXED_HEX: Final = re.compile(r"[a-z]{3,12}(?:_[a-z]{2,10})?_[0-9a-f]{32,128}")
_PREFIXED: Final = re.compile(r"[a-z]{2,10}_(?P<rest>[A-Za-z0-9]{20,128})")
_TECHNICAL: Final = re.compile(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:sha|hmac|aes|rsa|dsa|base|utf|md|kdf|argon|x(?=86|64|509)|ed|iso|rfc|cve|https?|tls|ssl|oauth|ipv|win(?:dows)?|node|python"
    r"|ubuntu|debian|java|php|sql|mysql|redis|kernel|server|ios|android|office|bcrypt|curve|secp|gpt|llama|claude|rtx"
    r"|web|net|db|host|user|worker|item|page|test|step|part|room|team|sprint|level|group|panel|vlan|port)[-_]?v?\d"
    r"|^\d+(?i:ms|px|gb|mb|kb|hz|ghz|mhz|th|nd|rd|st|bit|x)$|V\d"
)
_TITLED: Final = re.compile(r"[A-Z][a-z]{3,16}[-.]\d{4,6}")
_FILE: Final = re.compile(r"(?i)[\w@+~-]\.(?:[a-z][a-z0-9]{0,4}|tar\.\w{2,3})$")
_IDENTIFIER: Final = re.compile(rf"(?xi)(?:{_DATA['identifiers']})[_-][\w.:/-]*")
_LABEL: Final = re.compile(
    rf"(?xi)(?:^|[^a-z])(?:{_DATA['harmless_labels']})(?:[\s:#=./\"'(@-]{{1,3}}(?:(?:is|was|no\.?|number|id)\s)?){{1,2}}$"
)
_ACCESS: Final = re.compile(rf"(?xi){_DATA['access']}")
_PASSWORD: Final = re.compile(rf"(?xi){_DATA['password']}")
_KEY: Final = re.compile(rf"(?xi){_DATA['key']}")
_HASH: Final = re.compile(rf"(?xi){_DATA['hash']}")
_MIN, _MAX = 6, 128
_MIN_MARKED, _MIN_MIXED, _MIN_ONE_CASE = 8, 16, 24
"""Characters from which on a token is taken alone: a password with signs, one of three classes, one of two."""
_MIN_RANDOM, _MIN_PART = 12, 6
_MIN_BITS: Final = 3.0
"""Of entropy in each character; an identifier that repeats itself has less."""
_SIDE: Final = 160
"""Characters of a line looked at before and after a token."""
_OPTION: Final = re.compile(
    r"(?:^|\s)(?:-{1,2}(?:[pPkwWaK]|pw|[\w-]{0,16}pass\w{0,6})|/p(?:ass(?:word)?)?)[ =:]{0,2}[\"']?$"
)
_TRIED: Final = re.compile(r"(?i)(?:^|[.!?]\s)\s{0,4}(?:try|use|it'?s|it[ ]is|enter|type|i[ ]always[ ]use)\s[\"'`]?$")
_WORKS: Final = re.compile(r"(?i)[\"'`!*?.-]{0,2}[ ](?:should[ ]work|works\b|worked\b)")
_PLAIN: Final = re.compile(r"[\w.-]+")
_LOGIN: Final = re.compile(r"\s*[\w.@+-]{2,48}:")
_PIPED: Final = re.compile(r"[-_!?*+.]?[\"']?\s{1,3}\|\s{0,3}[a-z]")
_FEW: Final = 12
"""Characters around a token in a text that is nothing else: "use …", "it is …"."""
_NEAR: Final = 70
_BEFORE: Final = 28
"""Characters to a word that names a password; to the label of an identifier."""
_BULLETS: Final = " \t-*>•\"'`+\\/#;|"
_TRAILING: Final = ".,;:!?*_-+'"


def find_unlabelled(text: str) -> Iterator[SecretFinding]:
    """Yield tokens that look like a secret, alone or with context."""
    places = _WordPlaces(text)
    for match in _TOKEN.finditer(text):
        token = _HOST.sub("", match[0]).rstrip(_TRAILING).lstrip("*_-.")
        if not _MIN <= len(token) <= _MAX:
            continue
        looks = judge_token(token)
        if looks is SecretLevel.HARMLESS:
            continue
        start = text.index(token, match.start())
        if _is_secret_here(looks, places, start, start + len(token)):
            yield SecretFinding(start, start + len(token), "api-key" if looks is SecretLevel.NAMED else "high-entropy")


class _WordPlaces:
    """Cached places of words in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._spans: dict[tuple[re.Pattern[str], int, int], tuple[list[int], list[int]]] = {}
        self._breaks: list[int] | None = None

    def has(self, words: re.Pattern[str], first: int, last: int) -> bool:
        """Return True if one of the words is in `text[first:last]`.

        The words hold no line break.
        """
        begin, stop = self._lines(first, last)
        key = words, begin, stop
        if key not in self._spans:
            spans = [match.span() for match in words.finditer(self.text, begin, stop)]
            self._spans[key] = [start for start, _ in spans], [end for _, end in spans]
        starts, ends = self._spans[key]
        place = bisect.bisect_left(starts, first)
        return place < len(starts) and ends[place] <= last

    def _lines(self, first: int, last: int) -> tuple[int, int]:
        """Return start and end of the lines that `text[first:last]` is in."""
        if self._breaks is None:
            self._breaks = [match.start() for match in re.finditer("\n", self.text)]
        before, after = bisect.bisect_left(self._breaks, first), bisect.bisect_left(self._breaks, last)
        begin = self._breaks[before - 1] + 1 if before else 0
        return begin, self._breaks[after] if after < len(self._breaks) else len(self.text)


def _is_secret_here(looks: SecretLevel, places: _WordPlaces, start: int, end: int) -> bool:
    """Return True if the context of a token makes it a secret."""
    text = places.text
    if _LABEL.search(text, max(0, start - _BEFORE), start) and _MARKS.isdisjoint(text[start:end]):
        return False
    if _CALLED.match(text, end):
        return False
    return looks is SecretLevel.SURE or _has_context(looks, places, start, end)


def _has_context(looks: SecretLevel, places: _WordPlaces, start: int, end: int) -> bool:
    """Return True if the line of a token mentions its kind."""
    text = places.text
    first, last = _find_line(text, start, end)
    keyed = places.has(_KEY, first, start)
    if looks is SecretLevel.NAMED:
        return keyed and not places.has(_HASH, first, last)
    if places.has(_PASSWORD, max(first, start - _NEAR), min(last, end + _NEAR)):
        return True
    is_option_or_pipe = (
        _OPTION.search(text, max(first, start - _BEFORE), start) or _PIPED.match(text, end) or _WORKS.match(text, end)
    )
    pair = _LOGIN.fullmatch(text, first, start) and not text[end:last].strip(_TRAILING)
    if is_option_or_pipe or pair or (_TRIED.search(text, first, start) and sum(map(str.isdigit, text[start:end])) > 1):
        return True
    token = text[start:end]
    if keyed and len(token) >= _MIN_MIXED and _PLAIN.fullmatch(token) and worded_share(token) < HALF_WORDS:
        return True
    if looks is SecretLevel.LIKELY and len(token) > len(text) - _FEW:
        return True
    ends = looks is SecretLevel.LIKELY or not text[end:last].strip(_TRAILING + " )\"'`")
    return ends and places.has(_ACCESS, first, last)


def _find_line(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of a token's line.

    A line with nothing else includes its neighbors.
    """
    first = max(0, start - _SIDE, text.rfind("\n", 0, start) + 1)
    last = text.find("\n", end, end + _SIDE)
    last = min(len(text), end + _SIDE) if last < 0 else last
    if not text[first:start].strip(_BULLETS) and not text[end:last].strip(_BULLETS + _TRAILING):
        first = max(0, first - _SIDE, text.rfind("\n", 0, max(0, first - 1)) + 1)
        below = text.find("\n", last + 1, last + _SIDE)
        last = min(len(text), last + _SIDE) if below < 0 else below
    return first, last


def judge_token(token: str) -> SecretLevel:
    """Return the degree to which a token looks like a secret.

    The token comes without the punctuation around it.
    """
    if UUID.fullmatch(token):
        return SecretLevel.NAMED
    if _HEX.fullmatch(token) and not token.isdigit() and not token.isalpha():
        return SecretLevel.NAMED
    letters = len(_LETTERS.findall(token))
    digits = sum(map(str.isdigit, token))
    if _is_prefixed(token, digits):
        return SecretLevel.SURE
    if letters < 2 or _is_harmless(token):  # noqa: PLR2004 - "a1"
        return SecretLevel.HARMLESS
    marks = [letter for letter in token[:-1] if letter in _MARKS] + [token[-1]] * (token[-1] in "#$%&@^~")
    if marks:
        return _judge_marked(token, letters, digits, marks)
    return max(_judge_generated(token, digits), _judge_chosen(token, digits))


def _is_harmless(token: str) -> bool:
    return (
        _HEX_DIGITS.fullmatch(token) is not None
        or is_placeholder(token)
        or _ULID.fullmatch(token) is not None
        or is_ssh_public_key(token)
        or is_identifier(token)
        or (_is_reference(token) and not any(_generated_run(run) for run in _ALNUMS.findall(token)))
        or (_TECHNICAL.search(token) is not None and (len(token) < _MIN_MIXED or worded_share(token) >= HALF_WORDS))
    )


def _is_reference(token: str) -> bool:
    """Return True if `token` looks like an address, version or file."""
    return (
        _REFERENCE.fullmatch(token) is not None
        or (is_known_harmless(token) and not _TITLED.fullmatch(token))
        or _FILE.search(token) is not None
    )


def _generated_run(run: str) -> bool:
    """Return True if a run of letters and digits is a secret."""
    return _judge_generated(run, sum(map(str.isdigit, run))) is SecretLevel.SURE


def _is_prefixed(token: str, digits: int) -> bool:
    """Return True for a short prefix and a generated part."""
    if _KEY_PREFIX.fullmatch(token) is not None:
        return digits > 1
    if _PREFIXED_HEX.fullmatch(token) is not None:
        return digits > 1 and not is_identifier(token)
    match = _PREFIXED.fullmatch(token)
    return match is not None and not is_identifier(token) and is_jumbled(match["rest"])


def is_identifier(token: str) -> bool:
    """Return True if a token begins like `cus_` or `chatcmpl-`."""
    return _IDENTIFIER.fullmatch(token) is not None


def _judge_marked(token: str, letters: int, digits: int, marks: list[str]) -> SecretLevel:
    """Return the degree for a token with symbols."""
    if digits < 1 or letters < 3 or len(token) < _MIN_MARKED:  # noqa: PLR2004 - three letters: "R&D2"
        return SecretLevel.PERHAPS if digits and letters and not _SUM.fullmatch(token) else SecretLevel.HARMLESS
    turns = sum(_get_class(a) != _get_class(b) for a, b in itertools.pairwise(token))
    if _SUM.fullmatch(token):
        number = digits > 2 and not _YEAR.fullmatch(token[-4:])  # noqa: PLR2004 - "web@node12"
        if not number:
            return SecretLevel.HARMLESS
        return SecretLevel.LIKELY if token[0].isupper() and turns > 2 else SecretLevel.PERHAPS  # noqa: PLR2004
    upper = any(map(str.isupper, token)) and any(map(str.islower, token))
    if digits > 1 and (upper or turns > 3 or len(set(marks)) > 1):  # noqa: PLR2004 - more turns than word, sign, word, number
        return SecretLevel.SURE
    return SecretLevel.LIKELY


def _judge_generated(token: str, digits: int) -> SecretLevel:
    """Return the degree for a token that a machine may have made."""
    lower, upper = any(map(str.islower, token)), any(map(str.isupper, token))
    parts = _JOINTS.split(token)
    is_whole = lower and upper and digits and len(token) >= _MIN_PART * len(parts)
    part = token if is_whole else max(parts, key=len)
    if len(part) < _MIN_RANDOM or entropy(part) < _MIN_BITS or _is_pronounceable(part):
        return SecretLevel.HARMLESS
    turns = sum(a.isdigit() != b.isdigit() for a, b in itertools.pairwise(part))
    if not digits or turns < 2:  # noqa: PLR2004 - a name with its number has one
        jumbled = SecretLevel.SURE if len(part) >= _MIN_ONE_CASE else SecretLevel.LIKELY
        return jumbled if is_jumbled(part) else SecretLevel.HARMLESS
    if lower and upper:
        return SecretLevel.SURE if len(part) >= (_MIN_MIXED if digits > 1 else _MIN_ONE_CASE) else SecretLevel.LIKELY
    if _HEX_DIGITS.fullmatch(part):
        return SecretLevel.NAMED if len(part) >= _MIN_MIXED else SecretLevel.HARMLESS
    if len(part) >= _MIN_ONE_CASE and turns > 3:  # noqa: PLR2004 - what is generated turns often
        return SecretLevel.SURE if lower or len(part) > _MIN_ONE_CASE + 4 else SecretLevel.LIKELY
    return SecretLevel.LIKELY if (lower and turns > 3) or _BASE32.fullmatch(part) else SecretLevel.PERHAPS  # noqa: PLR2004 - see above


def _is_pronounceable(part: str) -> bool:
    """Return True if half of a part is pronounceable words."""
    both = any(map(str.islower, part)) and any(map(str.isupper, part))
    runs = _CASED_RUNS.findall(part) if both else _RUNS.findall(part.lower())
    words = [word for word in runs if _SPOKEN.fullmatch(word.lower())]
    return sum(map(len, words)) >= HALF_WORDS * len(part)


def _judge_chosen(token: str, digits: int) -> SecretLevel:
    """Return the degree for words and a number without symbols."""
    if digits < 2 or len(token) < _MIN_MARKED or token.isupper():  # noqa: PLR2004 - "Qwen3", "PROJ-1234"
        return SecretLevel.HARMLESS
    turns = sum(a.isdigit() != b.isdigit() for a, b in itertools.pairwise(token))
    inner = any(a.islower() and b.isupper() for a, b in itertools.pairwise(token))
    numbers = "".join(letter if letter.isdigit() else " " for letter in token).split()  # "²" is a digit, but not \d
    if token.isalnum() and inner and not _YEAR.fullmatch(numbers[-1]):
        alone = _TWO_WORDS.fullmatch(token) and numbers[-1] not in _PORTS
        return SecretLevel.SURE if alone else SecretLevel.LIKELY if digits > 2 else SecretLevel.PERHAPS  # noqa: PLR2004 - "Pixel8Pro11"
    number = max(map(len, numbers)) > 2 and not any(map(_YEAR.fullmatch, numbers)) and looks_like_password(token)  # noqa: PLR2004
    return (
        SecretLevel.PERHAPS
        if number or (token.isalnum() and turns > 1 and not _YEAR.fullmatch(numbers[-1]))
        else SecretLevel.HARMLESS
    )


def _get_class(letter: str) -> int:
    return 0 if letter.islower() else 1 if letter.isupper() else 2 if letter.isdigit() else 3
