"""The benchmark of backups sees what is lost, and finds nothing of the kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.files.layout import folder_of
from agent_memory.journal import Change, Journal
from benchmarks.backups.benchmark import BackupReport, check_moment, fill, run
from benchmarks.backups.worker import AGENT, PAIR, PAIRS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.deep
def test_nothing_is_lost_beside_writers_and_by_kills() -> None:
    measured, killed = run(200, 2, 3, seed=1)
    assert measured.lost == killed.lost == []
    assert sum(killed.kills.values()) == 3


def test_a_backup_of_two_moments_is_seen(root: Path) -> None:
    fill(root, 3)
    report = BackupReport(memories=3)
    folder = folder_of(AGENT, root)
    check_moment(create_backup(folder).path, report, 1)
    assert report.lost == []
    with Journal(folder.path / PAIRS, {PAIR}).locked() as writer:
        writer.append([Change("put", PAIR, "par-0000000000ff", {})])
    check_moment(create_backup(folder).path, report, 1)
    assert ["records without their memory" in each for each in report.lost] == [True]
