"""Tests of the kinds of what is known from talk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.models import (
    COVERS,
    ENTITY,
    ENTITY_KINDS,
    MENTIONS,
    MERGED_INTO,
    NAMES,
    OBJECT,
    RELATION,
    SUBJECT,
    SUMMARY,
    Entity,
    EntityMentions,
    Kind,
    Link,
    Record,
    Relation,
    Summary,
)
from agent_memory.store.record_redaction import redact_record, text_fields
from tests.rows import check_rows

ADA, BOB, EPISODE_ID = "ent-0123456789ab", "ent-ba9876543210", "epi-0123456789ab"
NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
SECRET = "Mango" + "#fest77"
GROUP = "acme:8c1f0b1e-27c5-4f0e-9d1e-2f3b6a7c8d9e"
OWN: dict[str, Record] = {
    "entity": Entity(agent_id="bob", name="Ada Lovelace", entity_type="person", aliases=["Ada"], group=GROUP),
    "mentions": EntityMentions(
        agent_id="bob",
        content="Ada\nTurin",
        at=[0, 12],
        links=[Link(rel=NAMES, id=ADA), Link(rel=NAMES, id=BOB)],
        group=GROUP,
    ),
    "relation": Relation(
        agent_id="bob",
        relation_type="reports_to",
        content="Ada reports to Bob",
        group=GROUP,
        links=[Link(rel=SUBJECT, id=ADA), Link(rel=OBJECT, id=BOB)],
    ),
    "summary": Summary(agent_id="bob", content="Ada moved.", links=[Link(rel=COVERS, id=EPISODE_ID)], group=GROUP),
}


@check_rows("kind", ENTITY_KINDS, ids=lambda kind: kind.name)
def test_each_kind_is_found_by_another_process_survives_its_journal_and_tells_its_group(kind: Kind[Any]) -> None:
    record = OWN[kind.name]
    assert Kind.at(kind.place) is kind
    assert {each.name for each in kind.in_journal} == {each.name for each in ENTITY_KINDS}
    assert kind.load("bob", record.id, record.to_record()) == record
    assert (record.belongs_to, ("group", GROUP) in record.facets) == (GROUP, True)
    assert redact_record(kind, record).value == record


@check_rows(
    ("kind", "record"),
    [
        (ENTITY, Entity(agent_id="bob", name="Wifi", attributes={"note": f"the password is {SECRET}"})),
        (ENTITY, Entity(agent_id="bob", name="Wifi", aliases=[f"password {SECRET}"])),
        (RELATION, OWN["relation"].model_copy(update={"content": f"Ada uses the password {SECRET}"})),
        (SUMMARY, Summary(agent_id="bob", content=f"The password is {SECRET} now.")),
        (MENTIONS, EntityMentions(agent_id="bob", content=f"the password {SECRET}\nTurin")),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_no_secret_stays_in_any_field(kind: Kind[Any], record: Record) -> None:
    assert SECRET not in redact_record(kind, record).value.model_dump_json()
    assert "entity_type" not in text_fields(kind)


def test_something_holds_from_its_beginning_until_its_end_without_that() -> None:
    known = Entity(agent_id="bob", name="Ada", valid_from=NOON, valid_to=NOON + timedelta(days=1))
    assert [known.holds_at(NOON + timedelta(hours=hours)) for hours in (-1, 0, 23, 24)] == [False, True, True, False]
    assert Entity(agent_id="bob", name="Ada").holds_at(NOON)
    with pytest.raises(ValidationError, match="valid_to is before valid_from"):
        Entity(agent_id="bob", name="Ada", valid_from=NOON, valid_to=NOON - timedelta(days=1))


def test_what_is_merged_names_what_it_is_the_same_as() -> None:
    merged = Entity(agent_id="bob", name="A. Lovelace", links=[Link(rel=MERGED_INTO, id=ADA)])
    assert (merged.merged_into, Entity(agent_id="bob", name="Ada").merged_into) == (ADA, None)
    assert [*ENTITY.references(merged)] == [ADA]


def test_what_is_linked_is_known_by_its_part() -> None:
    mentions, relation, summary = OWN["mentions"], OWN["relation"], OWN["summary"]
    assert isinstance(mentions, EntityMentions)
    assert isinstance(relation, Relation)
    assert isinstance(summary, Summary)
    assert (mentions.entities, relation.from_id, relation.to_id, summary.covers) == ([ADA, BOB], ADA, BOB, [EPISODE_ID])
    with pytest.raises(ValidationError, match="subject"):
        Relation(agent_id="bob", relation_type="owns", content="Ada owns it", links=[Link(rel=SUBJECT, id=ADA)])


@check_rows("fields", [{"name": " "}, {"name": "x" * 201}, {"entity_type": "planet"}, {"id": "mem-1"}])
def test_what_no_entity_can_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Entity(**{"agent_id": "bob", "name": "Ada", **fields})
