"""`Document`: what a search index has of one record, whatever its kind. Plain values, no behaviour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime


Facet = tuple[str, str]
"""A name and a value that filters ask for, such as ("tag", "db")."""

ITEM: Final[Facet] = ("item", "")
"""The facet of what was drawn from a document or a talk; an empty value adds no word to those it is found by."""

GROUP: Final = "group"
"""Name of the facet of what belongs to one group, `tenant:session`, of those that an agent serves."""
GROUPED: Final[Facet] = ("grouped", "")
"""The facet of what belongs to any group."""

LISTED_BY: Final = "topic"
"""Name of the facet by which records are looked up and not only told apart: a page is made of what has one."""


def group_facets(group: str) -> tuple[Facet, ...]:
    """Return the facets of what belongs to a group; none for an empty one."""
    return ((GROUP, group), GROUPED) if group else ()


class Document(NamedTuple):
    """What is indexed of one record; made in half the time of a frozen dataclass, for every record at each start.

    Attributes:
        id: The record's id.
        text: Indexed by word, and embedded.
        facets: Asked for by filters; their values are indexed by word, too, but for that of the group.
        timestamp: When the record was stored, aware.
        moment: When what it tells was so, aware; date ranges ask for it, and ages are counted from it.
        session: The session that made it; empty when unknown.
        access_count: How often it was used.
        trust: Whose words they are: `low` after untrusted input.
    """

    id: str
    text: str
    facets: tuple[Facet, ...]
    timestamp: datetime
    moment: datetime
    session: str = ""
    access_count: int = 0
    trust: str = "medium"
