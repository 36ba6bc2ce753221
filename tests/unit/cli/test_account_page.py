"""`agent-memory account`: a page for a security review."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tests.unit.cli.conftest import B, document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_account_names_every_file_with_mode_and_hash(bob: Run, root: Path) -> None:
    bob("backup", "create", "-a", "bob")
    page = document(bob("account", "--json"))
    names = [item["name"] for item in page["stored"]]
    assert set(names) >= {path.name for path in (root / "bob").iterdir()}
    assert names[-1].startswith("_backups/bob-")
    assert {item["mode"] for item in page["stored"]} <= {"0600", "0700"}
    assert page["sha256"]["memories.yaml"] == hashlib.sha256((root / "bob" / "memories.yaml").read_bytes()).hexdigest()
    assert "not of this program" not in {item["content"] for item in page["stored"]}


def test_account_names_files_that_others_can_read(bob: Run, root: Path) -> None:
    (root / "bob" / "memories.yaml").chmod(0o644)
    assert document(bob("account", "--json"))["readers"]["open_to_others"] == ["memories.yaml"]
    assert "can open memories.yaml" in bob("account").stdout


def test_account_lists_purges_with_their_state(bob: Run) -> None:
    bob("purge", B, "--yes")
    (purge,) = document(bob("account", "--json"))["purges"]
    assert (purge["records"], purge["state"]) == (1, "gone")
    assert "1 record: gone" in bob("account").stdout


def test_account_names_servers_without_their_password(bob: Run, home: Path) -> None:
    assert "nothing; no setting" in bob("account").stdout
    (home / ".amplifier").mkdir(exist_ok=True)
    (home / ".amplifier" / "settings.yaml").write_text(
        "overrides:\n  tool-memory-semantic:\n    config:\n      backend: server\n"
        "      qdrant_url: https://user:hunter2@qdrant.example:6333\n"
    )
    page = bob("account").stdout
    assert "hunter2" not in page
    assert "qdrant.example:6333" in page
    assert "backend: server" in page
