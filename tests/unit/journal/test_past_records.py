"""Records that existed at a change, read without decoding lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.journal import Change
from agent_memory.journal.format import Header, encode_entry
from agent_memory.journal.past_records import load_past_records

if TYPE_CHECKING:
    from pathlib import Path


def at(number: int) -> str:
    return f"2026-03-{number:02d}T12:00:00Z"


def put(number: int, text: str = "x", kind: str = "memory") -> Change:
    return Change("put", kind, f"mem-{number:012x}", {"content": text})


def write(path: Path, *lines: tuple[int, tuple[Change, ...]]) -> Path:
    """Write a journal with the changes of numbered lines."""
    path.write_bytes(Header.fresh().encode() + b"".join(encode_entry(seq, at(seq), changes) for seq, changes in lines))
    return path


def list_numbers(path: Path, seq: int | None = None, moment: str | None = None) -> list[int]:
    return [int(record_id[4:], 16) for record_id in load_past_records(path, "memory", seq, moment).ids]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    delete = Change("delete", "memory", f"mem-{1:012x}", {})
    return write(
        tmp_path / "memories.yaml",
        (1, (put(1), put(2))),
        (3, (put(3),)),
        (5, (delete,)),
        (6, (put(1),)),
        (9, (Change("patch", "memory", f"mem-{2:012x}", {"content": "y"}), put(9, kind="other"))),
    )


@pytest.mark.parametrize(
    ("seq", "found", "ids"),
    [
        (0, 0, []),
        (1, 1, [1, 2]),
        (2, 1, [1, 2]),
        (3, 3, [1, 2, 3]),
        (5, 5, [2, 3]),
        (6, 6, [2, 3, 1]),
        (8, 6, [2, 3, 1]),
        (9, 9, [2, 3, 1]),
        (10**9, 9, [2, 3, 1]),
        (None, 9, [2, 3, 1]),
    ],
)
def test_load_past_records_any_number_counts_lines_until_it(
    journal: Path, seq: int | None, found: int, ids: list[int]
) -> None:
    past = load_past_records(journal, "memory", seq)
    assert (past.seq, past.at, past.first, past.last) == (found, at(found) if found else "", 1, 9)
    assert list_numbers(journal, seq) == ids


@pytest.mark.parametrize(
    ("moment", "ids"), [("2026-02-28T00:00:00Z", []), (at(3), [1, 2, 3]), ("2026-03-05T23:00:00Z", [2, 3])]
)
def test_load_past_records_moment_counts_lines_until_it(journal: Path, moment: str, ids: list[int]) -> None:
    assert list_numbers(journal, None, moment) == ids


def test_load_past_records_change_in_text_is_ignored(tmp_path: Path) -> None:
    text = '"op": "delete", "kind": "memory", "id": "mem-000000000001"\n--- {"seq": 7, "at": "x"'
    journal = write(tmp_path / "memories.yaml", (1, (put(1),)), (2, (put(2, text),)))
    assert list_numbers(journal) == [1, 2]
    assert load_past_records(journal, "memory").last == 2


@pytest.mark.parametrize("count", [1, 2, 3, 17, 64])
def test_load_past_records_many_lines_finds_each_number(tmp_path: Path, count: int) -> None:
    path = tmp_path / "memories.yaml"
    content = Header.fresh().encode()
    content += b"".join(
        encode_entry(2 * seq, at(1), (put(seq, "word " * (seq % 7 * 30)),)) for seq in range(1, count + 1)
    )
    path.write_bytes(content)
    for seq in range(2 * count + 2):
        assert list_numbers(path, seq) == list(range(1, seq // 2 + 1))[:count]


def test_load_past_records_missing_or_empty_journal_has_none(tmp_path: Path) -> None:
    assert load_past_records(tmp_path / "none.yaml", "memory").ids == ()
    (tmp_path / "empty.yaml").touch()
    assert load_past_records(tmp_path / "empty.yaml", "memory", 3).last == 0


def test_load_past_records_damaged_lines_are_skipped(journal: Path) -> None:
    journal.write_bytes(journal.read_bytes() + b"\x00\x01 not a line\n--- {torn")
    assert load_past_records(journal, "memory").seq == 9
    assert list_numbers(journal, 3) == [1, 2, 3]
