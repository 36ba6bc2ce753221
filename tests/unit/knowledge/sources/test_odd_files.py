"""Files of odd form cost only themselves, and little time."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.knowledge.bulk_import import choose_format
from agent_memory.knowledge.import_formats import find_format, take_sample
from agent_memory.knowledge.intake.drafts import ReceivedDocument, SkippedPart
from agent_memory.knowledge.sources import documents
from agent_memory.knowledge.sources.source_files import open_source
from tests.unit.knowledge.sources.conftest import read_source

if TYPE_CHECKING:
    from pathlib import Path

_SPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
NOW = "2026-01-01T00:00:00Z"
_WORDS = "<w:p><w:r><w:t>Tea.</w:t></w:r>"


def write_word(path: Path, body: str) -> Path:
    """Write a Word file with a body."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {_SPACE}><w:body>{body}</w:body></w:document>")
    return path


@pytest.mark.parametrize("field", ["To: <@", 'From: "', "To: a@[", "To: a:;;,", f"To: {'(' * 1_000}"])
def test_mail_with_an_odd_field_costs_only_itself(tmp_path: Path, field: str) -> None:
    path = tmp_path / "mails.mbox"
    path.write_text(f"From a\n{field}\n\nOne.\n\nFrom b\nSubject: B\n\nTwo.\n")
    (_, odd), (_, good) = read_source(path)
    assert isinstance(odd, SkippedPart | ReceivedDocument)
    assert isinstance(good, ReceivedDocument)
    assert good.text.endswith("Two.\n")


def test_inner_paragraph_of_a_word_file_is_read_once(tmp_path: Path) -> None:
    [(_, document)] = read_source(write_word(tmp_path / "a.docx", f"{_WORDS}<w:txbx>{_WORDS}</w:p></w:txbx></w:p>"))
    assert document.text == "Tea.\n\nTea."


def test_nested_paragraphs_of_a_word_file_are_not_multiplied(tmp_path: Path) -> None:
    [(_, document)] = read_source(write_word(tmp_path / "a.docx", _WORDS * 2_000 + "</w:p>" * 2_000))
    assert document.text.count("Tea.") == 2_000


def test_computed_columns_of_a_database_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "g.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE memories(id, content, content_hash, tags, metadata, deleted_at,"
            " x GENERATED ALWAYS AS (printf('%.90000000c', 'x')) VIRTUAL)"
        )
        database.execute("INSERT INTO memories(id, content) VALUES (1, 'Tea is at four.')")
    database.close()
    [(_, fact)] = read_source(path)
    assert fact.text == "Tea is at four."
    assert "x" not in fact.metadata


def test_archive_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20):
            archive.writestr(f"{number}.md", f"Note {number}.")
    opened = 0

    class CountedArchive(zipfile.ZipFile):
        def __init__(self, *arguments: Any) -> None:
            nonlocal opened
            opened += 1
            super().__init__(*arguments)

    monkeypatch.setattr(zipfile, "ZipFile", CountedArchive)
    tree = open_source(str(path))
    assert {file.read_text() for file in tree.files.values()} == {f"Note {number}." for number in range(20)}
    assert opened == 1


@pytest.mark.parametrize("values", [[{"title": "T", "time": NOW, "products": value}] for value in (1, True, {}, [[]])])
def test_value_of_another_type_is_no_format(tmp_path: Path, values: Any) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(values))
    tree = open_source(str(path))
    [file] = tree.files.values()
    assert find_format(take_sample(file, tree)) is None
    assert choose_format(take_sample(file, tree), "gemini").name == "gemini"


def test_crash_of_a_reader_is_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.html"
    path.write_text("<p>Tea</p>")

    def crash(_text: str) -> None:
        raise TypeError

    monkeypatch.setattr(documents, "read_html", crash)
    with pytest.raises(ValidationError) as raised:
        read_source(path)
    assert raised.value.code == "damaged_file"
