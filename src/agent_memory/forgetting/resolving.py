"""Which memories, or which clauses of them, a request to forget means. Pure: a request and memories in, targets out.

What a request gives by name or by identifier must be there, whole; among what has all of these, the words decide, and
where they say nothing, how near the meaning is. Nothing is chosen because something had to be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.forgetting.known import as_known
from agent_memory.forgetting.lexicon import PAST, PRESENT, SMALL
from agent_memory.forgetting.matching import Parsed, Seen, is_in_time, moment_of, names_somebody, seen_in, surname
from agent_memory.forgetting.references import followed, through_another
from agent_memory.forgetting.words import folded, holds_identifier, same_name, stems, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agent_memory.forgetting.request import Request
    from agent_memory.models import Memory

    Near = Callable[[str, Sequence[str]], Sequence[float] | None]

_LEAST_SHARE: Final = 0.5
"""Of what the words of a request say, that a unit must have where it names nobody."""
_LEAST_NAMED: Final = 0.3
"""The same where it has all names and identifiers."""
_NEAR: Final = 0.30
"""Least cosine of a unit that is chosen for its meaning, names left out of both. Of phrases such as "commute" and what
they mean ("take the 7:15 train") .20 to .51 were seen, and .09 to .24 of what has nothing to do with them."""
_NEAR_ALONE: Final = 0.22
"""The same of the only unit there is."""
_NEAR_AS_WELL: Final = 0.40
"""Least cosine of a unit that is chosen beside others that have words of the request's notion."""
_BESIDE: Final = 0.02
"""How much less near than the nearest another may be that is meant as well."""
_BESIDE_TOPIC: Final = 0.1
"""The same where the request names a topic."""
_MOST_COMPARED: Final = 64
_LOOSE: Final = 0.5
"""What a name counts that no unit has beside an identifier of the request."""
_WHOLE: Final = 0.99


@dataclass(frozen=True)
class Target:
    """A memory that is meant.

    Attributes:
        memory: As it is.
        remains: Its text without the clauses that are meant; None where all of it is.
    """

    memory: Memory
    remains: str | None = None


def resolve(
    request: Request,
    memories: Iterable[Memory],
    near: Near = lambda _phrase, _texts: None,
) -> list[Target]:
    """Return what a request means, in the order of the memories.

    Args:
        request: Read.
        memories: All that it may mean; others do no harm.
        near: Tells how near in meaning texts are to a phrase; asked only where words do not decide.
    """
    if request.says_nothing:
        return []
    parsed = [Parsed(memory) for memory in memories]
    request = as_known(request, parsed)
    chosen = _chosen(request, parsed, near)
    if request.parts and not _has_whole(request, parsed):
        chosen = _joined([_chosen(as_known(part, parsed), parsed, near) for part in request.parts]) or chosen
    if request.follows:
        chosen = followed(chosen, parsed)
    if request.kept is not None and not request.kept.says_nothing:
        kept = as_known(_inheriting(request.kept, request), parsed)
        spared = _chosen(kept, [each for each in parsed if each.memory.id in chosen], near)
        chosen = {one: units - spared.get(one, set()) for one, units in chosen.items()}
    return [_target(each, chosen[each.memory.id]) for each in parsed if chosen.get(each.memory.id)]


def _has_whole(request: Request, parsed: list[Parsed]) -> bool:
    """Tell whether one unit has all that a request says: then it joins nothing ("the black and white cat")."""
    return any(one.share >= _WHOLE for one in _with_all(request, parsed))


def _joined(several: list[dict[str, set[int]]]) -> dict[str, set[int]]:
    """Return what several parts of a request mean together."""
    found: dict[str, set[int]] = {}
    for chosen in several:
        for one, units in chosen.items():
            found.setdefault(one, set()).update(units)
    return found


def _target(parsed: Parsed, units: set[int]) -> Target:
    if len(units) >= len(parsed.clauses.units):
        return Target(parsed.memory)
    remains = parsed.clauses.without(units)
    return Target(parsed.memory, remains or None)


def _inheriting(kept: Request, request: Request) -> Request:
    """Return what is to be kept, about whom the request is where it names nobody ("..., not her email")."""
    return kept if kept.names or kept.identifiers else replace(kept, terms=(*request.names, *kept.terms))


# -- choosing ---------------------------------------------------------------------------------------------------------


