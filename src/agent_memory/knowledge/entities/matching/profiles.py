"""Descriptions prepared for comparison: names, codes, numbers and values."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agent_memory.knowledge.entities.matching.normal_forms import (
    EMPTY_WORDS,
    GENERIC_WORDS,
    NEGATIONS,
    OPPOSED,
    SPELLINGS,
    WORDS,
    fold_name,
    has_digit,
    is_email,
    known_form,
    legal_forms,
    mailbox,
    name_words,
    nearness,
    normal_form,
    split_words,
)
from agent_memory.models.knowledge import UNTYPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.models import Entity

_CHUNK: Final = re.compile(r"[^\W_]+(?:[-/.][^\W_]+)*")
_SEPARATOR: Final = re.compile(r"[-/.]")
_MEASURE: Final = re.compile(rf"\d+(?:\.\d+)?(?:{'|'.join(WORDS['units'])})")
_DATE_OR_VERSION: Final = re.compile(
    r"v?\d+(?:\.\d+)+|(?:19|20)\d\d[-/]\d\d?(?:[-/]\d\d?)?|\d\d?[-/]\d\d?[-/](?:\d\d){1,2}"
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_WORD_AND_NUMBER: Final = re.compile(r"[^\W\d_]{5,}\d+")
_DIGITS: Final = re.compile(r"\d")
_LONGEST_LETTERS: Final = 4
"""Of a part of a code that is written with hyphens; what is longer is a word beside a number."""
_SHORTEST_CODE, _SHORTEST_NUMBER, _FEWEST_DIGITS = 4, 5, 2
ValueKind: TypeAlias = Literal["phone", "email", "url", "year", "price", "id", "people", "address", "text", "label"]
"""How values of an attribute are compared. `label` is any short value, `text` any long one."""
_KEYS: Final[dict[str, ValueKind]] = {
    key: kind for kind, keys in WORDS["attribute_kinds"].items() for key in keys.split()
}
_LONG: Final = 12
_MOST_NAMES: Final = 8
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_KEY_PART: Final = re.compile(r"[^a-z]+")
_BETWEEN_PEOPLE: Final = re.compile(r"[,;]|\band\b|&")
_EMPTY_WEIGHT: Final = 0.1
_UNSEEN, _GENERIC_SHARE = 1_000, 0.02
"""Words are weighed as if this many more names had been seen, in which every generic word stood in one of fifty."""
_MOST_COMPARED: Final = 20
"""Words of a name that are compared letter by letter; hardly a name has as many."""


def opposite(first: str, second: str) -> bool:
    """Return True if two words exclude each other, as left and right."""
    shared = OPPOSED.get(first, frozenset()) & OPPOSED.get(second, frozenset())
    return bool(shared) and SPELLINGS[first] != SPELLINGS[second]


def find_opposed(ours: Iterable[str], theirs: Iterable[str]) -> set[str]:
    """Return our words that have an opposite among theirs."""
    candidates = [word for word in theirs if word in OPPOSED]
    return {word for word in ours if word in OPPOSED and any(opposite(word, candidate) for candidate in candidates)}


def find_marks(words: Iterable[str]) -> frozenset[str]:
    """Return words with a digit, of one letter, and negations."""
    return frozenset(word for word in words if has_digit(word) or len(word) == 1 or word in NEGATIONS)


def is_measure(word: str) -> bool:
    """Return True for a number with its unit, as `16gb` or `1080p`."""
    return _MEASURE.fullmatch(word) is not None


def find_codes(text: str) -> frozenset[str]:
    """Return possible model numbers, article numbers and IDs, without hyphens.

    Examples are `th42px80u` and `260236`. Measures, versions, dates and years are none.
    """
    return frozenset(code for chunk in _CHUNK.findall(fold_name(text)) if has_digit(chunk) for code in _codes(chunk))


def find_models(text: str) -> frozenset[str]:
    """Return codes of mixed letters and digits, as `th42px80u`.

    None are digits alone, which shops number things by and exams (`70-292`), nor a word with a number grown on
    (`vault360`), nor letters that a hyphen parts from digits (`wd-1000-0900`), nor a version (`v6-cd`).
    """
    chunks = (chunk for chunk in _CHUNK.findall(fold_name(text)) if any(map(_is_mixed, _SEPARATOR.split(chunk))))
    return frozenset(code for chunk in chunks for code in _codes(chunk) if not code.isdigit())


def _is_mixed(part: str) -> bool:
    return _is_code(part) and not part.isdigit() and _WORD_AND_NUMBER.fullmatch(part) is None


def _codes(chunk: str) -> Iterable[str]:
    parts = _SEPARATOR.split(chunk)
    joined = "".join(parts)
    if len(parts) == 1:
        parts = []
    elif _DATE_OR_VERSION.fullmatch(chunk):
        return
    if _is_code(joined) and all(_may_be_of_a_code(part) for part in parts):
        yield joined
    yield from filter(_is_code, parts)


def _may_be_of_a_code(part: str) -> bool:
    return not is_measure(part) if has_digit(part) else len(part) <= _LONGEST_LETTERS


def _is_code(text: str) -> bool:
    if not has_digit(text) or is_measure(text) or _YEAR.fullmatch(text):
        return False
    return len(text) >= (_SHORTEST_NUMBER if text.isdigit() else _SHORTEST_CODE)


def is_rich(code: str) -> bool:
    """Return True if a code has two digits, unlike `log4j`."""
    return len(_DIGITS.findall(code)) >= _FEWEST_DIGITS


def variant(first: str, second: str) -> bool:
    """Return True if one code begins or ends with the other."""
    short, long = sorted((first, second), key=len)
    return len(short) >= _SHORTEST_CODE and short != long and (long.startswith(short) or long.endswith(short))


@dataclass(frozen=True, slots=True)
class ProfileValue:
    """A value of an attribute, with the kind of its comparison."""

    kind: ValueKind
    words: tuple[str, ...]
    text: str
    number: float | None = None


@dataclass(frozen=True)
class Name:
    """A name of an entity, with its words and forms."""

    text: str
    kind: str

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Of its normal form, with known short names for the long ones."""
        return tuple(self.known.split() if name_words(self.text, self.kind) else ())

    @cached_property
    def form(self) -> str:
        """Its normal form."""
        return normal_form(self.text, self.kind)

    @cached_property
    def joined(self) -> str:
        """Its normal form without spaces; numbers stay apart from each other."""
        return re.sub(r"(?<=\d) (?=\d)", "\0", self.form).replace(" ", "").replace("\0", " ")

    @cached_property
    def known(self) -> str:
        """Its normal form with known short names for the long ones."""
        return self.form if self.kind == "person" else known_form(self.form)

    @cached_property
    def mailbox(self) -> tuple[str, ...]:
        """The words of a person's name if it is an e-mail address."""
        return tuple(mailbox(self.text)) if is_email(self.text) else ()

    @cached_property
    def marks(self) -> frozenset[str]:
        """See `find_marks`."""
        return find_marks(self.words)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Numbers that may be a version, a size or a year."""
        return frozenset(word for word in self.words if len(word) < 5 and _NUMBER.fullmatch(word))  # noqa: PLR2004 - longer ones are codes

    @cached_property
    def measures(self) -> frozenset[str]:
        """Numbers with their units, joined if written apart."""
        pairs = zip(self.words, self.words[1:], strict=False)
        apart = {first + second for first, second in pairs if _NUMBER.fullmatch(first) and is_measure(first + second)}
        return frozenset({word for word in self.words if is_measure(word)} | apart)

    @cached_property
    def codes(self) -> frozenset[str]:
        """See `find_codes`."""
        return find_codes(self.text) if has_digit(self.text) else frozenset()

    @cached_property
    def models(self) -> frozenset[str]:
        """See `find_models`."""
        return find_models(self.text) if has_digit(self.text) else frozenset()

    @cached_property
    def legal(self) -> frozenset[str]:
        """See `legal_forms`."""
        return legal_forms(self.text, self.kind)


class Profile:
    """A description prepared for comparison; expensive parts are made at first use."""

    def __init__(self, described: Described) -> None:
        self.kind = described.kind
        texts = dict.fromkeys((described.name, *described.aliases))
        self.names = tuple(Name(text, described.kind) for text in texts)[:_MOST_NAMES]
        self.values: dict[str, ProfileValue] = {}
        for key, text in described.attributes.items():
            if text.strip():
                plain = _KEY_PART.sub("", key.casefold())
                self.values[plain] = _value(key, text)

    def of_kind(self, kind: ValueKind) -> list[ProfileValue]:
        """Return the values that are compared in one way."""
        return [value for value in self.values.values() if value.kind == kind]

    @cached_property
    def is_offer(self) -> bool:
        """True if it is for sale: it has a price."""
        return any(value.kind == "price" for value in self.values.values())

    @cached_property
    def forms(self) -> frozenset[str]:
        """The normal forms of all its names."""
        return frozenset(name.form for name in self.names)

    @cached_property
    def beside(self) -> frozenset[str]:
        """Words of short values, such as a maker or place."""
        return frozenset(word for value in self.values.values() if value.kind == "label" for word in value.words)

    @cached_property
    def told(self) -> frozenset[str]:
        """The words of its long values."""
        return frozenset(word for value in self.values.values() if value.kind == "text" for word in value.words)

    @cached_property
    def every_word(self) -> frozenset[str]:
        """The words and codes of all names and values."""
        words = {word for name in self.names for word in (*name.words, *name.codes)}
        return frozenset(words.union(*(value.words for value in self.values.values())))


def _value(key: str, text: str) -> ProfileValue:
    words = tuple(split_words(text))
    parts = _KEY_PART.split(key.casefold())
    kind = next((_KEYS[part] for part in (*parts, "".join(parts)) if part in _KEYS), None)
    if kind is None:
        kind = "email" if is_email(text) else "text" if len(words) > _LONG else "label"
    number = _NUMBER.search(text.replace(",", "")) if kind in {"price", "year"} else None
    return ProfileValue(kind, words, fold_name(text).strip(), float(number[0]) if number else None)


def people_in(text: str) -> list[list[str]]:
    """Return the words of each person's name in a list of people."""
    return [words for part in _BETWEEN_PEOPLE.split(text) if (words := split_words(part))]


