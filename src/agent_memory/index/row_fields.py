"""Fields of a segment's row that searches read: computed once, when a document is sealed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from agent_memory.embeddings import text_hash
from agent_memory.index.document_terms import document_terms
from agent_memory.index.row import ASKS, TELLS_TIME
from agent_memory.index.turns import said_by
from agent_memory.language.text_forms import embedded_texts, tells_time

if TYPE_CHECKING:
    from agent_memory.models import Document


def searched_fields(document: Document) -> dict[str, Any]:
    """Return the fields of a `Row` that searches read."""
    terms = document_terms(document)
    said = said_by(document)
    return {
        "timestamp": document.timestamp.timestamp(),
        "moment": document.moment.timestamp(),
        "terms": Counter(terms),
        "length": len(terms),
        "facets": document.facets,
        "access_count": document.access_count,
        "trust": document.trust,
        "flags": TELLS_TIME * tells_time(terms) | ASKS * said.asks,
        "session": said.session,
        "speaker": said.speaker,
        "speakers": sorted(said.speakers),
        "called": sorted(said.called),
        "pieces": list(dict.fromkeys(text_hash(text) for text in embedded_texts(document.text))),
    }
