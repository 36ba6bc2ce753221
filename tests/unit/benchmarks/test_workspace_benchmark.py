"""The kills of a workspace must be able to fail: what is spoiled is seen."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from agent_memory.workspace import Workspace
from benchmarks.workspace.benchmark import PIPELINE, WorkspaceKills, look, unkilled

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a workspace in which every step is done, and what it holds."""
    folder = tmp_path_factory.mktemp("ended") / "pipeline"
    return folder, unkilled(folder, PIPELINE)


def test_two_runs_hold_the_same_and_nothing_is_wrong(ended: tuple[Path, str], tmp_path: Path) -> None:
    report = WorkspaceKills()
    assert unkilled(tmp_path / "again", PIPELINE) == ended[1]
    look(ended[0], report, ended[1])
    assert report.wrong == []


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        ("UPDATE glossary SET definition = 'other' WHERE ws_state = 0", "is not"),
        ("UPDATE decisions SET ws_state = 2 WHERE id = 1", "is not"),
        ("UPDATE tactics SET ws_attempt = 9 WHERE id = 1", "an attempt that was not finished"),
        ("UPDATE decisions SET ws_state = 1 WHERE id = 1", "rows wait for attempts"),
        ("UPDATE ws_leases SET owner = 'ghost' WHERE name LIKE 'step:write%'", "still claimed"),
    ],
)
def test_what_is_spoiled_is_seen(ended: tuple[Path, str], spoiled: str, said: str) -> None:
    folder, wanted = ended
    database = folder / ".workspace" / "rows.db"
    whole = database.read_bytes()
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(spoiled)
        report = WorkspaceKills()
        look(folder, report, wanted)
        assert any(said in each for each in report.wrong)
    finally:
        for each in folder.joinpath(".workspace").glob("rows.db-*"):
            each.unlink()
        database.write_bytes(whole)


def test_a_lost_file_is_seen(ended: tuple[Path, str]) -> None:
    folder, wanted = ended
    path = next((folder / "prompts").iterdir())
    content = path.read_bytes()
    path.unlink()
    report = WorkspaceKills()
    look(folder, report, wanted)
    path.write_bytes(content)
    assert any("is not" in each for each in report.wrong)
    Workspace.open(folder).close()


def test_a_report_is_json() -> None:
    report = WorkspaceKills(kills=3, killed=Counter({"work": 2, "restore": 1}))
    assert json.loads(json.dumps(report.as_dict()))["killed"] == {"work": 2, "restore": 1}
