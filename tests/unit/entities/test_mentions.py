"""Names in what people and agents write."""

from __future__ import annotations

from itertools import pairwise

import pytest

from agent_memory.entities import Gazetteer, mentions_in, stands_out


def names(text: str, **told: object) -> list[tuple[str, str]]:
    return [(mention.name, mention.kind) for mention in mentions_in(text, **told)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Alice Meyer moved the deploy of billing-api to Frankfurt last Tuesday.",
            [("Alice Meyer", "person"), ("billing-api", "service"), ("Frankfurt", "place")],
        ),
        ("Order A-10293 was shipped to Acme Corp.", [("A-10293", "order"), ("Acme Corp", "organisation")]),
        ("Remember to call Dr. Jane Smith.", [("Jane Smith", "person")]),
        ("We use Redis for caching and FastAPI.", [("Redis", "product"), ("FastAPI", "product")]),
        ("What is the address of the Hamburg office?", [("Hamburg", "place")]),
        ("Customs export raised KeyError for Bob", [("Bob", "person")]),
        ("Sentry was replaced by GlitchTip.", [("Sentry", "product"), ("GlitchTip", "product")]),
        ("Meeting with Dr. Okafor and Mr. Delgado", [("Okafor", "person"), ("Delgado", "person")]),
        ("I met Ada Lovelace.", [("Ada Lovelace", "person")]),
        ("He works at Iberdrola.", [("Iberdrola", "organisation")]),
        ("Shipped by Helena Kowalczyk from Leipzig", [("Helena Kowalczyk", "person"), ("Leipzig", "place")]),
        ("Emma lives in New York", [("Emma", "person"), ("New York", "place")]),
        ("my sister emma is in new york", [("emma", "person"), ("new york", "place")]),
    ],
)
def test_names_are_found_with_their_kinds(text: str, expected: list[tuple[str, str]]) -> None:
    assert names(text) == expected


def test_a_known_name_does_not_cut_a_longer_one() -> None:
    known = Gazetteer({"Priya": "person", "Tidewater": "organisation"})
    assert names("Priya Raman owns it, and Priya reviews.", gazetteer=known) == [
        ("Priya Raman", "person"),
        ("Priya", "person"),
    ]


def test_a_known_name_is_found_only_as_one_word_where_it_is_one() -> None:
    known = Gazetteer({"/home/user/.tool/": "file", "USA": "place", "Wobblecorp": "organisation"})
    found = names("cp /home/user/.tool /srv; usa la misma; wobblecorp pays", gazetteer=known)
    assert found[-1] == ("wobblecorp", "organisation")
    assert ("usa", "place") not in found
    assert all(name != "/home/user/.tool /" for name, _ in found)


@pytest.mark.parametrize("name", ["data", "191", "2", "api", "issue", "#"])
def test_a_number_or_a_small_word_in_use_does_not_stand_out(name: str) -> None:
    assert not stands_out(name)


@pytest.mark.parametrize("name", ["mara", "Data", "wobblecorp", "data-01", "Tidewater Core", "PROJ-191", "README.md"])
def test_what_no_everyday_word_looks_like_stands_out(name: str) -> None:
    assert stands_out(name)


def test_a_name_behind_a_part_of_a_program_is_found() -> None:
    assert ("Diego", "person") in names("flaky: tests/api/test_up.py::test_large_file, Diego is looking into it")
    assert ("Martina Budde", "person") in names("it shows Martina Budde - Run The World as before")


@pytest.mark.parametrize(
    "text",
    [
        "The CI pipeline is red again",
        "Never deploy on Fridays. Always run the tests first.",
        "Set LOG_LEVEL=DEBUG in production to trace HTTP 500 errors",
        "Please remember that the build takes nine minutes.",
        "OK, thanks! See you on Monday in January.",
        "Fixed: KeyError when parsing JSON from the API",
        "",
        " \n ",
    ],
)
def test_ordinary_sentences_name_nobody(text: str) -> None:
    assert names(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Bob's flat in Paris, Rome's rival: #Berlin!",
        "\u738b\u82b3\u5728\u5317\u4eac\u5de5\u4f5c",
        "see a/b.py and c.py",
    ],
)
def test_what_is_told_stands_in_the_text_and_does_not_overlap(text: str) -> None:
    found = mentions_in(text)
    assert found
    assert all(text[each.start : each.end] == each.name for each in found)
    assert all(one.end <= two.start for one, two in pairwise(found))
    assert all(0 < each.confidence <= 1 and each.rule for each in found)


def test_a_possessive_ending_and_the_sign_of_a_hashtag_are_not_the_name() -> None:
    assert [name for name, _ in names("Bob's flat is in #Berlin")] == ["Bob", "Berlin"]


