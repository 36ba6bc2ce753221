"""Folders that earlier versions wrote are opened, searched, backed up, restored, exported and purged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.in_process import build_cli, copy_private
from tests.support import read_files

if TYPE_CHECKING:
    from tests.in_process import Run

FIXTURES = Path(__file__).parents[1] / "fixtures"
FOLDERS = sorted(str(path.parent.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*/agents"))
KNOWN = "Kate owns the ledger of the harbour."
PURGED_WORD = "zanzibar"


@pytest.fixture(params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of a folder of an earlier version, readable by its owner alone."""
    return copy_private(FIXTURES / request.param, tmp_path / "copy")


@pytest.fixture
def cli(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `agent-memory` in this process, for bob of the folder."""
    monkeypatch.setenv("AGENT_MEMORY_KEY", "fixture-only-passphrase")
    return build_cli(folder / "agents", monkeypatch)


def search(cli: Run, words: str) -> dict[str, str]:
    """Return the content of each memory that a search finds, by ID."""
    hits = json.loads(cli("search", words, "--json", code=None).stdout)["results"]
    return {hit["id"]: hit["content"] for hit in hits}


def list_all(cli: Run, agent: str = "bob") -> dict[str, str]:
    """Return the content of each memory that is listed, by ID."""
    listed = json.loads(cli("list", "--limit", "100", "-a", agent, "--json").stdout)["memories"]
    return {memory["id"]: memory["content"] for memory in listed}


def find_holders(folder: Path, word: str) -> list[Path]:
    """Return the files of a folder that hold a word."""
    return [path for path, content in read_files(folder) if word.encode() in content]


def test_folders_include_two_versions_and_stay_small() -> None:
    assert {name.partition("/")[0] for name in FOLDERS} >= {"9f92752", "08b1688e"}
    sizes = {
        name: sum(path.stat().st_size for path in (FIXTURES / name).rglob("*") if path.is_file()) for name in FOLDERS
    }
    assert {name: size for name, size in sizes.items() if size >= 200_000} == {}


def test_folder_opened_lists_and_finds(cli: Run) -> None:
    assert KNOWN in list_all(cli).values()
    assert KNOWN in search(cli, "who owns the ledger of the harbour").values()
    cli("status")


def test_folder_backed_up_is_restored(cli: Run, folder: Path) -> None:
    before = list_all(cli)
    name = json.loads(cli("backup", "create", "--json").stdout)["backups"][0]["file"]
    cli("store", "A sentence after the backup.")
    assert list_all(cli) != before
    cli("backup", "restore", name, "-a", "bob", "--yes")
    assert list_all(cli) == before


def test_folder_exported_is_imported_elsewhere(cli: Run, folder: Path) -> None:
    export = folder / "new-export.jsonl"
    cli("export", str(export))
    assert PURGED_WORD not in export.read_text("utf-8")
    cli("import", str(export), "-a", "ann")
    assert list_all(cli, "ann") == list_all(cli)


def test_old_export_imported_twice_adds_nothing(cli: Run, folder: Path) -> None:
    export = folder / "export.jsonl"
    if not export.exists():
        pytest.skip("only the folders with all features have an export")
    cli("import", str(export), "-a", "ann")
    first = list_all(cli, "ann")
    assert KNOWN in first.values()
    cli("import", str(export), "-a", "ann")
    assert list_all(cli, "ann") == first


def test_memory_purged_leaves_no_byte(cli: Run, folder: Path) -> None:
    memory_id = next(key for key, content in list_all(cli).items() if "smoke tests" in content)
    cli("purge", memory_id, "--yes")
    assert memory_id not in search(cli, "smoke tests on Fridays")
    assert find_holders(folder / "agents", "only after smoke tests") == []


def test_words_purged_before_stay_purged(cli: Run, folder: Path) -> None:
    assert PURGED_WORD not in cli("search", "walrus password of the attic", "--json", code=None).stdout
    assert PURGED_WORD not in " ".join(list_all(cli).values())
    cli("backup", "create")
    cli("compact")
    assert find_holders(folder, PURGED_WORD) == []


@pytest.mark.parametrize("folder", ["08b1688e/full"], indirect=True)
def test_pairs_of_removed_rule_hidden_and_counted(cli: Run, folder: Path) -> None:
    release_window, tea_order = "The release window of Kestrel is", "The standing order for tea is"
    assert json.loads(cli("conflicts", "--json").stdout)["suspects"] == []
    assert "0 new pairs" in cli("conflicts", "--look").stderr
    assert "1 undecided pair is hidden" in cli("doctor", code=None).stdout
    cli("compact")
    export = folder / "after.jsonl"
    cli("export", str(export))
    records = [json.loads(line) for line in export.read_text("utf-8").splitlines()]
    links = {record["content"]: record["links"][0]["rel"] for record in records if record.get("links")}
    assert links[f"{release_window} Wednesday at 10:00."] == "_suspect"
    assert links[f"{tea_order} three boxes."] == "_beside"
    texts = list_all(cli).values()
    assert {f"{release_window} Tuesday at 10:00.", f"{tea_order} two boxes."} <= set(texts)
