"""Index terms of a document: its text, its facets and its day. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.index.day_terms import day_terms
from agent_memory.language.words import index_terms
from agent_memory.models import GROUP

if TYPE_CHECKING:
    from agent_memory.models import Document


def document_terms(document: Document) -> list[str]:
    """List the terms of a text, of its facets except the group, and of its day."""
    labels = " ".join([value for name, value in document.facets if name != GROUP])
    return [*index_terms(f"{document.text}\n{labels}"), *day_terms(document.moment.date())]
