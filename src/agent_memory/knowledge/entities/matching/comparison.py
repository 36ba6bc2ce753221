"""Comparison of two descriptions: evidence for one entity, against it, and what it forbids.

The weights are natural logarithms of odds, set by hand and rounded. On the training parts of the sets of
`benchmarks.deduplication` a quarter more or less of any weight of a name changes F1 of no set by more than .04, except
`_NOTHING_SHARED`, which moves all pairs and changes it by up to .08.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agent_memory.knowledge.entities.matching.normal_forms import EDITION_WORDS, NEGATIONS
from agent_memory.knowledge.entities.matching.profiles import is_rich, opposed, overlap, people_in, variant
from agent_memory.knowledge.entities.matching.word_similarity import (
    compatible,
    initials,
    kinship,
    known_given_name,
    likeness,
    owns,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_memory.knowledge.entities.matching.profiles import (
        Name,
        Overlap,
        Profile,
        ProfileValue,
        ValueKind,
        Weights,
    )
    from agent_memory.knowledge.entities.matching.word_similarity import Kinship


Blocks: TypeAlias = Literal["", "unsure", "conflict", "all"]
"""What a piece of evidence forbids. `unsure`: a merge, because too little is known. `conflict`: a merge, also by way of
others, because it says that the two are different. `all`: that, and to suggest it."""


@dataclass(frozen=True, slots=True)
class NameEvidence:
    """One reason for or against, without any value.

    Attributes:
        says: Reason in words.
        weight: Natural logarithm of how many times likelier it makes one entity; below zero it speaks against.
        blocks: What it forbids, whatever else speaks for it.
        strong: That it is enough, beside a like name, to be taken for one.
    """

    says: str
    weight: float
    blocks: Blocks = ""
    strong: bool = False

    @property
    def contradicts(self) -> bool:
        """True if the two cannot be one entity by this alone."""
        return self.blocks in {"conflict", "all"}


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


_PHONE_DIGITS: Final = 7
_MOST_PEOPLE: Final = 30
_BY_ANY_NAME: Final[tuple[ValueKind, ...]] = ("phone", "email", "url")
_NOT_A_DIGIT: Final = re.compile(r"\D")
_SCHEME: Final = re.compile(r"^(?:https?://)?(?:www\.)?|(?<!/)/+$")
_NUMBER: Final = re.compile(r"\d+")
_SHORTEST_ACRONYM: Final = 2
_MOSTLY, _HALF, _PARTLY = 0.75, 0.5, 0.3
_PRICE_EQUAL, _PRICE_WITHIN, _PRICE_SLOPE, _PRICE_LEAST = 0.5, 0.1, -1.5, -2.5


def weigh_attributes(ours: Profile, theirs: Profile, weights: Weights) -> Iterator[NameEvidence]:
    """Yield the evidence of attributes that both descriptions have."""
    found = set()
    for key, value in ours.values.items():
        other = theirs.values.get(key)
        if other is not None and other.kind == value.kind:
            evidence = _BY_KIND[value.kind](key, value, other, weights)
            if evidence is not None:
                found.add((value.kind, evidence.strong))
                yield evidence
    for kind in _BY_ANY_NAME:
        if (kind, True) not in found:
            yield from _by_another_name(kind, ours, theirs, weights)


def _by_another_name(kind: ValueKind, ours: Profile, theirs: Profile, weights: Weights) -> Iterator[NameEvidence]:
    """Yield evidence of equal values under other names, as `phone` and `mobile`."""
    for one in ours.of_kind(kind):
        for other in theirs.of_kind(kind):
            evidence = _BY_KIND[kind](kind, one, other, weights)
            if evidence is not None and evidence.strong:
                yield evidence
                return


def _phone(key: str, one: ProfileValue, other: ProfileValue, _weights: Weights) -> NameEvidence | None:
    ours, theirs = (_NOT_A_DIGIT.sub("", value.text) for value in (one, other))
    if min(len(ours), len(theirs)) < _PHONE_DIGITS:
        return None
    if ours.endswith(theirs[1:]) or theirs.endswith(ours[1:]):
        return NameEvidence(f"the same {key}", 4.5, strong=True)
    return NameEvidence(f"another {key}", -2.0)


def _email(key: str, one: ProfileValue, other: ProfileValue, _weights: Weights) -> NameEvidence | None:
    """Weigh equal addresses; another one is no evidence, since people have several."""
    return NameEvidence(f"the same {key}", 6.0, strong=True) if one.text == other.text else None


def _url(key: str, one: ProfileValue, other: ProfileValue, _weights: Weights) -> NameEvidence | None:
    return NameEvidence(f"the same {key}", 4.0, strong=True) if _bare(one) == _bare(other) else None


def _bare(value: ProfileValue) -> str:
    return _SCHEME.sub("", value.text)


def _year(key: str, one: ProfileValue, other: ProfileValue, _weights: Weights) -> NameEvidence | None:
    if one.number is None or other.number is None:
        return None
    if one.number == other.number:
        return NameEvidence(f"the same {key}", 0.5)
    return NameEvidence(f"another {key}", -8.0, "all")


def _price(key: str, one: ProfileValue, other: ProfileValue, _weights: Weights) -> NameEvidence | None:
    if not one.number or not other.number:
        return None
    apart = abs(math.log(one.number / other.number))
    weight = max(_PRICE_LEAST, _PRICE_EQUAL + _PRICE_SLOPE * max(0.0, apart - _PRICE_WITHIN))
    return NameEvidence(f"{'about the same' if weight > 0 else 'another'} {key}", weight)


def _id(key: str, one: ProfileValue, other: ProfileValue, _weights: Weights) -> NameEvidence:
    if one.words == other.words:
        return NameEvidence(f"the same {key}", 6.0, strong=True)
    return NameEvidence(f"another {key}", -6.0, "all")


def _people(key: str, one: ProfileValue, other: ProfileValue, _weights: Weights) -> NameEvidence | None:
    ours, theirs = sorted((people_in(value.text)[:_MOST_PEOPLE] for value in (one, other)), key=len)
    if not ours:
        return None
    met = sum(any(compatible(person, each) for each in theirs) for person in ours)
    if met >= _MOSTLY * len(ours) and met >= _HALF * len(theirs):
        return NameEvidence(f"the same {key}", 2.0, strong=True)
    if met >= _PARTLY * len(ours):
        return NameEvidence(f"some of the same {key}", 0.5, "unsure")
    return NameEvidence(f"other {key}", -4.0, "conflict")


def _address(key: str, one: ProfileValue, other: ProfileValue, weights: Weights) -> NameEvidence | None:
    ours, theirs = (set(_NUMBER.findall(value.text)) for value in (one, other))
    shared = overlap(one.words, other.words, weights)
    if ours & theirs and shared.covered >= _HALF:
        return NameEvidence(f"the same {key}", 3.5, strong=True)
    if ours and theirs and not ours & theirs:
        return NameEvidence(f"another {key}", -1.0)
    return None


def _text(key: str, one: ProfileValue, other: ProfileValue, weights: Weights) -> NameEvidence | None:
    ours, theirs = ({word: weights.of(word) for word in value.words} for value in (one, other))
    met = sum(weight for word, weight in ours.items() if word in theirs)
    shared = met / max(1.0, min(sum(ours.values()), sum(theirs.values())))
    return NameEvidence(f"a {key} of like words", 1.5 * shared) if shared >= _PARTLY else None


def _label(key: str, one: ProfileValue, other: ProfileValue, weights: Weights) -> NameEvidence | None:
    if not one.words or not other.words:
        return None
    if one.words == other.words or _acronym(one.words, other.words) or _acronym(other.words, one.words):
        return NameEvidence(f"the same {key}", 1.0)
    shared = overlap(one.words, other.words, weights).covered
    if shared >= _MOSTLY:
        return NameEvidence(f"nearly the same {key}", 0.7)
    return NameEvidence(f"another {key}", -0.5) if shared < _PARTLY else None


def _acronym(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    """Return True if a word is the acronym of the other text."""
    letters = initials(long)
    return len(long) > _SHORTEST_ACRONYM and any(len(word) > _SHORTEST_ACRONYM and word in letters for word in short)


_BY_KIND: Final[dict[ValueKind, Callable[[str, ProfileValue, ProfileValue, Weights], NameEvidence | None]]] = {
    "phone": _phone, "email": _email, "url": _url, "year": _year, "price": _price, "id": _id, "people": _people,
    "address": _address, "text": _text, "label": _label,
}  # fmt: skip


_ANYTHING: Final = frozenset({"", "other", "concept"})
_MADE: Final = frozenset({"product", "package", "service", "organisation", "host"})
"""What is made, who makes it and where it runs often have one name, and are mixed up when they are found in a text."""
_AGAINST: Final = -1.0
_MOST_NAMES_COMPARED: Final = 4
_TOGETHER: Final = "the same name, once written together and once apart"
_SAME_NAME, _SURE, _ALONE, _PER_BEARER = 3.0, 5.5, 4.0, -3.0
"""A name that is written the same; what is as good as that; what tells who it is whatever the name; per logarithm of
how many known ones have the name."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of the comparison of two descriptions.

    Attributes:
        weight: Natural logarithm of the odds that they are of one entity.
        evidence: What it is made of.
        same_name: That a name of one is written as a name of the other, but for what the normal form leaves out.
        likeness: How alike the names are written, 0 to 1.
    """

    weight: float
    evidence: tuple[NameEvidence, ...]
    same_name: bool
    likeness: float

    @property
    def score(self) -> float:
        """Probability of one entity, 0 to 1."""
        return 1 / (1 + math.exp(-self.weight))

    @property
    def excludes(self) -> bool:
        """True if they may not even be suggested as one."""
        return any(each.blocks == "all" for each in self.evidence)

    @property
    def may_merge(self) -> bool:
        """True if nothing forbids to merge them."""
        return not any(each.blocks for each in self.evidence)

    @property
    def conflicts(self) -> bool:
        """True if they contradict each other, so that no cluster has both."""
        return any(each.contradicts for each in self.evidence)

    @property
    def says(self) -> tuple[str, ...]:
        """Evidence in words, the strongest first."""
        return tuple(each.says for each in sorted(self.evidence, key=lambda each: -abs(each.weight)))


def compare(ours: Profile, theirs: Profile, weights: Weights) -> Comparison:
    """Weigh two descriptions against each other, in any order."""
    one, other, names = _best_names(ours, theirs, weights)
    same = _same(one, other)
    values = list(weigh_attributes(ours, theirs, weights))
    if any(each.strong and each.weight >= _ALONE for each in values):
        names = [replace(each, blocks="") if each.blocks == "unsure" else each for each in names]
    evidence = [*names, *values]
    strong = any(each.strong for each in evidence)
    if same and not strong and not any(each.weight <= _AGAINST for each in evidence):
        evidence.append(NameEvidence("the same name", _SAME_NAME))
    evidence += [
        *_kinds(ours.kind, theirs.kind),
        *_legal(one, other),
        *_offers(ours, theirs, one, other, told=any(each.strong for each in values)),
    ]
    if not strong and not same and not any(each.weight >= _SURE for each in names):
        evidence.append(NameEvidence("nothing but names that are like each other", 0.0, "unsure"))
    if not any(each.strong and each.weight >= _ALONE for each in evidence):
        evidence += _bearers(one, other, weights)
    return Comparison(sum(each.weight for each in evidence), tuple(evidence), same, 1.0 if same else alike(one, other))


def _same(one: Name, other: Name) -> bool:
    return one.form == other.form or one.joined == other.joined or one.known == other.known


def _best_names(ours: Profile, theirs: Profile, weights: Weights) -> tuple[Name, Name, list[NameEvidence]]:
    """Return the two names of most evidence for one entity.

    What excludes any two of their names is kept, unless the other has one of the two, too: an alias that two things
    share does not make one of them, but who has two names that differ in a number is known by both.
    """
    found = []
    excluded: set[NameEvidence] = set()
    for one in _compared(ours, theirs):
        for other in _compared(theirs, ours):
            if one.form != other.form and _same(one, other):
                apart = one.joined != other.joined
                said = [NameEvidence("a name that is known to stand for the other" if apart else _TOGETHER, _SURE)]
                said += same_code(one, other, weights)
            else:
                said = weigh_names(one, other, ours, theirs, weights)
            found.append((sum(each.weight for each in said), one, other, said))
            if one.form not in theirs.forms and other.form not in ours.forms:
                excluded.update(each for each in said if each.blocks == "all")
    _, one, other, said = max(found, key=lambda each: (round(each[0], 9), *sorted((each[1].form, each[2].form))))
    return one, other, [*said, *sorted(excluded.difference(said), key=lambda each: each.says)]


def _compared(ours: Profile, theirs: Profile) -> list[Name]:
    """Return the names to compare, shared ones first."""
    return sorted(ours.names, key=lambda name: name.form not in theirs.forms)[:_MOST_NAMES_COMPARED]


def _kinds(ours: str, theirs: str) -> Iterator[NameEvidence]:
    if ours == theirs or ours in _ANYTHING or theirs in _ANYTHING:
        return
    if {ours, theirs} <= _MADE:
        yield NameEvidence(f"one is a {ours}, the other a {theirs}", -0.5, "unsure")
    else:
        yield NameEvidence(f"one is a {ours}, the other a {theirs}", -6.0, "all")


def _legal(one: Name, other: Name) -> Iterator[NameEvidence]:
    if one.legal and other.legal and not one.legal & other.legal:
        yield NameEvidence("another legal form", -2.0, "conflict")


def _offers(ours: Profile, theirs: Profile, one: Name, other: Name, *, told: bool) -> Iterator[NameEvidence]:
    """Yield doubt for products: one title may have several editions.

    Only a maker's model number tells which thing of a title it is, or an attribute that does (`told`).
    """
    if ours.is_offer or theirs.is_offer:
        if not EDITION_WORDS.isdisjoint((*one.words, *other.words)):
            yield NameEvidence("software that is sold may come in editions of one title", 0.0, "unsure")
        elif not told and not one.models & other.models:
            yield NameEvidence("what is sold under one title need not be one thing", 0.0, "unsure")


def _bearers(one: Name, other: Name, weights: Weights) -> Iterator[NameEvidence]:
    """Yield doubt if several known entities have a name.

    Examples are `Alice` in two teams, and `Editorial` in each volume.
    """
    bearers = max(weights.bearers(one.form), weights.bearers(other.form))
    if bearers > 1:
        yield NameEvidence(f"{bearers} known ones have this name", _PER_BEARER * math.log(bearers), "unsure")
