"""Words of time by language, and the tense around a date.

`language/patterns/<language>.txt` has the words. Each line is a kind, then words by value; a value without "=" is 0. A
language needs no other file for dates. Kinds whose words are not their own name:

- NAME_MONTH and VERB_MONTH are words with another meaning, read as months only in a context of time. LOW_MONTH is such
  a word in lower case. SHORT_WEEKDAY is an abbreviation, read only next to "on" or a date.
- OFFSET counts units from now: 1 is the next one. COMING_OFFSET counts days of the week from today.
- DAY_NAME counts days from now. NUM, TENS and NTH are numbers in words. VAGUE is an unsure number.
- AGO_BEFORE is "ago" in front of the number. PART_OF_DAY and PART_OF_YEAR name parts.
- EVERY, MEASURE and LABEL make what is next to them no date.
- FREQUENT are words by which the language is detected, CLAUSE words that begin a clause.
- AHEAD and PAST are regular expressions for verbs of future and past: verbs of closed classes, infinitives, frequent
  irregular pasts, and endings of regular pasts.
- DAY_FIRST says that 3/4 is in April.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import Any, Final, NamedTuple

from agent_memory.late import compile_late


class LanguageWords(NamedTuple):
    """Words of time in one language.

    Attributes:
        words: Kind and value of each word or phrase, in lower case.
        phrases: Finds phrases of several words.
        first_words: Beginnings of phrases.
        cues: Finds words of future (group `ahead`) and past.
        frequent: Words by which the language is detected.
        clause_words: Words that begin a clause.
        day_first: True if 3/4 is in April, None if people of that language differ.
    """

    words: dict[str, tuple[str, Any]]
    phrases: re.Pattern[str]
    first_words: frozenset[str]
    cues: re.Pattern[str]
    frequent: frozenset[str]
    clause_words: tuple[str, ...]
    day_first: bool | None


FOLDER = resources.files("agent_memory") / "language" / "patterns"
"""Folder with one file of words of time for each language."""
_DEFAULT: Final = "en"
_OTHER_LINES: Final = frozenset(("#", "FREQUENT", "CLAUSE", "AHEAD", "PAST", "DAY_FIRST"))
_WORD: Final = compile_late(r"[^\W\d_]+")
_READ_CHARS: Final = 400
"""Characters that decide the language of a text."""


@cache
def list_languages() -> tuple[str, ...]:
    """Return the codes of all languages with a file, English first."""
    codes = (file.name.removesuffix(".txt") for file in FOLDER.iterdir() if file.name.endswith(".txt"))
    return tuple(sorted(codes, key=lambda code: (code != _DEFAULT, code)))


@cache
def get_vocabulary(language: str) -> LanguageWords:
    """Return the words of a language such as "de-AT", English by default."""
    code = language[:2].lower() if language[:2].lower() in list_languages() else _DEFAULT
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for line in (FOLDER / f"{code}.txt").read_text(encoding="utf-8").splitlines():
        kind, _, content = line.partition(" ")
        lines[kind].append(content)
    words: dict[str, tuple[str, Any]] = {}
    for kind, contents in lines.items():  # of a word on two lines, the second counts
        for group in " ".join(contents).split() if kind not in _OTHER_LINES else ():
            value, _, names = group.rpartition("=")
            entry = kind, value if value.isidentifier() else int(value or 0)
            words |= {name.replace("_", " "): entry for name in names.split(",")}
    phrases = sorted((re.escape(word) for word in words if not word.isalpha()), key=len, reverse=True)
    return LanguageWords(
        words,
        phrases=re.compile("|".join(phrases)),
        first_words=frozenset(_WORD.findall(word)[0] for word in words if not word.isalpha()),
        cues=re.compile(rf"(?P<ahead>{'|'.join(lines['AHEAD'])})|(?P<past>{'|'.join(lines['PAST'])})", re.IGNORECASE),
        frequent=frozenset(" ".join(lines["FREQUENT"]).split()),
        clause_words=tuple(" ".join(lines["CLAUSE"]).split()),
        day_first="DAY_FIRST" in lines or None,
    )


def detect_language(text: str) -> str:
    """Return the language of a text, English by default.

    This package imports no other, so it counts frequent words and words of time itself.
    """
    words = _WORD.findall(text[:_READ_CHARS].lower())
    vocabularies = {code: get_vocabulary(code) for code in list_languages()}

    def count(code: str) -> int:
        return sum(word in vocabularies[code].frequent or word in vocabularies[code].words for word in words)

    return max(vocabularies, key=count)


_SENTENCE_END: Final = compile_late(r"[.!?;](?=\s{1,9}[^\Wa-z\d_]|\s{0,9}$)|\n")


@cache
def compile_clause_break() -> re.Pattern[str]:
    """Return the pattern of a comma or a clause's first word."""
    words = (word for code in list_languages() for word in get_vocabulary(code).clause_words)
    return re.compile(rf",|\b(?:{'|'.join(words)})\b", re.IGNORECASE)


class TenseReader:
    """Tense at each place of a text.

    The verbs of the sentence decide, on either side of the date. If they differ, those of the date's own clause do; if
    these differ as well, or no verb exists, the tense is unknown.

    Args:
        text: Text to read.
        language: Such as "en".
    """

    def __init__(self, text: str, language: str) -> None:
        cues = [*get_vocabulary(language).cues.finditer(text)]
        self._places = [cue.start() for cue in cues]
        self._ahead = [0, *accumulate(cue["ahead"] is not None for cue in cues)]
        self._sentences = [match.end() for match in _SENTENCE_END.finditer(text)] if cues else []
        self._clauses = [match.end() for match in compile_clause_break().finditer(text)] if cues else []

    def is_ahead(self, place: int) -> bool | None:
        """Return True for the future, False for the past, None if unknown."""
        if not self._places:
            return None
        start, end = _find_span(self._sentences, place)
        clause = _find_span(self._clauses, place)
        tense = self._find_tense(start, end)
        return self._find_tense(max(start, clause[0]), min(end, clause[1])) if tense is None else tense

    def _find_tense(self, start: int, end: int) -> bool | None:
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        ahead = self._ahead[last] - self._ahead[first]
        return None if first == last or 0 < ahead < last - first else ahead > 0


def _find_span(ends: list[int], place: int) -> tuple[int, int]:
    """Return the span between two ends around a place."""
    number = bisect_right(ends, place)
    return ends[number - 1] if number else 0, ends[number] if number < len(ends) else sys.maxsize
