"""The section `lifecycle`: its numbers, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.care.tidying.cleanup_rules import CleanupRules, LifecycleSettings, RetentionRule
from agent_memory.errors import ConfigurationError
from agent_memory.settings import build_settings
from tests.rows import check_rows
from tests.support import memory_of


def test_the_numbers_are_those_of_the_contract_with_an_order_that_can_be() -> None:
    """Its 30 days without access would delete before its 60 days could archive; here they say what counts as used."""
    assert CleanupRules().model_dump() == {
        "archive_old_entries_days": 60,
        "max_age_days": 90,
        "delete_unaccessed_days": 30,
        "keep_used_days": 90,
        "min_importance_threshold": 0.3,
        "max_entries": 10_000,
        "merge_duplicates": True,
    }


@check_rows(
    "wrong",
    [
        {"cleanup": {"max_age_days": 30}},
        {"cleanup": {"max_entries": 0}},
        {"cleanup": {"min_importance_threshold": 2}},
        {"retention": [{"archive_after_days": 3}]},
        {"retention": [{"category": "note", "archive_after_days": 0}]},
        {"retention": [{"kategory": "note"}]},
        {"budget": 0},
        {"keep": True},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        build_settings("rules.yaml", LifecycleSettings, wrong)


@check_rows(
    ("rule", "fits"),
    [
        ({"category": "note"}, True),
        ({"category": "task"}, False),
        ({"tag": "Drinks"}, True),
        ({"tag": "food"}, False),
        ({"topic": "kitchen"}, True),
        ({"project": "Kestrel"}, True),
        ({"project": "heron"}, False),
        ({"group": "acme:one"}, True),
        ({"group": "acme:two"}, False),
        ({"category": "note", "tag": "food"}, False),
    ],
)
def test_a_rule_is_about_what_it_names(rule: dict[str, str], fits: bool) -> None:
    memory = memory_of("Maria likes tea.", tags=["drinks"], topic="kitchen", group="acme:one", project="kestrel")
    assert RetentionRule.model_validate(rule).fits(memory) is fits


def test_a_rule_says_what_it_is_about() -> None:
    assert RetentionRule(category="note", project="kestrel").name == "category note, project kestrel"
