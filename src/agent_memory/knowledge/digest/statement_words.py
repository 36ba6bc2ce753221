"""Words of statements and their sources. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.capture.rules import LANGUAGES, any_of, guess_languages, read_patterns
from agent_memory.capture.sameness import get_harmless_words
from agent_memory.retrieval import query_terms
from agent_memory.retrieval.tokens import index_terms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_PERMISSIONS: Final = {
    "must": ("must", "required", "mandatory", "shall", "obligatory", "muss", "müssen"),
    "may": ("may", "allowed", "permitted", "can", "darf", "dürfen", "erlaubt"),
    "forbidden": ("forbidden", "prohibited", "disallowed", "banned", "verboten", "unzulässig"),
    "should": ("should", "recommended", "sollte", "sollten"),
    "only": ("only", "nur"),
    "unless": ("unless", "except", "außer"),
}
"""Words that say what is allowed; a statement has the same kinds of them as its quote."""
_KINDS: Final = {word: kind for kind, words in _PERMISSIONS.items() for word in words}
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_UNSPACED: Final = "ก-๛ກ-ໟ\u2e80-\uffff"
_CHARACTER: Final = re.compile(f"[{_UNSPACED}]")
_WORD: Final = re.compile(
    rf"(?=[^\W_])[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_])+(?:[.'’_/\\:@&+#-]+(?:(?![{_UNSPACED}])[^\W_])+)*"  # noqa: RUF001
)
"""A word; in scripts without spaces a character."""
_CLAUSE_END: Final = re.compile(
    r"[;；()。！？，]|[.!?,，、]\s|\s[-–—]\s",  # noqa: RUF001
)
_CODE: Final = re.compile(r"`[^`]+`")
_NEGATIONS: Final = {"not", "no", "never", "none", "nobody", "noth", "without", "n't", "cannot", "neither", "nor"}
_CONTRACTION: Final = re.compile(r"n['’]t\b|\bcannot\b", re.IGNORECASE)  # noqa: RUF001
_MAX_REVERSED: Final = 2
"""Words in reverse order that a paraphrase may have."""


class StatementWord(NamedTuple):
    """A word of a text.

    Attributes:
        text: Word as written.
        terms: Index terms, first that of the whole word, then those of its parts; empty for function words.
        start, end: Place in the text.
        clause: Number of the clause.
    """

    text: str
    terms: tuple[str, ...]
    start: int
    end: int
    clause: int

    def is_in(self, terms: Collection[str]) -> bool:
        """Return True if terms hold the word or all its parts."""
        parts = self.terms[1:]
        return self.terms[0] in terms or (bool(parts) and all(part in terms for part in parts))

    @property
    def counts(self) -> bool:
        """Return True for content words that are compared one by one."""
        folded = self.text.casefold()
        is_free = folded in _KINDS or folded in get_harmless_words() or is_denial(folded)
        return bool(self.terms) and not is_free


def read_words(text: str, function_words: Collection[str] = ()) -> list[StatementWord]:
    """Return the words of a text.

    Args:
        text: Statement or source.
        function_words: Folded words without content; see `find_function_words`.
    """
    ends = [match.start() for match in _CLAUSE_END.finditer(text)]
    words: list[StatementWord] = []
    for match in _WORD.finditer(text):
        word, clause = match[0], bisect_left(ends, match.start())
        is_character = _CHARACTER.fullmatch(word) is not None
        terms = (word,) if is_character else () if word.casefold() in function_words else tuple(query_terms(word))
        words.append(StatementWord(word, terms, match.start(), match.end(), clause))
    return words


def get_terms(words: Iterable[StatementWord]) -> set[str]:
    """Return the terms of words."""
    return {term for word in words for term in word.terms}


def find_function_words(text: str) -> frozenset[str]:
    """Return the function words of a text's languages, except English."""
    return frozenset[str]().union(*map(_get_function_words, guess_languages(text)))


def find_identifiers(words: Iterable[StatementWord], text: str) -> set[str]:
    """Return the terms of words in backticks, and of words with parts, such as `utf-8`."""
    spans = [match.span() for match in _CODE.finditer(text)]
    return {
        word.terms[0]
        for word in words
        if word.terms and (len(word.terms) > 1 or any(start < word.start < end for start, end in spans))
    }


def list_first(words: Iterable[StatementWord], terms: Collection[str]) -> list[str]:
    """Return those terms in the order of their first words."""
    return list(dict.fromkeys(word.terms[0] for word in words if word.terms and word.terms[0] in terms))


# -- words that limit a sentence --------------------------------------------------------------------------------------


def get_permissions(text: str) -> frozenset[str]:
    """Return the kinds of permission that a text speaks of."""
    return frozenset(_KINDS[word] for word in _LETTERS.findall(text.casefold()) if word in _KINDS)


def get_suppositions(text: str) -> frozenset[str]:
    """Return words of condition, such as "if" and "until"."""
    return frozenset(match[0].casefold() for match in any_of("orders", "supposes").finditer(text))


def denies(text: str) -> bool:
    """Return True if a text denies something."""
    is_negated = not _NEGATIONS.isdisjoint(index_terms(text)) or _CONTRACTION.search(text) is not None
    return is_negated or any_of("orders", "denies").search(text) is not None


def get_limits(text: str) -> tuple[bool, frozenset[str], frozenset[str]]:
    """Return denial, kinds of permission and suppositions of a text."""
    return denies(text), get_permissions(text), get_suppositions(text)


@lru_cache(maxsize=4_096)
def is_denial(word: str) -> bool:
    """Return True if a word denies."""
    return denies(word)


