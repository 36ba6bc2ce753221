"""Similarity and conflicts of two statements. Pure.

Near duplicates have the same content words in the same order, except harmless ones. A restated text has half of them,
since a model rewords a fact. `get_duplicate_key` finds exact duplicates. In doubt two statements differ: a stored
repetition costs a line, a dropped correction leaves a memory wrong. So a negation, number, version, name of code or
opposite in one of them makes them different. `patterns/similarity.yaml` has the words.

A conflict is a pair of texts that are equal word by word except in one place. No grammar is parsed, and pairs that are
worded differently are not found.

    Use [PostgreSQL | MySQL] for the ledger                 a value
    Production deployment is [not] allowed                  a negation
"""

from __future__ import annotations

import calendar
import functools
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from agent_memory.language.languages import load_patterns
from agent_memory.language.words import query_terms, stem
from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Sequence

_RESTATED: Final = 0.5
"""Share of the content words that the texts stored in this turn must have."""
_ASKING: Final = frozenset(
    query_terms("please remember keep mind note always user prefer prefers want wants use uses used")
)
"""Words of asking, and of the third person in which models write facts."""

_DIRECTION: Final = compile_late(r"\b(from|by|into|onto|against)\b", re.IGNORECASE)
"""Words without content, but "from A to B" is not "to A from B"."""

_SEPARATORS: Final = " ,:;-—\u2013\uff0c\uff1a、"
_WORD: Final = compile_late(r"[^\W_]+(?:[._:/@+-]?[^\W_]+|_)*")
_CODE_NAME: Final = compile_late(r"\d|[^\W_]_|[a-z][A-Z]|[^\W\d][./:@][^\W\d]")
_NEGATED_VERB: Final = compile_late(r"n['\u2019]t\b", re.IGNORECASE)


class _WordLists(NamedTuple):
    """Words of `patterns/similarity.yaml`.

    Attributes:
        asking: Finds words at a beginning that only ask to remember.
        harmless: Words that change no meaning, such as "now".
        harmless_ends: The same at an end, in scripts without spaces.
        turning: Words that change a meaning: negations and opposites.
        turning_parts: The same in scripts without spaces.
        negations: Words and parts that negate.
    """

    asking: re.Pattern[str]
    harmless: frozenset[str]
    harmless_ends: re.Pattern[str]
    turning: frozenset[str]
    turning_parts: re.Pattern[str]
    negations: frozenset[str]


@functools.cache
def _load_words() -> _WordLists:
    data = load_patterns("agent_memory.language", "similarity")
    parts = sorted(data["negating_parts"] + data["turning_parts"], key=len, reverse=True)
    negating = frozenset(word for words in data["negating"] for word in words)
    return _WordLists(
        asking=re.compile(rf"\W*(?:{'|'.join(data['asking'])})", re.IGNORECASE),
        harmless=frozenset(" ".join(data["harmless"]).split()),
        harmless_ends=re.compile(rf"(?:{'|'.join(data['harmless_ends'])})+\W*$"),
        turning=negating.union(*data["turning"]),
        turning_parts=re.compile("|".join(map(re.escape, parts))),
        negations=negating | set(data["negating_parts"]),
    )


def list_telling_terms(text: str) -> list[str]:
    """List the terms of a text in order, without words of asking."""
    return [term for term in query_terms(text) if term not in _ASKING]


def strip_cue(text: str) -> str:
    """Remove words at the beginning that only ask to remember."""
    match = _load_words().asking.match(text)
    rest = text[match.end() :].lstrip(_SEPARATORS) if match else ""
    if not rest:
        return text
    return rest[0].upper() + rest[1:] if text[:1].isupper() and rest[:2].islower() else rest


def is_near_duplicate(text: str, other_text: str) -> bool:
    """Return True if both have the same content words in order."""
    if differ_in_meaning(text, other_text):
        return False
    terms = _list_compared_terms(text)
    return terms == _list_compared_terms(other_text) if terms else text.strip() == other_text.strip()


