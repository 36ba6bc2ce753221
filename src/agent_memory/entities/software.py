"""Software, services, firms and standards that everybody knows, where they stand in a text. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from agent_memory.entities.han import without_han
from agent_memory.entities.known import known
from agent_memory.entities.lookup import add_to, is_part, listed_in
from agent_memory.entities.mention import Mention
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
_JOINT: Final = re.compile(r"\s*(?:,|/|\+|&|,?\s(?:and|or|und|oder|y|et|e|i|a|и)\b)\s*", re.IGNORECASE)
_OPENS: Final = " -*\n\t\"'("
_LOOK_BACK: Final = 48


@cache
def _table() -> Table:
    table: Table = {}
    add_to(table, known().written, as_written=True)
    add_to(table, known().free, as_written=False)
    return table


def software_in(text: str, tokens: Sequence[Token]) -> list[Mention]:
    """Return known names in order; what stands at the beginning of a sentence and may be a common word is none."""
    apart = without_han(text)
    if apart != text:
        tokens = tokens_of(apart)
    found = [_mention(text, *each, _CONFIDENCE) for each in listed_in(apart, tokens, _table())]
    found += _versioned(apart, tokens)
    found = [each for each in found if not _is_attached(apart, each)]
    found += [_mention(text, *each, _CONFIDENCE) for each in _in_han(text)] if apart != text else []
    if apart == text:
        found = [each for each in found if not _opens_as_word(text, each)]
    return sorted([*found, *_told(apart, tokens, found)], key=lambda each: each.start)


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


@cache
def _han() -> re.Pattern[str]:
    return re.compile("|".join(sorted(known().han, key=lambda name: (-len(name), name))))


def _in_han(text: str) -> Iterator[tuple[int, int, Kind]]:
    for match in _han().finditer(text):
        yield match.start(), match.end(), known().han[match[0]]


def _told(text: str, tokens: Iterable[Token], found: Sequence[Mention]) -> Iterator[Mention]:
    """Yield small words that are software by the words around: "formatted with black", "black and flake8"."""
    context = known().context
    begins, ends = {each.start for each in found}, {each.end for each in found}
    for token in tokens:
        if token.word not in context or token.start in begins or is_part(text, token.start, token.end):
            continue
        before = text[max(0, token.start - _LOOK_BACK) : token.start]
        if _MADE_WITH.search(before) or _is_placed(text, token, before) or _is_joined(text, token, begins, ends):
            yield _mention(text, token.start, token.end, context[token.word], _CONTEXT_CONFIDENCE)


def _is_placed(text: str, token: Token, before: str) -> bool:
    is_thing = token.word not in _NOT_BEFORE_THINGS and _THING.match(text, token.end) is not None
    is_near = token.word in known().near and _PLACED.search(before) and _ENDS.match(text, token.end)
    return is_thing or bool(is_near)


def _is_joined(text: str, token: Token, begins: set[int], ends: set[int]) -> bool:
    """Whether a name stands beside it in a list."""
    behind = _JOINT.match(text, token.end)
    if behind and behind.end() in begins:
        return True
    return _ENDS.match(text, token.end) is not None and any(
        end in ends and _JOINT.fullmatch(text, end, token.start) for end in range(max(0, token.start - 6), token.start)
    )
