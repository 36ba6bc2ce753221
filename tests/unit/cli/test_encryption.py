"""`encrypt`, `decrypt`, `rekey`: what a person is told, and what is in the files then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from agent_memory.encryption.keys import forget_keys
from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

KEY: Final = "3c" * 32
PASSPHRASE: Final = "four words nobody knows"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys()
    monkeypatch.setenv("AGENT_MEMORY_KEY", KEY)


def holding(root: Path, needle: bytes = b"Maria likes tea") -> list[str]:
    return [path.name for path in sorted(root.rglob("*")) if path.is_file() and needle in path.read_bytes()]


def test_a_memory_is_encrypted_used_and_plain_again(bob: Run, root: Path) -> None:
    bob("backup", "create", "-a", "bob")
    assert holding(root)
    told = bob("encryption", "on", "--yes", "-a", "bob")
    assert "Encrypted 1 backup." in told.stdout
    assert "none is unencrypted" in told.stdout
    assert "Not reached: exports" in told.stderr
    assert holding(root) == []
    assert "Maria likes tea." in bob("search", "tea", "-a", "bob").stdout
    bob("store", "Maria likes tea with milk.", "-a", "bob")
    assert holding(root) == []
    assert "encrypted   yes" in bob("status", "-a", "bob").stdout
    assert "The files are encrypted" in bob("doctor").stdout
    assert "no longer encrypted" in bob("encryption", "off", "--yes", "-a", "bob").stdout
    assert "memories.yaml" in holding(root)


def test_without_a_terminal_nothing_is_changed(bob: Run, root: Path) -> None:
    before = holding(root)
    for command in ("encrypt", "decrypt"):
        assert "Nothing was changed." in bob(command, "-a", "bob", code=2).stderr
    assert holding(root) == before


def test_programs_are_told_what_was_done(bob: Run) -> None:
    told = document(bob("encryption", "on", "--yes", "--json", "-a", "bob"))
    assert (told["agent_id"], told["found"], told["failed"], told["searched"]) == ("bob", [], [], 3)


def test_a_key_is_changed(bob: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bob("encryption", "on", "--yes", "-a", "bob")
    (tmp_path / "key").write_text(PASSPHRASE)
    bob("encryption", "rekey", "--new-file", str(tmp_path / "key"), "-a", "bob")
    forget_keys()
    assert "[wrong_key]" in bob("list", "-a", "bob", code=1).stderr
    monkeypatch.delenv("AGENT_MEMORY_KEY")
    assert "[encrypted]" in bob("list", "-a", "bob", code=1).stderr
    monkeypatch.setenv("AGENT_MEMORY_KEY_FILE", str(tmp_path / "key"))
    assert "Maria likes tea." in bob("list", "-a", "bob").stdout


def test_without_the_key_the_doctor_tells_so_and_repairs_nothing(
    bob: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob("encryption", "on", "--yes", "-a", "bob")
    bob("search", "tea", "-a", "bob")
    forget_keys()
    monkeypatch.delenv("AGENT_MEMORY_KEY")
    before = {path.name: path.read_bytes() for path in (root / "bob").rglob("*") if path.is_file()}
    assert "needs a key" in bob("doctor", code=1).stdout
    bob("doctor", "--repair", code=1)
    assert "[encrypted]" in bob("encryption", "on", "--yes", "-a", "bob", code=1).stderr
    after = {path.name: path.read_bytes() for path in (root / "bob").rglob("*") if path.is_file()}
    assert {name: content for name, content in after.items() if name != "metadata.json"} == before  # it has no words


def test_what_other_programs_call_it_is_understood(bob: Run) -> None:
    assert "Did you mean `agent-memory encryption on`?" in bob("seal", "-a", "bob", code=2).stderr
