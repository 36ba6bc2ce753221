"""Secrets known by their context: .pgpass, named values, login pairs, codes.

Also lists of one-time codes after a word that names them, and personal numbers. `patterns/contexts.yaml` has the
forms, with the keys of `providers.py`. Single words are in `keywords.py`, forms with check digits in `providers.py`.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from agent_memory.language.languages import load_patterns
from agent_memory.redaction.findings import (
    LOWERED_LITERALS,
    SecretFinding,
    iter_digit_matches,
    iter_line_groups,
    iter_matches,
    lower_letters,
    value_in,
)
from agent_memory.redaction.keywords import MIN_SECRET, is_chosen, is_surely_password
from agent_memory.redaction.providers import find_by_forms, read_forms
from agent_memory.redaction.shapes import (
    has_all_classes,
    is_harmless_code,
    is_placeholder,
    looks_like_password,
    looks_random,
    names_a_secret,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CONTEXTS: Final = load_patterns("agent_memory.redaction", "contexts")
_ASIAN, _MAIL, _WANTS, _DIGITS, _LOCK, _CODE_IS = (
    re.compile(_CONTEXTS[name]) for name in ("asian", "mail", "wants", "digits", "lock", "code_is")
)
_OTHER_CODES: Final = frozenset(_CONTEXTS["other_codes"].split())
_LOCK_STEMS: Final = (":", "=", "#", "lock", "disarm", "open", "code")
_ENTERED: Final = re.compile(r"(?:[Uu][Ss]|[Tt][Yy][Pp]|[Nn][Tt][Ee])[EeRr] \d{6}")
"""One of these is in each match of `_LOCK`, and a stem in each of `_CODE_IS`."""
_BARE: Final = re.compile(r"(?<![\w/.-])(?:[0-9a-f]{32,64}|[A-Za-z0-9]{20,64})(?![\w/.-])")
_NEAR: Final = 60
_CELLS: Final = 64
_ADJACENT_DIGITS: Final = re.compile(r"\d\d")  # codes and personal numbers have some; most sentences have none
_FOUR_DIGITS: Final = re.compile(r"\d{4}")
_CODES: Final = ("code", "geheimzahl", "pin", "cvv", "cvc", "otp", "puk", "tan", "comb")
"""One of these is in each match of `_DIGITS`, in lower case."""
_HEAD: Final = 32
_HEADING: Final = re.compile(r"[^\W\d][^\W\d .-]*(?:[ .-][^\W\d][^\W\d.-]*){0,3}")
_IN_SENTENCES: Final = frozenset(("the", "and", "for", "was", "were", "are", "has", "not", "but", "its"))
"""Words that no list of words for seed phrases has (BIP 39)."""
_LETTERS: Final = 8
_HASHES: Final = frozenset(
    ("plaintext", "scryptsy", "argonaut", "password", "required", "optional", "keychain", "keystore")
)
_VENDOR: Final = re.compile(rf"(?i)\b(?:{'|'.join(load_patterns('agent_memory.redaction', 'vendors')['vendors'])})")
_VENDOR_SAYS: Final = re.compile(r"(?i)\b(?:key|token|secret|api|pat|credential|dsn|auth)")


def _is_named(match: re.Match[str]) -> bool:
    return names_a_secret(match["name"])


def _is_argument(match: re.Match[str]) -> bool:
    value, _ = value_in(match)
    return is_chosen(value) or looks_random(value)


def _is_of_pair(match: re.Match[str]) -> bool:
    """Return True if the value after a login is a password."""
    value, _ = value_in(match)
    is_marked = match["slash"] or (is_chosen(value) and not {".", ":", "|"} & set(value))
    return bool(is_marked) and looks_like_password(value)


_CHECKS: Final[dict[str, Callable[[re.Match[str]], bool]]] = {
    "argument": _is_argument,
    "chosen_and_named": lambda match: _is_named(match) and is_chosen(value_in(match)[0]),
    "mixed": lambda match: has_all_classes(value_in(match)[0]),
    "named": _is_named,
    "pair": _is_of_pair,
    "password": lambda match: looks_like_password(match["bare"]),
    # Not "recovery: give the key that …".
    "phrase": lambda match: _IN_SENTENCES.isdisjoint(match["bare"].lower().split()),
}
FIRST_FORMS: Final = read_forms(_CONTEXTS["first"], _CHECKS, MIN_SECRET)
LAST_FORMS: Final = read_forms(_CONTEXTS["last"], _CHECKS, MIN_SECRET)
LOWERED_LITERALS.add((*_CODES, *_LOCK_STEMS))


def find_by_context(text: str) -> Iterator[SecretFinding]:
    """Yield every secret in `text` that its surroundings give away."""
    if not text.isascii():
        yield from _find_asian(text)
    lowered = lower_letters(text)
    yield from find_by_forms(FIRST_FORMS, text, lowered)
    yield from _find_marked(text)
    yield from find_by_forms(LAST_FORMS, text, lowered)
    yield from _find_cells(text)
    if _ADJACENT_DIGITS.search(text):
        yield from _find_codes(text, lowered)
    yield from _find_vendor_keys(text)


def is_pair(text: str) -> bool:
    """Return True if a decoded text is a login and a password."""
    login, sign, password = text.strip().partition(":")
    return bool(sign) and login.replace(".", "").replace("-", "").isalnum() and looks_like_password(password)


def _find_codes(text: str, lowered: str) -> Iterator[SecretFinding]:
    may_open = not text.isascii() or _ENTERED.search(text)  # other letters may stand for "k" and "s"
    if may_open or not LOWERED_LITERALS.find(lowered).isdisjoint(_LOCK_STEMS):
        for start, stop in iter_line_groups(text):
            if _FOUR_DIGITS.search(text, start, stop):
                yield from _find_long_codes(text, start, stop)
    for match in () if LOWERED_LITERALS.find(lowered).isdisjoint(_CODES) else _DIGITS.finditer(text):
        yield SecretFinding(*match.span("bare"), "code")


def _find_long_codes(text: str, start: int, stop: int) -> Iterator[SecretFinding]:
    """Yield codes of four and more digits in some lines."""
    for match in _LOCK.finditer(text, start, stop):
        yield SecretFinding(*match.span(match.lastgroup or 0), "code")
    for match in _CODE_IS.finditer(text, start, stop) if "code" in text[start:stop].casefold() else ():
        if (match["word"] or "").lower() not in _OTHER_CODES:
            yield SecretFinding(*match.span("bare"), "code")


def _find_vendor_keys(text: str) -> Iterator[SecretFinding]:
    for match in iter_digit_matches(_BARE, text):
        if not looks_random(match[0]):
            continue
        begin = max(0, match.start() - _NEAR)
        begin = max(begin, text.rfind("\n", begin, match.start()) + 1)
        if _VENDOR.search(text, begin, match.start()) and _VENDOR_SAYS.search(text, begin, match.start()):
            yield SecretFinding(*match.span(), "api-key")


def _find_marked(text: str) -> Iterator[SecretFinding]:
    """Yield passwords after a mail address, or a word such as "type"."""
    for match in itertools.chain(iter_matches(_MAIL, "@", text), iter_digit_matches(_WANTS, text)):
        value, first = value_in(match)
        marked = not value.rstrip("!?").replace("-", "").replace(".", "").replace("_", "").isalnum()
        digits = sum(map(str.isdigit, value))
        if is_surely_password(value) and digits >= (2 if marked else 4):  # not "try PostgreSQL16"
            yield SecretFinding(first, first + len(value), "password")


def _is_heading(name: str) -> bool:
    """Return True if a heading names a secret.

    "500 tokens" and code do not.
    """
    return len(name) <= _HEAD and _HEADING.fullmatch(name) is not None and names_a_secret(name)


def _find_cells(text: str) -> Iterator[SecretFinding]:
    """Yield cells of CSV and Markdown below headings of secrets."""
    heads: dict[int, str] = {}
    cells, position = 0, 0
    for line in text.split("\n") if "\n" in text else ():
        sign = next((sign for sign in "|,;\t" if sign in line), None)
        parts = line.split(sign, _CELLS) if sign is not None else []
        if heads and len(parts) == cells:
            start = position
            for number, part in enumerate(parts):
                value = part.strip(" \"'`")
                if number in heads and looks_like_password(value):
                    first = start + part.index(value)
                    yield SecretFinding(first, first + len(value), "named-secret")
                start += len(part) + 1
        else:
            names = (part.strip(" \"'`*") for part in parts)
            heads = {number: name for number, name in enumerate(names) if _is_heading(name)}
            cells = len(parts)
        position += len(line) + 1


def _find_asian(text: str) -> Iterator[SecretFinding]:
    for match in _ASIAN.finditer(text):
        value, first = value_in(match)
        letters = value.isalpha() and not (len(value) >= _LETTERS and value.lower() not in _HASHES)
        if not is_placeholder(value) and not letters:
            yield SecretFinding(first, first + len(value), "password")


_DATA: Final = load_patterns("agent_memory.redaction", "numbers")
_ADJACENT: Final = re.compile(r"\d\d|[a-z]\d|\d[a-z]")
"""Part of every code and personal number, which most sentences lack."""
CODES: Final = re.compile(rf"(?xi){_DATA['codes']}")
_LEAD: Final = re.compile(
    r"""(?xi) [\"'*_]{0,3} (?: [^\n.!?:=]{0,60}? (?:[:\uff1a=→>(\[{]|->|\b(?:are|is|were|lauten|sind|ist|sont|son
    |sono|são|zijn|är|to|on)\b
    |は|是) | [ ]?\r?\n | [ ]{1,3}(?=[\w-]{0,12}\d) ) [\s\"'`*•\[({|>+-]{0,12}"""
)
_CODE: Final = re.compile(r"[A-Za-z0-9]{3,14}(?:-[A-Za-z0-9]{3,14}){0,5}")
_MARKER: Final = re.compile(r"\d{1,2}[.):][ \t]")
_BETWEEN: Final = re.compile(
    r"[\s,;/|&\"'`•*\[\](){}+、\uff0c-]{1,16}(?:(?:and|or|und|oder|et|ou|y|e|o|en|och)[ ])?|\.\s"
)
_MAX_CODES: Final = 32
_VALUE: Final = re.compile(r"(?<![\w-])(?=[A-Z0-9 ./-]{0,20}\d)[A-Z0-9]{1,14}(?:[ ./-][A-Z0-9]{1,6}){0,7}(?!\w)")
_PERSON: Final = re.compile(
    rf"""(?xi) (?:{_DATA["persons"]}) (?:'?s)? (?:[ ](?:number|no\.?|nr\.?|id|num[eé]ro|n[uú]mero|code))?
    \b[^\n\d]{{0,30}}\Z"""
)
STEMS: Final = tuple(_DATA["code_stems"])
_PERSON_STEMS: Final = tuple(_DATA["person_stems"])
LOWERED_LITERALS.add(_PERSON_STEMS)
_BEFORE: Final = 80
"""Characters before a number that may have its label."""
_FORMS: Final = re.compile(
    r"""(?x) (?<![\w.-]) (?: (?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4} | \d{3}\.\d{3}\.\d{3}-\d{2}
    | [A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][ ]?\d{2}[ ]?\d{2}[ ]?\d{2}[ ]?[A-D]
    | [A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]
    | [12]\d{2}(?:0[1-9]|1[0-2])(?:2[AB]|\d{2})\d{6}[ ]?\d{2} | [A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z0-9]\d )(?![\w.-])"""
)
"""US social security, Brazilian CPF, UK national insurance, Italian codice fiscale, French NIR, Mexican CURP."""
_RANGE: Final = re.compile(r"\d{1,4}-\d{1,4}")
_MIN_DIGITS: Final = 5


