"""A text as statements: sentences, lines and items of lists, each with its words, names, amounts and denials."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval.spoken import turn_of
from agent_memory.retrieval.tokens import index_terms
from agent_memory.suspects.forms import BASES, EVERY
from agent_memory.suspects.quantities import NUMBER_WORDS, Amount, number_of, unit_of
from agent_memory.suspects.wording import (
    FUNCTION_WORDS,
    GONE,
    HARMLESS_TERMS,
    LIGHT_TERMS,
    LIGHT_WORDS,
    NEGATIONS,
    NOT_YET_PAST,
    PAST_SCOPE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_STATEMENTS: Final = 24
"""What a text says beyond these is not compared: each one meets each of the other text."""
_MOST_CHARACTERS: Final = 400
"""Of a sentence: what goes on for longer is a list or a dump, and comparing takes time by the square of it."""
_MOST_IN_RUN: Final = 16
"""Words in a row: no name is longer."""
_TITLES: Final = "".join(rf"(?<!\b{title}\.)" for title in ("Dr", "Mr", "Ms", "Mrs", "Prof", "St", "No"))
_SENTENCE: Final = re.compile(
    _TITLES + r"(?:(?<=[^\W_][^\W_][.!?])\s+|(?<=[.!?])\s+(?=[\"'(\u201c\u2018]?[^\W_a-z]))|\n+"
)
_ITEM: Final = re.compile(r"^\s*(?:[-*\u2022>#|]+\s+|\d{1,2}[.)]\s+|\[[ xX]\]\s+)+")
_CHUNK: Final = re.compile(
    r"(?:(?<=\d),(?=\d{3})|[^\s,;!?()\"\u201c\u201d\[\]{}<>|\u2014\u2013=*`\u2026])+|[,;!?()\"\u201c\u201d|\u2014\u2013=\u2026]"
)
_AMOUNT: Final = re.compile(r"([$\u20ac\u00a3]?)(\d+(?:[.,]\d+)*)(%|[^\W\d_]{1,12})?")
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3])[:h]([0-5]\d)(?:am|pm)?", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_NAME_OF_CODE: Final = re.compile(r".*(?:[^\W_][_/\\@#.:~][^\W_]|_|[a-z][A-Z]|[^\W\d]\d|\d[^\W\d]|\(\)).*|[./~@#]\w.*")
_TALKS: Final = re.compile(r"[!?]|\b(?:I|you|[Mm]e|[Mm]y|[Yy]ou|[Yy]our|[Ww]e)\b")
"""A label before a colon is a speaker where the words speak to somebody: "Deploy day: Tuesday" is a fact."""
_UNSPACED: Final = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces: a run of these is one word, for want of better."""
_WORD: Final = re.compile(r"[^\W\d_]+|\d+")
_TRAILING: Final = ".:'\u2019"
_HALVES_OF_DAY: Final = {"am": 0, "pm": 12}
_COPULAS: Final = frozenset({"is", "are", "was", "were", "=", ":"})
_MONTH_NAMES: Final = "january february march april may june july august september october november december"
_MONTHS: Final = frozenset(_MONTH_NAMES.split())
_DAY_NAMES: Final = "monday tuesday wednesday thursday friday saturday sunday"
_DAYS: Final = frozenset(form for day in _DAY_NAMES.split() for form in (day, f"{day}s"))
_ARTICLES: Final = frozenset({"the", "a", "an", "our", "my", "your", "his", "her", "its", "their", "now"})
_PERSONS: Final = frozenset({"i", "we", "my", "our", "user", "you"})


@dataclass(frozen=True, slots=True)
class Statement:
    """What one sentence says.

    Attributes:
        text: As written.
        runs: Words in a row without a function word or a mark between them, as stems.
        terms: All stems but such as say nothing of the matter.
        words: All stems but such as a repetition may have more.
        names: Terms that are names: capitalised within the sentence, of code, or a path.
        nouns: Terms that stand in lower case, which names do not.
        lead: The words it begins with, up to the first function word; what it speaks of, as a rule.
        links: The function words that follow the lead, without articles: "is at", "in".
        is_defined: The lead is followed by "is", a colon or "=": what comes then is its value.
        amounts: Numbers with what they count.
        clauses: The terms of each clause and how often it denies.
        is_past: It says that something was so at a time.
        gone: Terms of what it says has been left.
        person: It is of the user, about themselves or their team.
        modifiers: For a word, those that stand before it where the text names a thing in full, in its first line.
    """

    text: str
    runs: tuple[tuple[str, ...], ...]
    terms: frozenset[str]
    words: frozenset[str]
    names: frozenset[str]
    nouns: frozenset[str]
    lead: tuple[str, ...]
    links: tuple[str, ...]
    is_defined: bool
    amounts: tuple[Amount, ...]
    clauses: tuple[tuple[frozenset[str], int], ...]
    is_past: bool
    gone: frozenset[str]
    person: bool
    modifiers: dict[str, tuple[str, ...]]


