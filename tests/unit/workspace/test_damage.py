"""A database that is damaged, emptied, gone or full is told in words; nothing new is begun in its place."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import StorageError
from agent_memory.workspace import Workspace
from tests.concurrency.processes import environment
from tests.unit.workspace.conftest import prepare, sqlite_only

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock

pytestmark = sqlite_only


def rows_of(book: Workspace) -> Path:
    """Do a phase, close, and return the path of the database, with nothing left in its log."""
    prepare(book, 1)
    book.close()
    return book.folder / ".workspace" / "rows.db"


def test_what_is_no_database_is_told(book: Workspace, clock: FrozenClock) -> None:
    rows_of(book).write_bytes(b"no database at all " * 500)
    with pytest.raises(StorageError, match="damaged"):
        Workspace.open(book.folder, clock=clock)


@pytest.mark.parametrize("emptied", [True, False])
def test_no_new_database_is_begun_where_one_was(book: Workspace, clock: FrozenClock, *, emptied: bool) -> None:
    rows = rows_of(book)
    if emptied:
        rows.write_bytes(b"")
    else:
        rows.unlink()
    with pytest.raises(StorageError, match="gone or empty"):
        Workspace.open(book.folder, clock=clock)
    assert not rows.exists() or rows.stat().st_size == 0


def test_a_page_that_was_overwritten_is_told(book: Workspace, clock: FrozenClock) -> None:
    rows = rows_of(book)
    content = bytearray(rows.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    rows.write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        Workspace.open(book.folder, clock=clock).canonical()


def test_a_lock_file_may_be_deleted(book: Workspace) -> None:
    other = Workspace.open(book.folder)
    with other.tables.bulk() as add:
        add("tactics", {"name": "one"})
        (book.folder / ".workspace" / "rows.lock").unlink()
    book.tables.save("tactics", {"name": "two"})
    other.tables.save("tactics", {"name": "three"})
    assert book.tables.many("tactics").total == 3
    other.close()


_BESIDE = """
import sys
from pathlib import Path
from agent_memory.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
workspace.tables.save("chapters", {"number": 2})
workspace.close()
"""


def test_a_second_workspace_of_a_process_keeps_the_locks_of_the_first(book: Workspace) -> None:
    """To close any descriptor of a file drops all locks of a process on it; the log would be taken from under it."""
    log = book.folder / ".workspace" / "rows.db-wal"
    book.tables.save("chapters", {"number": 1})
    Workspace.open(book.folder).close()
    assert log.exists(), "the first one still uses it"
    subprocess.run([sys.executable, "-c", _BESIDE, str(book.folder)], check=True, env=environment())
    assert log.exists(), "another process took itself for the last one"
    assert [row["number"] for row in book.tables.many("chapters").rows] == [1, 2]
