"""The rule files: complete, compilable, named once, and the guess which of them apply."""

from __future__ import annotations

import pytest

from agent_memory.capture.rules import LANGUAGES, guess_languages, load_rules

SOURCES = {"user", "assistant", "teammate"}
SCOPES = {"sentence", "paragraph", "before", "message"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_file_is_complete(language: str) -> None:
    rules = load_rules(language)

    assert rules.language == language
    assert len({rule.name for rule in rules.rules}) == len(rules.rules)
    assert {rule.category for rule in rules.rules} >= {"preference", "decision", "pattern", "bugfix", "task", "note"}
    assert all(rule.sources and rule.sources <= SOURCES for rule in rules.rules)
    assert all(0 < rule.confidence < 1 for rule in rules.rules)
    assert all(veto.scope in SCOPES for veto in rules.vetoes)
    assert {veto.name for veto in rules.vetoes} >= {"question", "retraction", "hypothetical", "injection"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_pattern_of_a_language_matches_nothing_at_all(language: str) -> None:
    rules = load_rules(language)

    for entry in (*rules.rules, *rules.vetoes, *rules.shifts):
        assert not entry.pattern.search(""), entry.name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we decided to use it for the cache", ("en",)),
        ("wir haben das nicht so gemacht", ("en", "de")),
        ("on a décidé de ne pas le faire", ("en", "fr")),
        ("en este proyecto no se usa", ("en", "es")),
        ("a gente não usa isso aqui", ("en", "pt")),
        ("原因はキャッシュです", ("ja", "en")),
        ("我们决定用它", ("zh", "en")),
        ("12345", ("en",)),
    ],
)
def test_the_language_is_guessed_and_english_always_takes_part(text: str, expected: tuple[str, ...]) -> None:
    assert guess_languages(text) == expected
