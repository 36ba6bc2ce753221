"""Two sentences laid beside each other, word by word: where they part, and whether only one place of them differs.

"Tests run with unittest" and "Tests run with pytest" differ in one place that the same words lead to, so they give one
matter two values; "Tests run in random order" goes on with another preposition, so it speaks of another matter.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

from agent_memory.retrieval.tokens import index_terms
from agent_memory.suspects.wording import FUNCTION_WORDS, LIGHT_TERMS, MANY_VALUED, NEGATIONS

Fit = Literal["value", "others", "apart", "open"]
"""One place differs, they name different things, they go on to another matter, or the words do not tell."""

_WORD: Final = re.compile(r"\d+:\d+|[\w./#@+-]+|[:=]")
_TRAILING: Final = ".-/"
_FILLING: Final = "a an the now currently presently again also always actually usually already please just still"
_LEFT_OUT: Final = frozenset(_FILLING.split())
_PLACES: Final = "in on at to beside under near inside outside behind within into"
_TIMES: Final = "at on every each before after from until once"
_WAYS: Final = "with by via through as over"
_ROLES: Final = tuple(frozenset(words.split()) for words in (_PLACES, _TIMES, _WAYS))
"""Words that lead to a place, to a time, or to the way of doing it."""
_COPULAS: Final = frozenset({"is", "are", "was", "were"})
_HAVING: Final = _COPULAS | {"has", "have", "had"}
_MARKS: Final = frozenset({":", "="})
_OWNERS: Final = frozenset({"my", "our", "your", "his", "her", "their"})
_HOME: Final = re.compile(
    r"(?:(?:now|today),? )?(?:i|we)(?: now| currently)? live (?:now )?in (?!(?:an?|the|my|our)\b)", re.IGNORECASE
)
"""Of where somebody lives there is one at a time, though no word of it says what is spoken of."""
_LONGEST: Final = 4
_TOLD: Final = 2


@lru_cache(maxsize=4096)
def fit(new: str, old: str) -> Fit:
    """Return how two sentences lie beside each other."""
    first, second = words_of(new), words_of(old)
    before = _common(first, second)
    after = _common(first[before:][::-1], second[before:][::-1])
    one, two = first[before : len(first) - after], second[before : len(second) - after]
    if not before or not one or not two:
        return "open"
    if _name_others(one, two) or _are_siblings(first, before, one, two):
        return "others"
    if one[0] in FUNCTION_WORDS or two[0] in FUNCTION_WORDS:
        is_whole = after == 0 and sum(bool(telling_terms((word,))) for word in first[:before]) == 1
        return "apart" if is_whole and _go_on_otherwise(one, two) else "open"
    is_short = max(len(one), len(two)) <= _LONGEST and FUNCTION_WORDS.isdisjoint((*one, *two))
    is_home = all(_HOME.match(text) for text in (new, old))
    return "value" if is_short and (is_home or _leads_to_value(first[:before], one, two)) else "open"


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """Return the words in lower case, without such as only fill."""
    found = (word.rstrip(_TRAILING) for word in _WORD.findall(text.casefold()))
    return tuple(word for word in found if word and word not in _LEFT_OUT)


def label_of(text: str) -> str:
    """Return what stands before the mark of a line such as "Owner: Ivo", in lower case, or an empty text."""
    words = words_of(text)
    return next((" ".join(words[:at]) for at, word in enumerate(words[: _LONGEST + 1]) if word in _MARKS), "")


def _common(one: tuple[str, ...], two: tuple[str, ...]) -> int:
    """Return how many words both begin with."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((at for at, (word, beside) in pairs if word != beside), min(len(one), len(two)))


def telling_terms(words: tuple[str, ...]) -> list[str]:
    """Return the stems that say what is spoken of."""
    return [
        term for word in words if word not in FUNCTION_WORDS for term in index_terms(word) if term not in LIGHT_TERMS
    ]


def _name_others(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether what differs names two things before it says what they are or have: "for tools is", "for trips is"."""
    names = [words[:at] for words in (one, two) if (at := _predicate(words)) > 0]
    telling = [set(telling_terms(name)) for name in names]
    return len(names) == _TOLD and all(telling) and telling[0].isdisjoint(telling[1])


def _are_siblings(words: tuple[str, ...], before: int, one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether two things of a kind are told apart by what stands last in their names: "room b is" and "room d is".

    Not where that is a number: of "Python 3.11 is" and "Python 3.12 is" the second may have taken the first's place.
    """
    frame, following = words[:before], words[before + len(one) :]
    is_name = FUNCTION_WORDS.isdisjoint((*frame, *one, *two)) and _MARKS.isdisjoint((*frame, *one, *two))
    is_numbered = any(word[0].isdigit() for word in (*one, *two))
    return bool(following) and following[0] in _HAVING and is_name and not is_numbered and len(following) > 1


def _predicate(words: tuple[str, ...]) -> int:
    return next((at for at, word in enumerate(words) if word in _HAVING or word in _MARKS), 0)


def _go_on_otherwise(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether words of different roles follow, and nothing else is shared: "with pytest" and "in random order"."""
    if one[0] in NEGATIONS or two[0] in NEGATIONS or not set(telling_terms(one)).isdisjoint(telling_terms(two)):
        return False
    first, second = _first_word(one), _first_word(two)
    return first != second and not any(first in role and second in role for role in _ROLES)


def _first_word(words: tuple[str, ...]) -> str:
    """Return the first word, without verbs that say little: "in" of "kept in the cellar"."""
    light = (word for word in words if word in FUNCTION_WORDS or not LIGHT_TERMS.issuperset(index_terms(word)))
    return next(light, "")


def _leads_to_value(frame: tuple[str, ...], one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether the words that both begin with name a thing and one matter of it, of which there is one at a time."""
    told = telling_terms(frame)
    last = frame[-1]
    if not told and not _OWNERS.intersection(frame):
        return False
    if MANY_VALUED.intersection(index_terms(last)):
        return False
    if last in _MARKS or last in FUNCTION_WORDS - _COPULAS:
        return True
    if last in _COPULAS:
        return bool(_OWNERS.intersection(frame)) or len(told) >= _TOLD or _are_of_one_shape(one, two)
    return bool(_OWNERS.intersection(frame)) or len(told) > _TOLD


def _are_of_one_shape(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether both are words of several parts that share one, such as `write-through` and `write-back`."""
    parts = [set(re.split(r"[-_./]", " ".join(words))) for words in (one, two)]
    return min(map(len, parts)) > 1 and bool(parts[0] & parts[1])
