"""A change of what was read is told: at once by looking at all of it, and after some looks by looking at little."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_memory.journal.reader import BLOCK, ReadChecksums

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BLOCKS = 5
LENGTH = BLOCKS * BLOCK - 100


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * (BLOCK // 256) * BLOCKS)
    descriptor = os.open(path, os.O_RDWR)
    yield descriptor
    os.close(descriptor)


def read_in_pieces(descriptor: int, *lengths: int) -> ReadChecksums:
    fingerprint = ReadChecksums()
    for length in lengths:
        fingerprint.add(os.pread(descriptor, length, fingerprint.size))
    assert fingerprint.size == sum(lengths)
    return fingerprint


@pytest.mark.parametrize("lengths", [(LENGTH,), (1, BLOCK - 1, 0, BLOCK, LENGTH - 2 * BLOCK), (7, LENGTH - 7)])
def test_however_it_was_read_the_same_bytes_are_the_same(opened: int, lengths: tuple[int, ...]) -> None:
    fingerprint = read_in_pieces(opened, *lengths)
    assert fingerprint.is_kept(opened)
    assert all(fingerprint.seems_kept(opened) for _ in range(2 * BLOCKS))


@pytest.mark.parametrize("at", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 5, LENGTH - 1])
def test_any_changed_byte_is_told_at_once_or_within_as_many_looks_as_there_are_blocks(opened: int, at: int) -> None:
    fingerprint = read_in_pieces(opened, LENGTH)
    os.pwrite(opened, b"\xa5", at)
    assert not fingerprint.is_kept(opened)
    assert not all(fingerprint.seems_kept(opened) for _ in range(BLOCKS))


def test_what_was_not_read_may_change_and_what_was_read_must_be_there(opened: int) -> None:
    fingerprint = read_in_pieces(opened, LENGTH)
    os.pwrite(opened, b"\xa5", LENGTH)
    assert fingerprint.is_kept(opened)
    os.ftruncate(opened, LENGTH - 1)
    assert not fingerprint.is_kept(opened)
    assert not fingerprint.seems_kept(opened)
    assert ReadChecksums().is_kept(opened)
    assert ReadChecksums().seems_kept(opened)
