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
