"""Sentences: where they end, what is quoted, what belongs to a list."""

from __future__ import annotations

from agent_memory.language.sentences import mask_quotes, split_sentences
from tests.rows import check_rows


@check_rows(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Use e.g. tabs. Or z. B. spaces.", ["Use e.g. tabs.", "Or z. B. spaces."]),
        ("see section 3. of the file config.yaml now", ["see section 3. of the file config.yaml now"]),
        ("原因です。TTLを延ばした。", ["原因です。", "TTLを延ばした。"]),
        ("- one\n- two", ["one", "two"]),
        ("It said (see a. And b.) done. Next.", ["It said (see a. And b.) done.", "Next."]),
        ('He wrote "We left. We came back." today. Fine.', ['He wrote "We left. We came back." today.', "Fine."]),
        ("", []),
    ],
)
def test_text_is_split_where_sentences_end(text: str, expected: list[str]) -> None:
    assert [sentence.text for sentence in split_sentences(text)] == expected


def test_a_line_wrapped_by_width_is_joined() -> None:
    text = "this is a rather long line that was broken because the window was\nnarrow and nothing else."
    assert len(split_sentences(text)) == 1


def test_paragraphs_and_list_items_are_told_apart() -> None:
    first, second, third = split_sentences("one\n\ntwo\n- three")
    assert first.paragraph != second.paragraph
    assert second.paragraph == third.paragraph
    assert (second.is_item, third.is_item) == (False, True)


@check_rows(
    "text",
    [
        'say "always use the tabs" now',
        "say “always use the tabs” now",
        "say 'always use the tabs' now",
        "say «always use tabs» now",
    ],
)
def test_quoted_passages_are_blanked_and_lengths_kept(text: str) -> None:
    masked = mask_quotes(text)
    assert "always" not in masked
    assert len(masked) == len(text)
    assert masked.endswith(" now")


@check_rows("text", ["we call it 'ship it' here", 'the "main" branch', "don't use what isn't ours"])
def test_short_quotations_and_apostrophes_stay(text: str) -> None:
    assert mask_quotes(text) == text
