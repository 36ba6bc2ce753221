"""The record that a store keeps after a write is the record that any later reader of the line gets."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from hypothesis import given, note
from hypothesis import strategies as st

from agent_memory.errors import ValidationError
from agent_memory.journal import Entry, JournalUpdate
from agent_memory.journal.format import FORMAT, decode_entry, encode_entry
from agent_memory.memory.kinds import KINDS
from agent_memory.store.changes import to_store, to_update
from agent_memory.store.record_redaction import validate_record
from agent_memory.store.state import State
from tests.support import NOON, memory_of
from tests.unit.models.test_memory import json_values, moments, texts

if TYPE_CHECKING:
    from agent_memory.journal import Change
    from agent_memory.models import Kind

AT = "2026-03-01T12:00:00Z"
OWN: dict[str, dict[str, Any]] = {
    "topic": {"name": "harbour", "description": "what is known of it", "body": "Ships come at dawn."},
    "stage_mark": {"stage": "summaries", "source_kind": "episode"},
    "entity": {"name": "Ada"},
    "relation": {"relation_type": "reports_to", "content": "Ada reports to Bob"},
    "tidy_run": {"said": "Moved two notes."},
}
utc_moments = moments.map(lambda moment: moment.replace(fold=0))  # of which UTC has no second
shared_fields = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(texts, max_size=4),
        "timestamp": utc_moments,
        "observed_at": st.none() | utc_moments,
        "expires_at": st.none() | utc_moments,
        "access_count": st.integers(0, 10**6),
        "trust": st.sampled_from(["high", "medium", "low"]),
        "confidence": st.none() | st.floats(0, 1),
        "pinned": st.booleans(),
        "links": st.lists(st.builds(lambda rel: {"rel": rel, "id": "mem-00000000000a"}, st.sampled_from("ab"))),
        "metadata": st.dictionaries(texts, json_values, max_size=3),
    },
)


def absorb_both(written: State[Any], read: State[Any], seq: int, changes: list[Change]) -> None:
    """Give one state the changes as they were decided, the other one as they are read from their line."""
    if changes:
        line = encode_entry(seq, AT, tuple(changes), FORMAT)
        written.absorb(JournalUpdate([Entry(seq, AT, tuple(changes), line)]))
        read.absorb(JournalUpdate([decode_entry(line, FORMAT)]))


def check_kind(kind: Kind[Any], fields: dict[str, Any], changes: dict[str, Any]) -> None:
    """Store and update a record of a kind; compare the record that is kept with the one that is read."""
    try:
        record = validate_record(
            kind.model, {"content": "Ada moved.", **fields, "agent_id": "bob", **OWN.get(kind.name, {})}
        )
    except ValidationError:  # a kind has rules of its own
        return
    written, read = State(kind, "bob"), State(kind, "bob")
    absorb_both(written, read, 1, to_store(written, record, NOON, unique=False)[0])
    assert written.get(record.id) == read.get(record.id) == record
    try:
        decided, _ = to_update(written, record.id, changes)
    except ValidationError:
        return
    absorb_both(written, read, 2, decided)
    assert written.get(record.id) == read.get(record.id)
    assert str(written.get(record.id)) == str(read.get(record.id))


@given(fields=shared_fields, changes=shared_fields)
def test_record_after_write_equals_record_of_its_line(fields: dict[str, Any], changes: dict[str, Any]) -> None:
    changes.pop("timestamp", None)
    for kind in KINDS:
        note(kind.name)
        check_kind(kind, copy.deepcopy(fields), copy.deepcopy(changes))


def test_state_after_write_shares_no_container_with_caller() -> None:
    memory = memory_of("tea", tags=["hot"], metadata={"shop": {"name": "corner"}})
    state = State(KINDS[0], "bob")
    changes, _ = to_store(state, memory, NOON, unique=False)
    state.absorb(JournalUpdate([Entry(1, AT, tuple(changes), b"")]))
    memory.tags.append("cold")
    memory.metadata["shop"]["name"] = "harbour"  # type: ignore[call-overload, index]
    stored = state.get(memory.id)
    assert stored is not None
    assert (stored.tags, stored.metadata) == (["hot"], {"shop": {"name": "corner"}})