def test_known_names_are_found_however_they_are_written() -> None:
    known = Gazetteer({"Tidewater": "product", "Blue Harbour Project": "organisation"})
    assert names("the tidewater rollout of blue harbour project waits", gazetteer=known) == [
        ("tidewater", "product"),
        ("blue harbour project", "organisation"),
    ]
    assert mentions_in("about Tidewater", gazetteer=known)[0].confidence == 1.0


def test_a_known_name_that_is_an_everyday_word_counts_only_as_it_is_written() -> None:
    known = Gazetteer({"Will": "person"})
    assert names("it will rain", gazetteer=known) == []
    assert names("ask Will", gazetteer=known) == [("Will", "person")]


def test_a_known_name_within_a_path_or_longer_word_is_not_meant() -> None:
    known = Gazetteer({"tidewater": "service"})
    assert names("in docs/tidewater/index.md and tidewater-old", gazetteer=known) == [
        ("docs/tidewater/index.md", "file")
    ]


def test_who_speaks_is_no_mention_as_a_label_but_is_known_within() -> None:
    assert names("Marlo: the tests pass", speaker="Marlo") == []
    assert ("marlo", "person") in names("then ask marlo again", speaker="Marlo")


def test_code_names_nobody_but_files_in_it_count() -> None:
    text = "Look:\n```python\nfrom Alice import Bob\nopen('data/x.csv')\n```\nThen ask Carol."
    assert names(text) == [("data/x.csv", "file"), ("Carol", "person")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ich habe gestern die Datenbank auf den neuen Server umgezogen, weil der Speicher voll war.", []),
        ("Der Wolf im Wald mag keine Rechnung, und die Katze schl\u00e4ft auf dem Sofa.", []),
        (
            "Anna Schmidt arbeitet bei der Siemens AG in Berlin.",
            [("Anna Schmidt", "person"), ("Siemens AG", "organisation"), ("Berlin", "place")],
        ),
        ("Frau Kr\u00fcger ist nach M\u00fcnchen gezogen", [("Kr\u00fcger", "person"), ("M\u00fcnchen", "place")]),
        (
            "El proyecto de Mar\u00eda Garc\u00eda en Madrid usa Kubernetes",
            [("Mar\u00eda Garc\u00eda", "person"), ("Madrid", "place"), ("Kubernetes", "product")],
        ),
        ("Rechnungen an Kunden in \u00d6sterreich brauchen die Nummer.", [("\u00d6sterreich", "place")]),
        ("Wie hei\u00dft der Hund von Mara?", [("Mara", "person")]),
        ("Das gilt in der EU und in Deutschlands Norden.", [("EU", "place"), ("Deutschlands", "place")]),
        ("Trabajan Ana y Luis en Sevilla.", [("Ana", "person"), ("Luis", "person"), ("Sevilla", "place")]),
        ("\u79d1\u745e\u00b7\u8212\u5c14\u66fc\u8bf4\u4e0d", [("\u79d1\u745e\u00b7\u8212\u5c14\u66fc", "person")]),
        ("\u5982\u679c\u94f6\u884c\u5173\u95e8\uff0c\u4f46\u662f\u6211\u4eec\u7b49", []),
        ("Las pruebas fallan los lunes y no hay respuesta del servidor.", []),
        ("Le serveur de Jean Dupont est \u00e0 Lyon", [("Jean Dupont", "person"), ("Lyon", "place")]),
        ("Les tests sont dans le dossier de l'\u00e9quipe.", []),
        ("\u738b\u82b3\u5728\u5317\u4eac\u5de5\u4f5c", [("\u738b\u82b3", "person"), ("\u5317\u4eac", "place")]),
        ("\u6570\u636e\u5e93\u5df2\u7ecf\u8fc1\u79fb\u5b8c\u6210", []),
        ("\u7530\u4e2d\u3055\u3093\u306f\u6771\u4eac\u3067\u50cd\u3044\u3066\u3044\u307e\u3059",
         [("\u7530\u4e2d", "person"), ("\u6771\u4eac", "place")]),
        ("\u30c6\u30b9\u30c8\u306f\u6bce\u65e5\u5b9f\u884c\u3057\u307e\u3059", []),
    ],
)  # fmt: skip
def test_other_languages_are_read_by_their_own_signs(text: str, expected: list[tuple[str, str]]) -> None:
    assert names(text) == expected


def test_a_long_text_is_read_line_by_line() -> None:
    text = "\n".join(f"Line {at}: Alice met Bob in Paris." for at in range(200))
    assert len([name for name, _ in names(text) if name == "Paris"]) == 200


def test_a_very_long_row_of_names_is_read() -> None:
    assert len(names("der " * 20 + "Anna " * 3000)) > 100
    assert names("Siemens " * 3000)
