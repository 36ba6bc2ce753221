"""The words by which people say that something is not as it was."""

from __future__ import annotations

import pytest

from agent_memory.suspects import is_said_plainly


@pytest.mark.parametrize(
    "text",
    [
        "The shop is on PostgreSQL 16 now.",
        "The importer no longer drops rows.",
        "Olga moved to Turin.",
        "The threshold was raised to 85 %.",
        "Bugsnag was replaced by Rollbar.",
        "Use pnpm instead of npm.",
        "Ivo took over the desk from Nora.",
    ],
)
def test_a_change_is_said_plainly(text: str) -> None:
    assert is_said_plainly(text)


@pytest.mark.parametrize(
    "text",
    [
        "The shop is on PostgreSQL 16.",
        "Is the shop on PostgreSQL 16 now?",
        "The shop will be moved to PostgreSQL 16.",
        "We might be on PostgreSQL 16 now.",
        "It worked until now.",
        "Every now and then it fails.",
        "We know the snow.",
    ],
)
def test_what_is_asked_planned_possible_or_not_said_is_none(text: str) -> None:
    assert not is_said_plainly(text)
