"""The form in which equal names are equal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.entities.matching import normal_form
from agent_memory.knowledge.entities.matching.normal_forms import legal_forms, split_words
from tests.rows import check_rows


@check_rows(
    ("name", "kind", "form"),
    [
        ("Müller", "", "mueller"),
        ("ÅNGSTRÖM", "", "angstroem"),
        ("Straße", "", "strasse"),
        ("Łódź", "", "lodz"),
        ("O\u2019Brien", "", "obrien"),
        ("AT&T", "", "at and t"),
        ("PostgreSQL 16.0", "", "postgresql 16"),
        ("v2.0.1", "", "2.0.1"),
        ("1,000 lines", "", "1000 lines"),
        ("C++", "", "c++"),
        ("C#", "", "c#"),
        (".env", "file", ".env"),
        ("svc-auth_1", "service", "svc auth 1"),
        ("The Berlin Office", "place", "berlin office"),
        ("The Who", "", "the who"),
        ("Acme S.p.A.", "organisation", "acme"),
        ("Acme Inc.", "person", "acme inc"),
        ("Inc.", "organisation", "inc"),
        ("Prof. Dr. Ada Lovelace", "person", "ada lovelace"),
        ("Dr. Martens", "organisation", "dr martens"),
        ("...", "", "..."),
    ],
)
def test_the_normal_form_leaves_out_what_tells_nothing(name: str, kind: str, form: str) -> None:
    assert normal_form(name, kind) == form


@given(st.text(max_size=40), st.sampled_from(["", "person", "organisation", "product"]))
def test_a_name_has_a_normal_form_whatever_is_in_it(name: str, kind: str) -> None:
    form = normal_form(name, kind)
    assert bool(form) == bool(name.strip())
    assert form == form.strip()


@given(st.text(alphabet="aA1.-_ éÉüÜ", max_size=20))
def test_case_and_separators_do_not_matter(name: str) -> None:
    assert split_words(name.upper()) == split_words(name.lower())


def test_marks_of_scripts_in_which_they_are_letters_are_kept() -> None:
    assert normal_form("ガス") != normal_form("カス")
    assert normal_form("йод") != normal_form("иод")


def test_legal_forms_are_known_by_any_spelling() -> None:
    assert legal_forms("Acme Incorporated", "organisation") == legal_forms("ACME, Inc.", "") == {"inc"}
    assert legal_forms("Acme GmbH & Co. KG", "organisation") == {"gmbh", "kg"}
    assert legal_forms("Acme", "organisation") == legal_forms("Acme Inc.", "person") == set()