@lru_cache(maxsize=4096)
def statements_of(text: str) -> tuple[Statement, ...]:
    """Return what a text says, the first line first; remembered, since a text is compared with many.

    Nothing for a turn of a talk: what people say to each other is no statement of how things are.
    """
    turn = turn_of(text)
    return () if turn is not None and _TALKS.search(turn.words) else tuple(_statements(text))


def joined(parts: list[Statement]) -> Statement:
    """Return several statements as one."""
    first = parts[0]
    return Statement(
        " / ".join(part.text for part in parts),
        tuple(run for part in parts for run in part.runs),
        frozenset().union(*(part.terms for part in parts)),
        frozenset().union(*(part.words for part in parts)),
        frozenset().union(*(part.names for part in parts)),
        frozenset().union(*(part.nouns for part in parts)),
        first.lead,
        first.links,
        first.is_defined,
        tuple(amount for part in parts for amount in part.amounts),
        tuple(clause for part in parts for clause in part.clauses),
        any(part.is_past for part in parts),
        frozenset().union(*(part.gone for part in parts)),
        first.person,
        first.modifiers,
    )


def _statements(text: str) -> Iterator[Statement]:
    count = 0
    modifiers: dict[str, tuple[str, ...]] = {}
    for part in _SENTENCE.split(text):
        sentence = _ITEM.sub("", part).strip()
        if sentence and not sentence.endswith("?") and count < _MOST_STATEMENTS:
            statement = _Reader(sentence[:_MOST_CHARACTERS]).statement(modifiers)
            if not _is_list_of_code(statement):
                if not count:
                    modifiers |= {run[at]: run[:at] for run in statement.runs for at in range(1, len(run))}
                count += 1
                yield statement


