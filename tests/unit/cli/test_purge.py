"""`purge`: taken out of every file, listed, searched for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_memory.journal import PurgeList
from agent_memory.redaction import Redaction, SecretRedactor
from tests.support import read_files
from tests.unit.cli.conftest import B, document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_a_memory_is_purged_with_a_receipt(bob: Run, root: Path) -> None:
    bob("backup", "create", "-a", "bob")
    told = bob("purge", B, "--yes", "-a", "bob")
    assert "Purged 1 record." in told.stdout
    assert "none of the text is left" in told.stdout
    assert "Not reached: exports" in told.stderr
    assert not [path for path, content in read_files(root) if b"Maria likes tea" in content]
    assert "gone" in bob("purge", "-a", "bob").stdout
    assert "was purged" in bob("restore", B, "-a", "bob", code=3).stderr
    bob("purge", "--verify", "--text", "Maria likes tea.", "-a", "bob")


def test_what_is_left_in_a_file_is_named(bob: Run, root: Path) -> None:
    before = (root / "bob" / "memories.yaml").read_bytes()
    bob("purge", B, "--yes", "-a", "bob")
    (root / "bob" / "memories.old.yaml").write_bytes(before)
    assert "memories.old.yaml: 2 times." in bob("purge", "--verify", "-a", "bob", code=1).stdout


def test_a_short_text_is_looked_for_as_well(bob: Run) -> None:
    told = bob("purge", "--verify", "--text", "likes tea", "-a", "bob", code=1)
    assert "memories.yaml: " in told.stdout
    assert "Nor are the words" in bob("purge", "--verify", "--text", "a zebra", "-a", "bob").stdout
    assert "needs words" in bob("purge", "--verify", "--text", " ", "-a", "bob", code=2).stderr


def test_without_a_terminal_nothing_is_purged(bob: Run) -> None:
    assert "Nothing was purged." in bob("purge", B, "-a", "bob", code=2).stderr
    assert "Maria likes tea." in bob("list", "-a", "bob").stdout


def test_any_command_goes_on_with_what_was_interrupted(bob: Run, root: Path) -> None:
    bob("forget", B, "--yes", "-a", "bob")
    PurgeList(root / "bob").begin([B], ["Maria likes tea."], "2026-01-01T00:00:00+00:00")
    assert "A purge was interrupted" in bob("doctor", code=1).stdout
    bob("list", "-a", "bob")
    assert PurgeList(root / "bob").list_unfinished() == []
    assert b"Maria likes tea" not in (root / "bob" / "memories.yaml").read_bytes()
    (row,) = document(bob("purge", "--json", "-a", "bob"))["purges"]
    assert row["state"] == "gone"


def test_options_that_do_not_go_together_are_refused(bob: Run) -> None:
    bob("purge", B, "--verify", "-a", "bob", code=2)
    bob("purge", "--text", "tea", "-a", "bob", code=2)


def test_stored_secrets_are_shown_and_purged(bob: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    with monkeypatch.context() as patch:
        patch.setattr(SecretRedactor, "redact", lambda _self, text: Redaction(text, ()))
        bob("store", f"The deploy token is {token}", "-a", "bob")
    refused = bob("purge", "--secrets", "-a", "bob", code=2)
    assert "1 record" not in refused.stdout
    assert "The deploy token is [redacted:" in refused.stdout
    assert "purge --secrets --yes" in refused.stderr
    assert token in (root / "bob" / "memories.yaml").read_text()
    bob("purge", "--secrets", "--yes", "-a", "bob")
    assert not [path for path, content in read_files(root) if token.encode() in content]
    assert "No stored record has a secret" in bob("purge", "--secrets", "-a", "bob").stdout


def test_secrets_and_an_id_exclude_each_other(bob: Run) -> None:
    assert "take no ID" in bob("purge", "--secrets", B, "-a", "bob", code=2).stderr


PAGE = "# Salaries\n\nThe salary of Ann is {salary} a year.\n\n# Deploy\n\nDeployments happen on Tuesday mornings.\n"
SECRET = "seventy-two thousand"
CHAT = [
    {"role": "user", "content": "Which harbour do we use?", "timestamp": "2026-01-10T12:00:00Z"},
    {"role": "user", "content": f"My salary is {SECRET} a year.", "timestamp": "2026-01-10T12:01:00Z"},
]


def _list_items(cli: Run) -> dict[str, str]:
    """Return the texts of all listed items by ID."""
    memories = document(cli("list", "--items", "--json", "-a", "eve"))["memories"]
    return {memory["id"]: memory["content"] for memory in memories}


def _has_bytes(root: Path) -> bool:
    return any(SECRET.encode() in content for _, content in read_files(root))


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Return a document with a salary."""
    path = tmp_path / "page.md"
    path.write_text(PAGE.format(salary=SECRET))
    return path


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """Return a conversation with a salary."""
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps(message) + "\n" for message in CHAT))
    return path


