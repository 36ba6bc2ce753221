"""What rules draw from one text."""

from __future__ import annotations

from agent_memory.entities import mentions_in
from agent_memory.ingestion.entities.drawing import drawn


def test_who_speaks_is_named_by_what_they_say() -> None:
    found = drawn("The boat is moored in Bergen.", speaker="Jonas Weber")
    assert {each.name: each.entity_type for each in found.entities} == {"Bergen": "place", "Jonas Weber": "person"}


def test_who_speaks_is_there_once_where_the_text_names_them_too() -> None:
    found = drawn("I, Jonas Weber, work at Acme Corp.", speaker="Jonas Weber")
    assert [each.name for each in found.entities].count("Jonas Weber") == 1


def test_nobody_is_named_where_it_is_not_known_who_speaks() -> None:
    assert [each.name for each in drawn("The boat is moored in Bergen.").entities] == ["Bergen"]


def test_a_name_is_as_sure_as_at_its_surest_place_of_the_text() -> None:
    text = "Mr. Tidewater Core called; Tidewater Core, of Acme Corp, lives in London."
    assert "Tidewater Core" not in [each.name for each in mentions_in(text.partition("; ")[2])]
    assert [each.start for each in drawn(text).entities if each.name == "Tidewater Core"] == [4, 27]