def _chosen(
    request: Request,
    parsed: list[Parsed],
    near: Near,
) -> dict[str, set[int]]:
    """Return the numbers of the units that are meant, by memory."""
    seen = _with_all(request, parsed)
    if not seen and request.identifiers and request.names:  # an identifier alone says which
        terms = tuple([replace(term, is_name=False, weight=_LOOSE) for term in request.terms])
        request = replace(request, terms=terms)
        seen = _with_all(request, parsed)
    if request.soft and not request.identifiers and not any(one.score for one in seen):  # "Name: Ann; phone: 555"
        loose = [one for one in _with_all(request, parsed, anywhere=True) if one.score and not names_somebody(one)]
        seen = loose or seen
    if request.names and any(one.is_bare for one in seen):
        seen = [one for one in seen if one.is_bare or one in _of_same_bearer(request, seen)]
    if request.is_own and not request.names:
        own = [one for one in seen if one.is_own]
        seen = own or [one for one in seen if not names_somebody(one)]
    meant = _meant(request, seen, near)
    if not request.wants_all or request.soft:
        through = through_another(request, parsed, meant)
        meant = through or meant
    if request.wants_past or request.wants_present:
        meant = _of_its_time(request, meant)
    found: dict[str, set[int]] = {}
    for one in meant:
        found.setdefault(one.memory.id, set()).add(one.unit.number)
    return found


def _of_same_bearer(request: Request, seen: list[Seen]) -> list[Seen]:
    """Return the units that have a longer form of the one name that is all a request gives, if its bearer is the same.

    "Tim" and "Tim Reuter" are one, unless there is a Tim Vogel, too, or both are told the same of: "Nova ships in
    June", "Nova Prime ships in July".
    """
    if len(request.terms) != 1 or request.identifiers:
        return []
    name = request.terms[0].word
    longer = [one for one in seen if not one.is_bare]
    surnames = {surname(name, one) for one in longer}
    if len(surnames) != 1 or not next(iter(surnames)).isalpha():
        return []
    told = [
        _told([one for one in seen if one.is_bare is is_bare], {folded(name), *surnames}) for is_bare in (True, False)
    ]
    return [] if told[0] & told[1] else longer


def _told(seen: list[Seen], names: set[str]) -> set[str]:
    """Return the stems of what units say besides names."""
    words = {folded(word.text) for one in seen for word in one.words} - SMALL - names
    return {stem for word in words for stem in stems(word)}


def _with_all(request: Request, parsed: list[Parsed], *, anywhere: bool = False) -> list[Seen]:
    """Return the units that have all names and identifiers of a request, and are of its time."""
    seen = (one for each in parsed for one in seen_in(request, each, anywhere=anywhere))
    return [one for one in seen if one.has_hard and is_in_time(request, one)]


def _meant(request: Request, seen: list[Seen], near: Near) -> list[Seen]:
    soft = request.soft
    best = max((one.score for one in seen), default=0.0)
    if not soft or (not best and all(term.weight < 1 for term in soft)):
        if not (request.names or request.identifiers or request.periods):
            return []
        return seen if request.wants_all else _of_subject(request, seen)
    named = bool(request.names or request.identifiers)
    least = _LEAST_NAMED if named else _LEAST_SHARE
    if request.wants_all:
        said = [one for one in seen if one.share >= max(least, _LEAST_SHARE) and one.score]
        if said or best:
            said = said or [one for one in seen if one.score == best and one.share >= least]
            return [*said, *_as_near(request, [one for one in seen if one not in said], near)]
    topic = _is_topic(request, seen)
    said = [one for one in seen if one.score and one.share >= least and (topic or one.score >= best - 1e-9)]
    if not said:
        return _of_subject(request, seen) if request.identifiers else _nearest(request, seen, near, topic=topic)
    said = _of_order(request, said if topic and not _states(request) else _of_polarity(request, said))
    if topic and said[0].share < _WHOLE:
        said = [*said, *_as_near(request, [one for one in seen if not one.score], near)]
    if len(said) > 1 and named:
        said = _of_subject(request, said)
    if len(said) > 1 and said[0].share < _WHOLE and not topic:  # part of what was said is in none of them
        return _nearest(request, said, near, least=-1.0) or said
    return said