def _list_compared_terms(text: str) -> list[str]:
    """List the content terms and words of direction of a text."""
    pieces = _DIRECTION.split(_load_words().harmless_ends.sub("", strip_cue(text.strip())))
    terms = (
        term for piece in pieces for term in ([piece.lower()] if _DIRECTION.fullmatch(piece) else query_terms(piece))
    )
    return [term for term in terms if term not in _list_harmless_terms()]


def get_harmless_words() -> frozenset[str]:
    """Return words that change no meaning, such as "now"."""
    return _load_words().harmless


@functools.cache
def _list_harmless_terms() -> frozenset[str]:
    """Return the terms that a repetition may add or lack."""
    return _ASKING.union(query_terms(" ".join(get_harmless_words())))


def is_restated(content: str, stored: Sequence[str]) -> bool:
    """Return True if the texts stored in this turn state `content`."""
    terms = frozenset(list_telling_terms(content))
    stored_terms = {text: words for text in stored if (words := frozenset(list_telling_terms(text)))}
    if not terms:
        return False
    if any(
        len(terms & words) >= _RESTATED * min(len(terms), len(words)) and _has_meaning(text, content)
        for text, words in stored_terms.items()
    ):
        return True
    together = frozenset[str]().union(*stored_terms.values())
    return len(terms & together) >= _RESTATED * len(terms) and _has_meaning(" ".join(stored_terms), content)


def differ_in_meaning(text: str, other_text: str) -> bool:
    """Return True if two texts differ in a word that changes meaning.

    Such words are negations, numbers, versions, names of code, and opposites.
    """
    return _count_turning_words(text) != _count_turning_words(other_text)


def _has_meaning(stored: str, content: str) -> bool:
    """Return True if `stored` has numbers, names and negation of `content`.

    Other than a repetition it may say more, and say "never" where the user said "do not".
    """
    words, stored_words = _count_turning_words(content), _count_turning_words(stored)
    negations = _load_words().negations
    if words.keys().isdisjoint(negations) != stored_words.keys().isdisjoint(negations):
        return False
    return all(word in stored_words for word in words if _CODE_NAME.search(word))


def _count_turning_words(text: str) -> Counter[str]:
    """Count negations, opposites, numbers and names of code."""
    lists = _load_words()
    text = unicodedata.normalize("NFKC", text)
    counts = Counter({"not": len(_NEGATED_VERB.findall(text))})
    for word in _WORD.findall(text):
        folded = word.casefold()
        if _CODE_NAME.search(word):
            counts[word] += 1
        elif folded in lists.turning:
            counts[folded] += 1
    if not text.isascii():
        counts.update(lists.turning_parts.findall(text))
    return +counts


_MAX_WORDS: Final = 4
"""Words of a name: "Anna Maria Berg"."""
_MAX_NUMBER_WORDS: Final = 2
"""Words of a number with its unit: "30 seconds"."""
_EVIDENCE_CHARS: Final = 160
_BEFORE_CHARS: Final = 60
"""Characters of the evidence that precede the difference."""

_IDEOGRAPH: Final = "\u3400-\u9fff"
_TOKEN: Final = compile_late(rf"\n|=|[{_IDEOGRAPH}]|[^\s={_IDEOGRAPH}]+")
_OPENING: Final = "\"'([{<“‘„«*_"  # noqa: RUF001
_CLOSING: Final = "\"')]}>”’»*_.,;:!?。，！？"  # noqa: RUF001
_SENTENCE_END: Final = compile_late(r"[.!?。！？][\"')\]”’»*_]*$")  # noqa: RUF001
_QUESTIONS: Final = ("?", "？")  # noqa: RUF001
_ARTICLE_WORDS: Final = "a an the der die das ein eine el la los las un una le les une"
_ARTICLES: Final = frozenset(_ARTICLE_WORDS.split())
_NEGATION_WORDS: Final = "not no never nicht kein keine keinen keinem nie niemals pas jamais nunca non não mai 不 没"
_NEGATIONS: Final = frozenset(_NEGATION_WORDS.split())
_SUPPORTS: Final = frozenset(("do", "does", "did", "longer", "anymore", "ne"))
"""Words that only come and go with a negation."""
_CONTRACTIONS: Final = {"cannot": ["can", "not"], "can't": ["can", "not"], "won't": ["will", "not"]}

