"""Which sentences of a text say something, and where they stand."""

from __future__ import annotations

import pytest

from agent_memory.knowledge.items.statements import statements_of

DOCUMENT = """# The boat

The mast is made of spruce. Who made it? Nobody knows that today.

- The hull was painted in May
1. Its name is Aurora
"""


def test_a_document_gives_sentences_without_headings_and_questions() -> None:
    found = statements_of(DOCUMENT, is_talk=False)
    assert [one.text for one in found] == [
        "The mast is made of spruce.", "Nobody knows that today.", "The hull was painted in May", "Its name is Aurora",
    ]  # fmt: skip
    assert all(DOCUMENT[one.start : one.end] == one.text for one in found)


def test_talk_keeps_who_said_it_and_leaves_greetings_out() -> None:
    talk = (
        "Ann: Hi Bob!\nBob: Thanks, Ann!\nAnn: The mast broke\n     in the storm of May.\n"
        "**Bob:** I will mend it in June."
    )
    found = statements_of(talk, is_talk=True)
    assert [(one.speaker, one.text) for one in found] == [
        ("Ann", "Ann: The mast broke in the storm of May."),
        ("Bob", "Bob: I will mend it in June."),
    ]
    assert " ".join(talk[found[0].start : found[0].end].split()) == "The mast broke in the storm of May."


@pytest.mark.parametrize("text", ["", "   \n\n", "Why not?", "Yes.", "# A heading of several words\n"])
def test_what_states_nothing_gives_nothing(text: str) -> None:
    assert statements_of(text, is_talk=False) == []


def test_the_same_said_twice_is_one_statement() -> None:
    assert len(statements_of("The mast is of wood. The mast  is of wood.", is_talk=False)) == 1
