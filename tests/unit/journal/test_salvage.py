"""What was forgotten for good leaves the files beside the journal as well, and nothing else leaves them."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.journal import Change, Journal
from agent_memory.journal.format import Header, encode_entry, encode_line
from agent_memory.journal.reader import LineProblem
from agent_memory.journal.salvage import drop_forgotten, get_rejected_path, keep_rejected

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock

GONE, STAYS = "mem-00000000000a", "mem-00000000000b"
AT = "2026-03-01T12:00:00Z"


@pytest.fixture
def path(root: Path) -> Path:
    root.mkdir()
    return root / "memories.yaml"


def put(seq: int, record_id: str, content: str, **more: object) -> bytes:
    return encode_entry(seq, AT, (Change("put", "memory", record_id, {"content": content, **more}),))


def test_a_copy_keeps_every_line_about_what_is_not_forgotten(path: Path) -> None:
    copy = path.with_name("memories.rewritten-0123abcd.yaml")
    header, stays = Header(generation="g").encode(), put(2, STAYS, "likes tea", supersedes=GONE)
    batch = encode_entry(3, AT, (Change("delete", "memory", GONE), Change("patch", "memory", STAYS, {"tags": ["x"]})))
    torn = put(5, STAYS, "half of it stays")[:-9] + b"\n"
    copy.write_bytes(header + put(1, GONE, "purple elephant") + stays + batch + torn + put(4, GONE, "purple")[:-9])
    drop_forgotten(path, {GONE})
    left = copy.read_bytes()
    assert left.startswith(header + stays)
    assert left.endswith(torn)
    assert b"purple" not in left
    assert left.count(b"\n") == 4
    assert b'"tags": ["x"]' in left


def test_a_file_with_nothing_left_in_it_is_removed(path: Path) -> None:
    lost = path.with_name("memories.lost-0123abcd.yaml")
    lost.write_bytes(encode_line({"id": GONE, "content": "purple elephant"}))
    copy = path.with_name("memories.yaml.before-repair-20260301T120000.yaml")
    copy.write_bytes(Header(generation="g").encode() + put(1, GONE, "purple elephant"))
    drop_forgotten(path, {GONE})
    assert list(path.parent.iterdir()) == []


def test_what_was_set_aside_is_looked_into(path: Path) -> None:
    lines = [put(1, GONE, "purple elephant"), b"\xff" + put(2, GONE, "purple"), b"\xff" + put(3, STAYS, "likes tea")]
    keep_rejected(get_rejected_path(path), [LineProblem(1, "torn", line) for line in lines], AT)
    keep_rejected(get_rejected_path(path), [LineProblem(1, "no id at all", b"rubbish")], AT)
    drop_forgotten(path, {GONE})
    assert get_rejected_path(path).read_bytes().count(b"\n") == 2
    assert b"rubbish" in get_rejected_path(path).read_bytes()


@pytest.mark.parametrize("name", ["memories.yaml", "memories (conflicted copy).yaml", "notes.yaml", "memories.db"])
def test_what_is_none_of_these_files_is_left_alone(path: Path, name: str) -> None:
    other = path.with_name(name)
    other.write_bytes(put(1, GONE, "purple elephant"))
    linked = path.with_name("memories.lost-00000000.yaml")
    linked.symlink_to(other)
    drop_forgotten(path, {GONE})
    assert b"purple" in other.read_bytes()


def test_a_copy_without_the_forgotten_is_not_touched(path: Path) -> None:
    copy = path.with_name("memories.rewritten-0123abcd.yaml")
    copy.write_bytes(Header(generation="g").encode() + put(1, STAYS, "likes tea"))
    before = copy.stat()
    drop_forgotten(path, {GONE})
    assert (copy.stat().st_ino, copy.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("restored", [False, True])
def test_a_compaction_cleans_the_copies_of_what_it_drops_and_of_nothing_that_came_back(
    path: Path, clock: FrozenClock, restored: bool
) -> None:
    journal = Journal(path, {"memory"}, clock=clock, grace=timedelta(days=3))
    for change in (Change("put", "memory", GONE, {"content": "purple elephant"}), Change("delete", "memory", GONE)):
        with journal.locked() as writer:
            writer.append([change])
    clock.advance(days=4)
    if restored:
        with journal.locked() as writer:
            writer.append([Change("put", "memory", GONE, {"content": "purple elephant"})])
    lost = path.with_name("memories.lost-0123abcd.yaml")
    lost.write_bytes(encode_line({"id": GONE, "content": "purple elephant"}))
    journal.compact()
    assert lost.exists() is restored
    assert (b"purple" in path.read_bytes()) is restored


def test_a_copy_that_cannot_be_cleaned_does_not_keep_the_journal_from_forgetting(
    path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(path, {"memory"}, clock=clock)
    for change in (Change("put", "memory", GONE, {"content": "purple elephant"}), Change("delete", "memory", GONE)):
        with journal.locked() as writer:
            writer.append([change])
    lost = path.with_name("memories.lost-0123abcd.yaml")
    lost.write_bytes(encode_line({"id": GONE, "content": "purple elephant"}))
    real = os.unlink

    def refuses(name: str | os.PathLike[str], **options: int) -> None:
        if str(name).endswith("lost-0123abcd.yaml"):
            raise PermissionError(13, "Permission denied", str(name))
        real(name, **options)

    monkeypatch.setattr(os, "unlink", refuses)
    journal.compact(grace=timedelta(0))
    assert lost.exists()
    assert b"purple" not in path.read_bytes()
