"""Which backups there are, and which may go."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agent_memory.care.backups.backup_reader import last_backup, list_backups, prune_backups, to_prune
from agent_memory.care.backups.backup_writer import create_backup

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memories import FileStorage
    from tests.support import FrozenClock


def several(bob: FileStorage, clock: FrozenClock, count: int) -> None:
    for _ in range(count):
        create_backup(bob.folder, clock=clock)
        clock.advance(days=1)


def days(root: Path) -> list[int]:
    return [each.made_at.day for each in list_backups(root)]


async def test_the_newest_is_listed_first(bob: FileStorage, root: Path, clock: FrozenClock) -> None:
    several(bob, clock, 3)
    listed = list_backups(root, "bob")
    assert [each.made_at.day for each in listed] == [3, 2, 1]
    assert not any(each.is_checked or each.problem for each in listed)
    assert all(each.is_checked and not each.problem for each in list_backups(root, check=True))
    assert list_backups(root, "eve") == []
    last = last_backup(root, "bob")
    assert last is not None
    assert (last[0].day, last[1]) == (3, 3)
    assert last_backup(root, "eve") is None


async def test_what_is_not_ours_is_neither_listed_nor_removed(bob: FileStorage, root: Path, clock: FrozenClock) -> None:
    several(bob, clock, 1)
    for name in ("notes.txt", "photos.zip", "bob-20269999T999999Z.zip"):
        (root / "_backups" / name).write_text("x")
    (root / "_backups" / "bob-20200101T000000Z.zip").symlink_to("/etc/passwd")
    assert days(root) == [1]
    prune_backups(root, to_prune(list_backups(root), clock(), keep=1))
    assert len(list((root / "_backups").iterdir())) == 5


async def test_prune_keeps_so_many_of_each(bob: FileStorage, root: Path, clock: FrozenClock) -> None:
    several(bob, clock, 4)
    gone = to_prune(list_backups(root), clock(), keep=2)
    assert [each.made_at.day for each in gone] == [2, 1]
    assert prune_backups(root, gone) == sum(each.size for each in gone)
    assert days(root) == [4, 3]


async def test_prune_by_age_keeps_the_newest_however_old(bob: FileStorage, root: Path, clock: FrozenClock) -> None:
    several(bob, clock, 3)
    clock.advance(days=100)
    prune_backups(root, to_prune(list_backups(root), clock(), older_than=timedelta(days=30)))
    assert days(root) == [3]


async def test_a_damaged_one_does_not_count_as_the_newest(bob: FileStorage, root: Path, clock: FrozenClock) -> None:
    several(bob, clock, 3)
    newest = list_backups(root)[0].path
    content = newest.read_bytes()
    middle = content.index(b"memories.yaml") + 100
    newest.write_bytes(content[:middle] + b"\0\0\0\0" + content[middle + 4 :])
    assert list_backups(root, check=True)[0].problem
    gone = to_prune(list_backups(root), clock(), keep=1)
    assert [each.made_at.day for each in gone] == [1]


async def test_both_conditions_have_to_hold(bob: FileStorage, root: Path, clock: FrozenClock) -> None:
    several(bob, clock, 4)
    gone = to_prune(list_backups(root), clock(), keep=1, older_than=timedelta(days=2))
    assert [each.made_at.day for each in gone] == [2, 1]


async def test_no_folder_is_no_backup(root: Path) -> None:
    assert list_backups(root) == []
    assert prune_backups(root, []) == 0
