"""What rules draw from one text."""

from __future__ import annotations

from agent_memory.knowledge.entities.entity_drafts import extract_entities


def test_extract_entities_speaker_is_a_person() -> None:
    found = extract_entities("The boat is in Bergen.", speaker="Jonas Weber", least="low")
    assert {each.name: each.entity_type for each in found.entities} == {"Bergen": "name", "Jonas Weber": "person"}


def test_extract_entities_speaker_named_in_the_text_is_there_once() -> None:
    found = extract_entities("I, Jonas Weber, work at Acme Corp.", speaker="Jonas Weber")
    assert [each.name for each in found.entities].count("Jonas Weber") == 1


def test_extract_entities_name_seen_once_has_low_confidence() -> None:
    assert extract_entities("The boat is in Bergen.").entities == []
    assert [each.confidence for each in extract_entities("The boat is in Bergen.", least="low").entities] == ["low"]


def test_extract_entities_sentence_about_two_names_makes_no_relation() -> None:
    text = "I think Tobias Reuter works at Initech. Tobias Reuter left Initech."
    assert extract_entities(text).relationships == []
    assert [each.name for each in extract_entities(text).entities] == ["Tobias Reuter", "Initech"] * 2
