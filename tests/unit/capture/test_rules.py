"""The rule files: complete, compilable, named once, and the guess which of them apply."""

from __future__ import annotations

import pytest

from agent_memory.capture import rules
from agent_memory.capture.rules import LANGUAGES, guess_languages, load_rules

SOURCES = {"user", "assistant", "teammate"}
SCOPES = {"sentence", "paragraph", "before", "message"}


@pytest.mark.parametrize("language", LANGUAGES)
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_pattern_of_a_language_matches_nothing_at_all(language: str) -> None:
    known = load_rules(language)
    for entry in (*known.rules, *known.vetoes, *known.shifts):
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
        ("мы решили это использовать", ("ru", "en")),
        ("다음은 페이지입니다", ("ko", "en")),
        ("12345", ("en",)),
    ],
)
def test_the_language_is_guessed_and_english_always_takes_part(text: str, expected: tuple[str, ...]) -> None:
    assert guess_languages(text) == expected


def test_a_language_that_is_added_is_guessed_by_its_script_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    read, added = rules.read_patterns, {"script": "latin", "function_words": ["kaj", "estas", "ni"]}
    monkeypatch.setattr(rules, "LANGUAGES", (*LANGUAGES, "xx"))
    monkeypatch.setattr(rules, "read_patterns", lambda language: added if language == "xx" else read(language))
    assert guess_languages("ni estas kaj") == ("en", "xx")
    assert guess_languages("wir haben das nicht so gemacht") == ("en", "de")
    assert guess_languages("我们决定用它") == ("zh", "en")
