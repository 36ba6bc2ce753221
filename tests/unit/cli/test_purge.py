"""`purge`: taken out of every file, listed, searched for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.journal import PurgeList
from agent_memory.redaction import Redaction, SecretRedactor
from tests.support import read_files
from tests.unit.cli.conftest import B, document

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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
