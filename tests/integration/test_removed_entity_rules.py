"""Entities that rules of version 08b1688e guessed are hidden, counted, and shown again where the texts name them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.in_process import build_cli, copy_private

if TYPE_CHECKING:
    from tests.in_process import Run

FOLDER = Path(__file__).parents[1] / "fixtures" / "08b1688e" / "full"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of a folder of version 08b1688e, whose entities its rules guessed."""
    return copy_private(FOLDER, tmp_path / "copy")


@pytest.fixture
def cli(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `agent-memory` in this process, for bob of the folder."""
    return build_cli(folder / "agents", monkeypatch)


def list_entities(cli: Run) -> dict[str, Any]:
    """Return the type of each entity that is shown, by name."""
    shown = json.loads(cli("entities", "--all", "--json").stdout)["entities"]
    return {entity["name"]: entity["entity_type"] for entity in shown}


def count_records(folder: Path, kind: str) -> int:
    """Return how many times the journal of entities puts a record of a kind."""
    return (folder / "agents" / "bob" / "entities.yaml").read_text().count(f'"op": "put", "kind": "{kind}"')


def test_old_folder_shows_speakers_and_hides_guesses(cli: Run, folder: Path) -> None:
    before = count_records(folder, "entity"), count_records(folder, "relation")
    assert list_entities(cli) == {"Ada": "person"}
    assert json.loads(cli("entity", "Ada", "--json").stdout)["timeline"] != []
    lines = [line for line in cli("doctor").stdout.splitlines() if "guessed" in line]
    assert len(lines) == 1
    assert "relations that rules of an earlier version guessed are hidden" in " ".join(lines)
    assert (count_records(folder, "entity"), count_records(folder, "relation")) == before


def test_old_folder_read_again_shows_names_of_two_texts(cli: Run, folder: Path, tmp_path: Path) -> None:
    before = count_records(folder, "entity")
    (tmp_path / "note.md").write_text("We met at Kestrel Systems, and Kestrel Systems uses src/app/main.py.\n")
    cli("ingest", str(tmp_path / "note.md"), "--yes")
    shown = list_entities(cli)
    assert shown | {"Ada": "person", "Kestrel Systems": "name", "src/app/main.py": "file"} == shown
    assert not {"Hamburg", "Bergen", "UTC"} & set(shown)
    assert json.loads(cli("entity", "Ada", "--json").stdout)["entity_type"] == "person"
    assert count_records(folder, "entity") >= before
    moments = json.loads(cli("entity", "Kestrel Systems", "--json").stdout)["timeline"]
    assert {moment["what"] for moment in moments} == {"mention"}
