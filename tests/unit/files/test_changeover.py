"""Several files replaced together: wherever a process dies, all are old or all are new."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_memory.files import exchange
from agent_memory.files.atomic import list_leftovers, remove_leftovers
from agent_memory.files.exchange import finish_settled_files, is_settled, open_staging, settle_files
from agent_memory.files.lock import finish_settled, folder_lock

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("first.yaml", "second.yaml")


class KilledError(BaseException):
    """Stands for the death of the process."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "bob"
    (made / "pages").mkdir(parents=True)
    for name in NAMES:
        (made / name).write_text("old")
    (made / "pages" / "old.md").write_text("old")
    return made


def fill(staged: Path) -> None:
    for name in NAMES:
        (staged / name).write_text("new")
    (staged / "pages").mkdir()
    (staged / "pages" / "new.md").write_text("new")


def change(folder: Path) -> None:
    with open_staging(folder) as staged:
        fill(staged)
        settle_files(folder, staged)
        raise KilledError


def contents(folder: Path) -> list[str]:
    return [(folder / name).read_text() for name in NAMES] + [each.name for each in (folder / "pages").iterdir()]


def test_all_are_replaced_and_nothing_is_left(folder: Path) -> None:
    with open_staging(folder) as staged:
        fill(staged)
        settle_files(folder, staged)
    assert contents(folder) == ["new", "new", "new.md"]
    assert {each.name for each in folder.iterdir()} == {*NAMES, "pages"}


def test_what_is_not_settled_changes_nothing_and_goes(folder: Path) -> None:
    with open_staging(folder) as staged:
        fill(staged)
    assert contents(folder) == ["old", "old", "old.md"]
    assert {each.name for each in folder.iterdir()} == {*NAMES, "pages"}


def test_what_a_process_that_died_had_not_settled_goes_with_the_next_staging(folder: Path) -> None:
    left = folder / ".restoring.0123abcd.tmp"
    left.mkdir()
    fill(left)
    with open_staging(folder):
        assert not left.exists()
    assert contents(folder) == ["old", "old", "old.md"]


def test_staging_leaves_alone_what_another_stages_now(folder: Path) -> None:
    with open_staging(folder) as one, open_staging(folder) as other:
        fill(one)
        fill(other)
        assert one != other
    assert contents(folder) == ["old", "old", "old.md"]


@pytest.mark.parametrize("step", range(6))
def test_the_next_to_take_the_lock_finishes_what_was_settled(
    folder: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dies before the given one of the renames and removals that follow the settling."""
    done = 0

    def counted(real: object) -> object:
        def call(*arguments: object, **further: object) -> object:
            nonlocal done
            done += 1
            if done > step + 1:  # the first one settles
                raise KilledError
            return real(*arguments, **further)  # type: ignore[operator]

        return call

    kind = type(folder)
    with monkeypatch.context() as dying:
        dying.setattr(kind, "rename", counted(kind.rename))
        dying.setattr(kind, "replace", counted(kind.replace))
        dying.setattr(exchange.shutil, "rmtree", counted(exchange.shutil.rmtree))
        with pytest.raises(KilledError):
            change(folder)
    with folder_lock(folder):
        pass
    assert contents(folder) == ["new", "new", "new.md"]
    assert not is_settled(folder)


def test_finishing_waits_for_nobody_unless_told_to(folder: Path) -> None:
    (folder / ".restoring").mkdir()
    (folder / ".restoring" / NAMES[0]).write_text("new")
    finish_settled(folder)
    assert contents(folder)[:2] == ["new", "old"]


def test_finishing_again_does_no_harm(folder: Path) -> None:
    (folder / ".restoring").mkdir()
    finish_settled_files(folder)
    assert contents(folder) == ["old", "old", "old.md"]


def test_what_was_not_settled_is_a_leftover_once_nobody_holds_it(folder: Path) -> None:
    left = folder / ".restoring.0123abcd.tmp"
    left.mkdir()
    fill(left)
    os.utime(left, (1, 1))
    with open_staging(folder) as staged:
        os.utime(staged, (1, 1))
        left.mkdir(exist_ok=True)
        os.utime(left, (1, 1))
        assert list_leftovers(folder) == [left]
        remove_leftovers(folder)
        assert staged.exists()
    assert not left.exists()
