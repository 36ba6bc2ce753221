"""Prose of the pages and of the command line: odd words and long sentences may only become fewer."""

from __future__ import annotations

from typing import Final

from scripts import prose

MAX_ODD_WORDS: Final = {"pages": 1, "command line": 2}
MAX_LONG_SENTENCES: Final = {"pages": 3, "command line": 0}
MAX_CROWDED: Final = 4
"""Today's counts, nearly all in the help of commands. The target is 0.5 odd words per 1,000, and nothing long."""


def count_places() -> dict[str, list[prose.ProseCounts]]:
    return {
        "pages": [prose.check_text(page.read_text(encoding="utf-8")) for page in prose.find_pages()],
        "command line": [prose.check_text(text) for text in prose.find_command_strings()],
    }


def test_odd_words_do_not_grow() -> None:
    odd = {place: [word for text in texts for word in text.odd] for place, texts in count_places().items()}
    assert {place: len(words) for place, words in odd.items() if len(words) > MAX_ODD_WORDS[place]} == {}, odd


def test_long_sentences_do_not_grow() -> None:
    long = {place: [line for text in texts for line in text.long] for place, texts in count_places().items()}
    assert {place: lines for place, lines in long.items() if len(lines) > MAX_LONG_SENTENCES[place]} == {}


def test_paragraphs_of_pages_have_few_sentences() -> None:
    crowded = [text for counts in count_places()["pages"] for text in counts.crowded]
    assert len(crowded) <= MAX_CROWDED, crowded


def test_check_text_finds_odd_words_outside_of_code() -> None:
    counts = prose.check_text(
        "It stands beside. `stands`\n\n```text\nbeside\n```\n\n::: a.Class\n    members: [told]\n"
    )
    assert counts.odd == ["stands", "beside"]


def test_check_text_splits_sentences_cells_and_lists() -> None:
    words = " ".join(["word"] * 15)
    assert prose.check_text(f"A {words}. B {words}.\n\n- {words}\n- {words}\n\n| {words} | {words} |\n").long == []
    assert len(prose.check_text(f"A {words} {words}.").long) == 1
