"""What killed processes left of an agent is removed at its next open, and what a live one writes is not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_memory.files.atomic import make_draft_folder, sweep_leftovers, unlock_and_close
from agent_memory.files.processes import add_key_variable, environment_without_keys

if TYPE_CHECKING:
    from pathlib import Path

LONG_AGO = (1_000_000, 1_000_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    agent_folder = tmp_path / "bob"
    for place in (agent_folder / "topics", tmp_path / "_backups"):
        place.mkdir(parents=True)
    return agent_folder


def test_sweep_removes_leftovers_of_every_place(folder: Path) -> None:
    names = (
        ".purge.key.01234567.tmp",
        "topics/.index.md.01234567.tmp",
        "../_backups/.bob-20261123T081415Z-before-restore.zip.01234567.tmp",
    )
    for name in names:
        (folder / name).write_text("secret")
        os.utime(folder / name, LONG_AGO)
    assert len(sweep_leftovers(folder)) == len(names)
    assert [name for name in names if (folder / name).exists()] == []


def test_sweep_keeps_files_and_leftovers_of_other_agents(folder: Path) -> None:
    names = ("memories.yaml", "topics/tea.md", "../_backups/.ann-20261123T081415Z.zip.01234567.tmp")
    for name in names:
        (folder / name).write_text("kept")
        os.utime(folder / name, LONG_AGO)
    assert sweep_leftovers(folder) == []
    assert [name for name in names if not (folder / name).exists()] == []


def test_sweep_keeps_draft_until_its_lock_is_released(folder: Path) -> None:
    draft, lock = make_draft_folder(folder)
    (draft / "text.yaml").write_text("a draft")
    os.utime(draft, LONG_AGO)
    assert sweep_leftovers(folder) == []
    unlock_and_close(lock)
    assert sweep_leftovers(folder) == [draft]
    assert not draft.exists()


def test_environment_of_children_has_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    add_key_variable("KEY_OF_THE_TEST")
    for name in ("AGENT_MEMORY_KEY", "AGENT_MEMORY_KEY_COMMAND", "QDRANT_API_KEY", "KEY_OF_THE_TEST"):
        monkeypatch.setenv(name, "sesame")
    monkeypatch.setenv("PLAIN", "stays")
    environment = environment_without_keys()
    assert "sesame" not in environment.values()
    assert environment["PLAIN"] == "stays"
