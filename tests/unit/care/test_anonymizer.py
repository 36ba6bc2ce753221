"""Placeholders for names and contact data."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.care.account import HeldRecord
from agent_memory.care.anonymizer import ExportAnonymizer


def held(kind: str, **data: Any) -> HeldRecord:
    return HeldRecord(kind, "rec-000000000001", "entities.yaml", data, "2026-03-01T09:00:00Z")


ANN = held("episode", speaker="Ann Miller", content="Hello.")
ACME = held("entity", name="Acme Corp", entity_type="name", aliases=["Acme"], source={"detail": "capitals"})
ORDER = held("entity", name="ORD-48213", entity_type="order", source={"detail": "identifiers"})


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("Ann asked MILLER; ann miller's desk.", "person-1 asked person-1; person-1's desk."),
        ("Annual plans of Acme, and of acme  corp.", "Annual plans of name-1, and of name-1."),
        ("Order ORD-48213 of 2026-03-01T12:00:00Z.", "Order ORD-48213 of 2026-03-01T12:00:00Z."),
        ("a.b@x.example, A.B@X.EXAMPLE, c@y.example", "mail-1, mail-1, mail-2"),
        ("+49 170 1234567 and 10.1.2.3.", "phone-1 and address-1."),
        (
            "@annm in /home/annm/shop and C:\\Users\\annm\\shop",
            "handle-1 in /home/home-1/shop and C:\\Users\\home-1\\shop",
        ),
        ("The user asked the assistant.", "The user asked the assistant."),
    ],
)
def test_anonymize_text_has_placeholders(text: str, replaced: str) -> None:
    anonymizer = ExportAnonymizer([ANN, ACME, ORDER, held("episode", speaker="user")])
    assert anonymizer.anonymize(text) == replaced


def test_anonymize_record_keeps_keys_and_ids() -> None:
    anonymizer = ExportAnonymizer([ANN])
    record = {"id": "mem-0000000000a1", "Ann": [{"text": "Ann", "at": 3}], "tags": ("ann", "tea")}
    assert anonymizer.anonymize(record) == {
        "id": "mem-0000000000a1", "Ann": [{"text": "person-1", "at": 3}], "tags": ["person-1", "tea"],
    }  # fmt: skip
    assert anonymizer.counts == {"name": 2}


def test_anonymize_name_without_spaces_is_found_inside_text() -> None:
    assert ExportAnonymizer([held("episode", speaker="王小明")]).anonymize("我叫王小明。") == "我叫person-1。"


def test_anonymize_part_of_a_name_that_is_a_common_word_stays() -> None:
    assert ExportAnonymizer([held("episode", speaker="Will Ito")]).anonymize("Ito will come.") == "person-1 will come."


@pytest.mark.parametrize(
    ("speaker", "text"),
    [
        ("Jürgen Groß", "Groß"),
        ("Jürgen Groß", "JÜRGEN GROSS"),
        ("İpek Y\u0131lmaz", "İpek Y\u0131lmaz"),
        ("O\u2019Brien", "O'Brien"),
        ("Jean\u2011Luc", "Jean-Luc"),
        ("Zoe\u0308", "Zoë"),
    ],
)
def test_anonymize_name_in_another_spelling_is_found(speaker: str, text: str) -> None:
    anonymizer = ExportAnonymizer([held("episode", speaker=speaker)])
    assert anonymizer.anonymize([speaker, text]) == ["person-1", "person-1"]


def test_anonymize_person_named_like_a_field_value_leaves_the_fields() -> None:
    words = ("Episode", "Low", "2026", "person", "part_of", "preference", "unknown", "Import")
    anonymizer = ExportAnonymizer([held("episode", speaker=word) for word in words])
    fields = {
        "kind": "episode", "trust": "low", "role": "person", "category": "preference", "origin": "unknown",
        "timestamp": "2026-03-01T12:00:00.123456Z", "valid_from": "2026-03-01",
        "links": [{"rel": "part_of", "id": "res-0000000000a1"}], "source": {"kind": "extraction", "detail": "import"},
    }  # fmt: skip
    assert anonymizer.anonymize(fields) == fields
    assert anonymizer.anonymize({"content": "Low sold 2026 books."}) == {"content": "person-2 sold person-3 books."}


def test_anonymize_placeholder_in_a_stored_text_is_not_given_again() -> None:
    note = held("memory", content="person-1 and mail-1 stay.")
    anonymizer = ExportAnonymizer([note, ANN])
    replaced = anonymizer.anonymize("Ann wrote to a@b.example; person-1 and mail-1 stay.")
    assert replaced == "person-2 wrote to mail-2; person-1 and mail-1 stay."


def test_anonymize_name_with_underscores_is_found() -> None:
    assert ExportAnonymizer([ANN]).anonymize("~/ann_miller/annual_ann.md") == "~/person-1/annual_person-1.md"


def test_anonymize_topic_of_a_person_keeps_a_valid_name() -> None:
    topic = {
        "kind": "topic", "name": "ann_miller_2", "source": {"detail": "person"}, "metadata": {"of": "Ann Miller"},
    }  # fmt: skip
    anonymizer = ExportAnonymizer([ANN, held("episode", speaker="Person")])
    assert anonymizer.anonymize([topic, {"topic": "ann_miller_2"}]) == [
        topic | {"name": "person_1_2", "metadata": {"of": "person-1"}}, {"topic": "person_1_2"},
    ]  # fmt: skip
