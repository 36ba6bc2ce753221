"""A database that is damaged, emptied, gone or full is told in words; nothing new is begun in its place."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tracemalloc
import zlib
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ConfigurationError, ReadOnlyError, StorageError
from agent_memory.workspace import Workspace, core
from agent_memory.workspace.snapshots import snapshot_files
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
    with pytest.raises(StorageError, match="missing or empty"):
        Workspace.open(book.folder, clock=clock)
    assert not rows.exists() or rows.stat().st_size == 0


def test_a_page_that_was_overwritten_is_told(book: Workspace, clock: FrozenClock) -> None:
    rows = rows_of(book)
    content = bytearray(rows.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    rows.write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        Workspace.open(book.folder, clock=clock).canonical()


def test_a_damaged_database_is_put_right_as_the_error_says(book: Workspace, clock: FrozenClock) -> None:
    prepare(book, 2)
    hidden = book.folder / ".workspace"
    book.close()
    (hidden / "rows.db").write_bytes(b"no database at all " * 500)
    with pytest.raises(StorageError) as caught:
        Workspace.open(book.folder, clock=clock)
    assert ".workspace/dumps in the place of rows.db, and remove rows.db-wal" in caught.value.recovery
    shutil.copy(hidden / "dumps" / "PREPARED.db", hidden / "rows.db")
    for log in hidden.glob("rows.db-*"):
        log.unlink()
    with closing(Workspace.open(book.folder, clock=clock)) as again:
        assert again.tables.many("chapters").total == 2


@pytest.mark.parametrize(
    "name",
    [
        *("../evil.md", "{outside}/evil.md", "prompts/../../evil.md", "prompts//x.md", "./x.md", ".workspace/rows.db"),
        *("workspace.yaml", "C:/evil.md", "prompts\\\\x.md", "\\\\\\\\server\\\\x", ""),
    ],
)
def test_a_snapshot_that_names_a_file_outside_writes_nothing(
    book: Workspace, clock: FrozenClock, tmp_path: Path, name: str
) -> None:
    (book.folder / "prompts").mkdir()
    (book.folder / "prompts" / "x.md").write_text("of the snapshot")
    book.snapshots.make("poisoned")
    (book.folder / "prompts" / "x.md").write_text("of now")
    book.close()
    named = name.format(outside=tmp_path)
    with closing(sqlite3.connect(book.folder / ".workspace" / "rows.db")) as database:
        ((content,),) = database.execute(
            "SELECT content FROM ws_texts WHERE hash = (SELECT manifest FROM ws_marks WHERE name = 'poisoned')"
        )
        changed = json.dumps({named: json.loads(content)["prompts/x.md"]})
        database.execute("UPDATE ws_texts SET content = ? WHERE content = ?", (changed, content))
        database.commit()
    before = (book.folder / "workspace.yaml").read_bytes()
    with closing(Workspace.open(book.folder, clock=clock)) as opened:
        assert opened.snapshots.verify("poisoned")
        with pytest.raises(StorageError, match="nothing was changed"):
            opened.resume_from_snapshot("poisoned")
        assert opened.snapshots.verify("poisoned") != []
    assert (book.folder / "prompts" / "x.md").read_text() == "of now"
    assert (book.folder / "workspace.yaml").read_bytes() == before
    assert not list(tmp_path.rglob("evil.md"))


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_file_of_a_snapshot_that_unpacks_to_more_than_any_file_or_is_gone_is_told(
    book: Workspace, monkeypatch: pytest.MonkeyPatch, *, is_gone: bool
) -> None:
    (book.folder / "prompts").mkdir()
    (book.folder / "prompts" / "x.md").write_text("of the snapshot")
    book.snapshots.make("kept")
    (content,) = (book.folder / ".workspace" / "contents").iterdir()
    if is_gone:
        content.unlink()
    else:
        content.write_bytes(zlib.compress(b"\0" * 50_000_000))
        monkeypatch.setattr(snapshot_files, "MAX_FILE_BYTES", 1_000)
    told = "is gone" if is_gone else "is not what was kept"
    tracemalloc.start()
    with pytest.raises(StorageError, match=told):
        book.resume_from_snapshot("kept")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000


def test_of_two_who_begin_a_workspace_at_the_same_moment_one_does(
    tmp_path: Path, declaration: Path, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = core.make_private_folder

    def beside(folder: Path) -> None:
        made(folder)
        monkeypatch.setattr(core, "make_private_folder", made)
        Workspace.create(tmp_path / "book", declaration, url=url).close()

    monkeypatch.setattr(core, "make_private_folder", beside)
    with pytest.raises(ConfigurationError, match="nothing was changed"):
        Workspace.create(tmp_path / "book", declaration, url=url)
    Workspace.open(tmp_path / "book", url=url).close()


def test_a_database_in_a_folder_that_cannot_be_written_to_is_told(
    book: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = rows_of(book).parent
    for log in hidden.glob("rows.db-*"):
        log.unlink()
    (hidden / "rows.db-wal").mkdir()  # as a folder that may not be written to, also for who may do anything
    with pytest.raises(StorageError, match="cannot be opened"):
        Workspace.open(book.folder)
    monkeypatch.setattr(os, "access", lambda path, mode: path != hidden)
    with pytest.raises(ReadOnlyError, match="cannot be written to, which SQLite does even to read"):
        Workspace.open(book.folder)


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
