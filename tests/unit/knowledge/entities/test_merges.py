"""Entities made one keep what is trusted more."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import ValidationError
from agent_memory.knowledge.entities.merges import merge
from agent_memory.models import Entity
from tests.rows import check_rows

if TYPE_CHECKING:
    from agent_memory.models.record import Trust

WHEN = datetime(2026, 3, 1, tzinfo=UTC)
RANK = {"low": 0, "medium": 1, "high": 2}
TRUSTS = st.sampled_from(["low", "medium", "high"])
NAMES = st.sampled_from(["Bob", "Bob Smith", "Robert", "bs"])
ATTRIBUTES = st.dictionaries(st.sampled_from(["role", "team", "city"]), st.sampled_from(["x", "y", "z"]), max_size=3)


def entity(number: int, name: str = "Bob Smith", trust: Trust = "medium", group: str = "", **attributes: str) -> Entity:
    return Entity(
        agent_id="bob", id=f"ent-{number:012x}", name=name, trust=trust, group=group, attributes=attributes,
        timestamp=WHEN, valid_from=WHEN.replace(day=1 + number),
    )  # fmt: skip


@st.composite
def entities(draw: st.DrawFn, count: int) -> list[Entity]:
    return [
        entity(number, draw(NAMES), draw(TRUSTS), **draw(ATTRIBUTES)).model_copy(
            update={"aliases": draw(st.lists(NAMES, max_size=3, unique=True))}
        )
        for number in range(count)
    ]


def test_the_existing_one_stays_and_the_new_one_adds() -> None:
    old, new = entity(0, role="developer", city="Bonn"), entity(1, "Robert Smith", role="lead", team="search")
    merged = merge(old, new)
    assert (merged.id, merged.name, merged.valid_from) == (old.id, old.name, old.valid_from)
    assert merged.attributes == {"role": "lead", "city": "Bonn", "team": "search"}
    assert merged.aliases == ["Robert Smith"]
    assert old.attributes == {"role": "developer", "city": "Bonn"}


def test_what_is_trusted_less_never_replaces_what_is_trusted_more() -> None:
    old = entity(0, trust="high", role="developer")
    merged = merge(old, entity(1, trust="low", role="owner", team="search"), entity(2, team="billing"))
    assert merged.attributes == {"role": "developer", "team": "billing"}


def test_merge_after_merge_knows_trust_of_values() -> None:
    first = merge(entity(0, trust="high", role="developer"), entity(1, trust="low", role="owner", team="search"))
    assert first.attributes == {"role": "developer", "team": "search"}
    assert merge(first, entity(2, team="billing")).attributes == {"role": "developer", "team": "billing"}
    second = merge(entity(0, trust="low", role="owner"), entity(1, trust="high", role="developer"))
    assert merge(second, entity(2, role="lead")).attributes == {"role": "developer"}


@given(entities(4))
def test_merges_in_steps_have_values_of_one_merge(found: list[Entity]) -> None:
    steps = merge(merge(merge(found[0], found[1]), found[2]), found[3])
    assert steps == merge(*found)


@given(entities(4))
def test_of_each_attribute_the_latest_of_the_highest_trust_holds(found: list[Entity]) -> None:
    merged = merge(*found)
    for key, value in merged.attributes.items():
        said = [(RANK[each.trust], at, each.attributes[key]) for at, each in enumerate(found) if key in each.attributes]
        assert value == max(said)[2]
    assert set(merged.attributes) == {key for each in found for key in each.attributes}


@given(entities(4))
def test_each_name_of_the_others_is_an_alias_once(found: list[Entity]) -> None:
    merged = merge(*found)
    names = {name for each in found for name in (each.name, *each.aliases)}
    assert {merged.name, *merged.aliases} == names
    assert len(merged.aliases) == len(set(merged.aliases))


def test_metadata_stays_and_the_result_can_be_stored() -> None:
    old = entity(0, role="developer").model_copy(update={"metadata": {"note": "x"}})
    merged = merge(old, entity(1, role="lead"))
    assert merged.metadata == {"note": "x"}
    assert merged == Entity.from_record("bob", merged.id, merged.to_record())


@check_rows("other", [entity(0), entity(1, group="acme:1")])
def test_one_record_and_records_of_two_groups_cannot_be_merged(other: Entity) -> None:
    with pytest.raises(ValidationError):
        merge(entity(0), other)