_MODALS: Final = frozenset(["can", "could", "may", "might", "must", "ought", "shall", "should", "will", "would"])
_MONTHS: Final = frozenset(name.casefold() for name in (*calendar.month_name, *calendar.month_abbr, "Sept") if name)
_WEEKDAYS: Final = frozenset(name.casefold() for name in (*calendar.day_name, *calendar.day_abbr))
_HALVES: Final = frozenset({"am", "pm", "a.m", "p.m", "o'clock", "uhr"})
_TIME: Final = compile_late(
    r"(?:19|20)\d\d(?:s|[-/.]\d\d?(?:[-/.]\d\d?)?)?(?:t[\d:.]+z?)?"  # 2026, 1990s, 2026-03-09T10:00
    r"|\d\d?(?:[/.]\d\d?[/.](?:19|20)\d\d|/\d\d?(?:/\d\d)?)"  # 9.3.2026, 3/9
    r"|\d\d?:\d\d(?::\d\d)?(?:[ap]m)?|\d\d?(?:[ap]m|h)"  # 14:30, 2pm
    r"|\d+(?:st|nd|rd|th)|q[1-4]"
)
_NUMBER: Final = compile_late(r"\W?\d")
_IDENTIFIER: Final = compile_late(r"\d|\w[@/._:\\]\w")  # 8080, help@acme.org, src/main, app.toml, foo_bar
_OWNER: Final = compile_late(r"'s$|s'$")
_FIRST_PERSON: Final = compile_late(r"i(?:'\w+)?")


class _ComparedWord(NamedTuple):
    """Word as compared and as written, its start and its position."""

    text: str
    written: str
    start: int
    is_first: bool


@dataclass(frozen=True, slots=True)
class TextConflict:
    """Reason for a conflict of two texts.

    Attributes:
        kind: `value` if one value differs, `denial` if one text is the other with a negation.
        hint: `replace` if the newer text looks like an update of the older, else `conflict`.
        evidence: Short text for the person or agent who decides.
    """

    kind: Literal["value", "denial"]
    hint: Literal["replace", "conflict"]
    evidence: str


def find_conflict(newer: str, older: str) -> TextConflict | None:
    """Return the conflict of two texts, or None."""
    if newer.rstrip().endswith(_QUESTIONS) or older.rstrip().endswith(_QUESTIONS):
        return None
    first, second = _split_words(newer), _split_words(older)
    if _differ_by_negation(newer, older):
        return TextConflict("denial", "conflict", _describe((newer, older), first, second))
    if _differ_by_value(first, second):
        return TextConflict("value", "replace", _describe((newer, older), first, second))
    return None


@functools.lru_cache(maxsize=256)
def _split_words(text: str) -> tuple[_ComparedWord, ...]:
    words: list[_ComparedWord] = []
    is_first = True
    for match in _TOKEN.finditer(text):
        written = match[0]
        token = written.lstrip(_OPENING).rstrip(_CLOSING).replace("’", "'")  # noqa: RUF001
        if written != "\n" and token:
            words.append(_ComparedWord(token.strip("`").casefold(), written, match.start(), is_first))
            is_first = is_first and (token.casefold() in _ARTICLES or not any(map(str.isalnum, token)))
        is_first = is_first or written == "\n" or _SENTENCE_END.search(written) is not None
    return tuple(words)


def _differ_by_negation(newer: str, older: str) -> bool:
    """Return True if only negations and their auxiliaries differ."""
    (newer_rest, newer_count), (older_rest, older_count) = _strip_negations(newer), _strip_negations(older)
    return newer_count != older_count and bool(newer_rest) and newer_rest == older_rest


@functools.lru_cache(maxsize=256)
def _strip_negations(text: str) -> tuple[list[str], int]:
    """Return the stems of a text without negations, and their number."""
    expanded: list[str] = []
    for word in _split_words(text):
        short = word.text.removesuffix("n't")
        expanded += _CONTRACTIONS.get(word.text) or ([word.text] if short == word.text else [short, "not"])
    count = sum(text in _NEGATIONS for text in expanded)
    return [stem(text) for text in expanded if text not in _NEGATIONS | _SUPPORTS], count


