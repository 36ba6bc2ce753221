"""Rows: who sees them, what is refused, which of two with one unique value is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import (
    ConflictError,
    LeaseError,
    NotAllowedError,
    RowNotFoundError,
    ValidationError,
)
from agent_memory.workspace import Caller, Workspace
from tests.unit.workspace.conftest import analyse, do, prepare, sqlite_only

if TYPE_CHECKING:
    from tests.support import FrozenClock


def test_what_a_step_adds_is_its_own_until_it_is_finished(book: Workspace) -> None:
    claim = book.steps.claim("worker")
    assert claim is not None
    me = Caller("librarian", claim=claim)
    book.tables.save("chapters", {"number": 1}, me)
    assert book.tables.many("chapters").rows == []
    assert [row["number"] for row in book.tables.many("chapters", me).rows] == [1]
    book.steps.finish(claim)
    assert [row["number"] for row in book.tables.many("chapters").rows] == [1]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_the_first_by_the_order_of_steps_defines_a_term(book: Workspace, order: tuple[int, ...]) -> None:
    prepare(book)
    for number in order:
        analyse(book, number)
    assert book.tables.get("terms", "roof")["definition"] == "as in 1"
    assert sorted(row["definition"] for row in book.tables.proposals("terms")) == ["as in 2", "as in 3"]


def test_a_step_that_reads_its_own_sees_and_writes_no_row_of_others(book: Workspace) -> None:
    prepare(book)
    analyse(book, 1)
    claim = book.steps.claim("worker", step="analyse/analyst/2")
    me = Caller("analyst", claim=claim)
    assert [row["number"] for row in book.tables.many("chapters", me).rows] == [2]
    assert book.tables.many("terms", me).rows == []
    assert book.tables.search("terms", "roof", me) == []
    with pytest.raises(RowNotFoundError):
        book.tables.get("chapters", 1, me)
    with pytest.raises(RowNotFoundError):
        book.tables.update("chapters", 1, {"title": "mine"}, me)
    with pytest.raises(NotAllowedError, match="chapter must be 2"):
        book.tables.save("tactics", {"name": "ask", "chapter": 1}, me)
    assert book.tables.save("tactics", {"name": "ask"}, me).proposal is False
    assert book.tables.many("tactics", me).rows[0]["chapter"] == 2


def test_a_step_that_reads_earlier_rows_sees_no_later_one(book: Workspace) -> None:
    prepare(book)
    for number in (1, 2, 3):
        analyse(book, number)
    do(book, "write/writer/1")
    do(book, "write/editor/1")
    claim = book.steps.claim("worker", step="write/writer/2")
    me = Caller("writer", claim=claim)
    assert [row["number"] for row in book.tables.many("chapters", me).rows] == [1, 2]


@sqlite_only  # refused before a database is asked
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"number": "one"}, "must be an integer"),
        ({"number": True}, "must be an integer"),
        ({"number": 2**63}, "must fit in 64 bits"),
        ({}, "chapters.number is required"),
        ({"number": 1, "score": float("nan")}, "must be a finite number"),
        ({"number": 1, "sections": ["a", 3]}, r"sections\[1\] does not fit its schema \(type: string\)"),
        ({"number": 1, "final": "yes"}, "must be true or false"),
        ({"number": 1, "title": "a\0b"}, "holds a character"),
        ({"number": 1, "title": "\ud800"}, "holds a character"),
        ({"number": 1, "title": "x" * 1_000_001}, "may have 1,000,000 characters"),
        ({"number": 1, "titel": "x"}, "has no column 'titel'.*there are number, title"),
        ({"number": 1, "title; DROP TABLE chapters": "x"}, "has no column"),
        ({"number": 1, "id": 7}, "has no column 'id'"),
        ({"number": 1, "ws_state": 0}, "has no column 'ws_state'"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    book: Workspace, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        book.tables.save("chapters", values)
    assert book.tables.many("chapters").total == 0
    assert len(book.history()) == 1  # the singleton's own row


def test_sql_in_a_value_is_a_value(book: Workspace) -> None:
    text = "'); DROP TABLE chapters; --"
    book.tables.save("chapters", {"number": 1, "title": text})
    assert book.tables.get("chapters", 1)["title"] == text
    assert book.tables.search("chapters", text) == [book.tables.get("chapters", 1)]


@sqlite_only  # refused before a database is asked
@pytest.mark.parametrize("name", ["nothing", "ws_history", "chapters; DROP TABLE chapters"])
def test_a_table_that_is_not_declared_is_not_there(book: Workspace, name: str) -> None:
    with pytest.raises(ValidationError, match="No table"):
        book.tables.many(name)


def test_an_enum_and_a_reference_say_what_is_allowed(book: Workspace) -> None:
    with pytest.raises(ValidationError, match="must be one of mindset, script, not 'sript'"):
        book.tables.save("tactics", {"name": "ask", "kind": "sript"})
    with pytest.raises(RowNotFoundError, match="chapters has no row '9'"):
        book.tables.save("tactics", {"name": "ask", "chapter": 9})


@sqlite_only  # refused before a database is asked
@pytest.mark.parametrize(
    "path", ["../book.yaml", "/etc/passwd", "prompts/../../x", "link.md", ".workspace/rows.db", ""]
)
def test_a_file_is_inside_the_workspace(book: Workspace, path: str) -> None:
    (book.folder / "link.md").symlink_to("/etc/hostname")
    with pytest.raises(ValidationError, match="inside the workspace"):
        book.tables.update("style", None, {"picture": path})


def test_a_file_is_there(book: Workspace) -> None:
    with pytest.raises(ValidationError, match="not there"):
        book.tables.update("style", None, {"picture": "a.svg"})
    (book.folder / "a.svg").write_text("<svg/>")
    book.tables.update("style", None, {"picture": "a.svg"})
    assert book.tables.get("style")["picture"] == "a.svg"


def test_a_log_is_only_added_to_and_a_column_has_its_writers(book: Workspace) -> None:
    book.tables.save("decisions", {"agent_name": "analyst"}, Caller("analyst"))
    with pytest.raises(NotAllowedError, match="is a log"):
        book.tables.update("decisions", 1, {"agent_name": "x"})
    with pytest.raises(NotAllowedError, match="written by analyst"):
        book.tables.save("decisions", {"agent_name": "writer"}, Caller("writer"))


def test_a_value_that_is_not_the_expected_one_any_more_is_left(book: Workspace) -> None:
    book.tables.save("tactics", {"name": "ask"})
    book.tables.update("tactics", 1, {"kind": "script"}, expected={"kind": None})
    with pytest.raises(ConflictError, match="kind is no longer"):
        book.tables.update("tactics", 1, {"kind": "mindset"}, expected={"kind": None})
    assert book.tables.get("tactics", 1)["kind"] == "script"


def test_secrets_are_in_no_file(book: Workspace) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    saved = book.tables.save("chapters", {"number": 1, "title": f"key {secret}", "sections": [secret]})
    assert saved.redacted
    for path in book.folder.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


def test_nobody_else_writes_a_row_that_is_claimed(book: Workspace, clock: FrozenClock) -> None:
    prepare(book)
    claim = book.steps.claim_row("ann", "chapters", 1, seconds=60)
    with pytest.raises(LeaseError, match="being written by ann"):
        book.tables.update("chapters", 1, {"title": "other"})
    book.tables.update("chapters", 1, {"title": "ann's"}, Caller(claim=claim))
    clock.advance(seconds=61)
    with pytest.raises(LeaseError, match="ended at"):
        book.tables.update("chapters", 1, {"title": "late"}, Caller(claim=claim))
    book.tables.update("chapters", 1, {"title": "other"})
    assert book.tables.get("chapters", 1)["title"] == "other"


def test_search_finds_stems_and_ranks_by_words(book: Workspace) -> None:
    for number, title in enumerate(("Climbing roofs", "A roof", "Doors"), 1):
        book.tables.save("chapters", {"number": number, "title": title})
    assert [row["number"] for row in book.tables.search("chapters", "roof climb")] == [1, 2]
    book.tables.update("chapters", 3, {"title": "Roof doors"})
    assert {row["number"] for row in book.tables.search("chapters", "roof")} == {1, 2, 3}
    assert book.tables.search("chapters", '"* OR (') == []
    with pytest.raises(ValidationError, match="no columns to search"):
        book.tables.search("tactics", "x")


def test_search_finds_the_same_on_every_database(book: Workspace) -> None:
    titles = [
        "Büros in Ōsaka, C++/Rust",
        "see roof-tiles at https://a.example/tiles.html",
        "snake_case and 1e5, v2.10",
        "Крыши",
    ]
    for number, title in enumerate(titles, 1):
        book.tables.save("chapters", {"number": number, "title": title})
    asked = {
        "BURO": [1], "osaka": [1], "rust": [1], "tile": [2], "html": [2], "example": [2], "the": [], "and": [3],
        "snake": [3], "snake_case": [3], "10": [3], "1e5": [3], "КРЫШИ": [4], "крыши": [4], "roof caSE": [2, 3],
    }  # fmt: skip
    found = {words: sorted(row["number"] for row in book.tables.search("chapters", words)) for words in asked}
    assert found == asked


def test_texts_are_ordered_by_their_characters_on_every_database(book: Workspace) -> None:
    terms = ["Beam", "Wall", "a b", "a-b", "ab", "beam", "Äther"]
    for term in reversed(terms):
        book.tables.save("terms", {"term": term})
    assert [row["term"] for row in book.tables.many("terms").rows] == terms
