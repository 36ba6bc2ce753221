"""What the doctor says of backups, and of a restoring that was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.checks import file_checks as checks_files
from agent_memory.storage import folder_of
from tests.support import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from agent_memory.care.checks.codes import Finding, RepairAction

    Found = Callable[[], dict[str, Finding]]


def test_that_there_is_none_is_told_of_many_memories_alone(
    bob: Path, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not {"backups", "backups_none", "backups_damaged"} & found().keys()
    monkeypatch.setattr(checks_files, "MANY", 3)
    assert "backup create" in found()["backups_none"].advice


def test_how_old_the_newest_is_and_what_cannot_be_used(bob: Path, root: Path, found: Found) -> None:
    clock = FrozenClock()
    clock.advance(days=-12)
    create_backup(folder_of("bob", root), clock=clock)
    clock.advance(days=3)
    create_backup(folder_of("bob", root), clock=clock)
    assert found()["backups"].sentence == "2 backups, the newest 9 days old."
    newest = max((root / "_backups").iterdir())
    newest.write_bytes(newest.read_bytes()[:-30])
    codes = found()
    assert codes["backups"].sentence == "1 backup, the newest 12 days old."
    assert codes["backups_damaged"].details == (newest.name,)


def test_a_restoring_that_was_interrupted_is_finished(
    bob: Path, found: Found, repaired: Callable[[], list[RepairAction]]
) -> None:
    (bob / ".restoring").mkdir(mode=0o700)
    (bob / ".restoring" / "tasks.yaml").write_bytes((bob / "memories.yaml").read_bytes().split(b"\n", 1)[0] + b"\n")
    assert "restore_unfinished" in found()
    assert "restore_unfinished" in {action.code for action in repaired() if action.done}
    assert "restore_unfinished" not in found()
    assert (bob / "tasks.yaml").exists()
    assert not (bob / ".restoring").exists()
