"""Names in languages that the model has not learnt, told by capitals, known lists and the words around. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.entities.german import JOINING, NO_GIVEN, OF, PLACE_BEFORE, TITLE, german_in
from agent_memory.entities.known import NO_NAMES
from agent_memory.entities.languages import is_common
from agent_memory.entities.mention import Mention
from agent_memory.entities.stretches import Stretches
from agent_memory.entities.tagger import known_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.entities.languages import Language
    from agent_memory.entities.mention import Kind

_LETTERS: Final = r"[A-Za-z0-9_\u00c0-\u024f\u0400-\u052f]"
_UPPER: Final = "A-Z" + "".join(filter(str.isupper, map(chr, (*range(0xC0, 0x180), *range(0x400, 0x530)))))
_CAPITAL: Final = rf"[{_UPPER}]{_LETTERS}*(?:[-'\u2019][{_UPPER}]?{_LETTERS}+)*"
_RUN: Final = re.compile(rf"(?<![\w@/.#-])(?P<name>{_CAPITAL}(?:[ ](?:(?:{JOINING})[ ])?{_CAPITAL}){{0,11}})")
_BEGINS: Final = re.compile(
    r"(?:^|[.!?:;\u2026\"\u201c\u201e\u00bb\u00bf\u00a1(\[\n*#>|\]-]|[^\x00-\u052f\u2010-\u201f\u3000-\ud7a3])\s{0,8}$"
)
_ELISION: Final = re.compile(r"(?:[dDlLjJnNsScCmMtT]|[Qq]u)['\u2019](?=[A-Z\u00c0-\u00de])")
_LOOK_BACK: Final = 8
_FIRM: Final = re.compile(
    r"(?P<name>[A-Z\u00c0-\u00de][\w&\u00c0-\u024f-]{0,60}(?:\s[A-Z\u00c0-\u00de&][\w&\u00c0-\u024f-]{0,60}){0,5}?\s"
    r"(?:GmbH(?: & Co\. KG)?|AG|KG|SE|UG|e\.\s?V\.|S\.?L\.?|S\.?A\.?(?:S|R\.?L)?\.?|SARL|SpA|B\.?V\.?|N\.?V\.?|Ltda))"
    r"(?!\w)"
)


def capitals_in(text: str, language: Language) -> list[Mention]:
    """Return names by their capitals; where every noun has one, only what a list or the words around it confirm."""
    found = [_mention(text, *match.span("name"), "organisation", 0.85, "firm") for match in _FIRM.finditer(text)]
    firms = Stretches((each.start, each.end) for each in found)
    for start, end in _runs(text):
        if firms.meet(start, end):
            continue
        found += german_in(text, start, end) if language == "de" else _plain(text, start, end, language)
    return found


def _mention(text: str, start: int, end: int, kind: Kind, confidence: float, rule: str) -> Mention:
    return Mention(text[start:end], kind, start, end, confidence, rule)


def _runs(text: str) -> Iterator[tuple[int, int]]:
    for match in _RUN.finditer(text):
        start, end = match.span("name")
        if elided := _ELISION.match(text, start, end):
            start = elided.end()
        yield start, end


def _plain(text: str, start: int, end: int, language: Language) -> list[Mention]:
    """Return the name of a run; one that begins a sentence has to be known, at least by its first word."""
    words = text[start:end].split(" ")
    while words and (words[0].lower() in NO_NAMES or is_common(words[0].lower(), language)):
        start += len(words.pop(0)) + 1
    if _begins(text, start) and words and not _is_known(words[0]):
        if len(words) == 1:
            return []
        start += len(words.pop(0)) + 1
        while words and words[0] in OF:
            start += len(words.pop(0)) + 1
    if not words or words[0].lower() in NO_NAMES or len("".join(words)) < len("Li"):
        return []
    end = start + len(" ".join(words))
    return [_mention(text, start, end, _kind(text, start, words), 0.7, "capital")]


def _begins(text: str, start: int) -> bool:
    return _BEGINS.search(text, max(0, start - _LOOK_BACK), start) is not None


def _is_known(word: str) -> bool:
    small = word.lower()
    names = known_names()
    return small not in NO_GIVEN and any(small in names[each] for each in ("given", "city", "country"))


def _kind(text: str, start: int, words: list[str]) -> Kind:
    names = known_names()
    small = [word.lower() for word in words]
    whole = " ".join(small)
    before = PLACE_BEFORE.search(text, max(0, start - 8), start) is not None
    if (whole in names["city"] or whole in names["country"]) and (before or small[0] not in names["given"]):
        return "place"
    if small[0] in names["given"] or TITLE.search(text, max(0, start - 16), start):
        return "person"
    return "other"
