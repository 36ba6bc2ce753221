"""What is text in a memory, and that none of it is stored with a secret in it."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field

from agent_memory.errors import ValidationError
from agent_memory.models import CATEGORIES, MEMORY, Kind, Link, Memory, Source
from agent_memory.models.record import IdOf
from agent_memory.redaction import Redaction
from agent_memory.store.record_redaction import (
    clean_record,
    make_record,
    redact_fields,
    redact_record,
    text_fields,
    with_fields,
)
from tests.rows import check_rows
from tests.support import memory_of

TOKEN = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12"
SECRET = "gh" + "p_" + "x7Kq2mZ9" * 4 + "aB3d"
HOLDING: dict[str, Any] = {
    "content": f"the build server uploads with the token {SECRET}",
    "category": f"x_{SECRET.lower()}",
    "topic": f"x_{SECRET.lower()}",
    "tags": ["ops", SECRET],
    "created_by_session": SECRET,
    "group": SECRET,
    "project": SECRET,
    "source": {"kind": "tool", "detail": f"fetched with {SECRET}"},
    "links": [{"rel": SECRET, "id": "mem-00000000000b"}],
    "metadata": {SECRET: [{"deep": f"x {SECRET}"}]},
}
NOT_TEXT = {
    "agent_id", "id", "timestamp", "observed_at", "last_accessed", "access_count", "trust", "confidence", "importance",
    "supersedes", "expires_at", "pinned", "promoted_at", "evicted_at", "origin",
}  # fmt: skip


def test_each_field_of_the_model_is_text_or_is_known_to_be_none() -> None:
    """A new field that takes text is cleaned; whoever adds one says here what a secret in it looks like."""
    assert set(text_fields(MEMORY)) == HOLDING.keys()
    assert Memory.model_fields.keys() - HOLDING.keys() == NOT_TEXT


@check_rows("field", HOLDING)
def test_a_secret_leaves_every_field_of_a_memory(field: str) -> None:
    redacted = redact_record(MEMORY, memory_of(**{"content": "kept", field: HOLDING[field]}))
    assert redacted.kinds
    assert SECRET.lower() not in redacted.value.model_dump_json().lower()


@check_rows("field", HOLDING)
def test_a_secret_leaves_every_field_of_a_change(field: str) -> None:
    redacted = redact_fields(MEMORY, {field: HOLDING[field]})
    assert redacted.kinds
    assert SECRET.lower() not in str(redacted.value).lower()


@check_rows(
    "changes",
    [
        {"content": f"the build server uploads with the token {SECRET}".encode()},
        {"tags": (SECRET,)},
        {"tags": {SECRET}},
        {"source": Source(kind="tool", detail=SECRET)},
        {"links": [Link(rel=SECRET, id="mem-00000000000b")]},
    ],
)
def test_whatever_form_the_model_takes_is_cleaned(changes: dict[str, Any]) -> None:
    assert SECRET.lower() not in str(redact_fields(MEMORY, changes).value).lower()


@check_rows("category", [*CATEGORIES, "meeting_note", "q3_2026", "phase2"])
def test_a_category_of_words_stays(category: str) -> None:
    assert redact_record(MEMORY, memory_of("x", category=category)).value.category == category


@check_rows("category", ["mango" + "fest77", "a" * 41, "x7kq2mz9vb4nw8tr3sl1"])
def test_a_category_that_could_be_a_password_becomes_a_note(category: str) -> None:
    redacted = redact_record(MEMORY, memory_of("x", category=category))
    assert (redacted.value.category, redacted.kinds) == ("note", ("high-entropy",))


@check_rows(
    "session",
    [
        "root-1",
        "s1",
        "550e8400-e29b-41d4-a716-446655440000",
        "0000000000000000-1a2b3c4d5e6f7a8b_memory-assistant",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "chat 2026-03-01",
        "acme:session-100",
        "ann@acme.example:9f8e7d6c5b4a",
        "acme:550e8400-e29b-41d4-a716-446655440000",
        "T04ABCD:S1234567",
    ],
)
def test_the_id_of_a_session_stays(session: str) -> None:
    memory = memory_of("x", created_by_session=session)
    assert redact_record(MEMORY, memory).value is memory


def test_a_memory_without_a_secret_is_not_copied() -> None:
    memory = memory_of(" as it was, spaces and all ", tags=["ops"], metadata={"a": [1, None]})
    assert redact_record(MEMORY, memory).value is memory


class Ticket(Memory):
    """A kind with a text that ends like an id, and with one that is an id."""

    number: str = Field("", pattern=r"^(?:|.*-[0-9a-f]{12})$")
    about: Annotated[str, IdOf("ent")] | None = None


def test_what_looks_like_an_id_is_text_unless_it_is_declared_to_be_one() -> None:
    kind = Kind(name="ticket", model=Ticket, prefix="mem-", journal="tickets.yaml", text="content")
    ticket = Ticket(agent_id="bob", content="x", number=f"{SECRET}-0123456789ab", about="ent-0123456789ab")
    assert set(text_fields(kind)) == {*HOLDING, "number"}
    assert SECRET not in redact_record(kind, ticket).value.model_dump_json()


def test_nothing_but_a_secret_is_refused() -> None:
    with pytest.raises(ValidationError, match="only a secret"):
        clean_record(MEMORY, memory_of(SECRET))


def test_a_label_that_is_a_secret_is_no_reason_to_refuse_a_text_without_words() -> None:
    assert redact_record(MEMORY, memory_of("!!!", tags=[SECRET])).value.content == "!!!"


class _Deaf:
    def redact(self, text: str) -> Redaction:
        return Redaction(text)


def test_what_is_marked_as_clean_is_not_looked_at_again() -> None:
    marked = make_record(MEMORY, {"content": f"the token is {SECRET}"}, "bob", _Deaf())
    assert clean_record(MEMORY, marked) is marked.value


def test_only_fields_without_text_may_change_behind_the_redactor() -> None:
    marked = redact_record(MEMORY, memory_of("x", pinned=True))
    assert with_fields(marked, pinned=False).value.pinned is False
    with pytest.raises(AssertionError):
        with_fields(marked, content=SECRET)


@check_rows(
    "text",
    [
        f"api key is {TOKEN}",
        f"My API key: {TOKEN}",
        f"the password is {'Mango' + '#fest77'}",
        f"token={TOKEN}",
        f"{TOKEN} is my token",
        f"Das Passwort lautet {'Mango' + '#fest77'}.",
        f"- access token -> `{TOKEN}`",
    ],
)
def test_text_of_a_label_and_its_secret_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="only a secret"):
        redact_record(MEMORY, memory_of(text))


@check_rows(
    "text",
    [
        f"The production database password is {'Mango' + '#fest77'}",
        f"Deploy from Lisbon with {TOKEN}",
        f"The staging token {TOKEN} rotates on Fridays",
        f"Rotate the API key {TOKEN} tomorrow",
        f"user anna, password {'Mango' + '#fest77'}, host db.example.com",
    ],
)
def test_text_that_says_more_than_its_secret_is_stored(text: str) -> None:
    assert "[redacted:" in redact_record(MEMORY, memory_of(text)).value.content


def test_make_record_secret_as_link_name_is_redacted() -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    values = {"content": "The cellar is dry.", "links": [{"rel": token, "id": "mem-0123456789ab"}]}
    record = make_record(MEMORY, values, "bob")
    assert record.kinds
    assert token not in record.value.links[0].rel
    assert record.value.links[0].id == "mem-0123456789ab"
