"""Two entities made one keep what is trusted more, and can be parted again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import ValidationError
from agent_memory.knowledge.entities.merges import MERGED, get_merges, merge, split
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
    merged = merge(merge(old, entity(1, trust="low", role="owner", team="search")), entity(2, team="billing"))
    assert merged.attributes == {"role": "developer", "team": "billing"}


@given(entities(4))
def test_of_each_attribute_the_latest_of_the_highest_trust_holds(found: list[Entity]) -> None:
    merged = found[0]
    for each in found[1:]:
        merged = merge(merged, each)
    for key, value in merged.attributes.items():
        said = [(RANK[each.trust], at, each.attributes[key]) for at, each in enumerate(found) if key in each.attributes]
        assert value == max(said)[2]
    assert set(merged.attributes) == {key for each in found for key in each.attributes}


@given(entities(2))
def test_a_merge_that_is_taken_back_leaves_nothing_behind(found: list[Entity]) -> None:
    old, new = found
    assert split(merge(old, new), new.id) == old


@given(entities(4), st.integers(1, 3))
def test_any_of_several_merges_can_be_taken_back_alone(found: list[Entity], at: int) -> None:
    merged = without = found[0]
    for each in found[1:]:
        merged = merge(merged, each)
        without = without if each is found[at] else merge(without, each)
    assert split(merged, found[at].id) == without


def test_what_was_merged_stands_in_the_metadata_beside_what_was_there() -> None:
    old = entity(0, role="developer").model_copy(update={"metadata": {"note": "x"}})
    merged = merge(old, entity(1, role="lead"))
    assert set(merged.metadata) == {"note", MERGED}
    assert get_merges(merged)["ids"] == ["ent-000000000001"]
    assert merged == Entity.from_record("bob", merged.id, merged.to_record())


@check_rows("other", [entity(0), entity(1, group="acme:1")])
def test_one_record_and_records_of_two_groups_cannot_be_merged(other: Entity) -> None:
    with pytest.raises(ValidationError):
        merge(entity(0), other)


def test_what_was_merged_is_not_merged_again_and_what_was_not_cannot_be_parted() -> None:
    merged = merge(entity(0), entity(1))
    with pytest.raises(ValidationError, match="already"):
        merge(merged, entity(1))
    with pytest.raises(ValidationError, match="no part"):
        split(merged, "ent-000000000002")


def test_a_merge_too_large_to_be_taken_back_is_refused() -> None:
    old = entity(0, **{f"key{number}": "x" * 900 for number in range(5)})
    with pytest.raises(ValidationError, match="taken back"):
        merge(old, entity(1, **{f"key{number}": "y" * 900 for number in range(5)}))
