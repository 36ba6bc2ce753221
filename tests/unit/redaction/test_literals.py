"""Literals are found as by searching the text for each."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.redaction.contexts import CODES, find_numbers
from agent_memory.redaction.findings import LiteralIndex

_LITERALS: Final = ("key", "pass w", "s.", "-", "7z", "::", "ключ", "code ")
_WORDS: Final = ("keys", "pass word", "test.", "a-b", "7z", "x::y", "ключи", "code", " ", "\n", "\u2003", "12.", "Ω")


@given(st.lists(st.lists(st.sampled_from(_WORDS), max_size=12).map("".join), max_size=6))
def test_find_returns_literals_of_each_text(texts: list[str]) -> None:
    index = LiteralIndex()
    index.add(_LITERALS)
    for text in texts:
        assert index.find(text) == {literal for literal in _LITERALS if literal in text}


def test_add_after_find_is_found() -> None:
    index = LiteralIndex()
    index.add(["key"])
    assert index.find("key of the door") == {"key"}
    index.add(["door"])
    assert index.find("key of the door") == {"key", "door"}


def test_find_keeps_no_word_with_digits() -> None:
    index = LiteralIndex()
    index.add(["key"])
    index.find("the keys are hunter29x and k3y!")
    index.find("")
    assert "hunter29x" not in repr(vars(index))
    assert "keys" in repr(vars(index))


@pytest.mark.parametrize(
    "label",
    [
        *("SSN", "social security", "ITIN", "NINO", "NI number", "national insurance", "NHS", "passport number"),
        *("driver's license", "tax file", "Steuer-ID", "Personalausweis", "cédula", "cedula", "pan card", "CPF", "DNI"),
        *("medicare", "health card", "insurance no", "bank account", "account number", "routing", "sort code"),
        *("identity card", "my number", "permis de conduire", "seguridad social", "TC kimlik", "паспорт"),
    ],
)
def test_number_after_label_of_person_is_found(label: str) -> None:
    assert [finding.kind for finding in find_numbers(f"The {label} is 8812345")] == ["personal-number"]
    assert CODES.search(label) is None
