"""What is told of a record besides itself: what it is linked with, and why it may no longer hold. Plain values."""

from __future__ import annotations

from typing import Final, NamedTuple

DERIVED_FROM: Final = "derived_from"
"""The relation of a record to one that it rests on: when that changes, this one is in doubt."""

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
    """

    links: tuple[Linked, ...] = ()
    doubt: str | None = None


def is_told(rel: str) -> bool:
    """Tell whether a link of this relation is shown; those whose names begin with `_` are notes of ours."""
    return not rel.startswith(_OURS)


def rests_on(rel: str) -> bool:
    """Tell whether a record rests on what it is linked to by this relation, however that is spelled."""
    return rel.casefold().replace("-", "_").replace(" ", "_") == DERIVED_FROM
