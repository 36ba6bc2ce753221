"""Secrets made of digits: lists of one-time codes after a word that names them, and numbers of persons.

Cards and IBANs are known by their check digits (`providers.py`); single codes by the words around them (`keywords.py`,
`contexts.py`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.language.pattern_files import load_patterns
from agent_memory.redaction.line_groups import iter_digit_matches, iter_matches, lower_letters
from agent_memory.redaction.protocol import Finding
from agent_memory.redaction.shapes import is_harmless_code

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATA: Final = load_patterns("agent_memory.redaction", "numbers")
_ADJACENT: Final = re.compile(r"\d\d|[a-z]\d|\d[a-z]")
"""Codes and numbers of persons have it; most sentences have not."""
CODES: Final = re.compile(rf"(?xi){_DATA['codes']}")
_LEAD: Final = re.compile(
    r"""(?xi) [\"'*_]{0,3} (?: [^\n.!?:=]{0,60}? (?:[:\uff1a=\u2192>(\[{]|->|\b(?:are|is|were|lauten|sind|ist|sont|son
    |sono|s\u00e3o|zijn|\u00e4r|to|on)\b
    |\u306f|\u662f) | [ ]?\r?\n | [ ]{1,3}(?=[\w-]{0,12}\d) ) [\s\"'`*\u2022\[({|>+-]{0,12}"""
)
_CODE: Final = re.compile(r"[A-Za-z0-9]{3,14}(?:-[A-Za-z0-9]{3,14}){0,5}")
_MARKER: Final = re.compile(r"\d{1,2}[.):][ \t]")
_BETWEEN: Final = re.compile(
    r"[\s,;/|&\"'`\u2022*\[\](){}+\u3001\uff0c-]{1,16}(?:(?:and|or|und|oder|et|ou|y|e|o|en|och)[ ])?|\.\s"
)
_MAX_CODES: Final = 32
_VALUE: Final = re.compile(r"(?<![\w-])(?=[A-Z0-9 ./-]{0,20}\d)[A-Z0-9]{1,14}(?:[ ./-][A-Z0-9]{1,6}){0,7}(?!\w)")
_PERSON: Final = re.compile(
    rf"""(?xi) (?:{_DATA["persons"]}) (?:'?s)? (?:[ ](?:number|no\.?|nr\.?|id|num[eé]ro|n[uú]mero|code))?
    \b[^\n\d]{{0,30}}\Z"""
)
STEMS: Final = tuple(_DATA["code_stems"])
_BEFORE: Final = 80
"""Characters in which the label of a number stands."""
_FORMS: Final = re.compile(
    r"""(?x) (?<![\w.-]) (?: (?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4} | \d{3}\.\d{3}\.\d{3}-\d{2}
    | [A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][ ]?\d{2}[ ]?\d{2}[ ]?\d{2}[ ]?[A-D]
    | [A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]
    | [12]\d{2}(?:0[1-9]|1[0-2])(?:2[AB]|\d{2})\d{6}[ ]?\d{2} | [A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z0-9]\d )(?![\w.-])"""
)
"""US social security, Brazilian CPF, UK national insurance, Italian codice fiscale, French NIR, Mexican CURP."""
_RANGE: Final = re.compile(r"\d{1,4}-\d{1,4}")
_MIN_DIGITS: Final = 5


def find_numbers(text: str) -> Iterator[Finding]:
    """Yield codes that are listed after what they are for, and numbers of persons."""
    if not _ADJACENT.search(text):
        return
    for match in iter_matches(CODES, STEMS, text, lower_letters(text)):
        yield from _codes(text, match.end())
    for match in iter_digit_matches(_VALUE, text):
        start, end = match.span()
        if sum(map(str.isdigit, match[0])) < _MIN_DIGITS or _is_other(match[0]):
            continue
        if _PERSON.search(text, max(0, start - _BEFORE), start):
            yield Finding(start, end, "personal-number")
    for match in iter_digit_matches(_FORMS, text):
        yield Finding(*match.span(), "personal-number")


def _is_other(value: str) -> bool:
    return is_harmless_code(value) or _RANGE.fullmatch(value) is not None


def _codes(text: str, end: int) -> Iterator[Finding]:
    """Yield the codes of a list: with digits in them, or of the same form as the one before."""
    lead = _LEAD.match(text, end)
    position, form, found = lead.end() if lead else end, "", list[Finding]()
    for _ in range(_MAX_CODES if lead else 0):
        if marker := _MARKER.match(text, position):
            position = marker.end()
        match = _CODE.match(text, position)
        same = re.sub(r"\w", "x", match[0]) if match else ""
        coded = match and (any(map(str.isdigit, match[0])) or same == form or (not form and "-" in match[0]))
        if match is None or not coded or is_harmless_code(match[0]):
            break
        found.append(Finding(*match.span(), "code"))
        form, position = same, match.end()
        between = _BETWEEN.match(text, position)
        if between is None:
            break
        position = between.end()
    if any(character.isdigit() for each in found for character in text[each.start : each.end]):
        yield from found
