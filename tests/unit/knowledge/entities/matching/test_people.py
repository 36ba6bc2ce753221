"""How names of people stand to each other, and whose an e-mail address is."""

from __future__ import annotations

from agent_memory.knowledge.entities.matching.normal_forms import compatible, kinship, mailbox, nickname, owns
from tests.rows import check_rows


@check_rows(
    ("one", "other", "stand"),
    [
        ("bob smith", "smith bob", "turned"),
        ("bob smith", "robert smith", "nickname"),
        ("smith bob", "robert smith", "nickname"),
        ("bob smith", "b smith", "initial"),
        ("smith b", "bob smith", "initial"),
        ("bob smith", "robert j smith", "nickname"),
        ("r j smith", "bob smith", "apart"),
        ("bob smith", "bob smyth", "misspelt"),
        ("georg smith", "gerog smith", "misspelt"),
        ("christopher", "christoper", "misspelt"),
        ("bob", "bob smith", "given"),
        ("rob", "bob smith", "given"),
        ("smith", "bob smith", "surname"),
        ("s", "bob s", ""),
        ("bob smith jr", "bob smith junior", "same"),
        ("bob smith jr", "bob smith sr", "apart"),
        ("bob smith 2", "bob smith", "generation"),
        ("ann smith", "bob smith", "apart"),
        ("bob smith", "bob jones", ""),
        ("marta", "maria", ""),
        ("jr", "sr", ""),
        ("2", "2", "same"),
        ("", "bob", ""),
    ],
)
def test_names_stand_to_each_other_the_same_both_ways(one: str, other: str, stand: str) -> None:
    assert kinship(one.split(), other.split()) == kinship(other.split(), one.split()) == stand


def test_people_are_compatible_by_surname_and_initials() -> None:
    assert compatible(["h", "v", "jagadish"], ["hosagrahar", "jagadish"])
    assert not compatible(["bob"], ["bob", "smith"])


def test_given_names_are_used_for_others_of_their_group_alone() -> None:
    assert nickname("bob", "robert")
    assert nickname("sasha", "alexander")
    assert not nickname("bob", "bill")
    assert not nickname("zaphod", "trillian")


@check_rows(
    ("address", "words"),
    [
        ("Bob.Smith@example.com", ["bob", "smith"]),
        ("bob_smith42+news@example.com", ["bob", "smith"]),
        ("bsmith@example.com", ["bsmith"]),
        ("support@example.com", []),
        ("sales-team@example.com", []),
        ("4711@example.com", []),
    ],
)
def test_an_address_has_the_words_of_a_name_unless_it_is_a_role(address: str, words: list[str]) -> None:
    assert mailbox(address) == words


@check_rows(
    ("mail", "name", "owned"),
    [
        ("bob smith", "bob smith", "full"),
        ("smith bob", "bob smith", "full"),
        ("bob smith", "bob james smith", "full"),
        ("bobsmith", "bob smith", "full"),
        ("bsmith", "bob smith", "short"),
        ("bobs", "bob smith", "short"),
        ("smith", "bob smith", "short"),
        ("b smith", "bob smith", "short"),
        ("rob smith", "bob smith", "short"),
        ("bob", "bob", "short"),
        ("bob", "ann", ""),
        ("ann smith", "bob smith", ""),
        ("jones", "bob smith", ""),
    ],
)
def test_an_address_is_made_of_a_name_or_of_parts_of_it(mail: str, name: str, owned: str) -> None:
    assert owns(mail.split(), name.split()) == owned


def test_a_name_with_a_word_twice_stands_to_another_as_that_to_it() -> None:
    assert kinship(["ann", "ann", "bob"], ["bob", "ann"]) == kinship(["bob", "ann"], ["ann", "ann", "bob"]) == "same"
