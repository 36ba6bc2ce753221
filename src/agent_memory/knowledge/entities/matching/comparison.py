"""Comparison of two descriptions by evidence for and against one entity.

The weights are natural logarithms of odds, set by hand and rounded. On the training parts of the sets of
`benchmarks.deduplication` a quarter more or less of any weight of a name changes F1 of no set by more than .04, except
`_NOTHING_SHARED`, which moves all pairs and changes it by up to .08.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from agent_memory.knowledge.entities.matching.normal_forms import (
    EDITION_WORDS,
    NEGATIONS,
    compatible,
    initials,
    kinship,
    known_given_name,
    likeness,
    owns,
)
from agent_memory.knowledge.entities.matching.profiles import find_opposed, is_rich, overlap, people_in, variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent_memory.knowledge.entities.matching.normal_forms import Kinship
    from agent_memory.knowledge.entities.matching.profiles import (
        Name,
        Profile,
        ProfileValue,
        ValueKind,
        WordOverlap,
        WordWeights,
    )

Blocks: TypeAlias = Literal["", "unsure", "conflict", "all"]
"""What a piece of evidence forbids. `unsure`: a merge, because too little is known. `conflict`: a merge, also by way of
others, because it says that the two are different. `all`: that, and to suggest it."""
_NOTHING_SHARED, _COVERED, _SHARED = -6.1, 3.0, 5.5
_PER_WEIGHT, _MOST_WEIGHT = 0.06, 30.0
"""Evidence per weight of the shared words, and the weight from which it no longer grows."""
_EACH_ALONE: Final = -0.35
"""Evidence per weight of the most telling word that only one name has; the lesser of both names."""
_TOLD: Final = 0.5
"""Share of a word that the other description has in a long value instead of its name."""
_CODE, _RAREST_CODE = 0.55, 9.0
_SHORT_TELLING: Final = 5.0
_UNNAMED: Final = -1.5
_PHONE_DIGITS: Final = 7
_MOST_PEOPLE: Final = 30
_BY_ANY_NAME: Final[tuple[ValueKind, ...]] = ("phone", "email", "url")
_NOT_A_DIGIT: Final = re.compile(r"\D")
_SCHEME: Final = re.compile(r"^(?:https?://)?(?:www\.)?|(?<!/)/+$")
_NUMBER: Final = re.compile(r"\d+")
_SHORTEST_ACRONYM: Final = 2
_MOSTLY, _HALF, _PARTLY = 0.75, 0.5, 0.3
_PRICE_EQUAL, _PRICE_WITHIN, _PRICE_SLOPE, _PRICE_LEAST = 0.5, 0.1, -1.5, -2.5
_ANYTHING: Final = frozenset({"", "other", "concept"})
_MADE: Final = frozenset({"product", "package", "service", "organisation", "host"})
"""Kinds that often share a name, so that extraction confuses them: a product, its maker, its host."""
_AGAINST: Final = -1.0
_MOST_NAMES_COMPARED: Final = 4
_TOGETHER: Final = "the same name, once written together and once apart"
_SAME_NAME, _SURE, _ALONE, _PER_BEARER = 3.0, 5.5, 4.0, -3.0
"""A name that is written the same; what is as good as that; what tells who it is whatever the name; per logarithm of
how many known ones have the name."""


@dataclass(frozen=True, slots=True)
class NameEvidence:
    """One reason for or against, without any value.

    Attributes:
        says: Reason in words.
        weight: Natural logarithm of how many times likelier it makes one entity; below zero it speaks against.
        blocks: What it forbids, whatever else speaks for it.
        strong: True if it suffices together with a similar name.
    """

    says: str
    weight: float
    blocks: Blocks = ""
    strong: bool = False

    @property
    def contradicts(self) -> bool:
        """True if the two cannot be one entity by this alone."""
        return self.blocks in {"conflict", "all"}


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


def weigh_names(first: Name, second: Name, ours: Profile, theirs: Profile, weights: WordWeights) -> list[NameEvidence]:
    """Return the evidence of two names in different spelling."""
    return list(_of_people(first, second)) or [*_of_things(first, second, ours, theirs, weights)]


def _of_people(first: Name, second: Name) -> Iterator[NameEvidence]:
    kinds = {first.kind, second.kind}
    if first.mailbox or second.mailbox:
        if first.form == second.form:
            yield NameEvidence("the same e-mail address", 6.0)
        elif first.mailbox and second.mailbox:
            yield NameEvidence("another e-mail address", -6.0, "conflict")
        else:
            ownership = owns(first.mailbox, second.words) if first.mailbox else owns(second.mailbox, first.words)
            if ownership == "full":
                yield NameEvidence("an e-mail address that is made of the whole name", 5.5)
            elif ownership == "short":
                yield NameEvidence("an e-mail address that may be made of the name", 0.5, "unsure")
        return
    if kinds == {"person"}:
        yield _OF_PEOPLE[kinship(first.words, second.words)]
    elif kinds <= {"person", ""} and not first.marks & second.marks and _has_given_name(first, second):
        stand = kinship(first.words, second.words)
        if stand not in {"", "misspelt"}:
            yield _OF_PEOPLE[stand]


def _has_given_name(first: Name, second: Name) -> bool:
    """Return True if one of two names begins with a given name."""
    return any(name.words and known_given_name(name.words[0]) for name in (first, second))


def _of_things(
    first: Name, second: Name, ours: Profile, theirs: Profile, weights: WordWeights
) -> Iterator[NameEvidence]:
    common = overlap(first.words, second.words, weights)
    only_marks = _only_marks(first, second, common)
    if only_marks:
        yield NameEvidence(only_marks, -6.0, "all")
    elif _abbreviates(first.words, second.words) or _abbreviates(second.words, first.words):
        yield NameEvidence("the first letters of the other name", 0.7, "unsure")
        return
    _meet(common.ours_alone, theirs, common, weights, mirrored=False)
    _meet(common.theirs_alone, ours, common, weights, mirrored=True)
    weight = _NOTHING_SHARED + _COVERED * common.covered + _SHARED * common.shared
    weight += _PER_WEIGHT * min(_MOST_WEIGHT, common.ours_met, common.theirs_met)
    alone = [max(map(weights.of, words), default=0.0) for words in (common.ours_alone, common.theirs_alone)]
    weight += _EACH_ALONE * min(alone)
    if min(len(first.words), len(second.words)) == 1 and _names_more(first, second, common, weights):
        weight += _UNNAMED
    yield NameEvidence(f"{round(100 * common.shared)} % of the words are shared, by how much they tell", weight)
    yield from _codes(first, second, common, weights)
    yield from _numbers(first, second, common)


def _names_more(first: Name, second: Name, common: WordOverlap, weights: WordWeights) -> bool:
    """Return True if only one name has a rare word."""
    words = {*common.ours_alone, *common.theirs_alone} - first.marks - second.marks
    return any(weights.of(word) > _SHORT_TELLING for word in words)


def _only_marks(first: Name, second: Name, common: WordOverlap) -> str:
    """Describe a difference in numbers, letters, negations or opposites alone, else ""."""
    ours, theirs = common.ours_alone, common.theirs_alone
    if any(word in NEGATIONS for word in (*ours, *theirs)) and not (set(ours + theirs) - NEGATIONS):
        return "one name says what the other denies"
    if not ours or not theirs:
        return ""
    rest_ours, rest_theirs = set(ours) - find_opposed(ours, theirs), set(theirs) - find_opposed(theirs, ours)
    if rest_ours and rest_theirs and not (rest_ours <= first.marks and rest_theirs <= second.marks):
        return ""
    if bool(rest_ours) != bool(rest_theirs):
        return ""
    return "the names differ in a number or a single letter" if rest_ours else "the names differ in opposite words"


def _abbreviates(short: Sequence[str], long: Sequence[str]) -> bool:
    return len(short) == 1 and len(long) > 1 and len(short[0]) == len(long) > 1 and short[0] == initials(long)


def _meet(alone: list[str], profiled: Profile, common: WordOverlap, weights: WordWeights, *, mirrored: bool) -> None:
    """Count words of a name in values of the other description."""
    for word in list(alone):
        share = 1.0 if word in profiled.beside else _TOLD if word in profiled.told else 0.0
        if share == 1.0:
            alone.remove(word)
        if mirrored:
            common.theirs_met += share * weights.of(word)
        else:
            common.ours_met += share * weights.of(word)


def _codes(first: Name, second: Name, common: WordOverlap, weights: WordWeights) -> Iterator[NameEvidence]:
    ours, theirs = (codes.difference(*common.changed) for codes in (first.codes, second.codes))
    if first.codes & second.codes:
        yield from same_code(first, second, weights)
    elif first.joined == second.joined:
        return
    elif ours and theirs:
        if any(variant(our_code, its) for our_code in ours for its in theirs):
            yield NameEvidence("model numbers of which one goes on where the other ends", 2.0, "unsure")
        else:
            yield NameEvidence("another model or article number", -1.5, "conflict")
    elif ours or theirs:
        yield NameEvidence("a model or article number in one name only", -0.5, "unsure")


def same_code(first: Name, second: Name, weights: WordWeights) -> Iterator[NameEvidence]:
    """Yield evidence if both names have a model or article number."""
    shared = first.codes & second.codes
    if shared:
        rarest = min(_RAREST_CODE, max(map(weights.of, shared)))
        strong = any(map(is_rich, shared))
        yield NameEvidence("the same model or article number", _CODE * rarest, strong=strong)


def _numbers(first: Name, second: Name, common: WordOverlap) -> Iterator[NameEvidence]:
    ours, theirs = first.numbers - second.numbers, second.numbers - first.numbers
    if ours and theirs:
        yield NameEvidence("each name has a number that the other lacks", -2.0, "conflict")
    elif ours or theirs:
        yield NameEvidence("a number in one name only", 0.0, "unsure")
    elif first.numbers:
        yield NameEvidence("the same numbers", 0.3)
    if first.measures - second.measures and second.measures - first.measures:
        yield NameEvidence("another size or amount", -1.0, "conflict")
    if find_opposed(common.ours_alone, common.theirs_alone):
        yield NameEvidence("opposite words", -2.0, "conflict")
    if any(word in NEGATIONS for word in (*common.ours_alone, *common.theirs_alone)):
        yield NameEvidence("a negation in one name only", -1.0, "conflict")


def alike(first: Name, second: Name) -> float:
    """Return the similarity of two spellings, 0 to 1."""
    return likeness(first.form, second.form)


def weigh_attributes(ours: Profile, theirs: Profile, weights: WordWeights) -> Iterator[NameEvidence]:
    """Yield the evidence of attributes that both descriptions have."""
    strong_kinds = set()
    for key, value in ours.values.items():
        second_value = theirs.values.get(key)
        if second_value is not None and second_value.kind == value.kind:
            evidence = _BY_KIND[value.kind](key, value, second_value, weights)
            if evidence is not None:
                strong_kinds.add((value.kind, evidence.strong))
                yield evidence
    for kind in _BY_ANY_NAME:
        if (kind, True) not in strong_kinds:
            yield from _by_another_name(kind, ours, theirs, weights)


def _by_another_name(kind: ValueKind, ours: Profile, theirs: Profile, weights: WordWeights) -> Iterator[NameEvidence]:
    """Yield evidence of equal values under other names, as `phone` and `mobile`."""
    for first in ours.of_kind(kind):
        for second in theirs.of_kind(kind):
            evidence = _BY_KIND[kind](kind, first, second, weights)
            if evidence is not None and evidence.strong:
                yield evidence
                return


def _phone(key: str, first: ProfileValue, second: ProfileValue, _weights: WordWeights) -> NameEvidence | None:
    ours, theirs = (_NOT_A_DIGIT.sub("", value.text) for value in (first, second))
    if min(len(ours), len(theirs)) < _PHONE_DIGITS:
        return None
    if ours.endswith(theirs[1:]) or theirs.endswith(ours[1:]):
        return NameEvidence(f"the same {key}", 4.5, strong=True)
    return NameEvidence(f"another {key}", -2.0)


def _email(key: str, first: ProfileValue, second: ProfileValue, _weights: WordWeights) -> NameEvidence | None:
    """Weigh equal addresses; people have several, so others do not count."""
    return NameEvidence(f"the same {key}", 6.0, strong=True) if first.text == second.text else None


def _url(key: str, first: ProfileValue, second: ProfileValue, _weights: WordWeights) -> NameEvidence | None:
    return NameEvidence(f"the same {key}", 4.0, strong=True) if _bare(first) == _bare(second) else None


def _bare(value: ProfileValue) -> str:
    return _SCHEME.sub("", value.text)


def _year(key: str, first: ProfileValue, second: ProfileValue, _weights: WordWeights) -> NameEvidence | None:
    if first.number is None or second.number is None:
        return None
    if first.number == second.number:
        return NameEvidence(f"the same {key}", 0.5)
    return NameEvidence(f"another {key}", -8.0, "all")


def _price(key: str, first: ProfileValue, second: ProfileValue, _weights: WordWeights) -> NameEvidence | None:
    if not first.number or not second.number:
        return None
    apart = abs(math.log(first.number / second.number))
    weight = max(_PRICE_LEAST, _PRICE_EQUAL + _PRICE_SLOPE * max(0.0, apart - _PRICE_WITHIN))
    return NameEvidence(f"{'about the same' if weight > 0 else 'another'} {key}", weight)


def _id(key: str, first: ProfileValue, second: ProfileValue, _weights: WordWeights) -> NameEvidence:
    if first.words == second.words:
        return NameEvidence(f"the same {key}", 6.0, strong=True)
    return NameEvidence(f"another {key}", -6.0, "all")


def _people(key: str, first: ProfileValue, second: ProfileValue, _weights: WordWeights) -> NameEvidence | None:
    ours, theirs = sorted((people_in(value.text)[:_MOST_PEOPLE] for value in (first, second)), key=len)
    if not ours:
        return None
    met = sum(any(compatible(person, candidate) for candidate in theirs) for person in ours)
    if met >= _MOSTLY * len(ours) and met >= _HALF * len(theirs):
        return NameEvidence(f"the same {key}", 2.0, strong=True)
    if met >= _PARTLY * len(ours):
        return NameEvidence(f"some of the same {key}", 0.5, "unsure")
    return NameEvidence(f"other {key}", -4.0, "conflict")


def _address(key: str, first: ProfileValue, second: ProfileValue, weights: WordWeights) -> NameEvidence | None:
    ours, theirs = (set(_NUMBER.findall(value.text)) for value in (first, second))
    shared = overlap(first.words, second.words, weights)
    if ours & theirs and shared.covered >= _HALF:
        return NameEvidence(f"the same {key}", 3.5, strong=True)
    if ours and theirs and not ours & theirs:
        return NameEvidence(f"another {key}", -1.0)
    return None


def _text(key: str, first: ProfileValue, second: ProfileValue, weights: WordWeights) -> NameEvidence | None:
    ours, theirs = ({word: weights.of(word) for word in value.words} for value in (first, second))
    met = sum(weight for word, weight in ours.items() if word in theirs)
    shared = met / max(1.0, min(sum(ours.values()), sum(theirs.values())))
    return NameEvidence(f"a {key} of like words", 1.5 * shared) if shared >= _PARTLY else None


def _label(key: str, first: ProfileValue, second: ProfileValue, weights: WordWeights) -> NameEvidence | None:
    if not first.words or not second.words:
        return None
    if first.words == second.words or _acronym(first.words, second.words) or _acronym(second.words, first.words):
        return NameEvidence(f"the same {key}", 1.0)
    shared = overlap(first.words, second.words, weights).covered
    if shared >= _MOSTLY:
        return NameEvidence(f"nearly the same {key}", 0.7)
    return NameEvidence(f"another {key}", -0.5) if shared < _PARTLY else None


def _acronym(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    """Return True if a word is the acronym of the other text."""
    letters = initials(long)
    return len(long) > _SHORTEST_ACRONYM and any(len(word) > _SHORTEST_ACRONYM and word in letters for word in short)


_BY_KIND: Final[dict[ValueKind, Callable[[str, ProfileValue, ProfileValue, WordWeights], NameEvidence | None]]] = {
    "phone": _phone, "email": _email, "url": _url, "year": _year, "price": _price, "id": _id, "people": _people,
    "address": _address, "text": _text, "label": _label,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of the comparison of two descriptions.

    Attributes:
        weight: Natural logarithm of the odds that they are of one entity.
        evidence: What it is made of.
        same_name: True if they share the normal form of a name.
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
        return any(reason.blocks == "all" for reason in self.evidence)

    @property
    def may_merge(self) -> bool:
        """True if nothing forbids to merge them."""
        return not any(reason.blocks for reason in self.evidence)

    @property
    def conflicts(self) -> bool:
        """True if they contradict each other, so that no cluster has both."""
        return any(reason.contradicts for reason in self.evidence)

    @property
    def says(self) -> tuple[str, ...]:
        """Evidence in words, the strongest first."""
        return tuple(reason.says for reason in sorted(self.evidence, key=lambda reason: -abs(reason.weight)))


def compare(ours: Profile, theirs: Profile, weights: WordWeights) -> Comparison:
    """Weigh two descriptions against each other, in any order."""
    first, second, names = _best_names(ours, theirs, weights)
    same = _same(first, second)
    values = list(weigh_attributes(ours, theirs, weights))
    if any(reason.strong and reason.weight >= _ALONE for reason in values):
        names = [replace(reason, blocks="") if reason.blocks == "unsure" else reason for reason in names]
    evidence = [*names, *values]
    strong = any(reason.strong for reason in evidence)
    if same and not strong and not any(reason.weight <= _AGAINST for reason in evidence):
        evidence.append(NameEvidence("the same name", _SAME_NAME))
    evidence += [
        *_kinds(ours.kind, theirs.kind),
        *_legal(first, second),
        *_offers(ours, theirs, first, second, is_told=any(reason.strong for reason in values)),
    ]
    if not strong and not same and not any(reason.weight >= _SURE for reason in names):
        evidence.append(NameEvidence("nothing but names that are like each other", 0.0, "unsure"))
    if not any(reason.strong and reason.weight >= _ALONE for reason in evidence):
        evidence += _bearers(first, second, weights)
    return Comparison(
        sum(reason.weight for reason in evidence), tuple(evidence), same, 1.0 if same else alike(first, second)
    )


def _same(first: Name, second: Name) -> bool:
    return first.form == second.form or first.joined == second.joined or first.known == second.known


def _best_names(ours: Profile, theirs: Profile, weights: WordWeights) -> tuple[Name, Name, list[NameEvidence]]:
    """Return the two names of most evidence for one entity.

    What excludes any two of their names is kept, unless the other has one of the two, too: an alias that two things
    share does not make one of them, but who has two names that differ in a number is known by both.
    """
    weighed = []
    excluded: set[NameEvidence] = set()
    for first in _list_compared(ours, theirs):
        for second in _list_compared(theirs, ours):
            if first.form != second.form and _same(first, second):
                apart = first.joined != second.joined
                reasons = [NameEvidence("a name that is known to stand for the other" if apart else _TOGETHER, _SURE)]
                reasons += same_code(first, second, weights)
            else:
                reasons = weigh_names(first, second, ours, theirs, weights)
            weighed.append((sum(item.weight for item in reasons), first, second, reasons))
            if first.form not in theirs.forms and second.form not in ours.forms:
                excluded.update(item for item in reasons if item.blocks == "all")
    _, first, second, reasons = max(
        weighed, key=lambda item: (round(item[0], 9), *sorted((item[1].form, item[2].form)))
    )
    return first, second, [*reasons, *sorted(excluded.difference(reasons), key=lambda item: item.says)]


def _list_compared(ours: Profile, theirs: Profile) -> list[Name]:
    """Return the names to compare, shared ones first."""
    return sorted(ours.names, key=lambda name: name.form not in theirs.forms)[:_MOST_NAMES_COMPARED]


def _kinds(ours: str, theirs: str) -> Iterator[NameEvidence]:
    if ours == theirs or ours in _ANYTHING or theirs in _ANYTHING:
        return
    if {ours, theirs} <= _MADE:
        yield NameEvidence(f"one is a {ours}, the other a {theirs}", -0.5, "unsure")
    else:
        yield NameEvidence(f"one is a {ours}, the other a {theirs}", -6.0, "all")


def _legal(first: Name, second: Name) -> Iterator[NameEvidence]:
    if first.legal and second.legal and not first.legal & second.legal:
        yield NameEvidence("another legal form", -2.0, "conflict")


def _offers(ours: Profile, theirs: Profile, first: Name, second: Name, *, is_told: bool) -> Iterator[NameEvidence]:
    """Yield doubt for products: one title may have several editions.

    Only a maker's model number tells which thing of a title it is, or an attribute that does (`is_told`).
    """
    if ours.is_offer or theirs.is_offer:
        if not EDITION_WORDS.isdisjoint((*first.words, *second.words)):
            yield NameEvidence("software that is sold may come in editions of one title", 0.0, "unsure")
        elif not is_told and not first.models & second.models:
            yield NameEvidence("what is sold under one title need not be one thing", 0.0, "unsure")


def _bearers(first: Name, second: Name, weights: WordWeights) -> Iterator[NameEvidence]:
    """Yield doubt if several known entities have a name.

    Examples are `Alice` in two teams, and `Editorial` in each volume.
    """
    bearers = max(weights.bearers(first.form), weights.bearers(second.form))
    if bearers > 1:
        yield NameEvidence(f"{bearers} known ones have this name", _PER_BEARER * math.log(bearers), "unsure")
