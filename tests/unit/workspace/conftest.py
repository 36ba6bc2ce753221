"""A small workspace: a book in four phases, on SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.workspace import Caller, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_memory.workspace import Claim
    from tests.support import FrozenClock

BOOK = """
workspace: book
tables:
  chapters:
    key: number
    lock: true
    columns:
      number: {type: integer, required: true}
      title: text
      draft: text
      summary: text
      sections: {type: json, schema: {type: array, items: {type: string}}}
      score: real
      final: {type: boolean, default: false}
    search: [title, summary]
  terms:
    key: term
    columns:
      term: {type: text, required: true}
      definition: text
      chapter: {type: integer, references: chapters}
    search: [term, definition]
  tactics:
    columns:
      name: {type: text, required: true}
      kind: {type: text, enum: [mindset, script]}
      chapter: {type: integer, references: chapters}
  decisions:
    kind: log
    columns:
      agent_name: {type: text, required: true, write: [analyst]}
      chapter: {type: integer, references: chapters}
  retries:
    kind: log
    columns: {agent_name: text, chapter: {type: integer, references: chapters}, attempt_number: integer,
              failure_type: text, failure_message: text, outcome: text, phase: integer}
  style:
    kind: singleton
    columns: {guide: {type: text, default: plain}, picture: file, at: timestamp}
logs: {retries: retries}
files: {prompts: prompts/*.md}
phases:
  - {name: prepare, agents: [librarian], snapshot: PREPARED}
  - {name: analyse, over: chapters, reads: own, agents: [{agent: analyst, produces: [summary]}], retries: 1}
  - {name: write, over: chapters, order: in_order, reads: earlier, agents: [writer, editor], snapshot: WRITTEN}
  - {name: bind, agents: [binder]}
"""


@pytest.fixture
def declaration(tmp_path: Path) -> Path:
    """Return the path of the declaration."""
    path = tmp_path / "book.yaml"
    path.write_text(BOOK)
    return path


@pytest.fixture
def book(tmp_path: Path, declaration: Path, clock: FrozenClock) -> Iterator[Workspace]:
    """Return a workspace in which nothing was done yet."""
    workspace = Workspace.create(tmp_path / "book", declaration, clock=clock)
    yield workspace
    workspace.close()


def do(book: Workspace, step: str, work: Callable[[Workspace, Caller], object] | None = None) -> Claim:
    """Claim a step, do its work and finish it."""
    claim = book.steps.claim("worker", step=step)
    assert claim is not None
    if work is not None:
        work(book, Caller(claim.agent, claim=claim))
    book.steps.finish(claim)
    return claim


def prepare(book: Workspace, chapters: int = 3) -> None:
    """Do the first phase: some chapters are there."""

    def add(workspace: Workspace, me: Caller) -> None:
        for number in range(1, chapters + 1):
            workspace.tables.save("chapters", {"number": number, "title": f"Chapter {number}"}, me)

    do(book, "prepare/librarian/", add)


def analyse(book: Workspace, number: int) -> None:
    """Do the second phase for a chapter: it defines the term `roof` and gets a summary."""

    def work(workspace: Workspace, me: Caller) -> None:
        workspace.tables.save("terms", {"term": "roof", "definition": f"as in {number}"}, me)
        workspace.tables.update("chapters", number, {"summary": f"Summary {number}"}, me)

    do(book, f"analyse/analyst/{number}", work)


def write(book: Workspace, number: int) -> None:
    """Do the third phase for a chapter: it gets a draft."""
    do(
        book,
        f"write/writer/{number}",
        lambda workspace, me: workspace.tables.update("chapters", number, {"draft": f"Draft {number}"}, me),
    )
    do(book, f"write/editor/{number}")