@dataclass(frozen=True, slots=True)
class Described:
    """Description of an entity, to compare it with others.

    Attributes:
        name: Name as written.
        kind: Entity type; empty if unknown.
        attributes: Values by name of the attribute; an empty value is unknown.
        aliases: Other names of the entity.
    """

    name: str
    kind: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


def describe_entity(entity: Entity) -> Described:
    """Return the description of an entity."""
    kind = "" if entity.entity_type in UNTYPED else entity.entity_type
    return Described(entity.name, kind, entity.attributes, tuple(entity.aliases))


class WordWeights:
    """Weights of words by rarity among known names and values.

    Args:
        known: All known descriptions.
    """

    def __init__(self, known: Iterable[Profile] = ()) -> None:
        self._seen: Counter[str] = Counter()
        self._forms: Counter[str] = Counter()
        self._texts = 0
        for profile in known:
            self.add(profile)

    def add(self, profile: Profile) -> None:
        """Count the words and the names of one more description."""
        self._texts += 1
        self._seen.update(profile.every_word)
        self._forms.update(profile.forms)

    def remove(self, profile: Profile) -> None:
        """Count no more what was added."""
        self._texts -= 1
        self._seen.subtract(profile.every_word)
        self._forms.subtract(profile.forms)

    def bearers(self, form: str) -> int:
        """Return the number of descriptions with a normal form."""
        return self._forms[form]

    def of(self, word: str) -> float:
        """Return the weight of a word, about 0.1 to 10."""
        if word in EMPTY_WORDS:
            return _EMPTY_WEIGHT
        seen = self._seen.get(word, 0) + (_UNSEEN * _GENERIC_SHARE if word in GENERIC_WORDS else 0)
        return math.log(1 + (self._texts + _UNSEEN) / (seen + 0.5))


