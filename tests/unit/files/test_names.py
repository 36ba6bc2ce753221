"""What a name in an agent's folder means, and under which name something is set aside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_memory.files.entries import shared_file_system
from agent_memory.files.exchange import set_aside
from agent_memory.files.names import classify_name, get_aside_path, has_journal_lines, parse_moment
from tests.rows import check_rows
from tests.support import NOON

if TYPE_CHECKING:
    from pathlib import Path

SORTS = {
    "ours": (
        "memories.yaml",
        "blobs",
        "tasks.lock",
        "archive.lock",
        "episodes.yaml",
        "shortlist.json",
        "memories.db",
        "events.1.jsonl",
        "embeddings.sqlite3",
    ),
    "rejected": ("memories.rejected.yaml", "episodes.rejected.yaml"),
    "temporary": (".memories.yaml.0123abcd.tmp",),
    "taken_out": (".scratchpad.yaml.0123abcd.old",),
    "lost": ("memories.lost-0123abcd.yaml",),
    "rewritten": ("memories.rewritten-0123abcd.yaml",),
    "before_repair": ("memories.yaml.before-repair-20260301T120000-2", "scratchpad.before-repair-20260301T120000.yaml"),
    "broken_pad": ("scratchpad.broken-20260301T120000-2.yaml",),
    "broken_vectors": ("embeddings.sqlite3.broken", "embeddings.sqlite3.broken-20260301T120000"),
    "broken": (".lock.broken-20260301T120000", "memories.rejected.broken-20260301T120000"),
    "conflict": ("memories (1).yaml", "memories-LAPTOP.yaml", "memories.sync-conflict-20260301-120000-ABCDEF7.yaml"),
    "copy": ("memories.yaml.bak", "Memories.yaml", "memories.rewritten-by-me.yaml"),
    "stray": ("metadata (1).json", ".memories.yaml.icloud", ".memories.yaml.12.tmp"),
    "other": ("notes.txt", "Notes.yaml", ".DS_Store"),
}


@check_rows(("sort", "name"), [(sort, name) for sort, names in SORTS.items() for name in names])
def test_a_name_means_one_thing(sort: str, name: str) -> None:
    assert classify_name(name) == sort


def test_files_with_old_lines_are_those_of_their_own_journal() -> None:
    every = [name for names in SORTS.values() for name in names]
    assert {name for name in every if has_journal_lines("episodes.yaml", name)} == {"episodes.rejected.yaml"}
    assert {classify_name(name) for name in every if has_journal_lines("memories.yaml", name)} == {
        *("rejected", "lost", "rewritten", "before_repair", "broken")
    }


def test_a_name_tells_when_it_was_given() -> None:
    assert parse_moment("scratchpad.broken-20260301T120000-2.yaml") == NOON
    assert parse_moment("scratchpad.broken-99999999T999999.yaml") is parse_moment("notes.txt") is None


def test_what_is_set_aside_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "scratchpad.yaml"
    place = get_aside_path(path, "broken", "20260301T120000")
    written = [set_aside(path, place, content).name for content in (b"1", b"2")]
    path.mkdir()
    assert [*written, set_aside(path, place).name] == [
        f"scratchpad.broken-20260301T120000{number}.yaml" for number in ("", "-2", "-3")
    ]
    assert place.read_bytes() == b"1"
    assert not path.exists()


@pytest.mark.parametrize(
    ("kind", "shared"), [("virtiofs", True), ("lustre", True), ("fuse.sshfs", True), ("xfs", False)]
)
def test_file_systems_that_machines_share_are_known_by_their_kind(tmp_path: Path, kind: str, shared: bool) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"36 22 {os.major(device)}:{os.minor(device)} / /mnt rw shared:1 - {kind} server:/export rw\n")
    assert (shared_file_system(tmp_path, mounts) == kind) is shared