def _purge_salary(cli: Run, root: Path, path: Path) -> None:
    """Ingest a file and purge its item about a salary."""
    cli("ingest", str(path), "-a", "eve")
    (memory_id,) = [memory_id for memory_id, content in _list_items(cli).items() if SECRET in content]
    cli("purge", memory_id, "--yes", "-a", "eve")
    assert not _has_bytes(root)


@pytest.mark.parametrize("name", ["page", "chat"])
def test_ingest_of_purged_file_leaves_purged_words_out(
    cli: Run, root: Path, request: pytest.FixtureRequest, name: str
) -> None:
    path: Path = request.getfixturevalue(name)
    _purge_salary(cli, root, path)
    for _ in range(2):
        outcome = cli("ingest", str(path), "-a", "eve", code=0)
        assert not _has_bytes(root)
        assert "--again" in outcome.stderr
        assert not [content for content in _list_items(cli).values() if "\u2588" in content]
    assert "1 there already" in outcome.stdout


def test_ingest_of_copy_leaves_purged_words_out(cli: Run, root: Path, page: Path, tmp_path: Path) -> None:
    _purge_salary(cli, root, page)
    (tmp_path / "copy.txt").write_text(f"Boats are blue. {page.read_text()}")
    cli("ingest", str(tmp_path / "copy.txt"), "-a", "eve")
    assert not _has_bytes(root)
    assert any("Boats are blue." in content for content in _list_items(cli).values())


def test_ingest_of_long_purged_file_leaves_words_out(cli: Run, root: Path, page: Path) -> None:
    boats = "\n\n".join(f"# Boat {number}\n\nThe boat {number} is {'very ' * 150}blue." for number in range(120))
    page.write_text(f"{boats}\n\n{PAGE.format(salary=SECRET)}")
    _purge_salary(cli, root, page)
    cli("ingest", str(page), "-a", "eve")
    assert not _has_bytes(root)


@pytest.mark.parametrize("name", ["page", "chat"])
def test_ingest_again_shows_purged_words(cli: Run, root: Path, request: pytest.FixtureRequest, name: str) -> None:
    path: Path = request.getfixturevalue(name)
    _purge_salary(cli, root, path)
    cli("ingest", str(path), "--again", "-a", "eve")
    (memory_id,) = [memory_id for memory_id, content in _list_items(cli).items() if SECRET in content]
    assert memory_id in cli("search", "salary", "-a", "eve").stdout
    cli("ingest", str(path), "--again", "-a", "eve")
    assert len([content for content in _list_items(cli).values() if SECRET in content]) == 1
    cli("forget", memory_id, "--yes", "-a", "eve")
    cli("knowledge", "rebuild", "-a", "eve")
    assert not [content for content in _list_items(cli).values() if SECRET in content]
    cli("undo", memory_id, "-a", "eve")
    assert memory_id in _list_items(cli)
    cli("purge", memory_id, "--yes", "-a", "eve")
    assert not _has_bytes(root)
    cli("ingest", str(path), "--again", "-a", "eve")
    assert [content for content in _list_items(cli).values() if SECRET in content]


@pytest.mark.parametrize("name", ["page", "chat"])
def test_ingest_again_of_purged_document_shows_it(
    cli: Run, root: Path, request: pytest.FixtureRequest, name: str
) -> None:
    path: Path = request.getfixturevalue(name)
    cli("ingest", str(path), "-a", "eve")
    (record,) = document(cli("knowledge", "resources", "--json", "-a", "eve"))["resources"]
    cli("purge", record["id"], "--yes", "-a", "eve")
    assert not _has_bytes(root)
    assert "--again" in cli("ingest", str(path), "-a", "eve").stderr
    assert not _has_bytes(root)
    cli("ingest", str(path), "--again", "-a", "eve")
    assert [content for content in _list_items(cli).values() if SECRET in content]
    assert SECRET in cli("search", "salary", "-a", "eve").stdout
