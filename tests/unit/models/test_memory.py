"""`Memory`: its rules, its record, and what comes back from it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import ValidationError
from agent_memory.models import (
    CATEGORIES,
    Candidate,
    Memory,
    Scratchpad,
    Trust,
    is_memory_id,
    may_stand_for,
    new_memory_id,
)
from agent_memory.models.identifiers import TextOrigin
from tests.rows import check_rows
from tests.support import NOON, memory_of

moments = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - aware by timezones
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=50).filter(
    lambda text: text.strip() != ""
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
memories = st.builds(
    Memory,
    agent_id=st.just("bob"),
    content=texts,
    category=st.sampled_from(CATEGORIES),
    tags=st.lists(texts, max_size=4),
    timestamp=moments,
    observed_at=st.none() | moments,
    access_count=st.integers(0, 10**6),
    trust=st.sampled_from(["high", "medium", "low"]),
    confidence=st.none() | st.floats(0, 1),
    supersedes=st.none() | st.builds(new_memory_id),
    pinned=st.booleans(),
    metadata=st.dictionaries(texts, json_values, max_size=3),
)


@given(memories)
def test_the_journals_record_gives_the_same_memory_back(memory: Memory) -> None:
    record = json.loads(json.dumps(memory.to_record(), allow_nan=False))
    assert Memory.from_record("bob", memory.id, record) == memory


def test_a_record_holds_neither_agent_nor_id_nor_defaults_and_fields_of_a_later_version_are_left_aside() -> None:
    record = {"content": "tea", "timestamp": "2026-03-01T12:00:00Z"}
    assert memory_of("tea").to_record() == record
    assert Memory.from_record("bob", new_memory_id(), {**record, "mood": "calm"}).content == "tea"


@check_rows(
    "fields",
    [
        {"content": ""},
        {"content": " \n"},
        {"content": "x" * 10_001},
        {"content": "\ud800"},
        {"content": "a\0"},
        {"category": "Two Words"},
        {"category": "note\n"},
        {"category": "x" * 65},
        {"tags": ["t"] * 51},
        {"tags": ["x" * 65]},
        {"id": "mem-XYZ"},
        {"id": "mem-0123456789ab\n"},
        {"agent_id": "../x"},
        {"access_count": -1},
        {"confidence": 1.01},
        {"confidence": float("nan")},
        {"importance": -0.1},
        {"trust": "none"},
        {"source": {"kind": "rumour"}},
        {"source": {"kind": "user", "detail": "x" * 201}},
        {"supersedes": "x"},
        {"links": [{"rel": "", "id": "mem-0123456789ab"}]},
        {"links": [{"rel": "see", "id": "mem-0123456789ab"}] * 101},
        {"timestamp": "not a time"},
        {"expires_at": "0001-01-01T00:00:00+14:00"},
        {"metadata": {"a": float("inf")}},
        {"unknown": 1},
    ],
)
def test_what_breaks_a_rule_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"^Memory: ") as refused:
        memory_of(**{"content": "tea", **fields})
    assert re.match(r"Memory: [a-z_]+[.:\w]* ", refused.value.message)
    assert not re.search(r"Input should|Value error|String should|at most \d+ items after", refused.value.message)
    with pytest.raises(pydantic.ValidationError):
        Memory.model_validate({"agent_id": "bob", "content": "tea", **fields})


def test_a_memory_is_at_its_limits_fine() -> None:
    memory = memory_of("x" * 10_000, tags=[f"t{n}" for n in range(50)], category="x" * 64, metadata={"k" * 256: "v"})
    assert len(memory.content) == 10_000
    assert len(memory.tags) == 50


def test_tags_are_lower_case_trimmed_unique_and_in_their_first_order() -> None:
    assert memory_of("x", tags=[" B ", "a", "b", "", "  ", "A  C", "a\nc"]).tags == ["b", "a", "a c"]


def test_times_are_kept_in_utc() -> None:
    zone = timezone(timedelta(hours=5))
    memory = memory_of("x", timestamp=datetime(2026, 3, 1, 17, tzinfo=zone))
    assert memory.timestamp == NOON
    assert memory.timestamp.tzinfo is UTC


def test_a_memory_cannot_be_changed_in_place() -> None:
    with pytest.raises(pydantic.ValidationError):
        memory_of("tea").content = "coffee"


@check_rows(("hours", "expired"), [(-1, False), (0, True), (1, True)])
def test_it_expires_at_the_moment_told(hours: int, expired: bool) -> None:
    assert memory_of("x", expires_at=NOON).is_expired(NOON + timedelta(hours=hours)) is expired
    assert memory_of("x").is_expired(NOON) is False


def test_ids_are_fresh_and_known_by_their_form() -> None:
    ids = {new_memory_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(map(is_memory_id, ids))
    assert not any(
        map(is_memory_id, ["", "mem-", "mem-0123456789AB", "mem-0123456789ab\n", " mem-0123456789ab", 5, None])
    )


def test_a_scratchpad_is_searched_by_words_best_first() -> None:
    pad = Scratchpad(agent_id="bob", entries=[memory_of("green tea"), memory_of("tea"), memory_of("coffee")])
    assert [m.content for m in pad.search_keywords("Green TEA")] == ["green tea", "tea"]
    assert pad.search_keywords("  ") == []
    assert len(pad) == 3
    assert pad.entries[0].id in pad
    assert "mem-000000000000" not in pad


def test_a_strangers_words_take_the_place_of_a_strangers_alone() -> None:
    trusts: tuple[Trust, ...] = ("high", "medium", "low")
    refused = [(one, other) for one in trusts for other in trusts if not may_stand_for(one, other)]
    assert refused == [("low", "high"), ("low", "medium")]


@pytest.mark.parametrize("name", ["client²", "½ tool", "größe.md", "a\u0301", "日本", "a\nb", "x" * 200])
def test_origin_of_any_name_is_valid(name: str) -> None:
    assert Memory(agent_id="bob", content="tea", origin=str(TextOrigin("tool", name))).origin.startswith("tool ")


@pytest.mark.parametrize("origin", ["tool a\n", "tool a/b", "friend", "tool " + "x" * 200])
def test_origin_of_another_form_is_refused(origin: str) -> None:
    with pytest.raises(ValidationError):
        Memory(agent_id="bob", content="tea", origin=origin)


@pytest.mark.parametrize(("batch", "is_archived"), [("", True), ("import-00000001", False)])
def test_candidate_of_an_import_waits_without_limit(batch: str, *, is_archived: bool) -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    candidate = Candidate(agent_id="eve", content="Likes tea", is_note=True, batch=batch, timestamp=begun)
    later = begun + timedelta(days=3650)
    assert candidate.is_archived(later, timedelta(days=28)) is is_archived
    assert not candidate.is_over(later, timedelta(days=28))