def _is_topic(request: Request, seen: list[Seen]) -> bool:
    """Tell whether a request names a topic ("Ann's job", "Ann's travel plans"), and so all that is about it."""
    vague = [term for term in request.soft if term.weight < 1]
    has_vague = any(term.stems & stems(word.text) for term in vague for one in seen for word in one.words)
    return len(request.soft) - len(vague) == 1 and not has_vague


def _of_subject(request: Request, seen: list[Seen]) -> list[Seen]:
    """Return the units that are about what is named, where there are any: others only mention it."""
    about = [
        one
        for one in seen
        if any(same_name(term.word, word.text) for term in request.names for word in words_of(one.subject))
        or any(holds_identifier(one.subject, form) for each in request.identifiers for form in each.forms)
    ]
    return about or seen


def _of_order(request: Request, said: list[Seen]) -> list[Seen]:
    """Return those that have the request's names in its order, where there are any: "Ann trusts Bob"."""
    names = request.names
    if len(said) < 2 or len(names) < 2:  # noqa: PLR2004
        return said
    ordered = []
    for one in said:
        places = [next((at for at, w in enumerate(one.words) if same_name(t.word, w.text)), 0) for t in names]
        if places == sorted(places):
            ordered.append(one)
    return ordered or said


def _nearest(
    request: Request,
    seen: list[Seen],
    near: Near,
    least: float | None = None,
    *,
    topic: bool = False,
) -> list[Seen]:
    """Return the units nearest in meaning to a request, near enough; none where it is a name that nothing has."""
    if least is None and len(request.terms) == 1 and request.terms[0].word[:1].isupper():
        return []
    seen = seen[:_MOST_COMPARED]
    phrase = " ".join(term.word for term in request.soft)
    closeness = near(phrase, [_nameless(request, one) for one in seen]) if seen else None
    if closeness is None:
        return []
    best, *others = sorted(closeness, reverse=True)
    if least is None and best < (_NEAR if others else _NEAR_ALONE):
        return []
    if topic and best >= _NEAR:
        return [one for one, each in zip(seen, closeness, strict=True) if each >= max(_NEAR, best - _BESIDE_TOPIC)]
    beside = _NEAR if request.wants_past or request.wants_present else _BESIDE
    return [one for one, each in zip(seen, closeness, strict=True) if each >= best - beside]


def _as_near(request: Request, others: list[Seen], near: Near) -> list[Seen]:
    """Return what has no word of a request, and is as near to it as what it says in other words."""
    others = others[:_MOST_COMPARED]
    phrase = " ".join(term.word for term in request.soft)
    closeness = near(phrase, [_nameless(request, one) for one in others]) if others else None
    return [one for one, each in zip(others, closeness or (), strict=False) if each >= _NEAR_AS_WELL]


def _nameless(request: Request, one: Seen) -> str:
    """Return what a unit says without the names that the request gives."""
    text = one.unit.text
    for word in reversed(words_of(text)):
        if any(same_name(term.word, word.text) for term in request.names):
            text = text[: word.start] + text[word.end :]
    return text.strip() or one.unit.text


def _of_polarity(request: Request, said: list[Seen]) -> list[Seen]:
    """Leave out what denies it where something else states it, and the other way round."""
    if request.wants_all or len({one.is_denied for one in said}) == 1:
        return said
    return [one for one in said if one.is_denied == request.is_denied]


def _states(request: Request) -> bool:
    """Tell whether a request says what is so, rather than what it is about: "that Ann drives", not "Ann's car"."""
    return request.is_denied or _THAT.search(request.text) is not None


_THAT: Final = re.compile(r"\bthat\b", re.IGNORECASE)


def _of_its_time(request: Request, meant: list[Seen]) -> list[Seen]:
    """Return the old ones, or the new ones, of several."""
    if len(meant) < 2 or request.wants_past == request.wants_present:  # noqa: PLR2004
        return meant
    mark, other = (PAST, PRESENT) if request.wants_past else (PRESENT, PAST)
    marked = [one for one in meant if mark.search(one.unit.text) and not other.search(one.unit.text)]
    marked = marked or [one for one in meant if mark.search(one.unit.text)]
    if marked and len(marked) < len(meant):
        return marked
    ordered = sorted(meant, key=lambda one: moment_of(one.memory))
    return [ordered[0] if request.wants_past else ordered[-1]]
