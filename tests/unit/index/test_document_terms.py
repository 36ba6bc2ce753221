"""Index terms of a document."""

from datetime import UTC, datetime

from agent_memory.index.terms import document_terms
from agent_memory.models import MEMORY, Document, Memory

DAY = datetime(2026, 1, 28, tzinfo=UTC)


def _document(content: str, **fields: object) -> Document:
    memory = {"agent_id": "bob", "content": content, "timestamp": DAY, **fields}
    return MEMORY.document(Memory.model_validate(memory))


def test_document_with_facets_has_their_terms_and_its_day() -> None:
    terms = document_terms(_document("Use PostgreSQL", category="decision", tags=["ledger"]))
    assert {"postgresql", "decis", "ledger", "@2026-01", "@01-28"} <= set(terms)


def test_document_with_observation_has_that_day() -> None:
    terms = document_terms(_document("x", observed_at=datetime(2025, 5, 3, tzinfo=UTC)))
    assert "@05-03" in terms
    assert "@01-28" not in terms
