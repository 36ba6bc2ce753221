"""Segments in a row are read as one, and what came later hides what it replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from agent_memory.errors import StorageError
from agent_memory.index.segment import Chain, Segment, SegmentInfo, hash_id, list_segments, open_chain
from agent_memory.index.segment_writer import Row, seal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def sealed(folder: Path, ids: Sequence[str], hides: Sequence[str] = (), stretch: tuple[int, int] = (1, 9)) -> Segment:
    folder.mkdir(parents=True)
    rows = [
        Row(each, stretch[0], f'{{"content": "{folder.name} {each}"}}'.encode(), each.encode() * 8, 0.0, 0.0, {}, 0)
        for each in ids
    ]
    seal(
        folder,
        rows,
        SegmentInfo("memory", *stretch, 0, 0, 0),
        hides=np.array([hash_id(one.encode()) for one in hides], np.uint64),
        forgotten=[b"f" * 32],
    )
    return Segment(folder)


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(
        [
            sealed(tmp_path / "a", ["m-01", "m-02", "m-03"]),
            sealed(tmp_path / "b", ["m-02", "m-04"], ["m-02", "m-03"], (10, 19)),
        ]
    )


def test_a_later_segment_hides_what_it_changed_or_deleted(chain: Chain) -> None:
    assert [chain.record(number) for number in chain.numbers()] == [
        ("m-01", {"content": "a m-01"}),
        ("m-02", {"content": "b m-02"}),
        ("m-04", {"content": "b m-04"}),
    ]
    assert len(chain) == 3
    assert chain.counting().tolist() == [True, False, False, True, True]


def test_records_are_found_by_id_and_by_text(chain: Chain) -> None:
    assert [chain.find(each) for each in ("m-01", "m-02", "m-03", "m-09")] == [0, 3, None, None]
    assert list(chain.saying(b"m-02" * 8)) == [3]
    assert list(chain.saying(b"m-03" * 8)) == []
    assert chain.forgot(b"f" * 32)


def test_what_is_not_sealed_yet_hides_rows_once(chain: Chain) -> None:
    hashes = np.array([hash_id(b"m-02"), hash_id(b"m-09")], np.uint64)

    chain.hide(hashes)
    chain.hide(hashes)

    assert chain.find("m-02") is None
    assert len(chain) == 2


def test_columns_run_through_all_segments(chain: Chain) -> None:
    assert chain.column("seq").tolist() == [1, 1, 1, 10, 10]
    assert chain.last_seq == 19
    assert [chain.locate(number) for number in (0, 2, 3)] == [(0, 0), (0, 2), (1, 0)]


def test_nothing_sealed_is_an_empty_chain(tmp_path: Path) -> None:
    chain = open_chain(tmp_path, "memory")

    assert (len(chain), chain.last_seq, list(chain.numbers()), chain.find("m-01")) == (0, 0, [], None)


def test_what_is_listed_is_opened_in_that_order(tmp_path: Path) -> None:
    sealed(tmp_path / "a", ["m-01"])
    sealed(tmp_path / "b", ["m-02"], stretch=(10, 19))

    list_segments(tmp_path, ["a", "b"], {})

    chain = open_chain(tmp_path, "memory")
    assert [chain.record(number)[0] for number in chain.numbers()] == ["m-01", "m-02"]
    with pytest.raises(StorageError, match="kind"):
        open_chain(tmp_path, "row")


@pytest.mark.parametrize("names", [["b", "a"], ["b"], ["a", "c"]])
def test_segments_with_a_gap_between_them_are_refused(tmp_path: Path, names: list[str]) -> None:
    sealed(tmp_path / "a", ["m-01"])
    sealed(tmp_path / "b", ["m-02"], stretch=(10, 19))
    list_segments(tmp_path, names, {})

    with pytest.raises(StorageError):
        open_chain(tmp_path, "memory")
