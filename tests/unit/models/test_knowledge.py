"""Tests of the kinds of what comes in from outside."""

from __future__ import annotations

import hashlib

import pytest

from agent_memory.errors import ValidationError
from agent_memory.models import (
    EPISODE,
    MARK,
    PART_OF,
    RESOURCE,
    TOPIC,
    Episode,
    Kind,
    Link,
    Resource,
    StageCheckpoint,
    StageFailure,
    Topic,
    derived_id,
)
from agent_memory.store.record_redaction import make_record, redact_record
from tests.rows import check_rows

DIGEST = hashlib.sha256(b"a long text").hexdigest()
GROUP = "acme:8c1f0b1e-27c5-4f0e-9d1e-2f3b6a7c8d9e"


@check_rows("kind", [RESOURCE, EPISODE, TOPIC, MARK], ids=lambda kind: kind.name)
def test_another_process_finds_each_kind(kind: Kind[Resource]) -> None:
    assert Kind.at(kind.place) is kind
    assert kind.new_id().startswith(kind.prefix)


def test_the_redactor_leaves_the_name_of_a_blob_and_a_group_alone() -> None:
    said = redact_record(RESOURCE, Resource(agent_id="bob", content="a long", blob=DIGEST, chars=11, group=GROUP))
    assert (said.value.blob, said.value.group, said.kinds) == (DIGEST, GROUP, ())
    with pytest.raises(ValidationError, match="blob"):
        Resource(agent_id="bob", content="a", blob="../../memories.yaml")


def test_a_turn_knows_its_conversation_and_survives_the_journal() -> None:
    link = Link(rel=PART_OF, id="res-0123456789ab")
    turn = Episode(agent_id="bob", content="Tea, please", speaker="Ada", order=3, links=[link], group=GROUP)
    assert turn.conversation == "res-0123456789ab"
    assert Episode(agent_id="bob", content="Tea").conversation is None
    assert Episode.from_record("bob", turn.id, turn.to_record()) == turn
    assert ("group", GROUP) in turn.facets


@check_rows("name", ["Home", "home network", "_home", "home_", "1home", "", "a" * 65, "../x"])
def test_a_topics_name_is_words_in_lower_case(name: str) -> None:
    with pytest.raises(ValidationError):
        Topic(agent_id="bob", name=name, description="What is known of it")


@check_rows("name", ["home", "home_network", "q3_2026", "a" * 64, "customer_onboarding_in_the_second_quarter"])
def test_a_topics_name_passes_the_redactor(name: str) -> None:
    made = make_record(TOPIC, {"name": name, "description": "What is known of the network"}, "bob")
    assert (made.value.name, made.kinds) == (name, ())


def test_a_mark_survives_the_journal_with_its_failures() -> None:
    failures = [StageFailure(id="epi-0123456789ab", attempts=2, code="storage", at=1_770_000_000)]
    mark = StageCheckpoint(
        agent_id="bob", stage="items", version=2, source_kind="episode", through=41, failures=failures
    )
    assert redact_record(MARK, mark).value == mark
    assert StageCheckpoint.from_record("bob", mark.id, mark.to_record()) == mark


def test_the_same_parts_make_the_same_id() -> None:
    assert derived_id("mem-", "items", "epi-1", 0) == derived_id("mem-", "items", "epi-1", 0)
    assert derived_id("mem-", "items", "epi-1", 0) != derived_id("mem-", "items", "epi-10", "")
    assert Resource(agent_id="bob", id=derived_id("res-", "x"), content="a").id.startswith("res-")