def find_numbers(text: str) -> Iterator[SecretFinding]:
    """Yield listed codes and personal numbers."""
    if not _ADJACENT.search(text):
        return
    lowered = lower_letters(text)
    for match in iter_matches(CODES, STEMS, text, lowered):
        yield from _find_listed(text, match.end())
    is_labelled = not (text.isascii() and LOWERED_LITERALS.find(lowered).isdisjoint(_PERSON_STEMS))
    for match in iter_digit_matches(_VALUE, text, least=_MIN_DIGITS) if is_labelled else ():
        start, end = match.span()
        if sum(map(str.isdigit, match[0])) < _MIN_DIGITS or _is_harmless_number(match[0]):
            continue
        if _PERSON.search(text, max(0, start - _BEFORE), start):
            yield SecretFinding(start, end, "personal-number")
    for match in iter_digit_matches(_FORMS, text, least=6):
        yield SecretFinding(*match.span(), "personal-number")


def _is_harmless_number(value: str) -> bool:
    return is_harmless_code(value) or _RANGE.fullmatch(value) is not None


def _find_listed(text: str, end: int) -> Iterator[SecretFinding]:
    """Yield the codes of a list.

    They have digits, or the same form as the one before.
    """
    lead = _LEAD.match(text, end)
    position, form, findings = lead.end() if lead else end, "", list[SecretFinding]()
    for _ in range(_MAX_CODES if lead else 0):
        if marker := _MARKER.match(text, position):
            position = marker.end()
        match = _CODE.match(text, position)
        same = re.sub(r"\w", "x", match[0]) if match else ""
        coded = match and (any(map(str.isdigit, match[0])) or same == form or (not form and "-" in match[0]))
        if match is None or not coded or is_harmless_code(match[0]):
            break
        findings.append(SecretFinding(*match.span(), "code"))
        form, position = same, match.end()
        between = _BETWEEN.match(text, position)
        if between is None:
            break
        position = between.end()
    if any(character.isdigit() for finding in findings for character in text[finding.start : finding.end]):
        yield from findings
