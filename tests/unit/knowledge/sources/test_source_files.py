"""Files of an import: folders, archives, and what is never read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ValidationError
from agent_memory.knowledge.sources import source_files
from agent_memory.knowledge.sources.source_files import open_source
from tests.support import raises
from tests.unit.knowledge.sources.conftest import write_zip

if TYPE_CHECKING:
    from pathlib import Path


def test_open_source_folder_leaves_out_hidden_and_outside_files(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    for name in ("a.md", ".cursorrules", ".cursor/rules/b.mdc", ".obsidian/app.json", ".git/config", ".env"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (tmp_path / "secret.md").write_text("x")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    tree = open_source(str(folder))
    assert set(tree.files) == {"a.md", ".cursorrules", ".cursor/rules/b.mdc"}
    assert tree.is_vault


def test_find_linked_stays_in_the_import(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "docs").mkdir(parents=True)
    for name in ("notes/CLAUDE.md", "notes/docs/more.md", "secret.md"):
        (tmp_path / name).write_text("x")
    (folder / "docs" / "link.md").symlink_to(tmp_path / "secret.md")
    tree = open_source(str(folder / "CLAUDE.md"))
    file = tree.files["CLAUDE.md"]
    linked = [tree.find_linked(file, name) for name in ("docs/more.md", "../secret.md", "/etc/hosts", "docs/link.md")]
    assert [found and found.name for found in linked] == ["docs/more.md", None, None, None]


def test_open_source_archive_names_never_leave_it(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"../../evil.md": "x", "/root.md": "y", "ok/a.md": "z", "__MACOSX/a.md": ""})
    tree = open_source(str(path))
    assert not any(name.startswith(("/", "..")) for name in tree.files)
    assert tree.files["ok/a.md"].read_text() == "z"
    assert not (tmp_path.parent / "evil.md").exists()


def test_open_source_archive_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "_LEAST_CHECKED", 1000)
    path = write_zip(tmp_path / "a.zip", {"bomb.md": "x" * 1_000_000, "ok.md": "y"})
    tree = open_source(str(path))
    assert list(tree.files) == ["ok.md"]
    assert [(part.place, part.code) for part in tree.refused] == [("bomb.md", "too_long")]


def test_open_source_too_many_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MAX_FILES", 1)
    tree = open_source(str(write_zip(tmp_path / "a.zip", {"a.md": "x", "b.md": "y"})))
    assert [part.code for part in tree.refused] == ["too_many"]


@pytest.mark.parametrize(("name", "code"), [("missing.md", "no_file"), ("broken.zip", "damaged_file")])
def test_open_source_unreadable_is_refused(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 not an archive")
    with raises(ValidationError, code):
        open_source(str(tmp_path / name))


def test_open_source_own_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "memories.yaml").write_text("")
    (tmp_path / "bob" / "agent.yaml").write_text("")
    with raises(ValidationError, "own_file"):
        open_source(str(tmp_path / "bob" / "memories.yaml"))


def test_read_text_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("Käse".encode("cp1252"))
    file = open_source(str(tmp_path / "a.md")).files["a.md"]
    with raises(ValidationError, "not_text"):
        file.read_text()
    (tmp_path / "a.md").write_bytes("Käse".encode("utf-16"))
    assert file.read_text() == "Käse"


def test_read_text_damaged_member_is_unreadable(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"a.md": "".join(map(str, range(999)))})
    content = bytearray(path.read_bytes())
    content[60:70] = b"\0" * 10
    path.write_bytes(content)
    with pytest.raises(source_files.UNREADABLE):
        open_source(str(path)).files["a.md"].read_text()
