"""Rule files: complete, compilable, named once."""

from __future__ import annotations

from importlib import resources

import pytest

from agent_memory.capture import Extractor
from agent_memory.capture.rules import load_rules
from agent_memory.language.languages import load_languages
from agent_memory.settings import CaptureSettings
from tests.rows import check_rows

SOURCES = {"user", "assistant", "teammate"}
SCOPES = {"sentence", "paragraph", "before", "message"}


@check_rows("language", load_languages())
def test_a_language_file_is_complete(language: str) -> None:
    known = load_rules(language)
    assert len({rule.name for rule in known.rules}) == len(known.rules)
    assert {rule.category for rule in known.rules} >= {"preference", "decision"}
    assert {"explicit", "standing"} <= {rule.group for rule in known.rules}
    assert all(rule.sources and rule.sources <= SOURCES for rule in known.rules)
    assert {rule.cue for rule in known.rules} == {"", "memory", "standing", "decision", "identity"}
    assert all(0 < rule.confidence < 1 for rule in known.rules)
    assert all(veto.scope in SCOPES for veto in known.vetoes)
    assert {veto.name for veto in known.vetoes} >= {"question", "retraction", "hypothetical", "injection"}


def test_each_language_has_a_file_of_rules() -> None:
    files = {file.name.partition(".")[0] for file in (resources.files("agent_memory.language") / "patterns").iterdir()}
    assert {name for name in files if len(name) == 2} == set(load_languages())


@check_rows("language", load_languages())
def test_no_pattern_of_a_language_matches_nothing_at_all(language: str) -> None:
    known = load_rules(language)
    for entry in (*known.rules, *known.vetoes, *known.shifts):
        assert not entry.pattern.search(""), entry.name


@pytest.mark.parametrize("text", ["Hi.", "Hallo!", "你好"])
def test_greeting_loads_no_rules(text: str) -> None:
    load_rules.cache_clear()
    assert Extractor(CaptureSettings()).extract(text, "user") == []
    assert load_rules.cache_info().currsize == 0
