"""What two statements both speak of: a run of words, or a name, that stands whole in both."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.suspects.wording import LIGHT_TERMS, NUMBERED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.suspects.statements import Statement

    Modifiers = Mapping[str, tuple[str, ...]]

_CODE: Final = re.compile(r"\d")
_OWNING: Final = frozenset({"of", "for"})
_TELLING_APART: Final = _OWNING | {"in", "at", "on"}
_HALF: Final = 0.5
_LONG: Final = 2
_CERTAIN: Final = 3


def subject_of(new: Statement, old: Statement, leads: tuple[tuple[str, ...], ...]) -> frozenset[str] | None:
    """Return the terms of the subject that both statements name, or None.

    It is at least half of what one of them begins with. A run that follows differing words is another thing of the same
    kind: "north gate sensor" beside "south gate sensor".

    Args:
        new: The one.
        old: The other.
        leads: What they begin with, as far as it counts.
    """
    shared = new.terms & old.terms
    if _are_numbered(new, old):
        return None
    best = 0
    found: tuple[str, ...] = ()
    for run in new.runs:
        if len(shared.intersection(run)) <= best:
            continue
        others = old.runs if _is_one_of(run, leads) else [lead for lead in leads if _is_one_of(lead, old.runs)]
        for other in others:
            block = _common(run, other, new.modifiers, old.modifiers)
            weight = _telling(block)
            if weight > best and (_begins(weight, run, leads) or _begins(weight, other, leads)):
                best, found = weight, block
    return frozenset(found) - LIGHT_TERMS if found else None


def are_numbered_apart(new: Statement, old: Statement) -> bool:
    """Whether both begin with things of one kind that have other numbers: "room 3 holds" beside "room 4 holds"."""
    one, other = NUMBERED.match(new.text), NUMBERED.match(old.text)
    if one is None or other is None:
        return False
    return one["what"].casefold() == other["what"].casefold() and int(one["number"]) != int(other["number"])


def are_told_apart(new: Statement, old: Statement) -> bool:
    """Whether both begin with the same of two things: "the backup of the orders" beside "that of the invoices"."""
    joint = new.links[0] if len(new.links) == 1 else ""
    if joint not in _TELLING_APART or (new.lead, new.links) != (old.lead, old.links):
        return False
    one, other = (_behind_lead(each) for each in (new, old))
    if min(len(one), len(other)) < (1 if joint in _OWNING else _LONG):
        return False  # "meeting in Berlin": where, not which
    return one[0] not in old.words and other[0] not in new.words


def _behind_lead(statement: Statement) -> tuple[str, ...]:
    at = next((at for at, run in enumerate(statement.runs) if run is statement.lead), len(statement.runs))
    return statement.runs[at + 1] if at + 1 < len(statement.runs) else ()


def _are_numbered(new: Statement, old: Statement) -> bool:
    """Whether both begin with codes and not with the same: `error E4017` beside `error E5102`."""
    codes, others = ({term for term in lead if _CODE.search(term)} for lead in (new.lead, old.lead))
    return bool(codes and others and codes.isdisjoint(others))


def long_subject(first: tuple[Statement, ...], second: tuple[Statement, ...]) -> frozenset[str] | None:
    """Return the terms of the first long run of one text that is anywhere in the other: long names are rarely chance.

    Empty when both texts begin with a long run and neither is in the other: they are about different things.
    """
    mains = (_main_run(first), _main_run(second))
    blocks = [
        _longest(main, other) if main is not None else () for main, other in ((mains[0], second), (mains[1], first))
    ]
    found = max(blocks, key=_telling)
    if found and (_telling(found) > _CERTAIN or None in mains or all(blocks)):
        return frozenset(found) - LIGHT_TERMS
    return None if None in mains else frozenset()


def _longest(main: tuple[Statement, tuple[str, ...]], others: tuple[Statement, ...]) -> tuple[str, ...]:
    """Return the first part of a run that is long enough and stands in another text."""
    statement, run = main
    words = set(run)
    for each in others:
        for beside in each.runs:
            if len(words.intersection(beside)) <= _LONG:
                continue
            block = _common(run, beside, statement.modifiers, each.modifiers)
            if _telling(block) > _LONG:
                return block
    return ()


def _main_run(statements: tuple[Statement, ...]) -> tuple[Statement, tuple[str, ...]] | None:
    return next(((one, run) for one in statements for run in one.runs if _telling(run) > _LONG), None)


def are_siblings(new: Statement, old: Statement) -> bool:
    """Whether two statements begin with things of one kind that differ in what stands before it."""
    return bool(
        not new.terms.isdisjoint(old.lead)
        and not _common(new.lead, old.lead, new.modifiers, old.modifiers)
        and _telling(tuple(set(new.lead) & set(old.lead)))
    )


def _begins(weight: int, run: tuple[str, ...], leads: tuple[tuple[str, ...], ...]) -> bool:
    return _is_one_of(run, leads) and weight >= _HALF * _telling(run)


def _is_one_of(run: tuple[str, ...], runs: Iterable[tuple[str, ...]]) -> bool:
    """Whether it is that very run, not one of the same words."""
    return any(run is each for each in runs)


def _telling(run: tuple[str, ...]) -> int:
    return sum(term not in LIGHT_TERMS for term in run)


def _common(run: tuple[str, ...], other: tuple[str, ...], before: Modifiers, others: Modifiers) -> tuple[str, ...]:
    """Return the longest run that both hold; nothing if other words stand before it in each."""
    best, start, place = 0, 0, 0
    for at in range(len(run)):
        for to in range(len(other)):
            size = 0
            while at + size < len(run) and to + size < len(other) and run[at + size] == other[to + size]:
                size += 1
            if size > best:
                best, start, place = size, at, to
    block = run[start : start + best]
    if not block:
        return block
    one = run[:start] or before.get(block[0], ())
    two = other[:place] or others.get(block[0], ())
    return () if _differ(one, two) else block


def _differ(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether what stands before a run is told apart by a word, read backwards."""
    for word, beside in zip(reversed(one), reversed(two), strict=False):
        if word != beside:
            return not {word, beside} & LIGHT_TERMS
    return False
