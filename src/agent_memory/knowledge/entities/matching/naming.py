"""What two names say about whether they are of one entity.

The weights are natural logarithms of odds, set by hand and rounded. On the training parts of the sets of
`benchmarks.deduplication` a quarter more or less of any of them changes F1 of no set by more than .04, but for
`_NOTHING_SHARED`, which moves all pairs and changes it by up to .08.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.matching.evidence import NameEvidence
from agent_memory.knowledge.entities.matching.letters import initials, likeness
from agent_memory.knowledge.entities.matching.overlap import overlap
from agent_memory.knowledge.entities.matching.people import kinship, known_given_name, owns
from agent_memory.knowledge.entities.matching.telling import is_rich, opposed, variant
from agent_memory.knowledge.entities.matching.words import NEGATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_memory.knowledge.entities.matching.overlap import Overlap, Weights
    from agent_memory.knowledge.entities.matching.people import Kinship
    from agent_memory.knowledge.entities.matching.profiles import Name, Profile

_NOTHING_SHARED, _COVERED, _SHARED = -6.1, 3.0, 5.5
_PER_WEIGHT, _MOST_WEIGHT = 0.06, 30.0
"""The more that is shared tells, the more it speaks for."""
_EACH_ALONE: Final = -0.35
"""Per weight of the most telling word of one name that the other lacks; of both names the lesser."""
_TOLD: Final = 0.5
"""What a word counts that stands in a long value of the other one, instead of in its name."""
_CODE, _RAREST_CODE = 0.55, 9.0
_SHORT_TELLING: Final = 5.0
_UNNAMED: Final = -1.5

_OF_PEOPLE: Final[dict[Kinship, NameEvidence]] = {
    "same": NameEvidence("the same parts of a name", 5.5),
    "turned": NameEvidence("the same parts of a name in another order", 1.5, "unsure"),
    "nickname": NameEvidence("given names that are used for one another, and the same rest", 1.5, "unsure"),
    "initial": NameEvidence("an initial that stands for the given name, and the same rest", 1.0, "unsure"),
    "misspelt": NameEvidence("names that differ by a letter or two", 0.8, "unsure"),
    "generation": NameEvidence("the same name, of a generation that one of them does not say", 1.5, "unsure"),
    "given": NameEvidence("the given name alone", 0.3, "unsure"),
    "surname": NameEvidence("the surname alone", 0.2, "unsure"),
    "apart": NameEvidence("other given names beside the same surname", -6.0, "conflict"),
    "": NameEvidence("another name", -6.0, "conflict"),
}


def weigh_names(one: Name, other: Name, ours: Profile, theirs: Profile, weights: Weights) -> list[NameEvidence]:
    """Return the evidence of two names in different spelling."""
    return list(_of_people(one, other)) or [*_of_things(one, other, ours, theirs, weights)]


def _of_people(one: Name, other: Name) -> Iterator[NameEvidence]:
    kinds = {one.kind, other.kind}
    if one.mailbox or other.mailbox:
        if one.form == other.form:
            yield NameEvidence("the same e-mail address", 6.0)
        elif one.mailbox and other.mailbox:
            yield NameEvidence("another e-mail address", -6.0, "conflict")
        else:
            found = owns(one.mailbox, other.words) if one.mailbox else owns(other.mailbox, one.words)
            if found == "full":
                yield NameEvidence("an e-mail address that is made of the whole name", 5.5)
            elif found == "short":
                yield NameEvidence("an e-mail address that may be made of the name", 0.5, "unsure")
        return
    if kinds == {"person"}:
        yield _OF_PEOPLE[kinship(one.words, other.words)]
    elif kinds <= {"person", ""} and not one.marks & other.marks and _given(one, other):
        stand = kinship(one.words, other.words)
        if stand not in {"", "misspelt"}:
            yield _OF_PEOPLE[stand]


def _given(one: Name, other: Name) -> bool:
    """Return True if one of two names begins with a given name."""
    return any(name.words and known_given_name(name.words[0]) for name in (one, other))


def _of_things(one: Name, other: Name, ours: Profile, theirs: Profile, weights: Weights) -> Iterator[NameEvidence]:
    found = overlap(one.words, other.words, weights)
    only_marks = _only_marks(one, other, found)
    if only_marks:
        yield NameEvidence(only_marks, -6.0, "all")
    elif _abbreviates(one.words, other.words) or _abbreviates(other.words, one.words):
        yield NameEvidence("the first letters of the other name", 0.7, "unsure")
        return
    _meet(found.ours_alone, theirs, found, weights, mirrored=False)
    _meet(found.theirs_alone, ours, found, weights, mirrored=True)
    weight = _NOTHING_SHARED + _COVERED * found.covered + _SHARED * found.shared
    weight += _PER_WEIGHT * min(_MOST_WEIGHT, found.ours_met, found.theirs_met)
    alone = [max(map(weights.of, words), default=0.0) for words in (found.ours_alone, found.theirs_alone)]
    weight += _EACH_ALONE * min(alone)
    if min(len(one.words), len(other.words)) == 1 and _names_more(one, other, found, weights):
        weight += _UNNAMED
    yield NameEvidence(f"{round(100 * found.shared)} % of the words are shared, by how much they tell", weight)
    yield from _codes(one, other, found, weights)
    yield from _numbers(one, other, found)


def _names_more(one: Name, other: Name, found: Overlap, weights: Weights) -> bool:
    """Return True if one name alone has a rare word, not a number."""
    words = {*found.ours_alone, *found.theirs_alone} - one.marks - other.marks
    return any(weights.of(word) > _SHORT_TELLING for word in words)


def _only_marks(one: Name, other: Name, found: Overlap) -> str:
    """Describe a difference in numbers, letters, negations or opposites alone, else ""."""
    ours, theirs = found.ours_alone, found.theirs_alone
    if any(word in NEGATIONS for word in (*ours, *theirs)) and not (set(ours + theirs) - NEGATIONS):
        return "one name says what the other denies"
    if not ours or not theirs:
        return ""
    rest_ours, rest_theirs = set(ours) - opposed(ours, theirs), set(theirs) - opposed(theirs, ours)
    if rest_ours and rest_theirs and not (rest_ours <= one.marks and rest_theirs <= other.marks):
        return ""
    if bool(rest_ours) != bool(rest_theirs):
        return ""
    return "the names differ in a number or a single letter" if rest_ours else "the names differ in opposite words"


def _abbreviates(short: Sequence[str], long: Sequence[str]) -> bool:
    return len(short) == 1 and len(long) > 1 and len(short[0]) == len(long) > 1 and short[0] == initials(long)


def _meet(alone: list[str], other: Profile, found: Overlap, weights: Weights, *, mirrored: bool) -> None:
    """Count words of a name in values of the other description."""
    for word in list(alone):
        share = 1.0 if word in other.beside else _TOLD if word in other.told else 0.0
        if share == 1.0:
            alone.remove(word)
        if mirrored:
            found.theirs_met += share * weights.of(word)
        else:
            found.ours_met += share * weights.of(word)


def _codes(one: Name, other: Name, found: Overlap, weights: Weights) -> Iterator[NameEvidence]:
    ours, theirs = (codes.difference(*found.changed) for codes in (one.codes, other.codes))
    if one.codes & other.codes:
        yield from same_code(one, other, weights)
    elif one.joined == other.joined:
        return
    elif ours and theirs:
        if any(variant(each, its) for each in ours for its in theirs):
            yield NameEvidence("model numbers of which one goes on where the other ends", 2.0, "unsure")
        else:
            yield NameEvidence("another model or article number", -1.5, "conflict")
    elif ours or theirs:
        yield NameEvidence("a model or article number in one name only", -0.5, "unsure")


def same_code(one: Name, other: Name, weights: Weights) -> Iterator[NameEvidence]:
    """Yield evidence if both names have a model or article number."""
    shared = one.codes & other.codes
    if shared:
        rarest = min(_RAREST_CODE, max(map(weights.of, shared)))
        strong = any(map(is_rich, shared))
        yield NameEvidence("the same model or article number", _CODE * rarest, strong=strong)


def _numbers(one: Name, other: Name, found: Overlap) -> Iterator[NameEvidence]:
    ours, theirs = one.numbers - other.numbers, other.numbers - one.numbers
    if ours and theirs:
        yield NameEvidence("each name has a number that the other lacks", -2.0, "conflict")
    elif ours or theirs:
        yield NameEvidence("a number in one name only", 0.0, "unsure")
    elif one.numbers:
        yield NameEvidence("the same numbers", 0.3)
    if one.measures - other.measures and other.measures - one.measures:
        yield NameEvidence("another size or amount", -1.0, "conflict")
    if opposed(found.ours_alone, found.theirs_alone):
        yield NameEvidence("opposite words", -2.0, "conflict")
    if any(word in NEGATIONS for word in (*found.ours_alone, *found.theirs_alone)):
        yield NameEvidence("a negation in one name only", -1.0, "conflict")


def alike(one: Name, other: Name) -> float:
    """Return the similarity of two spellings, 0 to 1."""
    return likeness(one.form, other.form)
