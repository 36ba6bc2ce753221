"""Names in what people and agents write."""

from __future__ import annotations

from itertools import pairwise

from agent_memory.knowledge.entities import Gazetteer, find_mentions
from agent_memory.knowledge.entities.name_finder import KNOWN, REPEATED, SEEN_ONCE, KnownName
from tests.rows import check_rows


def names(text: str, gazetteer: Gazetteer | None = None, speaker: str = "") -> list[tuple[str, str]]:
    """Return names and types of the mentions of a text."""
    return [(mention.name, mention.kind) for mention in find_mentions(text, gazetteer=gazetteer, speaker=speaker)]


def test_find_mentions_names_inside_sentences_have_no_guessed_type() -> None:
    text = "yesterday Alice Meyer met Bob's sister in Paris, and moved the deploy to Acme Corp."
    assert names(text) == [("Alice Meyer", "name"), ("Bob", "name"), ("Paris", "name"), ("Acme Corp", "name")]


def test_find_mentions_name_counts_more_if_repeated() -> None:
    (once,) = find_mentions("We met Tobias Reuter.")
    twice = find_mentions("We met Tobias Reuter. Tobias Reuter left.")
    assert (once.confidence, {mention.confidence for mention in twice}, len(twice)) == (SEEN_ONCE, {REPEATED}, 2)


@check_rows(
    "text",
    [
        "The CI pipeline is red again",
        "Never deploy on Fridays. Always run the tests first.",
        "Set LOG_LEVEL=DEBUG in production to trace HTTP 500 errors",
        "OK, thanks! See you on Monday in January.",
        "Fixed: KeyError when parsing JSON from the API",
        "# The Quick Guide to Grandma's Kitchen\n| A Cell | Another Cell |",
        "Yeah, Here it is. Ill come if I said that Ive seen it.",
        "the mom of Mom",
        "DO NOT run `git commit` in Bash(x) or in Foo_bar",
        "Ich habe gestern die Datenbank auf den neuen Server umgezogen, weil der Speicher voll war.",
        "Der Dienst merkt sich nichts nach dem Neustart.",
        "Wir nutzen es für Rechnungen",
        "",
        " \n ",
    ],
)
def test_find_mentions_ordinary_sentences_name_nothing(text: str) -> None:
    assert names(text) == []


@check_rows(
    ("text", "expected"),
    [
        ('I loved "Becoming Nicole" a lot', "Becoming Nicole"),
        ("we saw the Cliffs of Moher today", "Cliffs of Moher"),
        ("it plays at São Paulo tonight", "São Paulo"),
        ("so much was done by Ann", "Ann"),
        ("a visit to Jack's Wife Freda, then home", "Jack's Wife Freda"),
    ],
)
def test_find_mentions_longer_names_are_whole(text: str, expected: str) -> None:
    assert names(text) == [(expected, "name")]


def test_find_mentions_word_before_a_word_is_no_evidence() -> None:
    assert names("we ate Italian food") == []


def test_find_mentions_known_name_keeps_its_type_anywhere() -> None:
    known = Gazetteer({"Tidewater": "product", "Blue Harbour": "organisation"})
    assert names("Tidewater waits for Blue Harbour", known) == [
        ("Tidewater", "product"),
        ("Blue Harbour", "organisation"),
    ]
    assert {mention.confidence for mention in find_mentions("Tidewater waits", gazetteer=known)} == {KNOWN}


def test_find_mentions_known_name_does_not_cut_longer_one() -> None:
    known = Gazetteer({"Priya": "person"})
    assert names("Now that Priya Raman owns it, and Priya reviews.", known) == [
        ("Priya Raman", "name"),
        ("Priya", "person"),
    ]


def test_find_mentions_known_person_in_small_letters_is_a_word() -> None:
    known = Gazetteer({"Will": "person"})
    assert names("it will rain", known) == []
    assert names("ask Will", known) == [("Will", "person")]


def test_find_mentions_name_in_small_letters_says_so() -> None:
    (mention,) = find_mentions("and julio came", gazetteer=Gazetteer({"Julio": "name"}))
    assert (mention.name, mention.rule) == ("julio", "small letters")


def test_find_mentions_candidate_begins_a_sentence_counts() -> None:
    known = Gazetteer(candidates=["Galway"])
    assert names("Galway is nice", known) == [("Galway", "name")]
    assert names("Galway music", known) == []


def test_find_mentions_doubtful_name_counts_inside_sentences_alone() -> None:
    known = Gazetteer()
    known.add(KnownName("Morning", "name", has_lowercase_use=True))
    assert names("Morning! Morning is here", known) == []
    assert names("we read Morning again", known) == []
    assert names("we all read Morning.", known) == [("Morning", "name")]


def test_find_mentions_known_name_in_a_path_is_not_meant() -> None:
    known = Gazetteer({"Tidewater": "service"})
    assert names("in docs/Tidewater/index.md and docs/Tidewater", known) == [("docs/Tidewater/index.md", "file")]


def test_gazetteer_removed_name_is_not_found() -> None:
    known = Gazetteer({"Tidewater": "product", "Tidewater Core": "product"})
    known.remove("Tidewater Core")
    assert [name for name, *_ in known.find("tidewater")] == ["Tidewater"]
    assert known.find("walrus") == []


def test_find_mentions_speaker_is_no_mention_as_a_label() -> None:
    assert names("Marlo: the tests pass", speaker="Marlo") == []
    assert names("Marlo: as Marlo said", speaker="Marlo") == [("Marlo", "person")]


def test_find_mentions_code_names_only_identifiers() -> None:
    text = "Look:\n```python\nfrom then import Bob\n@app\nopen('data/x.csv')\n```\nThen ask Carol and @priya."
    assert names(text) == [("data/x.csv", "file"), ("Carol", "name"), ("@priya", "name")]


@check_rows("text", ["Then Bob's flat in Paris, Rome's rival: see a/b.py and c.py", "The " + "Anna " * 3000])
def test_find_mentions_spans_fit_and_do_not_overlap(text: str) -> None:
    found = find_mentions(text)
    assert all(text[mention.start : mention.end] == mention.name for mention in found)
    assert all(first.end <= second.start for first, second in pairwise(found))
    assert all(0 < mention.confidence <= 1 and mention.rule for mention in found)


def test_find_mentions_long_text_is_read_line_by_line() -> None:
    text = "\n".join(f"Line {number}: then Alice met Bob in Paris." for number in range(200))
    assert len([name for name, _ in names(text) if name == "Paris"]) == 200


def test_find_mentions_address_of_an_image_is_none() -> None:
    text = "[![Build](https://img.example.org/ci.svg)](https://ci.example.org/x) and ![Harbour](pictures/harbour.png)"
    assert names(text) == [("https://ci.example.org/x", "url")]
