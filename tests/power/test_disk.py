"""The disk model itself: what must survive a power cut, and what may not."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.power.disk import FATES, SECTOR, Disk
from tests.power.events import Event

if TYPE_CHECKING:
    from tests.power.events import Doing

CONTENT = b"x" * (2 * SECTOR + 10)


def disk_of(*steps: tuple[Doing, str] | tuple[Doing, str, str]) -> Disk:
    disk = Disk()
    for step in steps:
        other = step[2] if len(step) == 3 else ""
        disk.apply(Event(step[0], step[1], other, CONTENT if step[0] == "write" else b""))
    return disk


def cuts(disk: Disk) -> list[dict[str, bytes | None]]:
    """Return what many cuts leave."""
    choose = random.Random(0)
    return [disk.cut(fate, choose) for fate in FATES for _ in range(30)]


def test_a_file_synced_under_a_synced_name_survives_every_cut() -> None:
    disk = disk_of(("create", "a"), ("write", "a"), ("sync", "a"), ("sync", ""))
    assert disk.gap("a") is None
    assert all(left == {"a": CONTENT} for left in cuts(disk))


def test_a_synced_file_whose_name_is_not_synced_may_vanish() -> None:
    disk = disk_of(("create", "a"), ("write", "a"), ("sync", "a"))
    assert disk.gap("a") == "the name of a is not synced"
    assert {} in cuts(disk)
    assert {"a": CONTENT} in cuts(disk)


def test_a_named_file_that_is_not_synced_may_be_empty_torn_or_whole() -> None:
    disk = disk_of(("create", "a"), ("sync", ""), ("write", "a"))
    assert disk.gap("a") == "the bytes of a are not synced"
    found = {left["a"] for left in cuts(disk)}
    assert {b"", CONTENT, bytes(len(CONTENT))} <= found
    assert len(found) > 5


def test_a_renamed_file_may_be_under_either_name_and_empty_under_the_new_one() -> None:
    disk = disk_of(("create", "a"), ("sync", ""), ("write", "a"), ("rename", "a", "b"))
    left = cuts(disk)
    assert {"a": b""} in left
    assert {"b": b""} in left
    assert {"b": CONTENT} in left
    assert all(names for names in left), "a rename never loses both names"


def test_what_is_in_a_folder_goes_with_its_name() -> None:
    disk = disk_of(("mkdir", "f"), ("create", "f/a"), ("write", "f/a"), ("sync", "f/a"), ("sync", "f"))
    assert disk.gap("f/a") == "the name of f is not synced"
    assert {} in cuts(disk)


def test_bytes_of_a_failed_sync_stay_in_doubt_after_one_that_succeeds() -> None:
    disk = disk_of(("create", "a"), ("sync", ""), ("write", "a"), ("sync_failed", "a"), ("sync", "a"))
    assert disk.gap("a") == "the bytes of a are not synced"
    disk.apply(Event("write", "a", data=CONTENT))
    disk.apply(Event("sync", "a"))
    assert disk.gap("a") is None
