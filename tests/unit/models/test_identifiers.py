"""Identifiers of agents: accepted names."""

from __future__ import annotations

from agent_memory.errors import ValidationError
from agent_memory.models import check_agent_id
from tests.rows import check_rows
from tests.support import raises


@check_rows("name", ["bob", "B", "0", "a-b_c", "x" * 64, "Bob2"])
def test_names_that_can_be_folders(name: str) -> None:
    assert check_agent_id(name) == name


@check_rows(
    "name",
    [
        *("", ".", "..", "../x", "a/b", "a\\b", "bob\n", "bob ", " bob", "bob.", "b\0b", "x" * 65, "_own", "-x", "ü"),
        *("CON", "con", "Nul", "COM1", "lpt9", "aux", "prn"),
        *(None, 5, b"bob", ["bob"]),
    ],
)
def test_names_that_cannot_are_refused_with_advice(name: object) -> None:
    with raises(ValidationError, "invalid_agent_id") as refused:
        check_agent_id(name)
    assert len(refused.value.message) < 150
    assert isinstance(refused.value, ValueError)


def test_a_secret_given_for_a_name_is_not_repeated() -> None:
    secret = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12!"
    with raises(ValidationError, "invalid_agent_id") as refused:
        check_agent_id(secret)
    assert secret[:12] not in refused.value.message


# -- times ------------------------------------------------------------------------------------------------------------
