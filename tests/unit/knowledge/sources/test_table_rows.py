"""Memories in databases and CSV files, well-formed, damaged and hostile."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.knowledge.import_formats import find_format, read_parts, take_sample
from agent_memory.knowledge.intake.drafts import SkippedPart
from agent_memory.knowledge.sources.source_files import ImportedFact, open_source
from tests.support import raises
from tests.unit.knowledge.sources.conftest import write_zip

if TYPE_CHECKING:
    from pathlib import Path

STORE = "CREATE TABLE store(prefix text, key text, value text, created_at, updated_at, expires_at)"
MEMORIES = "CREATE TABLE memories(content_hash, content, tags, memory_type, metadata, created_at, deleted_at)"


def write_database(path: Path, *statements: str, rows: list[tuple[Any, ...]] | None = None) -> Path:
    """Write a database; rows go into its first table."""
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        for row in rows or []:
            database.execute(
                f"INSERT INTO {statements[0].split()[2].split('(')[0]} VALUES ({','.join('?' * len(row))})", row
            )
        database.commit()
    return path


def read(path: Path, columns: dict[str, str] | None = None) -> list[Any]:
    tree = open_source(str(path))
    tree.columns = columns or {}
    [file] = tree.files.values()
    form = find_format(take_sample(file, tree))
    return [] if form is None else list(read_parts(form, file, tree))


def texts(parts: list[Any]) -> list[str]:
    return [part.text for part in parts if isinstance(part, ImportedFact)]


def skipped(parts: list[Any]) -> list[tuple[str, str]]:
    return [(part.place, part.code) for part in parts if isinstance(part, SkippedPart)]


def test_store_gives_texts_of_any_shape(tmp_path: Path) -> None:
    values = [
        '{"text": "likes tea"}', '{"kind": "Memory", "content": {"content": "likes milk"}}',
        '{"drink": "cocoa", "cups": 2}', '{"memory": "likes gin", "expired": true}', "{}", "not JSON",
    ]  # fmt: skip
    moment = "2026-01-05 10:00:00"
    rows: list[tuple[Any, ...]] = [
        ("memories.ada", str(n), value, moment, moment, None) for n, value in enumerate(values)
    ]
    parts = read(
        write_database(
            tmp_path / "a.db", STORE, rows=[*rows, ("cache", "k", '{"text": "old"}', moment, moment, moment)]
        )
    )
    assert texts(parts) == ["likes tea", "likes milk", "drink: cocoa\ncups: 2", "likes gin"]
    assert skipped(parts) == [("row 5", "left_out"), ("row 6", "damaged_part"), ("row 7", "left_out")]
    assert (parts[0].said_at.isoformat(), parts[0].metadata) == (
        "2026-01-05T10:00:00+00:00", {"namespace": "memories.ada", "key": "0"},
    )  # fmt: skip


def test_memory_table_leaves_out_deleted_and_broken_rows(tmp_path: Path) -> None:
    rows: list[tuple[Any, ...]] = [
        ("a", "Tea.", "x, y", "decision", '{"source": "s"}', 1767000000.0, None),
        ("b", "Old.", "", "note", None, 1.0, 2.0),
        ("c", b"\xff", "", "note", None, 1.0, None), ("d", None, None, None, "{", None, None),
    ]  # fmt: skip
    parts = read(write_database(tmp_path / "a.db", MEMORIES, rows=rows))
    assert [(part.text, part.category, part.tags) for part in parts[:1]] == [("Tea.", "decision", ("x", "y"))]
    assert skipped(parts) == [("row 2", "left_out"), ("row 3", "damaged_part"), ("row 4", "damaged_part")]


def test_database_in_an_archive_is_read(tmp_path: Path) -> None:
    path = write_database(tmp_path / "a.db", STORE, rows=[("p", "k", '{"text": "Tea."}', None, None, None)])
    archive = write_zip(tmp_path / "a.zip", {})
    import zipfile

    with zipfile.ZipFile(archive, "a") as target:
        target.write(path, "backup/a.db")
    assert texts(read(archive)) == ["Tea."]


def test_database_with_log_is_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(STORE)
        database.execute("INSERT INTO store VALUES ('p', 'k', '{\"text\": \"Tea.\"}', NULL, NULL, NULL)")
        database.commit()
        before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir() if "-shm" not in file.name}
        assert texts(read(path)) == ["Tea."]
        assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir() if "-shm" not in file.name} == before


def test_view_without_an_end_is_never_read(tmp_path: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n)"
    endless = f"{numbers} SELECT 'p' AS prefix, 'k' AS key, i AS value FROM n"
    assert read(write_database(tmp_path / "a.db", f"CREATE VIEW store AS {endless}")) == []


def test_damaged_database_is_refused(tmp_path: Path) -> None:
    path = write_database(
        tmp_path / "a.db", STORE, rows=[("p", str(n), '{"text": "' + "x" * 3_000 + '"}', 1, 1, None) for n in range(9)]
    )
    path.write_bytes(path.read_bytes()[:-8_000])
    with raises(ValidationError, "damaged_file"):
        read(path)


def test_csv_columns_are_found_by_their_usual_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('Note;Date;Labels;Mood\n"Likes tea;\nhot";2026-01-05;a, b;good\n;2026-01-06;;\nLikes gin;soon;;\n')
    first, empty, last = read(path)
    assert (first.text, first.said_at.isoformat(), first.tags) == ("Likes tea;\nhot", "2026-01-05T00:00:00", ("a", "b"))
    assert first.metadata == {"Mood": "good"}
    assert empty == SkippedPart("line 4", "no_text")
    assert (first.note, last.note) == ("", "has no readable date")
    assert (last.said_at, last.metadata) == (None, {"Date": "soon"})


def test_csv_column_map_overrides_names(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("id\tWas\tcontent\n1\tLikes tea\tx\n")
    [fact] = read(path, {"text": "was"})
    assert (fact.text, fact.metadata) == ("Likes tea", {"id": "1", "content": "x"})


@pytest.mark.parametrize("key", ["text", "date"])
def test_csv_unknown_column_is_named_with_existing_ones(tmp_path: Path, key: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,date\nLikes tea,2026-01-05\n")
    assert read(path, {key: "nope"}) == [
        SkippedPart("", "unknown_column", "has no column nope; it has text, date"),
    ]


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "", "\n"])
def test_csv_without_a_text_column_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with raises(ValidationError, "no_text_column"):
        read(path)
