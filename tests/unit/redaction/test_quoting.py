"""What a caller gave, as an error repeats it."""

from __future__ import annotations

from agent_memory.redaction import quoted
from tests.rows import check_rows


@check_rows("given", [10**5000, [10**5000]], ids=["alone", "within"])
def test_a_number_too_long_to_write_is_named_by_its_type(given: object) -> None:
    assert quoted(given) == f"'a value of type {type(given).__name__}'"


def test_what_cannot_be_printed_is_escaped_and_a_secret_left_out() -> None:
    secret = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12"
    assert quoted("a\x1bb") == r"'a\x1bb'"
    assert secret[:12] not in quoted(secret)
