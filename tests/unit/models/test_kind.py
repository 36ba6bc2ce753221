"""A kind of record as a value, and the head that all kinds share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

from agent_memory.models import MEMORY, Memory, Record
from agent_memory.models.record import IdOf
from agent_memory.store.record_redaction import text_fields
from tests.rows import check_rows

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def test_a_kinds_own_fields_stand_before_the_head_that_all_share() -> None:
    assert list(Memory.model_fields)[:7] == ["agent_id", "content", "category", "topic", "group", "project", "id"]
    assert set(Record.model_fields) < set(Memory.model_fields)
    memory = Memory(agent_id="bob", content="x", category="task", tags=["a"], timestamp=AT, pinned=True)
    assert list(memory.to_record()) == ["content", "category", "tags", "timestamp", "pinned"]


def test_what_may_hold_a_secret_is_read_from_the_model() -> None:
    assert {"content", "tags", "links", "metadata"} <= set(text_fields(MEMORY))
    assert not {"id", "supersedes", "agent_id", "timestamp"} & set(text_fields(MEMORY))


def test_what_is_indexed_of_a_record_is_its_text_its_facets_and_its_times() -> None:
    seen = datetime(2025, 5, 3, tzinfo=UTC)
    memory = Memory(agent_id="bob", content="x", category="task", tags=["a", "b"], timestamp=AT, observed_at=seen)
    document = MEMORY.document(memory)
    assert (document.id, document.text) == (memory.id, "x")
    assert document.facets == (("category", "task"), ("tag", "a"), ("tag", "b"))
    assert (document.timestamp, document.moment) == (AT, seen)
    assert MEMORY.document(memory.model_copy(update={"observed_at": None})).moment == AT


@check_rows(("speaker", "session"), [({}, ""), ({"speaker": "Kim"}, "monday")])
def test_passage_of_document_is_in_no_talk(speaker: dict[str, str], session: str) -> None:
    source = {"kind": "extraction", "detail": "passage"}
    item = Memory(agent_id="bob", content="x", source=source, metadata=speaker, created_by_session="monday")
    assert MEMORY.document(item).session == session


@check_rows("text", ["mem anything", "any per-0123456789ab", "memory", "per-0123456789ab\n"])
def test_an_id_of_several_prefixes_is_nothing_but_an_id(text: str) -> None:
    ids: TypeAdapter[Any] = TypeAdapter(Annotated[str, IdOf("mem|per")])
    assert ids.validate_python("per-0123456789ab") == "per-0123456789ab"
    with pytest.raises(ValidationError):
        ids.validate_python(text)
