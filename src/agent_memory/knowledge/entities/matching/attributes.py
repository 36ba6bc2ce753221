"""Evidence of two values of one attribute; missing values are no evidence."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.matching.evidence import NameEvidence
from agent_memory.knowledge.entities.matching.letters import initials
from agent_memory.knowledge.entities.matching.overlap import overlap
from agent_memory.knowledge.entities.matching.people import compatible
from agent_memory.knowledge.entities.matching.profiles import people_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_memory.knowledge.entities.matching.overlap import Weights
    from agent_memory.knowledge.entities.matching.profiles import Profile, ProfileValue, ValueKind

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
