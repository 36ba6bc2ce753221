"""A small workspace: a book in four phases, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from agent_memory.workspace import Caller, Workspace
from tests.postgres_server import PostgresServer, postgres_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from agent_memory.workspace import Claim
    from tests.support import FrozenClock

HAS_WHEEL = sys.version_info[:2] == (3, 11) and platform.system() == "Linux" and platform.machine() == "x86_64"
"""Whether there is a wheel of PostgreSQL for this machine, as pyproject.toml says."""

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


sqlite_only = pytest.mark.parametrize("url", [None], ids=["sqlite"])
"""For tests of what SQLite alone has: its file, and copies of it."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the URL of a PostgreSQL server, one for each process of pytest, started when it is first asked for."""
    if postgres_programs() is None:
        assert not (HAS_WHEEL and "CI" in os.environ), "pgserver is in the extra `dev` and not installed"
        pytest.skip("no PostgreSQL here: the wheel of pgserver is for Python 3.11 on Linux, x86-64")
    with PostgresServer() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Return where the rows are: None, in a file of SQLite; or the URL of PostgreSQL, emptied after each test."""
    if request.param == "sqlite":
        yield None
        return
    address: str = request.getfixturevalue("postgres")
    yield address
    engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("SET client_min_messages = warning")  # not each table that goes with its schema
        for name in sa.inspect(connection).get_schema_names():
            if name not in {"public", "information_schema"}:
                connection.exec_driver_sql(f'DROP SCHEMA "{name}" CASCADE')


@pytest.fixture
def declaration(tmp_path: Path) -> Path:
    """Return the path of the declaration."""
    path = tmp_path / "book.yaml"
    path.write_text(BOOK)
    return path


@pytest.fixture
def book(tmp_path: Path, declaration: Path, clock: FrozenClock, url: str | None) -> Iterator[Workspace]:
    """Return a workspace in which nothing was done yet."""
    workspace = Workspace.create(tmp_path / "book", declaration, url=url, clock=clock)
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
