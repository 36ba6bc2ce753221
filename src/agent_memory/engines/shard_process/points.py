"""What lies in the engine: a point for each piece of a record, and conditions on its payload. No text, ever.

Deleted text would stay readable in the engine's log and pages; ids, facets and numbers tell nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from agent_memory.models import Document, Facet


def label_of(facet: Facet) -> str:
    """Return a facet as one word of a payload."""
    return "=".join(facet)


def payload_of(document: Document) -> dict[str, Any]:
    """Return what the engine keeps of a record with each of its vectors."""
    return {
        "id": document.id,
        "facets": [label_of(facet) for facet in document.facets],
        "timestamp": document.moment.timestamp(),
    }


class Conditions(TypedDict, total=False):
    """Conditions on payloads, all of which must hold; what is left out asks nothing.

    Attributes:
        facets: Labels of the facets it has, every one.
        any_facets: Labels of which it has at least one, unless there are none here.
        no_facets: Labels of which it has none.
        group: Labels of a group, and of any: it has the first or lacks the second.
        since: Said then or later, seconds since 1970.
        until: Said then or earlier.
    """

    facets: list[str]
    any_facets: list[str]
    no_facets: list[str]
    group: tuple[str, str]
    since: float
    until: float
