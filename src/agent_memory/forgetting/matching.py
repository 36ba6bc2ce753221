"""What a unit of a memory has of a request: its names, its identifiers, how much of its words, its time. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.forgetting.clauses import Clauses, Unit
from agent_memory.forgetting.lexicon import DENIALS, FIRST_PERSON, LEADS, SMALL, belongs_to, is_known_verb, share_notion
from agent_memory.forgetting.words import folded, holds_identifier, same_name, stems, words_of
from agent_memory.times import named_periods

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.forgetting.request import Request, Term
    from agent_memory.forgetting.words import Word
    from agent_memory.models import Memory
    from agent_memory.times import Period

_OF_A_NOTION: Final = 0.6
"""What a word counts that belongs to the same everyday notion as one of the request."""
_OF_A_COMPOUND: Final = 0.85
"""What a word counts that is a part of a compound with hyphens: "core" in "core-utils"."""
_IN_SUBJECT: Final = 0.5
"""What a unit gains whose subject has the name and a word of the request: it is what it is about."""


@dataclass(frozen=True)
class Seen:
    """A unit of a memory, and what of a request it has."""

    memory: Memory
    unit: Unit
    words: tuple[Word, ...]
    has_hard: bool
    is_bare: bool
    score: float
    share: float
    is_denied: bool
    is_own: bool
    subject: str
    """Whom or what it is about; for a pronoun, what that stands for."""


class Parsed:
    """A memory with its units."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.clauses = Clauses(memory.content)


def seen_in(request: Request, parsed: Parsed, *, anywhere: bool = False) -> Iterable[Seen]:
    """Yield the units of a memory with what they have of a request.

    Args:
        request: Read.
        parsed: The memory.
        anywhere: Look for names and identifiers in the whole memory, not in each unit.
    """
    memory = parsed.memory
    antecedent = ""
    whole_match = _name_places(request, tuple(words_of(memory.content)), memory.content) if anywhere else None
    for unit in parsed.clauses.units:
        if unit.subject and folded(unit.subject.split()[0]) not in _THIRD:
            antecedent = _owner(unit.subject)
        leans = _leans(unit)
        text = f"{antecedent}, {unit.text}" if leans else unit.text
        words = tuple(words_of(text))
        named, has_identifiers = whole_match or _name_places(request, words, text, unit.text)
        hard = has_identifiers and all(place is not None for place in named)
        score, share = _score(request.soft, words)
        if score and request.names and _is_about(request, unit):
            score += _IN_SUBJECT
        lower = {piece for word in words for piece in folded(word.text).replace("\u2019", "'").split("'")}
        yield Seen(
            memory,
            unit,
            words,
            hard,
            all(place for place in named if place is not None),
            score,
            share,
            bool(lower & DENIALS) or "n't" in unit.text.replace("\u2019", "'"),
            bool(lower & FIRST_PERSON),
            antecedent if leans and antecedent else unit.subject,
        )


def _name_places(
    request: Request, words: Sequence[Word], text: str, own_text: str = ""
) -> tuple[list[bool | None], bool]:
    """Return each name's occurrence, and True if all identifiers occur.

    Args:
        request: Request to forget.
        words: Words of the text.
        text: Text that is searched for names.
        own_text: Text that is searched for identifiers, `text` if empty.
    """
    named = [_occurrence(term, words, text) for term in request.names]
    held = (any(holds_identifier(own_text or text, form) for form in term.forms) for term in request.identifiers)
    return named, all(held)


def _is_about(request: Request, unit: Unit) -> bool:
    """Tell whether the subject of a unit has all names of a request, and a word of it."""
    subject = words_of(unit.subject)
    named = all(any(same_name(term.word, word.text) for word in subject) for term in request.names)
    terms = [term for term in request.soft if term.weight == 1]
    return named and any(term.stems & stems(word.text) for term in terms for word in subject)


_THIRD: Final = frozenset(["he", "she", "it", "they", "his", "her", "their", "its", "this", "that"])


