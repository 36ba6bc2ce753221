"""`IndexedDocument`: a document and what the index has computed of it. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_memory.models import Document

UNREAD = -1


@dataclass(slots=True)
class IndexedDocument:
    """A document in an index.

    Attributes:
        document: What is indexed.
        arrival: Rises from one document to the next; a change does not change it.
        number: Stands for it in postings and facets; `UNREAD` until its words are read, before any search.
        moment: `document.moment` in seconds.
        length_share: How near its length is to that of a full turn, 0..1.
        tells_time: Whether it holds a word of time.
    """

    document: Document
    arrival: int
    number: int = UNREAD
    moment: float = 0.0
    length_share: float = 0.0
    tells_time: bool = False
