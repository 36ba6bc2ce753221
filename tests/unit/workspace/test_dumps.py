"""Copies of the database: one that was not finished is made up for, and one that cannot be written stops no step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import DiskFullError, StorageError
from agent_memory.workspace import Caller, Workspace
from agent_memory.workspace.snapshots.snapshot_files import Dump
from agent_memory.workspace.toolset.toolset import Offer, Toolset
from tests.unit.workspace.conftest import analyse, prepare, sqlite_only, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock


def dying(*_: object) -> str:
    raise KeyboardInterrupt


def full(*_: object) -> str:
    raise DiskFullError("There is no room.")


@sqlite_only
def test_a_copy_that_a_dead_process_left_is_made_by_the_next(
    book: Workspace, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(Dump, "write", dying)
        with pytest.raises(KeyboardInterrupt):
            prepare(book, 1)
    assert [name for name in book.snapshots.list_owed() if "PREPARED" in name]
    assert book.snapshots.verify("PREPARED") == [
        "The copy of the database was not finished; the mark in the history is whole."
    ]
    book.tables.save("tactics", {"name": "later"})
    again = Workspace.open(book.folder, clock=clock)
    assert again.snapshots.verify("PREPARED") == []
    assert again.steps.claim("ann") is not None
    assert again.snapshots.list_owed() == []
    again.close()


def test_a_step_is_done_though_its_copy_cannot_be_written(
    tmp_path: Path, declaration: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    book = Workspace.create(tmp_path / "w", declaration, clock=clock, on_event=lambda *told: events.append(told))
    with monkeypatch.context() as disk:
        disk.setattr(Dump, "write", full)
        prepare(book, 1)
        failed = [fields for name, fields in events if name == "workspace:dump_failed"]
        assert {(fields["snapshot"], fields["code"]) for fields in failed} == {("PREPARED", "disk_full")}
        assert [each.name for each in book.next_steps()] == ["analyse/analyst/1"]
        analyse(book, 1)
    assert len(book.snapshots.list_owed()) == 1
    write(book, 1)
    assert book.snapshots.list_owed() == []
    book.close()


@sqlite_only
def test_a_step_is_done_though_its_snapshot_cannot_be_made(book: Workspace) -> None:
    folder = book.folder / "prompts"
    folder.mkdir()
    name = folder / "a\udcff.md"
    name.write_text("x")
    tools = Toolset(book, "worker", offer=Offer(tools=["*"]))
    tools.call("claim_step", {"step": "next"})
    book.tables.save("chapters", {"number": 1}, Caller(claim=None))
    answer = tools.call("finish_step", {})
    assert answer["status"] == "finished"
    assert answer["warnings"] == [
        "The snapshot of phase prepare is not made yet; whoever claims the next step makes it."
    ]
    with pytest.raises(StorageError, match="UTF-8"):
        book.steps.claim("ann")
    name.unlink()
    assert book.steps.claim("ann") is not None
    assert [each.name for each in book.snapshots.all()] == ["PREPARED"]


@sqlite_only
def test_pruning_leaves_a_copy_that_another_process_writes(
    book: Workspace, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(book, 1)
    other = Workspace.open(book.folder, clock=clock)
    dumps = book.folder / ".workspace" / "dumps"
    real = Dump.write

    def pruned_meanwhile(held: Dump, path: Path, seq: int) -> str:
        part = dumps / "second.part"
        part.write_bytes(b"half")
        other.snapshots.prune(["PREPARED", "second"])
        assert part.exists()
        return real(held, path, seq)

    book.tables.save("tactics", {"name": "x"})
    monkeypatch.setattr(Dump, "write", pruned_meanwhile)
    book.snapshots.make("second", dump=True)
    assert book.snapshots.verify("second") == []
    (dumps / "dead.part").write_bytes(b"half")
    other.snapshots.prune(["PREPARED", "second"])
    assert sorted(path.name for path in dumps.iterdir()) == ["PREPARED.db", "second.db"]
    other.close()
