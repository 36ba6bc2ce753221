"""Comparison of two descriptions: evidence for one entity, against it, and what it forbids."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.matching.attributes import weigh_attributes
from agent_memory.knowledge.entities.matching.evidence import NameEvidence
from agent_memory.knowledge.entities.matching.naming import alike, same_code, weigh_names
from agent_memory.knowledge.entities.matching.words import EDITION_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.knowledge.entities.matching.overlap import Weights
    from agent_memory.knowledge.entities.matching.profiles import Name, Profile

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
