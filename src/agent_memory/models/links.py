"""What is told of a record besides itself: what it is linked with, and why it may no longer hold. Plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models.record import Link

DERIVED_FROM: Final = "derived_from"
"""The relation of a record to one that it rests on: when that changes, this one is in doubt."""

SUSPECT: Final = "_suspect"
"""The relation of a memory to an older one with which it is suspected not to be right: nobody has decided yet."""
BESIDE: Final = "_beside"
"""Somebody has decided that a memory and this older one both hold."""
DISTINCT: Final = "_distinct"
"""Somebody has decided that a memory and this older one do not speak of the same matter."""
REPLACES: Final = "_replaces"
"""A memory has replaced this older one at once, because its words said so; nobody is asked about the two again."""

_OURS: Final = "_"


class Linked(NamedTuple):
    """One end of a link, as the record at its other end is shown.

    Attributes:
        rel: What the link says.
        id: The record there.
        text: Its words.
        is_incoming: Whether that record is the one that has the link.
    """

    rel: str
    id: str
    text: str
    is_incoming: bool = False


class Surroundings(NamedTuple):
    """What is told of a record besides itself.

    Attributes:
        links: Its own links first, then those that lead to it.
        doubt: Why it may no longer hold; None for no reason.
        disputed: Id of a newer record with which it is suspected not to be right; None for none.
    """

    links: tuple[Linked, ...] = ()
    doubt: str | None = None
    disputed: str | None = None


def is_told(rel: str) -> bool:
    """Tell whether a link of this relation is shown; those whose names begin with `_` are notes of ours."""
    return not rel.startswith(_OURS)


def listed_as(links: Iterable[Link]) -> set[str]:
    """Return by what a record is found among those with links: ids at their ends, and that something is undecided."""
    every = list(links)
    return {link.id for link in every} | {link.rel for link in every if link.rel == SUSPECT}


def rests_on(rel: str) -> bool:
    """Tell whether a record rests on what it is linked to by this relation, however that is spelled."""
    return rel.casefold().replace("-", "_").replace(" ", "_") == DERIVED_FROM
