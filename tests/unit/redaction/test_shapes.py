"""Randomness, card numbers and placeholders, by their letters alone."""

from __future__ import annotations

from agent_memory.redaction.shapes import is_placeholder, looks_like_password, looks_random, passes_luhn
from tests.rows import check_rows


@check_rows("value", ["${TOKEN}", "<password>", "***", "os.environ['X']", "{{ vault }}", "changeme", "None", ""])
def test_what_stands_for_a_secret_is_a_placeholder(value: str) -> None:
    assert is_placeholder(value)


@check_rows("value", ["$ecret99", "@Sommer24", "hunter2", "env1ronment!", "secret.Zug.1987"])
def test_what_only_looks_like_one_is_not(value: str) -> None:
    assert not is_placeholder(value)


@check_rows("digits", ["4111111111111111", "5555555555554444", "378282246310005"])
def test_card_numbers_pass_luhn(digits: str) -> None:
    assert passes_luhn(digits)


@check_rows("digits", ["4111111111111112", "1234567890123456", "411111111111", "4444444444444444"])
def test_other_numbers_do_not(digits: str) -> None:
    assert not passes_luhn(digits)


@check_rows("token", ["7f3b9a1c5d2e8f60", "aB3dE5gH7jK9mN1p", "x9-Qr7_tU2vW4zz1"])
def test_generated_strings_look_random(token: str) -> None:
    assert looks_random(token)


@check_rows("token", ["customer_id_2024", "internationalization", "2024-05-06T10:00", "src/app/main2.py", "short1"])
def test_names_dates_and_paths_do_not(token: str) -> None:
    assert not looks_random(token)


@check_rows("token", ["Sommer2024!", "8hG#kk20-Mango", "marmelade.Zug.1987", "r00t-Kiwi-5521"])
def test_chosen_passwords_look_like_passwords(token: str) -> None:
    assert looks_like_password(token)


@check_rows("token", ["required", "sha256", "v1.2.3", "OAuth2", "call(x1)", "short"])
def test_words_and_technical_terms_do_not(token: str) -> None:
    assert not looks_like_password(token)
