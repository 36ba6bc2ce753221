"""Software, services, firms and standards that everybody knows, where they stand in a text. Pure."""

from __future__ import annotations

import re
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from agent_memory.entities.han import is_eastern, without_han
from agent_memory.entities.known import known
from agent_memory.entities.languages import language_of
from agent_memory.entities.lookup import add_to, is_frequent, is_part, listed_in
from agent_memory.entities.mention import Mention
from agent_memory.entities.tagger import word_lists
from agent_memory.entities.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agent_memory.entities.lookup import Table
    from agent_memory.entities.mention import Kind
    from agent_memory.entities.tokens import Token

_CONFIDENCE: Final = 0.95
_CONTEXT_CONFIDENCE: Final = 0.8
_RULE: Final = "known software"
_VERSIONED: Final = re.compile(r"(?P<name>[A-Za-z][A-Za-z+#.-]+?)-?\d+(?:\.\d+)*")
_MADE_WITH: Final = re.compile(
    r"\b(?:format|lint|buil|writ|rewrit|check|test|deploy|manag|styl|bundl|implement|compil|port|switch|migrat|automat|"
    r"packag|replac|instal|run)\w*\s+(?:\w+\s+){0,2}?(?:with|by|in|using|via|from|to)\s+$",
    re.IGNORECASE,
)
_PLACED: Final = re.compile(r"\b(?:in|on|via|using|with|for|use|uses|our)\s+$", re.IGNORECASE)
_ENDS: Final = re.compile(
    r"\s*(?:[.,;:!?)\n]|$|(?:and|or|to|for|with|app|code|but|instead|as|is|are|was|were|here|now)\b)"
)
_THING: Final = re.compile(
    r"\s+(?:apps?|components?|hooks?|projects?|plugins?|extensions?|sdk|library|framework|servers?|clusters?|webhooks?|"
    r"workspace|channels?|integration|api|client|sheets?|frontend|backend)\b",
    re.IGNORECASE,
)
_NOT_BEFORE_THINGS: Final = frozenset({"go", "black", "linear", "express", "make", "unity", "parcel", "spark"})
_JOINT: Final = re.compile(r"\s{0,14}(?:,?\s(?:and|or|und|oder|y|et|e|i|a|и)\b|,|/|\+|&)\s*", re.IGNORECASE)
_AGAINST: Final = re.compile(
    r",?\s{1,14}(?:not|nicht|over|vs\.?|versus|instead of|rather than|statt)\s+", re.IGNORECASE
)
"""Between a name and what it is preferred to."""
_LONGEST_JOINT: Final = 14
_EXCHANGING: Final = re.compile(r"\b(?:replac|swap|switch|migrat|mov)\w*\s+(?:from\s+)?[`'\"]?$", re.IGNORECASE)
_FOR: Final = re.compile(r"[`'\"]?\s+(?:with|by|for|to)\s+[`'\"]?", re.IGNORECASE)
_EXCHANGED_FOR: Final = re.compile(
    r"(?P<verb>\b(?:replac|swap|switch|migrat|mov)\w*\s+(?:from\s+)?[`'\"]?)(?P<old>[\w.-]+)[`'\"]?\s+(?:with|by|for|to)\s+"
    r"[`'\"]?$",
    re.IGNORECASE,
)
_EXCHANGEABLE: Final = frozenset({"package", "product"})
_COMPOUNDING: Final = frozenset({"de", "nl"})
_ALSO_FOREIGN: Final = frozenset({"notion", "linear", "electron", "swift", "jest"})
"""Words of other languages, too."""
_OPENS: Final = " -*\n\t\"'("
_LOOK_BACK: Final = 48


@cache
def _table() -> Table:
    table: Table = {}
    add_to(table, known().written, as_written=True, everyday=is_frequent)
    add_to(table, known().free, as_written=False, everyday=is_frequent)
    return table


def software_in(text: str, tokens: Sequence[Token]) -> list[Mention]:
    """Return known names in order; what stands at the beginning of a sentence and may be a common word is none."""
    apart = without_han(text)
    if apart != text:
        tokens = tokens_of(apart)
    found = [_mention(text, *each, _CONFIDENCE) for each in listed_in(apart, tokens, _table())]
    found += _versioned(apart, tokens)
    if language_of(text) in _COMPOUNDING:
        found += _compounded(apart, tokens)
    found = [each for each in found if not _is_attached(apart, each)]
    found += [_mention(text, *each, _CONFIDENCE) for each in _in_han(text)] if apart != text else []
    if apart == text:
        found = [each for each in found if not _opens_as_word(text, each)]
    told = [*_told(apart, tokens, found, is_foreign=_is_foreign(text)), *_exchanged(apart, tokens, found)]
    return sorted([*found, *told], key=lambda each: each.start)


def _mention(text: str, start: int, end: int, kind: Kind, confidence: float) -> Mention:
    return Mention(text[start:end], kind, start, end, confidence, _RULE)


def _is_attached(text: str, mention: Mention) -> bool:
    """Whether a name is what follows a sign in code: `.claude`, `:erlang`."""
    return text[max(0, mention.start - 1) : mention.start] in {".", ":", "$", "%"}