def _differ_by_value(first: tuple[_ComparedWord, ...], second: tuple[_ComparedWord, ...]) -> bool:
    """Return True if one place differs, a value in both texts."""
    start = _count_equal(first, second)
    end = _count_equal(first[start:][::-1], second[start:][::-1])
    value, second_value = (words[start : len(words) - end] for words in (first, second))
    if not start or not value or not second_value or value[0].is_first or second_value[0].is_first:
        return False
    if {word.text for word in value} & {word.text for word in second_value}:
        return False  # two places with equal words between them
    kind = _read_kind(first, start, len(value))
    if kind == "name" and any(map(_has_digit, first[start + len(value) :])):
        return False  # the number belongs to the name: "Room Fjord seats 8 people"
    if end and (_is_subject(first, start) or _is_subject(second, start)):
        return False
    return kind != "" and kind == _read_kind(second, start, len(second_value))


def _is_subject(words: tuple[_ComparedWord, ...], start: int) -> bool:
    """Return True if an identifier names the subject: "Ticket 12", "request #88"."""
    before, identifier = words[start - 1], words[start]
    is_after_first = before.is_first and not before.written.endswith((":", "="))
    return (is_after_first and _is_identifier(identifier)) or identifier.written.startswith("#")


def _count_equal(first: tuple[_ComparedWord, ...], second: tuple[_ComparedWord, ...]) -> int:
    """Return the number of equal words at the beginning of both."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].text == pair[1].text, pairs))


def _read_kind(words: tuple[_ComparedWord, ...], start: int, length: int) -> str:
    """Return "number" or "name" if a place has only one, else "".

    A number may have a unit, which is one more word.
    """
    if words[start].text in _ARTICLES and length > 1:
        start, length = start + 1, length - 1
    if length > _MAX_WORDS or not _is_value(words[start]) or _is_time(words, start):
        return ""
    if _NUMBER.match(words[start].text):
        return "number" if length <= _MAX_NUMBER_WORDS else ""
    return "name" if all(map(_is_value, words[start : start + length])) else ""


def _is_value(word: _ComparedWord) -> bool:
    if word.text in _MODALS or _OWNER.search(word.text) or _FIRST_PERSON.fullmatch(word.text):
        return False
    is_name = any(map(str.isupper, word.written)) and not word.is_first
    return is_name or _is_identifier(word)


def _is_identifier(word: _ComparedWord) -> bool:
    return "`" in word.written or _IDENTIFIER.search(word.text) is not None


def _has_digit(word: _ComparedWord) -> bool:
    return any(map(str.isdigit, word.text))


def _is_time(words: tuple[_ComparedWord, ...], place: int) -> bool:
    """Return True for a date, time or ordinal, with its neighbours."""
    text = words[place].text
    if text in _MONTHS or text in _WEEKDAYS or _TIME.fullmatch(text):
        return True
    before, after = (words[near].text if 0 <= near < len(words) else "" for near in (place - 1, place + 1))
    return text.isdigit() and (before in _MONTHS or after in _MONTHS or after in _HALVES)


def _describe(texts: tuple[str, str], first: tuple[_ComparedWord, ...], second: tuple[_ComparedWord, ...]) -> str:
    """Return both texts, long ones from shortly before their difference."""
    place = _count_equal(first, second)
    newer, older = (
        _shorten(text, words[min(place, len(words) - 1)].start)
        for text, words in zip(texts, (first, second), strict=True)
    )
    return f"now: {newer} / before: {older}"


def _shorten(text: str, place: int) -> str:
    if len(text) <= _EVIDENCE_CHARS:
        return text
    begin = place - _BEFORE_CHARS if place >= _EVIDENCE_CHARS // 2 else 0
    end = begin + _EVIDENCE_CHARS - 2
    return f"{'…' * (begin > 0)}{text[begin:end].strip()}{'…' * (end < len(text))}"
