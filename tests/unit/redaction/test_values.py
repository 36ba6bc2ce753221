"""redact_value: secrets out of metadata, tags and payloads."""

from __future__ import annotations

from typing import Any

from agent_memory.redaction import SecretRedactor, redact_value
from tests.rows import check_rows

REDACTOR = SecretRedactor()
TOKEN = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12"


def cleaned(value: Any) -> Any:
    """Return `value` without secrets."""
    return redact_value(value, REDACTOR)[0]


def test_strings_keys_and_list_items_are_searched() -> None:
    value = {"where": [f"key {TOKEN}"], f"k {TOKEN}": "x"}
    assert TOKEN not in str(cleaned(value))


@check_rows("key", ["password", "apiKey", "client_secret", "DB_PASSWORD", "accessToken", "pin", "senha"])
def test_a_value_under_a_key_that_names_a_secret_is_replaced_whole(key: str) -> None:
    value, kinds = redact_value({key: "plainword"}, REDACTOR)
    assert value == {key: "[redacted:named-secret]"}
    assert kinds == ("named-secret",)


def test_what_lies_deeper_under_such_a_key_is_replaced_too() -> None:
    assert cleaned({"credentials": {"user": "bob", "values": ["a", 7]}}) == {
        "credentials": {"user": "[redacted:named-secret]", "values": ["[redacted:named-secret]"] * 2}
    }


@check_rows(
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


@check_rows("card", [4929420573595709, 4929420573595709.0, [1, 4929420573595709]])
def test_card_number_as_number_is_redacted(card: Any) -> None:
    value, kinds = redact_value({"card": card, "nested": {"n": card}}, REDACTOR)
    assert "4929420573595709" not in str(value)
    assert kinds == ("credit-card",)


@check_rows("key", ["pin_code", "pinCode", "access_code", "security-code"])
@check_rows("code", [4711, "4711"])
def test_code_under_a_key_of_codes_is_redacted(key: str, code: Any) -> None:
    assert cleaned({key: code}) == {key: "[redacted:named-secret]"}


@check_rows(
    "value",
    [
        {"order_id": 4929420573595709, "timestampMs": 5129420573590},
        {
            "created": 1764192813.123456,
            "size": 20971520,
            "status_code": 404,
            "zip_code": 10115,
            "ratio": 0.4929420573595709,
        },
        {"snowflake": 492942057359570912, "nanoseconds": 1764192813123456789},
    ],
)
def test_number_that_counts_or_identifies_stays(value: dict[str, Any]) -> None:
    assert cleaned(value) == value


def test_secret_in_the_form_of_a_marker_is_redacted() -> None:
    assert "hunter2" not in str(cleaned({"password": "[redacted:hunter2-is-it]"}))