def _lead(runs: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return next((run for run in runs if not LIGHT_TERMS.issuperset(run)), ())


def _is_list_of_code(statement: Statement) -> bool:
    """Whether a line only lists files and the like, or says nothing."""
    label = statement.text.partition(":")[0].casefold()
    return label in {"file", "files"} or not (statement.amounts or statement.terms)


class _Reader:
    """Reads one sentence, chunk by chunk."""

    def __init__(self, sentence: str) -> None:
        self._text = sentence
        self._runs: list[list[str]] = [[]]
        self._clauses: list[tuple[set[str], int]] = []
        self._clause: set[str] = set()
        self._denials = 0
        self._names: set[str] = set()
        self._nouns: set[str] = set()
        self._terms: set[str] = set()
        self._amounts: list[Amount] = []
        self._number: tuple[float | str, str] | None = None
        self._before = ""
        self._links: list[str] = []
        self._defined = False
        self._person = False
        self._at = 0

    def statement(self, modifiers: dict[str, tuple[str, ...]]) -> Statement:
        """Read it; `modifiers` may be filled later."""
        for chunk in _CHUNK.findall(self._text):
            self._read(chunk)
        self._end_number(None)
        self._end_clause()
        runs = tuple(tuple(run) for run in self._runs if run)
        gone = {
            term
            for match in GONE.finditer(self._text)
            for term in index_terms(match["gone"] or match["left"] or match["not"] or "")
            if term in self._terms
        }
        every = frozenset(term for run in runs for term in run)
        return Statement(
            text=self._text,
            runs=runs,
            terms=frozenset(self._terms),
            words=(every | self._terms) - HARMLESS_TERMS,
            names=frozenset(self._names),
            nouns=frozenset(self._nouns),
            lead=_lead(runs),
            links=tuple(self._links),
            is_defined=self._defined,
            amounts=tuple(self._amounts),
            clauses=tuple((frozenset(words), number) for words, number in self._clauses),
            is_past=PAST_SCOPE.search(self._text) is not None and NOT_YET_PAST.search(self._text) is None,
            gone=frozenset(gone),
            person=self._person,
            modifiers=modifiers,
        )

    def _read(self, chunk: str) -> None:
        sign = chunk.rstrip(_TRAILING)
        if self._number is not None and not sign.isalnum() and unit_of(sign) is not None:
            self._end_number(sign)
            chunk = chunk.removeprefix(sign)
        if not chunk:
            return
        if not chunk[0].isalnum() and len(chunk) == 1:
            self._mark(chunk)
            return
        bare = chunk.rstrip(_TRAILING).lstrip("'\u2018\u2019")
        if bare:
            self._word(bare)
            self._at += 1
        if chunk.endswith((":", ".")) and not bare.endswith((":", ".")):
            self._mark(chunk[-1])

    def _mark(self, mark: str) -> None:
        self._end_number(None)
        if mark in {":", "="} and len([run for run in self._runs if run]) == 1:
            self._defined = True
        self._end_run()
        if mark != "=":
            self._end_clause()

    def _end_run(self) -> None:
        if self._runs[-1]:
            self._runs.append([])

    def _end_clause(self) -> None:
        if self._clause or self._denials:
            self._clauses.append((self._clause, self._denials))
        self._clause, self._denials = set(), 0

    def _word(self, word: str) -> None:
        lower = word.casefold()
        if self._numeric(word, lower):
            return
        if _NAME_OF_CODE.fullmatch(word):
            self._end_number(lower)
            self._add(lower, is_name=True)
            for part in index_terms(word):
                if not part.isdigit() and part != lower:
                    self._terms.add(part)
            return
        parts = _WORD.findall(
            lower.removesuffix("'s").removesuffix("\u2019s").replace("n't", "n not").replace("n\u2019t", "n not")
        )
        capital = word[0].isupper() and (self._at > 0 or word[1:2].isupper())
        for part in parts:
            self._part(part, is_name=capital)
        if word.islower():
            self._nouns.update(index_terms(lower))

    def _part(self, word: str, *, is_name: bool) -> None:
        if self._number is not None and word in _HALVES_OF_DAY:
            self._end_hour(word)
            return
        if self._number is not None and unit_of(word) is not None:
            self._end_number(word)
            self._end_run()
            return
        if word in NEGATIONS:
            self._denials += 1
        if word in _PERSONS and self._at <= 1:
            self._person = True
        if word in FUNCTION_WORDS:
            self._end_number(None)
            if word in _COPULAS and len([run for run in self._runs if run]) == 1:
                self._defined = True
            self._end_run()
            self._before = word
            self._link(word)
            return
        if word in EVERY:
            self._amounts.append(Amount("every", EVERY[word], word))
        if word in _DAYS:
            self._amounts.append(Amount("weekday", word.removesuffix("s"), word))
        self._end_number(word)
        stems = [word] if _UNSPACED.search(word) else index_terms(BASES.get(word, word))
        for stem in stems:
            is_other = stem in LIGHT_TERMS and word not in LIGHT_WORDS  # "liveness" is not "live"
            self._add(word if is_other else stem, is_name=is_name)

    def _link(self, word: str) -> None:
        """Take a function word that follows the first run, before another begins."""
        runs = [run for run in self._runs if run]
        if word not in _ARTICLES and len(runs) == 1 and not LIGHT_TERMS.issuperset(runs[0]):
            self._links.append(word)

    def _add(self, stem: str, *, is_name: bool) -> None:
        if len(self._runs[-1]) == _MOST_IN_RUN:
            self._runs.append([])
        self._runs[-1].append(stem)
        if stem not in LIGHT_TERMS:
            self._terms.add(stem)
            self._clause.add(stem)
            if is_name:
                self._names.add(stem)
        self._before = stem

    def _numeric(self, word: str, lower: str) -> bool:
        """Take a number, a clock time or a date; a number waits for its unit."""
        clock = _CLOCK.fullmatch(word)
        if clock or _DATE.fullmatch(word):
            self._end_number(None)
            said = f"{int(clock[1])}:{clock[2]}" if clock else word
            self._amounts.append(Amount("clock" if clock else "date", said, word))
            self._end_run()
            return True
        match = _AMOUNT.fullmatch(NUMBER_WORDS.get(lower, word))
        if match is None:
            return False
        self._end_number(None)
        sign, digits, unit = match.groups()
        self._number = (number_of(digits), word)
        glued = unit and unit_of(unit if unit == "%" else unit.casefold())
        if unit and not glued and unit.casefold() not in {"st", "nd", "rd", "th", *_HALVES_OF_DAY}:
            self._number = None
            return False
        if unit and unit.casefold() in _HALVES_OF_DAY:
            self._end_hour(unit.casefold())
        elif sign or glued:
            self._end_number(sign or (unit or "").casefold())
        self._end_run()
        return True

    def _end_hour(self, half: str) -> None:
        """Take the number that waits for an hour of the clock."""
        value, text = self._number or (0, "")
        self._number = None
        hour = value % 12 + _HALVES_OF_DAY[half] if isinstance(value, float) else value
        self._amounts.append(Amount("clock", f"{hour:.0f}:00" if isinstance(hour, float) else hour, f"{text} {half}"))

    def _end_number(self, following: str | None) -> None:
        """Give the number that waits its dimension."""
        if self._number is None:
            return
        value, text = self._number
        self._number = None
        is_word = text.isalpha()
        unit = unit_of(following) if following else None
        if following in _MONTHS or self._before in _MONTHS:
            self._amounts.append(Amount("date", text, text))
        elif unit is not None:
            scaled = value if isinstance(value, str) else value * unit[1]
            self._amounts.append(Amount(unit[0], scaled, f"{text} {following}"))
        elif following or not is_word:
            counted = (index_terms(following) or [following])[0] if following else self._before
            self._amounts.append(Amount(counted, value, text))
