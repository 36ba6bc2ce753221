"""Words, names and identifiers, compared whole."""

import pytest

from agent_memory.forgetting.words import codes_in, holds_identifier, identifiers_in, same_name, words_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann", "ANN"), ("José", "Jose"), ("Müller", "Mueller"), ("Müller", "Muller"), ("Straße", "Strasse"),
        ("\uff21nn", "Ann"), ("\u042e\u043b\u0438\u044f", "Yulia"), ("\u042e\u043b\u0438\u044f", "Julia"),
        ("\u0395\u03bb\u03ad\u03bd\u03b7", "Eleni"), ("\u30bf\u30ca\u30ab", "Tanaka"), ("\uae40", "Kim"),
    ],
)  # fmt: skip
def test_a_name_is_the_same_in_other_letters(one: str, other: str) -> None:
    assert same_name(one, other)
    assert same_name(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ann", "Anna"), ("Ann", "Ann-Marie"), ("Maria", "Marina"), ("\u041c\u0430\u0440\u0438\u044f", "Marina")],
)
def test_a_name_that_holds_another_is_not_the_same(one: str, other: str) -> None:
    assert not same_name(one, other)


@pytest.mark.parametrize("text", ["K-12", "k12", "K 12", "K_12", "K\u201112", "\uff2b\uff0d\uff11\uff12", "(K-12)."])
def test_an_identifier_is_the_same_however_it_is_separated(text: str) -> None:
    assert holds_identifier(f"Badge {text} opens it", "k12")


@pytest.mark.parametrize("text", ["K-120", "K-1-2-3", "K-12-B", "AK-12", "K-12.7", "x/K-12"])
def test_a_longer_identifier_does_not_hold_a_shorter_one(text: str) -> None:
    assert not holds_identifier(f"Badge {text} opens it", "k12")


def test_a_possessive_ending_is_no_part_of_a_word() -> None:
    assert [(word.text, word.owns) for word in words_of("Ann's and the boys\u2019 kit")] == [
        ("Ann", True), ("and", False), ("the", False), ("boys", True), ("kit", False),
    ]  # fmt: skip


def test_what_is_written_as_one_is_an_identifier() -> None:
    assert codes_in("See INV-2024-1, blue-falcon, 42 and port 8080.") == ["inv20241", "bluefalcon"]


def test_an_identifier_has_so_many_pieces_at_most() -> None:
    found = identifiers_in("K-12 " * 400, frozenset())
    assert len(found) > 10
    assert all(each.end - each.start < 5 * 13 for each in found)