def _owner(subject: str) -> str:
    """Return whose a subject is where it says so: "her locker" after "Ann's badge" is Ann's."""
    return next((subject[: word.end] for word in words_of(subject) if word.owns), subject)


def _leans(unit: Unit) -> bool:
    first = unit.text.split()[:1]
    return bool(first) and folded(first[0].strip(",'\"")) in _THIRD


def _occurrence(term: Term, words: Sequence[Word], text: str) -> bool | None:
    """Tell whether words have a name by itself; False where only as a part of a longer one, None where not at all."""
    found: bool | None = None
    for at, word in enumerate(words):
        if not same_name(term.word, word.text):
            continue
        behind = words[at + 1] if at + 1 < len(words) else None
        before = words[at - 1] if at else None
        goes_on = behind is not None and not word.owns and text[word.end : behind.start] == " " and _extends(behind)
        led = (
            before is not None
            and not before.owns
            and before.is_capitalised
            and text[before.end : word.start] == " "
            and folded(before.text) not in LEADS | SMALL
            and not (at == 1 and is_known_verb(folded(before.text)))
        )
        found = bool(found) or not (goes_on or led)
    return found


def _extends(word: Word) -> bool:
    return (word.is_capitalised and folded(word.text) != "i") or word.text[0].isdigit()


def surname(name: str, one: Seen) -> str:
    """Return the word that makes a name in a unit longer, in lower case: "reuter" for "Tim"; empty where none does."""
    for word, behind in pairwise(one.words):
        if same_name(name, word.text) and not word.owns and behind.is_capitalised and behind.start == word.end + 1:
            return folded(behind.text)
    return ""


def _score(terms: Sequence[Term], words: Sequence[Word]) -> tuple[float, float]:
    """Return how much of some terms is among words, and which share of them that is."""
    every = [stems(word.text) for word in words]
    whole = sum(term.weight for term in terms)
    found = 0.0
    for term in terms:
        plain = folded(term.word)
        if any(term.stems & each for each, word in zip(every, words, strict=True) if "-" not in word.text):
            found += term.weight
        elif any(term.stems & each for each in every):
            whole_word = any(folded(word.text) == plain for word in words)
            found += term.weight if whole_word else _OF_A_COMPOUND * term.weight
        elif any(share_notion(term.stems, each) or belongs_to(folded(term.word), each) for each in every):
            found += _OF_A_NOTION * term.weight
    return found, found / whole if whole else 1.0


def names_somebody(one: Seen) -> bool:
    """Tell whether a unit gives a name."""
    return any(word.owns for word in one.words) or any(True for _ in capitalised(one.unit.text))


def moment_of(memory: Memory) -> datetime:
    """Return when a memory's words were said."""
    return memory.observed_at or memory.timestamp


_NOW: Final = re.compile(r"\b(?:now|currently|nowadays|today|at present)\b", re.IGNORECASE)


def is_in_time(request: Request, one: Seen) -> bool:
    """Tell whether a unit is of the time that a request names: by its own words, else by when it was said."""
    if not request.periods:
        return True
    told = moment_of(one.memory)
    said = named_periods(one.unit.text, told)
    if not said and not _NOW.search(one.unit.text):
        said = named_periods(one.memory.content, told)
    if said:
        return any(_meet(period, asked) for period in said for asked in request.periods)
    return any(_covers(asked, told) for asked in request.periods)


def _covers(period: Period, moment: datetime) -> bool:
    return (period.start is None or moment >= period.start) and (period.end is None or moment < period.end)


def _meet(one: Period, other: Period) -> bool:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    begin = max(one.start or first, other.start or first)
    return begin < min(one.end or last, other.end or last)


def capitalised(text: str) -> Iterable[Word]:
    """Yield the words of a text that may be names: capitals within a sentence, and possessives."""
    for word in words_of(text):
        before = text[: word.start].rstrip()
        begins = not before or before[-1] in ".!?:;\n*-"
        if word.is_capitalised and (not begins or word.owns):
            yield word