@dataclass(slots=True)
class WordOverlap:
    """Shared and unshared words of two lists.

    Attributes:
        ours: Weight of all words of the first.
        theirs: Weight of all words of the second.
        ours_met: How much of `ours` is in the second, too.
        theirs_met: How much of `theirs` is in the first, too.
        ours_alone: Words of the first that are not.
        theirs_alone: Words of the second that are not.
        changed: Pairs that were taken for one word though they are not equal.
    """

    ours: float = 0.0
    theirs: float = 0.0
    ours_met: float = 0.0
    theirs_met: float = 0.0
    ours_alone: list[str] = field(default_factory=list)
    theirs_alone: list[str] = field(default_factory=list)
    changed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def shared(self) -> float:
        """Share of the weight that both have, 0 to 1."""
        total = self.ours + self.theirs
        return (self.ours_met + self.theirs_met) / total if total else 0.0

    @property
    def covered(self) -> float:
        """Share of the better covered one in the other, 0 to 1."""
        return max(
            self.ours_met / self.ours if self.ours else 0.0, self.theirs_met / self.theirs if self.theirs else 0.0
        )


def overlap(ours: Sequence[str], theirs: Sequence[str], weights: WordWeights) -> WordOverlap:
    """Compare two lists of words: equal, written together, then near."""
    result = WordOverlap(sum(map(weights.of, ours)), sum(map(weights.of, theirs)))
    remaining = Counter(theirs)
    for word in ours:
        if remaining[word] > 0:
            remaining[word] -= 1
            result.ours_met += weights.of(word)
            result.theirs_met += weights.of(word)
        else:
            result.ours_alone.append(word)
    result.theirs_alone = list(remaining.elements())
    _match_joined(result, ours, weights, mirrored=False)
    _match_joined(result, theirs, weights, mirrored=True)
    _near(result, weights)
    return result


