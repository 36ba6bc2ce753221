"""Clusters of what was found to be one: no chain of merges brings two together that contradict each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ids that were found to be one, and how sure that is."""

    one: str
    other: str
    score: float


@dataclass(frozen=True, slots=True)
class Clusters:
    """What belongs together.

    Attributes:
        members: The ids of each cluster in their order, the clusters in the order of their first ids.
            Each id is in one.
        refused: Pairs that were not put together, because members of their clusters contradict each other.
    """

    members: tuple[tuple[str, ...], ...]
    refused: tuple[Pair, ...]


def clusters(ids: Iterable[str], pairs: Iterable[Pair], conflict: Callable[[str, str], bool]) -> Clusters:
    """Put together what was found to be one, the surest pair first.

    Two clusters become one only if no member of the one contradicts a member of the other: of `15 = db` and `db = 16`
    the surer holds, and the other is refused. The result does not depend on the order in which pairs come.

    Args:
        ids: All of them; those that are in no pair are clusters of their own.
        pairs: What was found. Ids that are not among `ids` are taken in.
        conflict: Tells whether two ids contradict each other; the same for both orders.
    """
    ordered = sorted(pairs, key=lambda pair: (-pair.score, *sorted((pair.one, pair.other))))
    of: dict[str, list[str]] = {each: [each] for each in ids}
    refused = []
    for pair in ordered:
        ours, theirs = (of.setdefault(each, [each]) for each in (pair.one, pair.other))
        if ours is theirs:
            continue
        if any(conflict(one, other) for one in ours for other in theirs):
            refused.append(pair)
            continue
        ours.extend(theirs)
        for each in theirs:
            of[each] = ours
    distinct = {id(members): tuple(sorted(members)) for members in of.values()}
    return Clusters(tuple(sorted(distinct.values())), tuple(refused))
