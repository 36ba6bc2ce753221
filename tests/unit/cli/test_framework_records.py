"""Records of other frameworks on the command line: export, import, forget."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from agent_memory.memory.verbatim_storage import VerbatimStorage, load_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Run

ITEMS = [{"role": "user", "content": "  Zebra\n"}, {"role": "assistant", "content": "Giraffe"}]


async def load(root: Path, adapter: str = "openai") -> list[object]:
    storage = VerbatimStorage("bob", adapter, root)
    records = await storage.list_in(())
    await storage.close()
    return [load_value(record) for record in records]


@pytest.fixture
def record_id(root: Path) -> str:
    """Store the items and a file for bob; return the ID of the first item."""

    async def store() -> str:
        storage, files = VerbatimStorage("bob", "openai", root), VerbatimStorage("bob", "anthropic", root)
        drafts = [storage.draft(("s",), item) for item in ITEMS]
        await storage.put(drafts)
        await files.put([files.draft(("dir",), "one\n", key="a.md")])
        await storage.close()
        await files.close()
        return drafts[0].value.id

    return asyncio.run(store())


def test_export_is_imported_once_and_only_if_trusted(cli: Run, root: Path, tmp_path: Path, record_id: str) -> None:
    file, target = tmp_path / "bob.jsonl", tmp_path / "elsewhere"
    assert "3 records of other frameworks" in cli("export", str(file), "-a", "bob").stdout
    assert record_id in file.read_text()
    command = ("import", str(file), "-a", "bob", "--root", str(target))
    assert "Skipped 3 records of other frameworks: only with --trusted." in cli(*command).stderr
    assert "3 records of other frameworks." in cli(*command, "--trusted", "--dry-run").stderr
    assert asyncio.run(load(target)) == []
    assert "3 records of other frameworks." in cli(*command, "--trusted").stderr
    assert "0 records of other frameworks." in cli(*command, "--trusted").stderr
    assert asyncio.run(load(target)) == ITEMS
    assert asyncio.run(load(target, "anthropic")) == ["one\n"]


def test_import_of_a_changed_export_removes_secrets(cli: Run, tmp_path: Path, record_id: str) -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    file, target = tmp_path / "bob.jsonl", tmp_path / "elsewhere"
    cli("export", str(file), "-a", "bob")
    file.write_text(file.read_text().replace("Giraffe", secret))
    cli("import", str(file), "-a", "bob", "--root", str(target), "--trusted")
    assert secret.encode() not in b"".join(path.read_bytes() for path in target.rglob("*.yaml"))
    assert len(asyncio.run(load(target))) == 2


def test_forget_deletes_the_named_record(cli: Run, root: Path, record_id: str) -> None:
    assert cli("forget", record_id, "-a", "bob", "--yes").stdout.startswith(f"Forgot {record_id}")
    assert asyncio.run(load(root)) == ITEMS[1:]
    missing = cli("forget", record_id, "-a", "bob", "--yes", code=3)
    assert "nothing was forgotten" in missing.stderr


def test_forget_now_deletes_the_text_at_once(cli: Run, root: Path, record_id: str) -> None:
    assert json.loads(cli("forget", record_id, "-a", "bob", "--yes", "--now", "--json").stdout)["forgotten"] is True
    assert b"Zebra" not in (root / "bob" / "verbatim.yaml").read_bytes()


def test_list_of_agents_counts_the_records(cli: Run, record_id: str) -> None:
    assert "3 records of other frameworks" in cli("agents").stdout


def test_compact_now_deletes_forgotten_text(cli: Run, root: Path, record_id: str) -> None:
    cli("forget", record_id, "-a", "bob", "--yes")
    assert b"Zebra" in (root / "bob" / "verbatim.yaml").read_bytes()
    cli("archive", "compact", "--now", "--yes", "-a", "bob")
    assert b"Zebra" not in (root / "bob" / "verbatim.yaml").read_bytes()
    assert asyncio.run(load(root)) == ITEMS[1:]


def test_forget_without_terminal_needs_yes(cli: Run, root: Path, record_id: str) -> None:
    assert "Nothing was forgotten." in cli("forget", record_id, "-a", "bob", code=2).stderr
    assert asyncio.run(load(root)) == ITEMS


def test_forget_at_a_terminal_shows_the_text(
    cli: Run, root: Path, record_id: str, press: Callable[[str], list[str]]
) -> None:
    press("")
    assert "Zebra" in cli("forget", record_id, "-a", "bob", given="y\n").output
    assert asyncio.run(load(root)) == ITEMS[1:]