def _opens_as_word(text: str, mention: Mention) -> bool:
    """Whether a name begins a sentence and is also a common word: "Notion of time"."""
    before = text[max(0, mention.start - _LOOK_BACK) : mention.start].rstrip(_OPENS)
    return mention.name in known().opening and (not before or before[-1] in ".!?:")


def _versioned(text: str, tokens: Iterable[Token]) -> Iterator[Mention]:
    """Yield names with a version grown on: python3."""
    names = _table()
    for token in tokens:
        if (match := _VERSIONED.fullmatch(token.word)) and token.word.lower() not in names:
            base = match["name"].lower()
            listed = [each for each in names.get(base, ()) if len(each.words) == 1 and each.kind == "product"]
            if listed and listed[0].written in {"", match["name"]} and not is_part(text, token.start, token.end):
                yield _mention(text, token.start, token.end, listed[0].kind, _CONFIDENCE)


def _compounded(text: str, tokens: Iterable[Token]) -> Iterator[Mention]:
    """Yield names that a noun is grown on, with a hyphen between: Docker-Image."""
    names = _table()
    for token in tokens:
        first, _, noun = token.word.partition("-")
        if not noun[:1].isupper() or token.word.lower() in names or is_part(text, token.start, token.end):
            continue
        listed = [each for each in names.get(first.lower(), ()) if len(each.words) == 1]
        if listed and listed[0].written in {"", first}:
            yield _mention(text, token.start, token.start + len(first), listed[0].kind, _CONFIDENCE)


@cache
def _han() -> re.Pattern[str]:
    return re.compile("|".join(sorted(known().han, key=lambda name: (-len(name), name))))


def _in_han(text: str) -> Iterator[tuple[int, int, Kind]]:
    for match in _han().finditer(text):
        yield match.start(), match.end(), known().han[match[0]]


def _told(text: str, tokens: Iterable[Token], found: Sequence[Mention], *, is_foreign: bool) -> Iterator[Mention]:
    """Yield small words that are software by the words around: "formatted with black", "black and flake8"."""
    context = known().context
    begins, ends = {each.start for each in found}, {each.end for each in found}
    foreign = known().near.keys() - _ALSO_FOREIGN if is_foreign else ()
    for token in tokens:
        if token.word not in context or token.start in begins or is_part(text, token.start, token.end):
            continue
        before = text[max(0, token.start - _LOOK_BACK) : token.start]
        if (
            token.word in foreign
            or _MADE_WITH.search(before)
            or _is_placed(text, token, before)
            or _is_joined(text, token, begins, ends)
        ):
            yield _mention(text, token.start, token.end, context[token.word], _CONTEXT_CONFIDENCE)


def _is_foreign(text: str) -> bool:
    """Whether a text is in another language than English, in which a small English word is no everyday one."""
    return language_of(text) not in {"en", ""} or (is_eastern(text) and language_of(text) == "")


def _exchanged(text: str, tokens: Iterable[Token], found: Sequence[Mention]) -> Iterator[Mention]:
    """Yield what takes the place of a known package or product, or loses it to one: "replace lodash by left-padder"."""
    begins, ends = ({at(each): each.kind for each in found} for at in (attrgetter("start"), attrgetter("end")))
    for token in tokens:
        if token.start in begins or not _is_technical(token.word) or is_part(text, token.start, token.end):
            continue
        before = text[max(0, token.start - _LOOK_BACK) : token.start]
        behind = _FOR.match(text, token.end)
        kind = begins.get(behind.end()) if behind and _EXCHANGING.search(before) else None
        if kind is None and (match := _EXCHANGED_FOR.search(before)):
            kind = ends.get(token.start - len(before) + match.end("verb") + len(match["old"]))
        if kind in _EXCHANGEABLE:
            yield _mention(text, token.start, token.end, kind, _CONTEXT_CONFIDENCE)


def _is_technical(word: str) -> bool:
    """Whether a word is written as packages are and is no everyday one."""
    is_written_so = re.fullmatch(r"[a-z][a-z0-9]*(?:[-_.][a-z0-9]+)*", word) is not None
    parts = word.split("-")
    is_rare = len(parts) > 1 and any(each not in word_lists().frequency for each in parts)
    return is_written_so and (word in known().context or is_rare)


def _is_placed(text: str, token: Token, before: str) -> bool:
    is_thing = token.word not in _NOT_BEFORE_THINGS and _THING.match(text, token.end) is not None
    is_near = token.word in known().near and _PLACED.search(before) and _ENDS.match(text, token.end)
    return is_thing or bool(is_near)


def _is_joined(text: str, token: Token, begins: set[int], ends: set[int]) -> bool:
    """Whether a name stands beside it in a list, or one that it is preferred to, or the other way round."""
    joints = (_JOINT,) if token.word in _NOT_BEFORE_THINGS else (_JOINT, _AGAINST)
    if any((behind := joint.match(text, token.end)) and behind.end() in begins for joint in joints):
        return True
    return _ENDS.match(text, token.end) is not None and any(
        end in ends and any(joint.fullmatch(text, end, token.start) for joint in joints)
        for end in range(max(0, token.start - _LONGEST_JOINT), token.start)
    )
