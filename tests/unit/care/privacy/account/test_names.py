"""By which names somebody is known, and which texts have one of them."""

from __future__ import annotations

from typing import Any

from agent_memory.care.account import HeldRecord, SearchedNames, find_known_names
from tests.rows import check_rows


def entity(last: str, name: str, *aliases: str, into: str = "", kind: str = "entity") -> HeldRecord:
    links = [{"rel": "merged_into", "id": f"ent-{into:0>12}"}] if into else []
    data: dict[str, Any] = {"name": name, "aliases": list(aliases), "links": links}
    return HeldRecord(kind, f"ent-{last:0>12}", "entities.yaml", data, "")


def test_a_name_brings_the_other_names_of_the_same_entity_and_of_those_merged_into_it() -> None:
    known = [
        entity("1", "Ann Miller", "Annie"),
        entity("2", "Dr. Miller", into="1"),
        entity("3", "A. M.", "anm", into="2"),
        entity("4", "Ann Smith"),
    ]
    for name in ("Ann Miller", "ann  miller", "ANNIE", "Dr. Miller", "anm", "ent-000000000003"):
        found = find_known_names(name, known)
        assert set(map(str.casefold, found.names)) >= {"annie", "dr. miller", "a. m.", "anm"}
        assert found.entities == {f"ent-{one:0>12}" for one in "123"}
        assert "Ann Smith" not in found.names
    assert find_known_names("Annie", known).names[0] == "Annie"
    assert find_known_names("ent-000000000004", known).names == ("Ann Smith",)


def test_a_name_that_no_entity_has_is_looked_for_all_the_same() -> None:
    assert find_known_names("Zoe", [entity("1", "Ann"), entity("2", "Zoe", kind="topic")]) == SearchedNames(("Zoe",))


@check_rows(
    ("name", "text"),
    [
        ("Ann", "Ann likes tea."),
        ("Ann", "we met ANN."),
        ("Ann", "Ann's badge; (ann)"),
        ("Ann", "Ann\u2019s badge"),
        ("Maria", "Marias Ausweis"),
        ("Ann Miller", "Ann\n  Miller"),
        ("Müller", "Frau Müller"),
        ("Mu\u0308ller", "Frau M\u00fcller"),
        ("佐藤", "昨日佐藤さんに会った"),
        ("C++", "C++ is hers"),
        ("o'brien", "Tell O'Brien."),
    ],
)
def test_a_name_is_found_as_a_word_of_its_own(name: str, text: str) -> None:
    assert SearchedNames((name,)).are_in(text)


@check_rows("text", ["Annual report", "JoAnn", "annsley", "Ann_2", ""])
def test_a_name_within_another_word_is_none(text: str) -> None:
    assert not SearchedNames(("Ann",)).are_in(text)


@check_rows(
    ("data", "earlier", "concerned"),
    [
        ({"content": "Ann likes tea."}, (), True),
        ({"content": "She likes tea.", "tags": ["ann"]}, (), True),
        ({"content": "She likes tea.", "metadata": {"who": {"names": ["Bo", "Ann"]}}}, (), True),
        ({"content": "hello", "speaker": "Ann"}, (), True),
        ({"content": "She likes tea."}, ("Ann likes tea.",), True),
        ({"content": "likes tea", "links": [{"rel": "subject", "id": "ent-000000000001"}]}, (), True),
        ({"content": "likes tea", "links": [{"rel": "subject", "id": "ent-000000000002"}]}, (), False),
        ({"content": "She likes tea.", "access_count": 3}, (), False),
    ],
)
def test_what_names_somebody_anywhere_or_points_to_them_concerns_them(
    data: dict[str, Any], earlier: tuple[str, ...], concerned: bool
) -> None:
    names = SearchedNames(("Ann",), frozenset({"ent-000000000001"}))
    holding = HeldRecord("memory", "mem-000000000001", "memories.yaml", data, "", earlier)
    assert names.concern(holding) is concerned