def _match_joined(common: WordOverlap, words: Sequence[str], weights: WordWeights, *, mirrored: bool) -> None:
    """Match two neighbours of one side with one word of the other."""
    parts, wholes = (common.theirs_alone, common.ours_alone) if mirrored else (common.ours_alone, common.theirs_alone)
    if not parts or not wholes:  # most pairs of names: nothing is joined
        return
    for first, second in pairwise(words):
        joined = first + second
        if joined in wholes and first in parts and second in parts:
            wholes.remove(joined)
            parts.remove(first)
            parts.remove(second)
            of_parts, of_whole = weights.of(first) + weights.of(second), weights.of(joined)
            common.ours_met += of_whole if mirrored else of_parts
            common.theirs_met += of_parts if mirrored else of_whole


def _near(common: WordOverlap, weights: WordWeights) -> None:
    """Match the remaining words of both sides, the nearest first."""
    pairs: list[tuple[float, str, str, str, str]] = [
        (-near, min(first, second), max(first, second), first, second)
        for first in set(common.ours_alone[:_MOST_COMPARED])
        for second in set(common.theirs_alone[:_MOST_COMPARED])
        if first[0] == second[0] and (near := nearness(first, second))
    ]
    for less, _, _, first, second in sorted(pairs):
        while first in common.ours_alone and second in common.theirs_alone:
            common.ours_alone.remove(first)
            common.theirs_alone.remove(second)
            common.changed.append((first, second))
            common.ours_met -= less * weights.of(first)
            common.theirs_met -= less * weights.of(second)
