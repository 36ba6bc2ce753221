"""Words of time are files: a language needs one, and no code."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agent_memory.times import grammar, times_in
from agent_memory.times.grammar import CHARS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAID = datetime(2024, 5, 15, 12, tzinfo=UTC)
ITALIAN = """\
# Words of time in Italian
MONTH 3=marzo 5=maggio
UNIT week=settimana,settimane
NUM 2=due
DAY_NAME 0=oggi -1=ieri
AGO fa
FREQUENT il la e di siamo visti ci
CLAUSE ma perché
AHEAD \\b(?:vedremo)\\b
PAST \\b(?:visti|era)\\b
DAY_FIRST
"""


@pytest.fixture
def _italian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = grammar.list_languages, grammar.get_vocabulary, grammar.compile_clause_break
    for code in grammar.list_languages():
        (tmp_path / f"{code}.txt").write_bytes((grammar.FOLDER / f"{code}.txt").read_bytes())
    (tmp_path / "it.txt").write_text(ITALIAN, encoding="utf-8")
    monkeypatch.setattr(grammar, "FOLDER", tmp_path)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("_italian")
@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("Ci siamo visti ieri.", "2024-05-14", "2024-05-15"),
        ("Ci siamo visti due settimane fa.", "2024-05-01", "2024-05-02"),
        ("Ci siamo visti il 3 maggio.", "2024-05-03", "2024-05-04"),
        ("Ci vedremo il 3 marzo.", "2025-03-03", "2025-03-04"),
        ("Ci siamo visti il 03/04/2023.", "2023-04-03", "2023-04-04"),
    ],
)
def test_new_language_needs_one_file(text: str, first: str, end: str) -> None:
    (mention,) = times_in(text, SAID)
    assert (f"{mention.first_day}", f"{mention.end_day}") == (first, end)


def test_language_of_a_text_is_english_by_default() -> None:
    assert [grammar.detect_language(text) for text in ("", "xyz", "Wir sind seit Mai hier.")] == ["en", "en", "de"]


def test_no_line_has_an_unknown_kind() -> None:
    for code in grammar.list_languages():
        assert {kind for kind, _ in grammar.get_vocabulary(code).words.values()} <= CHARS.keys()