def is_turning(word: str) -> bool:
    """Return True for a word of order, comparison or quantity."""
    return word.casefold() in _get_turning_words()


def find_followers(words: Sequence[StatementWord]) -> dict[str, set[str]]:
    """Return by limiting word the terms that follow; denials count as `not`."""
    followers: dict[str, set[str]] = defaultdict(set)
    term, clause = "", -1
    for word in reversed(words):
        term, clause = (term if word.clause == clause else ""), word.clause
        is_not = is_denial(word.text)
        if is_not or is_turning(word.text):
            followers["not" if is_not else word.text.casefold()].add(term)
        if get_suppositions(word.text):
            term = ""
        elif word.terms and not is_not and word.text.casefold() not in _KINDS:
            term = word.terms[0]
    return followers


def find_denied(words: Sequence[StatementWord], *, after: bool) -> list[StatementWord]:
    """Return the content words of clauses that deny, or those `after` it."""
    denials = [word for word in words if is_denial(word.text)]
    return [
        word
        for word in words
        if word.counts and any(word.clause == no.clause and (word.start > no.start or not after) for no in denials)
    ]


@cache
def _get_turning_words() -> frozenset[str]:
    rows = read_patterns("opposites")["turning"]
    return frozenset(word for row in rows for word in row if query_terms(word) and word not in _KINDS)


@cache
def _get_function_words(language: str) -> frozenset[str]:
    rows, number = read_patterns("orders")["function_words"], LANGUAGES.index(language) - 1
    return frozenset(rows[number].split()) - _get_turning_words() if 0 <= number < len(rows) else frozenset()


# -- parts of a sentence ----------------------------------------------------------------------------------------------


def find_used(
    statement: Iterable[StatementWord], sentence: Sequence[StatementWord], quoted: tuple[int, int]
) -> list[StatementWord]:
    """Return the span of a sentence that a statement uses, with attributes.

    Args:
        statement: Words of the statement.
        sentence: Words of the sentence.
        quoted: Place of the quote in the sentence; of words that are there twice the nearest counts.
    """
    numbers = set[int]()
    for word in {word.terms: word for word in statement}.values():
        places = [number for number, used in enumerate(sentence) if word.terms and word.is_in(used.terms)]
        if places:
            numbers.add(min(places, key=lambda number: _get_distance(sentence[number], quoted)))
    if not numbers:
        return []
    start, last = min(numbers), max(numbers)
    end = last
    while start and _is_next_to(sentence[start - 1], sentence[start]):
        start -= 1
    while end + 1 < len(sentence) and _is_next_to(sentence[end], sentence[end + 1]):
        end += 1
    is_clause_end = end + 1 == len(sentence) or sentence[end + 1].clause > sentence[end].clause
    return list(sentence[start : (end if is_clause_end else last) + 1])


def grow_to_clauses(
    used: Sequence[StatementWord], sentence: Iterable[StatementWord], *, has_ends: bool
) -> list[StatementWord]:
    """Return used words with the beginnings, or all, of their clauses."""
    clauses = {word.clause for word in used}
    end = used[-1].end if used else 0
    return [word for word in sentence if word.clause in clauses and (has_ends or word.end <= end)]


def find_replacing(words: Sequence[StatementWord], used: Sequence[StatementWord]) -> set[StatementWord]:
    """Return the words that replace function words such as pronouns."""
    quoted, stated = ([next(iter(word.terms), word.text.casefold()) for word in side] for side in (used, words))
    replacing: set[StatementWord] = set()
    for kind, start, end, first, last in SequenceMatcher(None, quoted, stated, autojunk=False).get_opcodes():
        if kind == "replace" and not any(word.terms for word in used[start:end]):
            replacing.update(words[first:last])
    return replacing


def find_rested(stated: set[str], used: Iterable[StatementWord]) -> list[StatementWord]:
    """Return the fewest clauses that have all terms of a statement."""
    clauses: dict[int, list[StatementWord]] = defaultdict(list)
    for word in used:
        clauses[word.clause].append(word)
    missing = stated & {term for words in clauses.values() for term in get_terms(words)}
    rested: list[StatementWord] = []
    while missing:
        best = max(clauses.values(), key=lambda words: len(missing & get_terms(words)))
        rested += best
        missing -= get_terms(best)
    return rested


def is_turned_round(words: Sequence[StatementWord], used: Sequence[StatementWord]) -> bool:
    """Return True if three words come in reverse, except in a passive."""
    if any(word.text == "by" for word in words) != any(word.text == "by" for word in used):
        return False
    numbered = reversed(list(enumerate(used)))  # of a word that is there twice the first place counts
    places = {word.terms[0]: -number for number, word in numbered if word.terms and word.terms[0].isalpha()}
    order = dict.fromkeys(places[word.terms[0]] for word in words if word.terms and word.terms[0] in places)
    longest: list[int] = []
    for place in order:
        number = bisect_left(longest, place)
        longest[number : number + 1] = [place]
    return len(longest) > _MAX_REVERSED


def _get_distance(word: StatementWord, quoted: tuple[int, int]) -> int:
    return max(0, quoted[0] - word.start, word.end - quoted[1])


def _is_next_to(word: StatementWord, following: StatementWord) -> bool:
    """Return True if two content words adjoin, as in "few refunds"."""
    is_near = word.clause == following.clause and following.start - word.end == 1
    is_near = is_near and _CHARACTER.match(word.text) is None
    return is_near and bool(word.terms) and bool(following.terms)
