"""redact_value: secrets out of metadata, tags and payloads."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory.redaction import SecretRedactor, redact_value

REDACTOR = SecretRedactor()
TOKEN = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12"


def cleaned(value: Any) -> Any:
    """Return `value` without secrets."""
    return redact_value(value, REDACTOR)[0]


def test_strings_keys_and_list_items_are_searched() -> None:
    value = {"where": [f"key {TOKEN}"], f"k {TOKEN}": "x"}
    assert TOKEN not in str(cleaned(value))


@pytest.mark.parametrize("key", ["password", "apiKey", "client_secret", "DB_PASSWORD", "accessToken", "pin", "senha"])
def test_a_value_under_a_key_that_names_a_secret_is_replaced_whole(key: str) -> None:
    value, kinds = redact_value({key: "plainword"}, REDACTOR)
    assert value == {key: "[redacted:named-secret]"}
    assert kinds == ("named-secret",)


def test_what_lies_deeper_under_such_a_key_is_replaced_too() -> None:
    assert cleaned({"credentials": {"user": "bob", "values": ["a", 7]}}) == {
        "credentials": {"user": "[redacted:named-secret]", "values": ["[redacted:named-secret]"] * 2}
    }


@pytest.mark.parametrize(
    "value",
    [
        {"max_tokens": 100, "tokens": 7, "token_count": 3, "keyboard": "dvorak"},
        {"password_policy": "twelve characters", "author": "bob", "topic": "keys"},
        {"password": None, "token": ""},
        ["auth", "token", "password"],
        7,
        None,
        True,
        1.5,
    ],
)
def test_what_only_speaks_of_secrets_stays(value: Any) -> None:
    assert cleaned(value) == value


def test_it_is_idempotent() -> None:
    once = cleaned({"password": "x1", "note": f"{TOKEN}"})
    assert cleaned(once) == once


def test_hostile_depth_is_cut_and_does_not_exhaust_the_stack() -> None:
    value: Any = TOKEN
    for _ in range(100_000):
        value = [value]
    assert TOKEN not in repr(cleaned(value))
