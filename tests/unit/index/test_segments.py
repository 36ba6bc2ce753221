"""A segment says what was sealed in it, and a merge of several says what is left of all."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import StorageError
from agent_memory.index.segment import NONE, Segment, SegmentInfo, hash_id
from agent_memory.index.segment_writer import Row, merge, seal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WORDS = st.lists(st.sampled_from(["tea", "ledger", "tea", "größe", "a\0b", "zulu"]), max_size=5)
NAMES = st.sampled_from(["", "ann", "bob"])


@st.composite
def rows(draw: Any) -> list[Row]:
    """Draw rows of distinct ids."""
    ids = draw(st.lists(st.integers(0, 30), unique=True, max_size=12))
    found = []
    for seq, number in enumerate(ids):
        words = draw(WORDS)
        text = " ".join(words)
        found.append(
            Row(
                id=f"mem-{number}",
                seq=seq + 1,
                data=json.dumps({"content": text}).encode(),
                text_hash=sha256(text.encode()).digest(),
                timestamp=float(seq),
                moment=float(seq) / 2,
                terms=Counter(words),
                length=len(words),
                facets=[("tag", word) for word in dict.fromkeys(words[:2])],
                older=draw(st.sampled_from(["", "mem-1", "mem-2"])),
                links=draw(st.sampled_from([(), ("mem-1",), ("mem-1", "mem-2")])),
                session=draw(st.sampled_from([0, 1, 2**64 - 1])),
                speaker=draw(NAMES),
                speakers=draw(st.sampled_from([(), ("ann", "bob")])),
                called=draw(st.sampled_from([(), ("ann",), ("bob", "cy")])),
                pieces=[sha256(word.encode()).digest() for word in words[:2]],
                arrival=40 - number,
            )
        )
    return found


def sealed(folder: Path, every: Sequence[Row], hides: Sequence[str] = (), first: int = 1) -> Segment:
    folder.mkdir(parents=True)
    seal(
        folder,
        every,
        SegmentInfo("memory", first, first + 99, 0, 0, 0),
        hides=np.array([hash_id(one.encode()) for one in hides], np.uint64),
        forgotten={b"f" * 32},
    )
    return Segment(folder)


def read_back(segment: Segment) -> list[Row]:
    """Return the rows of a segment, from its arrays alone."""
    lists = {name: segment.lists(name) for name in ("terms", "facets", "talkers", "called")}
    held: dict[str, list[dict[str, int]]] = {name: [{} for _ in range(len(segment))] for name in lists}
    for name, each in lists.items():
        for number in range(len(each.keys)):
            listed = each.at(number)
            counts = listed.counts.tolist() if len(listed.counts) else [1] * len(listed.rows)
            for row, count in zip(listed.rows.tolist(), counts, strict=True):
                held[name][row][each.keys[number].decode()] = count
    columns, found = segment.columns, []
    linked = columns["linked.hash"]
    older = dict(zip(columns["older.row"].tolist(), columns["older.hash"].tolist(), strict=True))
    known = {hash_id(each.encode()): each for each in ("mem-1", "mem-2")}
    text_hashes = dict(zip(columns["text.row"].tolist(), columns["text.hash"].tolist(), strict=True))
    for row in range(len(segment)):
        session, speaker = int(columns["session"][row]), int(columns["speaker"][row])
        standing = columns["session.row"][columns["session.hash"] == session].tolist()
        assert standing == (np.flatnonzero(columns["session"] == session).tolist() if session else [])
        record = segment.record(row)
        digest = sha256(record["content"].encode()).digest()
        assert text_hashes[row] == int.from_bytes(digest[:8], "little")
        assert row in segment.saying(digest)
        assert segment.find_row(segment.id(row)) == row
        found.append(
            Row(
                id=segment.id(row),
                seq=int(columns["seq"][row]),
                data=json.dumps(record).encode(),
                text_hash=digest,
                timestamp=float(columns["timestamp"][row]),
                moment=float(columns["moment"][row]),
                terms=held["terms"][row],
                length=int(columns["length"][row]),
                arrival=int(segment.arrivals[row]),
                facets=[tuple(key.split("\0", 1)) for key in held["facets"][row]],  # type: ignore[misc]
                older=known.get(older.get(row, 0), ""),
                links=tuple(sorted(known[one] for one in linked[columns["linked.row"] == row].tolist())),
                session=session,
                speaker=segment.strings("speakers")[speaker].decode() if speaker != NONE else "",
                speakers=tuple(held["talkers"][row]),
                called=tuple(held["called"][row]),
                pieces=[piece.tobytes() for piece in columns["piece.hash"][columns["piece.row"] == row]],
            )
        )
    return found


def as_sets(every: Sequence[Row]) -> list[Row]:
    return [row._replace(terms=dict(row.terms), facets=sorted(row.facets)) for row in every]


@given(every=rows())
def test_what_is_sealed_is_read_back(tmp_path_factory: pytest.TempPathFactory, every: list[Row]) -> None:
    segment = sealed(tmp_path_factory.mktemp("s") / "one", every)

    assert as_sets(read_back(segment)) == as_sets(every)
    assert segment.about == SegmentInfo("memory", 1, 100, 0, len(every), sum(row.length for row in every))


@given(first=rows(), second=rows(), dead=st.sets(st.integers(0, 11)))
def test_a_merge_holds_what_is_left_of_all_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, first: list[Row], second: list[Row], dead: set[int]
) -> None:
    place = tmp_path_factory.mktemp("m")
    later = {row.id for row in second}
    parts = [sealed(place / "a", first), sealed(place / "b", second, ["mem-90"], 101)]
    alive = [
        np.array([at not in dead and row.id not in later for at, row in enumerate(first)], bool),
        np.ones(len(second), bool),
    ]
    (place / "c").mkdir()

    merge(place / "c", list(zip(parts, alive, strict=True)), purged_seq=7, oldest=False)

    left = [row for row, stays in zip(first, alive[0], strict=True) if stays] + second
    merged = Segment(place / "c")
    assert as_sets(read_back(merged)) == as_sets(left)
    assert merged.about == SegmentInfo("memory", 1, 200, 7, len(left), sum(row.length for row in left))
    assert merged.columns["hides"].tolist() == [hash_id(b"mem-90")]


def test_a_merge_with_the_oldest_hides_nothing(tmp_path: Path) -> None:
    part = sealed(tmp_path / "a", [], ["mem-90"])
    (tmp_path / "c").mkdir()

    merge(tmp_path / "c", [(part, np.ones(0, bool))], purged_seq=0, oldest=True)

    assert Segment(tmp_path / "c").columns["hides"].tolist() == []


def test_forgotten_texts_are_known_by_their_hash(tmp_path: Path) -> None:
    segment = sealed(tmp_path / "a", [])

    assert segment.forgot(b"f" * 32)
    assert not segment.forgot(b"g" * 32)


def test_rows_are_found_by_the_hashes_of_their_ids(tmp_path: Path) -> None:
    every = [Row(f"mem-{at}", at, b"{}", bytes(32), 0.0, 0.0, {}, 0) for at in range(5)]
    segment = sealed(tmp_path / "a", every)

    wanted = np.array([hash_id(b"mem-3"), hash_id(b"mem-9"), hash_id(b"mem-0")], np.uint64)

    assert segment.find_rows(wanted).tolist() == [3, -1, 0]
    assert segment.find_row("mem-9") is None


def test_what_was_mapped_stays_readable_when_the_folder_is_removed(tmp_path: Path) -> None:
    segment = sealed(tmp_path / "a", [Row("mem-1", 1, b"{}", bytes(32), 3.5, 0.0, {"tea": 2}, 2)])
    for path in segment.folder.iterdir():
        path.unlink()

    listed = segment.lists("terms").of("tea")
    assert (listed.rows.tolist(), listed.counts.tolist()) == ([0], [2])
    assert segment.lists("terms").of("coffee").rows.tolist() == []


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b"not an array at all, but long enough for a header"])
def test_a_damaged_array_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    segment = sealed(tmp_path / "a", [Row("mem-1", 1, b"{}", bytes(32), 0.0, 0.0, {}, 0)])
    (segment.folder / "seq.npy").write_bytes(content)

    with pytest.raises(StorageError, match=r"seq\.npy"):
        Segment(segment.folder)


def test_an_array_that_lost_its_end_is_an_error(tmp_path: Path) -> None:
    segment = sealed(tmp_path / "a", [Row("mem-1", 1, b"{}", bytes(32), 0.0, 0.0, {}, 0)])
    path = segment.folder / "timestamp.npy"
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(StorageError, match=r"timestamp\.npy"):
        Segment(segment.folder)


def test_an_array_that_is_missing_is_an_error(tmp_path: Path) -> None:
    segment = sealed(tmp_path / "a", [])
    (segment.folder / "timestamp.npy").unlink()

    with pytest.raises(StorageError, match=r"timestamp\.npy"):
        Segment(segment.folder).columns["timestamp"]


@pytest.mark.parametrize("said", ['{"version": 99}', '{"version": 1, "kind": "memory"}', "{}"])
def test_a_segment_of_another_version_is_refused(tmp_path: Path, said: str) -> None:
    folder = sealed(tmp_path / "a", []).folder
    (folder / "segment.json").write_text(said)

    with pytest.raises(StorageError):
        Segment(folder)
