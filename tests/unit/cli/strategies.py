"""Memories as hypothesis makes them: every field, any text the data model takes."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from agent_memory.models import Link, Memory, Source

# No NUL and no surrogates: the data model refuses them. Whatever steers a terminal or breaks a line comes often.
_TRICKY = (
    "\n\r\t \x1b\x7f\x85\x9b\u2028\u2029\u202e\ufeff\ufffe\uffff'\"\\:#-|>&*!%@`[]{},?~=<0é日\U0001f469\u200d\U000e0067"
)
_CHARACTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
_TEXT = st.text(_CHARACTERS | st.sampled_from(_TRICKY))
_CONTENT = _TEXT.filter(lambda text: bool(text.strip()))
_MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds are naive
_IDS = st.integers(0, 16**12 - 1).map(lambda number: f"mem-{number:012x}")
_FRACTIONS = st.floats(0, 1)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
_METADATA = st.dictionaries(
    st.text(_CHARACTERS | st.sampled_from(_TRICKY), max_size=20),
    st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT.map(lambda t: t[:20]), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)

memories = st.builds(
    Memory,
    agent_id=st.just("bob"),
    content=_CONTENT,
    category=st.from_regex(r"\A[a-z]{1,8}(_[a-z]{1,8}[0-9]?){0,2}\Z"),
    topic=st.sampled_from(["", "network", "team_a1"]),
    id=_IDS,
    tags=st.lists(_TEXT.map(lambda text: text[:20]), max_size=4),
    timestamp=_MOMENTS,
    observed_at=st.none() | _MOMENTS,
    last_accessed=st.none() | _MOMENTS,
    access_count=st.integers(0, 10**6),
    created_by_session=_TEXT.map(lambda text: text[:50]),
    source=st.builds(
        Source, kind=st.sampled_from(["user", "assistant", "tool", "import"]), detail=_TEXT.map(lambda text: text[:50])
    ),
    trust=st.sampled_from(["high", "medium", "low"]),
    confidence=st.none() | _FRACTIONS,
    importance=st.none() | _FRACTIONS,
    links=st.lists(st.builds(Link, rel=st.sampled_from(["about", "follows: up"]), id=_IDS), max_size=2),
    supersedes=st.none() | _IDS,
    expires_at=st.none() | _MOMENTS,
    pinned=st.booleans(),
    promoted_at=st.none() | _MOMENTS,
    evicted_at=st.none() | _MOMENTS,
    metadata=_METADATA,
)
"""Any valid memory of the agent bob."""
