"""A journal cut at any byte, with or without rubbish behind it, loses no whole line and takes the next write."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.journal import Change, Journal, Records, apply_change
from agent_memory.journal.salvage import get_rejected_path
from tests.support import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGES = (
    Change("put", "memory", "a", {"content": "tea, not coffee"}),
    Change("put", "memory", "b", {"content": "naïve café ☕ 🙂"}),
    Change("touch", "memory", "a"),
    Change("patch", "memory", "b", {"tags": ["x"]}),
    Change("delete", "memory", "a"),
)


@pytest.fixture(autouse=True)
def no_sync() -> Iterator[None]:
    """Spare the disk: nothing here depends on when it syncs."""
    with mock.patch.object(os, "fsync"):
        yield


def journal_at(folder: Path) -> Journal:
    return Journal(folder / "memories.yaml", {"memory"}, clock=FrozenClock())


def written(folder: Path, changes: tuple[Change, ...] = CHANGES) -> bytes:
    journal = journal_at(folder)
    for change in changes:
        with journal.locked() as writer:
            writer.append([change])
    return journal.path.read_bytes()


def set_aside_in(folder: Path) -> list[bytes]:
    path = get_rejected_path(folder / "memories.yaml")
    if not path.exists():
        return []
    found = [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]
    return [
        base64.b64decode(document["line_base64"]) if "line_base64" in document else document["line"].encode()
        for document in found
    ]


def seqs_in(journal: Journal) -> list[int]:
    return [entry.seq for entry in journal.poll().entries]


def append_one(journal: Journal) -> int:
    with journal.locked() as writer:
        return writer.append([Change("put", "memory", "new", {"content": "after the accident"})]).seq


def test_cut_at_any_byte_nothing_whole_is_lost_and_what_was_torn_is_kept(tmp_path: Path) -> None:
    whole = written(tmp_path / "original", CHANGES[:3])
    for cut in range(len(whole)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / "memories.yaml").write_bytes(whole[:cut])
        ends_in_whole_line = whole[cut : cut + 1] == b"\n"  # only its newline is missing: that line is not lost either
        kept = whole[:cut].count(b"\n") + ends_in_whole_line
        torn = b"" if ends_in_whole_line else whole[:cut].rpartition(b"\n")[2]
        expected = list(range(1, kept))  # the first line is the header
        assert seqs_in(journal_at(folder)) == expected, cut
        assert append_one(journal_at(folder)) == len(expected) + 1, cut
        assert seqs_in(journal_at(folder)) == [*expected, len(expected) + 1], cut
        assert journal_at(folder).reader.problems == []
        assert set_aside_in(folder) == ([torn] if torn else []), cut
        shutil.rmtree(folder)


def test_a_compacted_journal_that_lost_its_last_newline_still_numbers_on(tmp_path: Path) -> None:
    written(tmp_path)
    journal = journal_at(tmp_path)
    with journal.locked() as writer:
        writer.append([Change("delete", "memory", "b")])
    clock = FrozenClock()
    clock.advance(days=90)
    Journal(journal.path, {"memory"}, clock=clock).compact()
    header = journal.path.read_bytes()
    assert header.count(b"\n") == 1, "everything was deleted: only the header is left"
    journal.path.write_bytes(header[:-1])
    assert append_one(journal_at(tmp_path)) == 7


@given(cut=st.integers(0, 10_000), rubbish=st.binary(min_size=1, max_size=60) | st.text(max_size=20).map(str.encode))
def test_rubbish_behind_a_cut_costs_no_whole_line(cut: int, rubbish: bytes) -> None:
    folder = Path(tempfile.mkdtemp(prefix="torn-"))
    try:
        whole = written(folder / "original")
        cut %= len(whole) + 1
        damaged = whole[:cut] + rubbish
        (folder / "memories.yaml").write_bytes(damaged)
        kept = max(0, whole[:cut].count(b"\n") - 1)
        before = seqs_in(journal_at(folder))
        assert before[:kept] == list(range(1, kept + 1))
        seq = append_one(journal_at(folder))
        assert seq > max(before, default=0)
        reopened = journal_at(folder)
        assert seqs_in(reopened) == [*before, seq]
        everywhere = (folder / "memories.yaml").read_bytes() + b"".join(set_aside_in(folder))
        for piece in damaged.split(b"\n"):
            assert piece in everywhere, "no byte is thrown away"
    finally:
        shutil.rmtree(folder)


def test_a_line_still_being_written_is_no_problem_and_is_seen_once_it_is_whole(tmp_path: Path) -> None:
    whole = written(tmp_path / "original")
    path = tmp_path / "memories.yaml"
    other = journal_at(tmp_path)
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[:last])
    assert seqs_in(other) == [1, 2, 3, 4]
    with path.open("ab") as file:
        file.write(whole[last : last + 30])
        file.flush()
        assert seqs_in(other) == []
        assert other.reader.problems == []
        file.write(whole[last + 30 :])
    assert seqs_in(other) == [5]
    assert set_aside_in(tmp_path) == []


def test_replaying_a_cut_journal_gives_the_records_of_its_whole_lines(tmp_path: Path) -> None:
    whole = written(tmp_path / "original")
    end_of_third = sum(len(line) + 1 for line in whole.split(b"\n")[:4])
    (tmp_path / "memories.yaml").write_bytes(whole[: end_of_third + 11])
    records: Records = {}
    for entry in journal_at(tmp_path).poll().entries:
        for change in entry.changes:
            apply_change(records, change, entry.at)
    assert records == {
        "a": {"content": "tea, not coffee", "access_count": 1, "last_accessed": "2026-03-01T12:00:00Z"},
        "b": {"content": "naïve café ☕ 🙂"},
    }
