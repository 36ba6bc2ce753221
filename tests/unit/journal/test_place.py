"""The place behind a change is found without reading all that is before it."""

from __future__ import annotations

import os
import random
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.journal import Change, Journal
from agent_memory.journal.place import find_offset
from agent_memory.journal.reader import get_position, resume_at

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return a journal of 400 lines, some of them long, and one of them damaged."""
    path = tmp_path / "memories.yaml"
    sizes = random.Random(3)
    with Journal(path, {"memory"}).locked() as writer:
        for number in range(400):
            text = "x\n--- {" * sizes.choice([1, 20, 20_000 if number % 40 == 0 else 3])
            writer.append([Change("put", "memory", f"mem-{number:012x}", {"content": text})])
    content = path.read_bytes().splitlines(keepends=True)
    content[200] = b"what a disk made of it\n"
    path.write_bytes(b"".join(content))
    return path


def test_reading_goes_on_behind_any_change(journal: Path) -> None:
    content = journal.read_bytes()
    lines = content.splitlines(keepends=True)
    descriptor = os.open(journal, os.O_RDONLY)
    try:
        for seq in [*range(0, 400, 7), 198, 199, 200, 201, 399, 400, 900]:
            offset = find_offset(descriptor, len(content), seq)

            known = content[:offset].count(b"\n")
            assert offset == sum(map(len, lines[:known]))
            assert known - 1 in {min(seq, 400), seq + (seq == 199)}
    finally:
        os.close(descriptor)


def test_an_empty_journal_has_nothing_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "memories.yaml"
    path.write_bytes(b"")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert find_offset(descriptor, 0, 5) == 0
    finally:
        os.close(descriptor)


def test_a_reader_that_began_at_a_place_goes_on_behind_what_it_knew_of_a_compacted_journal(tmp_path: Path) -> None:
    path, far = tmp_path / "memories.yaml", 3_000
    other = Journal(path, {"memory"})
    with other.locked() as writer:
        for number in range(far):
            writer.append([put(number)])
    other.poll()
    place = get_position(other.reader)
    assert place is not None
    mine = Journal(path, {"memory"})
    assert resume_at(mine.reader, place)
    with other.locked() as writer:
        writer.append([put(0, "another text")])
    assert [entry.seq for entry in mine.poll().entries] == [far + 1]
    other.compact(grace=timedelta(0))
    with other.locked() as writer:
        writer.append([put(far)])
    update = mine.poll()
    assert ([entry.seq for entry in update.entries], update.reset) == ([far + 2], False)
    assert mine.watermark == other.watermark
    begin, end = mine.reader.read.begin, path.stat().st_size
    assert end - begin < 1_000, "read again what it knew"
    assert mine.reader.lines == len(path.read_bytes().splitlines())
    with mine.locked() as writer:
        writer.append([put(far + 1)])
    assert [entry.seq for entry in other.poll().entries] == [far + 3]


@pytest.mark.parametrize("began_at_a_place", [False, True])
def test_a_copy_that_went_on_elsewhere_and_was_compacted_there_is_read_as_a_whole(
    tmp_path: Path, began_at_a_place: bool
) -> None:
    path, copy = tmp_path / "memories.yaml", tmp_path / "elsewhere" / "memories.yaml"
    here = Journal(path, {"memory"})
    with here.locked() as writer:
        writer.append([put(0)])
        writer.append([put(1)])
    copy.parent.mkdir()
    shutil.copyfile(path, copy)
    with here.locked() as writer:
        for number in range(2, 6):
            writer.append([put(number)])
    mine = Journal(path, {"memory"})
    if began_at_a_place:
        place = get_position(here.reader)
        assert place is not None
        assert resume_at(mine.reader, place)
    mine.poll()
    there = Journal(copy, {"memory"})
    with there.locked() as writer:
        writer.append([put(7), put(8)])
        writer.append([put(9)])
    there.compact()
    shutil.copyfile(copy, path)

    for reader in (here, mine):
        update = reader.poll()
        assert update.reset
        assert [change.id for entry in update.entries for change in entry.changes] == [
            put(number).id for number in (0, 1, 7, 8, 9)
        ]


def put(number: int, text: str = "a text") -> Change:
    return Change("put", "memory", f"mem-{number:012x}", {"content": text})
