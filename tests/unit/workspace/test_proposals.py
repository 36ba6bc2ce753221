"""Proposals are flagged in a table of issues while they are proposals, whoever finished first."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ConflictError, DeclarationError
from agent_memory.workspace import Workspace, parse_declaration
from tests.rows import check_rows
from tests.unit.workspace.conftest import BOOK, analyse, prepare

if TYPE_CHECKING:
    from pathlib import Path

ISSUES = """  issues:
    columns: {chapter: {type: integer, references: chapters}, description: text, flagged_by: text,
              severity: text, resolved: {type: boolean, default: false}}
logs: {retries: retries, issues: issues}
"""
FLAGGED = BOOK.replace("logs: {retries: retries}\n", ISSUES)
SAID = "terms roof: another row came first; this one is kept as a proposal."


@pytest.fixture
def declaration(tmp_path: Path) -> Path:
    """Return the path of a declaration with issues."""
    path = tmp_path / "book.yaml"
    path.write_text(FLAGGED)
    return path


def issues(book: Workspace) -> list[tuple[int | None, str, str, bool]]:
    return [
        (row["chapter"], row["flagged_by"], row["description"], row["resolved"])
        for row in book.tables.many("issues").rows
    ]


def test_a_proposal_is_flagged_whichever_was_finished_first(book: Workspace, tmp_path: Path, declaration: Path) -> None:
    found = set()
    for number, order in enumerate(itertools.permutations((1, 2, 3))):
        with_order = Workspace.create(tmp_path / str(number), declaration)
        prepare(with_order)
        for chapter in order:
            analyse(with_order, chapter)
        assert sorted(issues(with_order)) == [(2, "analyst", SAID, False), (3, "analyst", SAID, False)]
        found.add(with_order.canonical())
        with_order.close()
    assert len(found) == 1
    prepare(book)
    for chapter in (3, 1, 2):
        analyse(book, chapter)
    assert book.canonical() in found


def test_what_is_no_proposal_any_more_is_not_flagged(book: Workspace) -> None:
    prepare(book, 3)
    for chapter in (3, 2, 1):
        analyse(book, chapter)
    book.snapshots.make("before")
    book.tables.update("issues", 1, {"resolved": True})
    before = sorted(issues(book))
    kept = book.resume_from_chapter(1, "analyse").kept_as
    assert [row[0] for row in issues(book)] == [3]
    book.resume_from_chapter(3, "analyse")
    assert issues(book) == []
    book.resume_from_snapshot(kept)
    assert sorted(issues(book)) == before
    book.resume_from_snapshot("before")
    assert [row[3] for row in issues(book)] == [False, False]


def test_a_proposal_of_no_step_is_flagged_and_is_no_more_when_it_is_shown(book: Workspace) -> None:
    book.tables.save("terms", {"term": "roof"})
    assert book.tables.save("terms", {"term": "roof"}).proposal
    assert issues(book) == [(None, "workspace", SAID, False)]
    with pytest.raises(ConflictError):
        book.tables.update("issues", 1, {"resolved": True}, expected={"resolved": True})
    assert len(issues(book)) == 1
    book.tables.update("terms", "roof", {"term": "wall"})
    assert issues(book) == []


@check_rows(
    ("changed", "said"),
    [
        (FLAGGED.replace("issues: issues}", "issues: nothing}"), "logs.issues: 'nothing' is no table"),
        (FLAGGED.replace("issues: issues}", "issues: terms}"), "logs.issues: 'terms' is no table of kind rows or log"),
        (FLAGGED.replace("severity: text", "severity: {type: text, required: true}"), "has no value for this"),
        (FLAGGED.replace("flagged_by: text", "flagged_by: {type: text, enum: [analyst]}"), "this enum lacks"),
        (FLAGGED.replace("description: text, f", "description: json, f"), "this must be text"),
        (FLAGGED.replace("{chapter: {type", "{chapter: {required: true, type"),
         "has no value for this"),
    ],
)  # fmt: skip
def test_a_table_that_takes_no_flags_is_refused(changed: str, said: str) -> None:
    assert changed != FLAGGED
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(changed, "x.yaml")
    assert said in caught.value.message
