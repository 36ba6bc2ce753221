"""Embedded parts of a text, and its title."""

from agent_memory.language.text_forms import embedded_texts, find_title, tells_time
from agent_memory.language.words import index_terms
from tests.rows import check_rows


def test_a_short_memory_is_embedded_as_it_is() -> None:
    assert embedded_texts("Use PostgreSQL") == ["Use PostgreSQL"]


def test_a_long_memory_is_cut_at_sentence_ends_and_nothing_is_lost() -> None:
    sentences = [f"Sentence number {number} says something of its own." for number in range(100)]
    pieces = embedded_texts(" ".join(sentences))
    assert len(pieces) > 1
    assert all(len(piece) <= 300 for piece in pieces)
    assert " ".join(pieces) == " ".join(sentences)


def test_a_run_without_any_break_is_cut_too() -> None:
    pieces = embedded_texts("x" * 10_000)
    assert all(len(piece) <= 300 for piece in pieces)
    assert "".join(pieces) == "x" * 10_000


def test_a_talk_in_one_memory_is_cut_between_its_lines() -> None:
    lines = [f"{name}: remark number {number} of this talk" for number in range(20) for name in ("Ann", "Ben")]
    pieces = embedded_texts("\n".join(lines))
    assert [line for piece in pieces for line in piece.splitlines()] == lines


@check_rows(("content", "tells"), [("I went yesterday", True), ("in 2022", True), ("I went", False)])
def test_words_of_time(content: str, tells: bool) -> None:
    assert tells_time(index_terms(content)) is tells


def test_a_turn_is_embedded_alike_in_any_form() -> None:
    forms = ["Jon: hi", "**Jon:** hi", "[10:02] Jon says: hi", '{"speaker": "Jon", "text": "hi"}']
    assert {text for form in forms for text in embedded_texts(form)} == {"Jon: hi"}


def test_a_long_text_with_a_title_is_also_found_by_its_title() -> None:
    body = "The budget is five attempts in a minute, since all clients come back at once. " * 6
    text = f"Retry budget of the ledger\n{body}"
    assert embedded_texts(text)[-1] == find_title(text) == "Retry budget of the ledger"
    assert "\n".join(embedded_texts(text)[:-1]).split() == text.split()
    assert "Retry budget of the ledger" not in embedded_texts("Retry budget of the ledger\nIt is five.")


def test_a_line_like_the_others_or_alone_is_no_title() -> None:
    lines = "\n".join(f"Line {number} of a list of many lines that are alike." for number in range(20))
    assert find_title(lines) == find_title("One line alone.") == find_title("") == find_title("\n \n") == ""
    assert all("\n" in piece for piece in embedded_texts(lines))
