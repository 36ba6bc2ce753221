"""The place behind a change is found without reading all that is before it."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from agent_memory.journal import Change, Journal
from agent_memory.journal.place import offset_behind

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
            offset = offset_behind(descriptor, len(content), seq)

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
        assert offset_behind(descriptor, 0, 5) == 0
    finally:
        os.close(descriptor)
