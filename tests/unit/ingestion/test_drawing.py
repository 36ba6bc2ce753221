"""What rules draw from one text."""

from __future__ import annotations

from agent_memory.ingestion.drawing import drawn


def test_who_speaks_is_named_by_what_they_say() -> None:
    found = drawn("The boat is moored in Bergen.", speaker="Jonas Weber")
    assert {each.name: each.entity_type for each in found.entities} == {"Bergen": "place", "Jonas Weber": "person"}


def test_who_speaks_is_there_once_where_the_text_names_them_too() -> None:
    found = drawn("I, Jonas Weber, work at Acme Corp.", speaker="Jonas Weber")
    assert [each.name for each in found.entities].count("Jonas Weber") == 1


def test_nobody_is_named_where_it_is_not_known_who_speaks() -> None:
    assert [each.name for each in drawn("The boat is moored in Bergen.").entities] == ["Bergen"]
